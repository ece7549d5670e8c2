//! Tools for a log: inspect, verify, read and export also work while a server runs; repair and
//! truncate require that no server has the log open.

mod export;
mod inspect;
mod records;
mod repair;
mod salvage;
mod salvaged_header;

pub use export::export;
pub use inspect::{BlockFileReport, Inspection, SegmentReport, SegmentState, SnapshotReport, inspect};
pub use records::Records;
pub use repair::{Cut, plan_repair, plan_truncate};

use crate::error::{Failure, OpenError};

/// Why a tool failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The directory cannot be read or is in use.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Reading or writing failed.
    #[error(transparent)]
    Storage(#[from] Failure),
    /// No state could be recovered, and there is no damage to repair.
    #[error(transparent)]
    Snapshot(#[from] crate::SnapshotError),
    /// The log has no such record.
    #[error("the log holds {}; {wanted} is not among them", range(*first, *last))]
    NoSuchRecord {
        /// The requested record.
        wanted: crate::Lsn,
        /// The oldest record.
        first: crate::Lsn,
        /// The newest record.
        last: crate::Lsn,
    },
    /// A truncated or repaired log could not be opened: the state before its first record would be
    /// missing.
    #[error(
        "the log begins at {first} and no readable snapshot between {} and {last} is under it, so nothing could start \
         from {last}; nothing was changed; truncate after a snapshot that `tidemark log inspect` calls good, or restore the \
         directory from a backup",
        first.previous()
    )]
    NoBase {
        /// The record that would have become the newest.
        last: crate::Lsn,
        /// The oldest record.
        first: crate::Lsn,
    },
    /// The log belongs to a member of a group.
    #[error(
        "{path} belongs to a member of a group, and what is cut from it alone may be what the group has committed; nothing \
         was changed; start the member with an empty directory, so that it gets everything from the others, or restore the \
         whole group from a backup"
    )]
    OfGroup {
        /// The directory.
        path: String,
    },
    /// The requested range of a binary export has records on both sides of a gap.
    #[error(
        "a start that was not clean has left a gap between the records {before} and {behind}, and a binary file is one segment, \
         which has none; export up to {before} and from {behind} on separately, or as text or jsonl"
    )]
    Gap {
        /// The last record before the gap.
        before: crate::Lsn,
        /// The first record after it.
        behind: crate::Lsn,
    },
    /// The exported records could not be written.
    #[error("writing the exported records: {0}")]
    Output(std::io::Error),
    /// The log is damaged where it would have to be read.
    #[error(transparent)]
    Damaged(#[from] crate::Damage),
}

impl From<std::io::Error> for ToolError {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// Formats a range of records. A log without records starts after its end.
fn range(first: crate::Lsn, last: crate::Lsn) -> String {
    if first > last { "no records".to_owned() } else { format!("the records {first} to {last}") }
}
