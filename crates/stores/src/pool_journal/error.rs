//! Errors of opening a pool's log.

use tidemark_log::{AppendError, Lsn, OpenError, ReplayError, SnapshotError};
use tidemark_pool::{NotFollowed, Unreadable};

/// Why a pool's log cannot be opened. Nothing of it was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolLogError {
    /// The log itself: another process has it, it is damaged, or its storage fails.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The records after the snapshot cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// There is no snapshot from which the log continues.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A new pool could not be logged.
    #[error("the new pool was not written down: {0}")]
    Create(#[from] AppendError),
    /// A record is not from a pool's log.
    #[error("record {lsn} is none of a pool's log: is this the folder of something else?")]
    Foreign {
        /// Its LSN.
        lsn: Lsn,
    },
    /// A record is not a valid successor of those before it.
    #[error("record {lsn} does not follow those before it: {reason}")]
    NotFollowed {
        /// Its LSN.
        lsn: Lsn,
        /// The reason.
        reason: NotFollowed,
    },
    /// The pool at the beginning of the log, or in its snapshot, cannot be read.
    #[error("the pool as it was behind record {lsn} cannot be read: {reason}")]
    Unreadable {
        /// The last LSN that the pool includes.
        lsn: Lsn,
        /// The reason.
        reason: Unreadable,
    },
}
