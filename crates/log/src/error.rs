//! Errors of the log, one variant per case that a caller may need to distinguish.

use rustix::io::Errno;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use crate::Lsn;
use crate::entry::{EntryEnd, EntryId};
use crate::gap::records_at_least;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another `Log` of this one, has locked the directory.
    #[error("{path} is in use by another process; stop it first (two processes must never share a log)")]
    Locked {
        /// The lock's path.
        path: String,
    },
    /// Durable records are unreadable.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Records that were durable, according to `END`, are missing.
    #[error(transparent)]
    Missing(#[from] MissingTail),
    /// The log belongs to a member of a group, and was opened as a single node's.
    #[error("{path} belongs to a member of a group, and only the group continues it: start it as one")]
    OfGroup {
        /// The directory.
        path: String,
    },
    /// The options are invalid.
    #[error("cannot open the log: {0}")]
    Options(&'static str),
    /// After the last record there is no LSN left that cannot have been handed out.
    #[error(
        "cannot open the log: its numbers end soon after its last record, {last}; begin a new log, or restore a backup"
    )]
    Exhausted {
        /// The last record.
        last: Lsn,
    },
    /// The storage failed.
    #[error("cannot open the log: {what}: {error}")]
    Storage {
        /// What was tried on which file.
        what: String,
        /// The storage's own error.
        error: io::Error,
    },
}

/// Durable records that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log is damaged: {path} at byte {offset}, where record {expected} should begin: {what}; \
     `tidemark log inspect --dir {directory}` shows what is left, \
     `tidemark log repair --dir {directory}` says what it can keep, and asks before it sets the rest aside",
    directory = shell_directory(path)
)]
pub struct Damage {
    /// The file.
    pub path: String,
    /// Byte offset of the damage.
    pub offset: u64,
    /// The first lost record.
    pub expected: Lsn,
    /// What is wrong there.
    pub what: String,
}

/// Durable records missing at the end of a log: files were lost or cut, or come from an older copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTail {
    /// The file that records what was durable.
    pub path: String,
    /// The last record known to have been durable.
    pub durable: Lsn,
    /// The last existing record, or the newest snapshot's if no segment is left; 0 if there is
    /// neither.
    pub last: Lsn,
}

impl std::error::Error for MissingTail {}

impl fmt::Display for MissingTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, durable, last } = self;
        write!(f, "{path} says that the records up to {durable} were durable, but ")?;
        match last {
            &Lsn::ZERO => f.write_str("there are no records: ")?,
            last => write!(f, "the log ends at record {last}: ")?,
        }
        // If gaps may lie between the two records, some LSNs in between may have no record.
        let (records, between) = (records_at_least(*last, *durable), durable.0.saturating_sub(last.0));
        let at_least = if records < between { "at least " } else { "" };
        write!(
            f,
            "{at_least}{records} {} missing; restore the directory from a backup, \
             or go on without them with `tidemark log repair --dir {}`",
            if records == 1 { "record is" } else { "records are" },
            shell_directory(path)
        )
    }
}

/// Returns the directory of a file, quoted for a shell.
fn shell_directory(path: &str) -> String {
    let directory = Path::new(path).parent().and_then(Path::to_str).filter(|directory| !directory.is_empty());
    let directory = directory.unwrap_or(".");
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+,:@%".contains(character);
    if directory.chars().all(is_plain) {
        directory.to_owned()
    } else {
        format!("'{}'", directory.replace('\'', r"'\''"))
    }
}

/// The unfinished end of a log, left when the process or the machine stopped. It contains nothing
/// that was acknowledged as durable; `open` cuts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The file.
    pub path: String,
    /// Offset at which the last whole record ended.
    pub offset: u64,
    /// Bytes of unfinished writes after it.
    pub bytes: u64,
}

/// The first write or sync that failed. This process accepts no records after it and retries
/// nothing: after a failed sync the content of the disk is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} failed: {error}")]
pub struct Failure {
    /// The operation and the file.
    pub what: String,
    /// The storage's error. It is part of the message, and therefore not the `source`, so that an
    /// error chain shows it only once.
    pub error: Arc<io::Error>,
}

