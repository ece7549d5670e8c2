//! Why a journal cannot be replayed.

use std::fmt;
use std::io;

use super::frame::VERSION;

/// Why a journal could not be replayed further.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The input is not a journal.
    NotAJournal,
    /// The journal has this version, which is not supported.
    OtherVersion(char),
    /// The journal is damaged in the frame that begins at this byte.
    Damaged(u64),
    /// An input has a label that the replay does not have; label its counterpart before the replay
    /// runs.
    UnknownLabel(String),
    /// Subscriptions had a callback for their end; set it with
    /// [`Replay::on_close`](crate::Replay::on_close).
    NoCallback {
        /// Label of the conduit subscribed to.
        conduit: String,
        /// Label of the subscriber.
        subscriber: String,
    },
    /// The recording saw an input that it could not record, usually of a component without a label;
    /// label it before the next recording.
    Unlabelled(String),
    /// A value of the journal is not of the type that the label has here. Only the encoding is
    /// checked: a value of another type with the same encoding, such as `u64` for `i64` or a struct
    /// with the same fields, is read as this type.
    WrongType(String),
    /// The frame that begins at this byte contradicts an earlier frame about a subject: the journal
    /// was changed after it was recorded, or put together.
    Contradiction {
        /// Where the frame begins.
        position: u64,
        /// Number of the subject.
        subject: u64,
    },
    /// The value in the frame that begins at this byte exceeds this number of bytes, or the texts
    /// and new names of the journal do with it; see
    /// [`Replay::limit_value`](crate::Replay::limit_value).
    TooLarge {
        /// Where the frame begins.
        position: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The journal has more new names than this; see
    /// [`Replay::limit_names`](crate::Replay::limit_names).
    TooManyNames(u32),
    /// The journal has captures of more subjects than this, or more subscriptions; see
    /// [`Replay::limit_subjects`](crate::Replay::limit_subjects).
    TooManySubjects(u32),
    /// This label was given to two components, or to one of another circuit than the one that
    /// replays.
    Mislabelled(String),
    /// The circuit is not run by its owner, is closed, or has another seed than the journal.
    WrongCircuit(&'static str),
    /// The replay has run already and has read its journal; make another one of the journal to run
    /// it again.
    HasRun,
    /// Reading the journal failed.
    Io(io::Error),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAJournal => f.write_str("this is not the journal of a circuit"),
            Self::OtherVersion(version) => {
                write!(
                    f,
                    "the journal has version {version}, and versions 1 to {VERSION} can be read; \
                     replay it with what has recorded it"
                )
            }
            Self::Damaged(position) => write!(f, "the journal is damaged in the frame at byte {position}"),
            Self::UnknownLabel(label) => {
                write!(
                    f,
                    "the journal has inputs of \"{label}\"; label its counterpart before the replay is run"
                )
            }
            Self::NoCallback { conduit, subscriber } => {
                write!(
                    f,
                    "subscriptions of \"{subscriber}\" to \"{conduit}\" had something to call when they ended; \
                     give it with Replay::on_close before the replay is run"
                )
            }
            Self::Unlabelled(what) => {
                write!(
                    f,
                    "an input was not recorded, because it had no label: {what}; label it before the next \
                     recording (what is made by Circuit::named is easier to recognise)"
                )
            }
            Self::WrongType(label) => {
                write!(f, "a recorded value of \"{label}\" is not of the type it has here")
            }
            Self::Contradiction { position, subject } => {
                write!(
                    f,
                    "the frame at byte {position} says of the subject {subject} something else than one before it: the \
                     journal is not as it was recorded; replay one that a Recording has written, from its beginning on"
                )
            }
            Self::TooLarge { position, bytes_max } => {
                write!(
                    f,
                    "the value in the frame at byte {position}, or all texts and new names up to there, take more than \
                     {bytes_max} bytes; if the journal is to be trusted, allow more with Replay::limit_value"
                )
            }
            Self::TooManyNames(names_max) => {
                write!(
                    f,
                    "the journal has more than {names_max} new names; \
                     if it is to be trusted, allow more with Replay::limit_names"
                )
            }
            Self::TooManySubjects(subjects_max) => {
                write!(
                    f,
                    "the journal has captures of more than {subjects_max} subjects, or as many subscriptions that were \
                     never closed; if it is to be trusted, allow more with Replay::limit_subjects"
                )
            }
            Self::Mislabelled(label) => {
                write!(f, "the label \"{label}\" is of two things, or of something of another circuit")
            }
            Self::WrongCircuit(why) => write!(f, "the circuit cannot replay this journal: {why}"),
            Self::HasRun => f.write_str(
                "the replay has been run, and its journal was read; make another Replay of the journal to run it again",
            ),
            Self::Io(error) => write!(f, "the journal cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReplayError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
