//! What can go wrong, as the caller may need to tell it apart.

use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::Lsn;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another `Log` of this one, owns the directory.
    #[error("{path} is in use by another process; stop it first (two processes must never share a log)")]
    Locked {
        /// The lock's path.
        path: String,
    },
    /// Records that were durable are unreadable.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The options contradict each other.
    #[error("cannot open the log: {0}")]
    Options(&'static str),
    /// There is no LSN behind the last record that was surely never handed out.
    #[error(
        "cannot open the log: its numbers end soon after its last record, {last}; begin a new log, or restore a backup"
    )]
    Exhausted {
        /// The last record.
        last: Lsn,
    },
    /// The storage failed.
    #[error("cannot open the log: {what}: {source}")]
    Storage {
        /// What was tried on which file.
        what: String,
        /// The storage's own error.
        source: io::Error,
    },
}

/// Durable records that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log is damaged: {path} at byte {offset}, where record {expected} should begin: {what}; \
     `tidemark log inspect --dir DIR` shows what is left, \
     `tidemark log repair --dir DIR` keeps every record before {expected} and sets the rest aside"
)]
pub struct Damage {
    /// The file.
    pub path: String,
    /// Byte offset of the damage in it.
    pub offset: u64,
    /// The first record that is lost.
    pub expected: Lsn,
    /// What is wrong there.
    pub what: String,
}

/// The end of a log that was being written when the process or the machine stopped: nothing that was
/// acknowledged as durable, and cut by `open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file.
    pub path: String,
    /// Where the last whole record ended.
    pub offset: u64,
    /// How many bytes of unfinished writes were behind it.
    pub bytes: u64,
}

/// The first write or sync that failed. Nothing is accepted after it in this process, and nothing is retried:
/// after a failed sync nobody knows what the disk holds.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} failed: {error}")]
pub struct Failure {
    /// What was tried on which file.
    pub what: String,
    /// The storage's own error.
    #[source]
    pub error: Arc<io::Error>,
}

impl Failure {
    /// What an operator can do so that the log can grow again.
    pub fn remedy(&self) -> &'static str {
        let no_descriptor = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        match (self.error.raw_os_error(), self.error.kind()) {
            (Some(code), _) if no_descriptor.contains(&code) => {
                "too many files are open: raise the limit (`ulimit -n`) or lower maxclients"
            }
            (_, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => "free space on its disk",
            (_, ErrorKind::FileTooLarge) => {
                "a file may not be as large as a segment: raise the limit (`ulimit -f`) or lower --log-segment-bytes"
            }
            _ => "repair its storage",
        }
    }
}

/// Why a record was not accepted. A refused append has no effect.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// An earlier write or sync failed.
    #[error("the log stopped: {0}; restart the server after the storage is repaired")]
    Failed(Failure),
    /// There is no space for the next segment; retried in the background, so that freeing space is enough.
    #[error("the log cannot grow: {0}; {remedy}", remedy = .0.remedy())]
    Full(Failure),
    /// The payload is too large.
    #[error("a record of {bytes} bytes is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The payload's size.
        bytes: usize,
        /// `Options::max_record_bytes`.
        limit: usize,
    },
    /// Kind 0 belongs to the log itself.
    #[error("record kind 0 is reserved")]
    ReservedKind,
    /// `close` was called.
    #[error("the log is closed")]
    Closed,
}

/// Why the log cannot be read from somewhere.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// Retention has dropped the record.
    #[error("record {wanted} is no longer kept; the log begins at {floor}")]
    Released {
        /// The record asked for.
        wanted: Lsn,
        /// The oldest record that can be read.
        floor: Lsn,
    },
    /// The record is not written yet.
    #[error("record {wanted} is beyond the end of the log, {end}")]
    Beyond {
        /// The record asked for.
        wanted: Lsn,
        /// The last record.
        end: Lsn,
    },
    /// A record is unreadable.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The storage failed.
    #[error("cannot read the log: {0}")]
    Storage(Failure),
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, error: io::Error) -> Self {
        Self { what: what.into(), error: Arc::new(error) }
    }
}

impl OpenError {
    pub(crate) fn storage(what: impl Into<String>, source: io::Error) -> Self {
        Self::Storage { what: what.into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_is_told_to_be_one() {
        let text = |error: Errno| {
            let error = Arc::new(io::Error::from(error));
            AppendError::Full(Failure { what: "creating a segment".to_owned(), error }).to_string()
        };
        assert!(text(Errno::NOSPC).ends_with("; free space on its disk"), "{}", text(Errno::NOSPC));
        assert!(text(Errno::DQUOT).ends_with("; free space on its disk"), "{}", text(Errno::DQUOT));
        assert!(text(Errno::MFILE).contains("too many files are open"), "{}", text(Errno::MFILE));
        assert!(text(Errno::IO).ends_with("; repair its storage"), "{}", text(Errno::IO));
    }
}
