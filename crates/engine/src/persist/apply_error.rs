//! Why a record of the log cannot be applied, or a frame of a snapshot cannot be loaded.

use std::borrow::Cow;
use std::fmt;
use tidemark_log::Lsn;

/// Why a record or frame could not be applied: another version wrote it, or it is not what its
/// checksum says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The record's kind is unknown.
    #[error("record kind {0} is unknown: the log was written by a newer version; start that version")]
    UnknownKind(u8),
    /// The command's number is unknown.
    #[error("command number {0} is unknown: the log was written by a newer version; start that version")]
    UnknownCommand(u16),
    /// The bytes do not have the form of their kind.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Parts of large values are missing in a snapshot.
    #[error("parts of {values} large values are missing, {loaded} of {first} among them")]
    Incomplete {
        /// Of how many.
        values: usize,
        /// How many elements of the first of them have come.
        loaded: u64,
        /// Which one is the first: its number, its type, and how many elements it has, as far as
        /// they are known.
        first: String,
    },
    /// The command failed, though it had succeeded when it was logged.
    #[error("command '{name}' had succeeded when it was logged and now answers: {answer}")]
    Refused {
        /// The command.
        name: &'static str,
        /// Its answer.
        answer: String,
    },
}

impl ApplyError {
    /// The same error, of this record if it does not say of which.
    #[must_use]
    pub fn in_record(self, lsn: Lsn) -> Self {
        self.within(MalformedPart::Record(lsn))
    }

    /// The same error, of the frame of this number in its snapshot, counted from 0, if it does not
    /// say of which.
    #[must_use]
    pub fn in_frame(self, number: usize) -> Self {
        self.within(MalformedPart::Frame(number))
    }

    fn within(self, part: MalformedPart) -> Self {
        match self {
            Self::Malformed(malformed) => {
                Self::Malformed(Malformed { part: malformed.part.or(Some(part)), ..malformed })
            }
            other => other,
        }
    }
}

/// Bytes that do not have the form of their kind: what is wrong with them, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The record or frame, if it is known.
    pub part: Option<MalformedPart>,
    /// Up to which byte of the record's payload or of the frame the bytes could be read, if that is
    /// known.
    pub offset: Option<usize>,
    /// What is wrong.
    pub what: Cow<'static, str>,
}

/// A part of the log or of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedPart {
    /// A record of the log.
    Record(Lsn),
    /// A frame of a snapshot, by its number in the snapshot, counted from 0.
    Frame(usize),
}

impl Malformed {
    /// What is wrong with bytes that have been read up to an offset.
    pub fn at(offset: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Self { part: None, offset: Some(offset), what: what.into() }
    }

    /// What is wrong with a value that was read before.
    pub fn of(what: impl Into<Cow<'static, str>>) -> Self {
        Self { part: None, offset: None, what: what.into() }
    }
}

impl std::error::Error for Malformed {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => f.write_str("the bytes are malformed")?,
            Some(MalformedPart::Record(lsn)) => write!(f, "the payload of record {lsn} is malformed")?,
            Some(MalformedPart::Frame(number)) => write!(f, "frame {number} is malformed")?,
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// A key as errors name it: at most its first 64 bytes, escaped.
pub(crate) fn shown(key: &[u8]) -> String {
    const SHOWN_BYTES: usize = 64;
    match key.split_at_checked(SHOWN_BYTES) {
        Some((start, rest)) if !rest.is_empty() => {
            format!("'{}…' of {} bytes", start.escape_ascii(), key.len())
        }
        _ => format!("'{}'", key.escape_ascii()),
    }
}
