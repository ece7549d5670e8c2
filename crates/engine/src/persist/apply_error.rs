//! Why a record of the log cannot be applied, or a frame of a snapshot cannot be loaded.

use std::borrow::Cow;
use std::fmt;
use tidemark_log::Lsn;

/// Why a record or frame could not be applied: it was written by another version, or it is corrupt
/// although its checksum matches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The record's kind is unknown.
    #[error("record kind {0} is unknown: the log was written by a newer version; start that version")]
    UnknownKind(u8),
    /// The command's number is unknown.
    #[error("command number {0} is unknown: the log was written by a newer version; start that version")]
    UnknownCommand(u16),
    /// The bytes are not valid for their kind.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Parts of large values are missing in a snapshot.
    #[error("parts of {values} large values are missing, {loaded} of {first} among them")]
    Incomplete {
        /// Number of incomplete values.
        values: usize,
        /// Number of loaded elements of the first of them.
        loaded: u64,
        /// The first of them: its number, its type and, if known, its number of elements.
        first: String,
    },
    /// The command failed although it succeeded when it was logged.
    #[error("command '{name}' had succeeded when it was logged and now answers: {answer}")]
    Refused {
        /// The command.
        name: &'static str,
        /// Its reply.
        answer: String,
    },
}

impl ApplyError {
    /// Adds the record to the error, unless the error names one already.
    #[must_use]
    pub fn in_record(self, lsn: Lsn) -> Self {
        self.within(MalformedPart::Record(lsn))
    }

    /// Adds the number of the frame in its snapshot, counted from 0, unless the error names a part
    /// already.
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

/// Bytes that are not valid for their kind: the problem and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The record or frame, if known.
    pub part: Option<MalformedPart>,
    /// Offset up to which the payload or frame could be read, if known. Bytes.
    pub offset: Option<usize>,
    /// What is wrong.
    pub what: Cow<'static, str>,
}

/// A part of the log or of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedPart {
    /// A record of the log.
    Record(Lsn),
    /// A frame of a snapshot, by its number, counted from 0.
    Frame(usize),
}

impl Malformed {
    /// Describes a problem in bytes that were read up to an offset.
    pub fn at(offset: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Self { part: None, offset: Some(offset), what: what.into() }
    }

    /// Describes a problem of a value that was read earlier.
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

/// A key in the form for errors: at most its first 64 bytes, escaped.
pub(crate) fn shown(key: &[u8]) -> String {
    const SHOWN_BYTES: usize = 64;
    match key.split_at_checked(SHOWN_BYTES) {
        Some((start, rest)) if !rest.is_empty() => {
            format!("'{}…' of {} bytes", start.escape_ascii(), key.len())
        }
        _ => format!("'{}'", key.escape_ascii()),
    }
}