impl Failure {
    /// Returns what an operator can do so that the log can grow again.
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

/// Storage that does not answer: a call, or an appender's wait for space, has taken longer than
/// [`Options::stall_after`](crate::Options::stall_after).
#[derive(Clone, Debug, thiserror::Error)]
#[error("the storage {path} does not answer: {what} for more than {seconds} s")]
pub struct Stall {
    /// The directory.
    pub path: String,
    /// The operation that has not ended.
    pub what: &'static str,
    /// Minimum duration.
    pub seconds: u64,
}

/// Why a record was not accepted. A refused append has no effect.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// An earlier write or sync failed.
    #[error("the log stopped: {0}; restart the server after the storage is repaired")]
    Failed(Failure),
    /// There is no space for the next segment. The log retries in the background; freeing space is
    /// enough.
    #[error("the log cannot grow: {0}; {remedy}", remedy = .0.remedy())]
    Full(Failure),
    /// The storage does not answer; records are accepted again when it does.
    #[error("the log waits: {0}; changes are accepted again when it answers")]
    Stalled(Stall),
    /// The payload is too large.
    #[error("a record of {bytes} bytes is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The payload's size.
        bytes: usize,
        /// `Options::max_record_bytes`.
        limit: usize,
    },
    /// Kind 0 is reserved for the log itself.
    #[error("record kind 0 is reserved")]
    ReservedKind,
    /// `close` was called.
    #[error("the log is closed")]
    Closed,
    /// The entry of a group does not follow the newest one.
    #[error("entry {entry} does not follow the log's newest one, {newest_id}", newest_id = .newest.id)]
    OutOfOrder {
        /// The refused entry.
        entry: EntryId,
        /// The newest entry.
        newest: EntryEnd,
    },
    /// The log belongs to a member of a group that does not lead it.
    #[error("this node does not lead its group")]
    Follows,
    /// The group has taken the record back: it is not in the log and never will be.
    #[error("the group has taken record {lsn} back; this node has lost the lead")]
    TakenBack {
        /// The record.
        lsn: Lsn,
    },
}

/// Why the log cannot be read from an LSN.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// Retention has dropped the record.
    #[error("record {wanted} is no longer kept; the log begins at {floor}")]
    Released {
        /// The requested record.
        wanted: Lsn,
        /// The oldest record that can be read.
        floor: Lsn,
    },
    /// The record is not written yet.
    #[error("record {wanted} is beyond the end of the log, {end}")]
    Beyond {
        /// The requested record.
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
    pub(crate) fn storage(what: impl Into<String>, error: io::Error) -> Self {
        Self::Storage { what: what.into(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SnapshotError;
    use crate::tools::ToolError;

    #[test]
    fn missing_records_are_counted_as_far_as_that_is_certain() {
        let text = |last, durable| {
            MissingTail { path: "END".to_owned(), durable: Lsn(durable), last: Lsn(last) }.to_string()
        };
        let said = text(7896, 8177);
        let expected = "END says that the records up to 8177 were durable, but the log ends at record 7896: \
                        281 records are missing; ";
        assert!(said.starts_with(expected), "{said}");
        assert!(said.ends_with("`tidemark log repair --dir .`"), "{said}");
        assert!(text(0, 3).contains(", but there are no records: 3 records are missing;"), "{}", text(0, 3));
        let behind_gap = text(3, (1 << 32) + 9);
        assert!(behind_gap.contains(": at least 10 records are missing;"), "{behind_gap}");
    }

    #[test]
    fn every_error_says_its_cause_once() {
        let cause = || io::Error::from(Errno::NOSPC);
        let failure = || Failure::new("writing a file", cause());
        let errors: [Box<dyn std::error::Error>; 6] = [
            Box::new(OpenError::storage("writing a file", cause())),
            Box::new(AppendError::Full(failure())),
            Box::new(ReplayError::Storage(failure())),
            Box::new(SnapshotError::from(failure())),
            Box::new(ToolError::from(failure())),
            Box::new(ToolError::from(cause())),
        ];
        for error in errors {
            let chain = std::iter::successors(Some(&*error), |error| error.source());
            let text: Vec<String> = chain.map(ToString::to_string).collect();
            assert_eq!(text.join(": ").matches("os error 28").count(), 1, "{text:?}");
        }
    }

    #[test]
    fn only_a_full_disk_is_reported_as_full() {
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
