//! Why the data cannot be served.

use crate::group::NodeError;
use std::io;
use std::path::PathBuf;
use tidemark_engine::ApplyError;
use tidemark_log::{Damage, Lsn, OpenError, ReplayError, SnapshotError};

/// Why the data cannot be served. The disk is unchanged, except that a torn tail was cut.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The directory cannot be used.
    #[error("cannot use the data directory {}: {error}; choose another with --dir", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Other users can read the directory.
    #[error(
        "other users of this machine can open the data directory {dir} (mode {mode:03o}), and read every value and the secrets of draws \
         to come: run `chmod 700 {dir}`, or allow it with --private-dir no",
        dir = dir.display()
    )]
    Readable {
        /// The directory.
        dir: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The directory cannot be that of a member of a cluster.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// No snapshot can be read where one is needed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A snapshot's frame is invalid.
    #[error("the snapshot at record {lsn} cannot be loaded: {error}")]
    Load {
        /// LSN of the snapshot.
        lsn: Lsn,
        /// What is wrong with it.
        error: ApplyError,
    },
    /// A record is invalid.
    #[error("the log's record {lsn} cannot be applied: {error}")]
    Apply {
        /// LSN of the record.
        lsn: Lsn,
        /// What is wrong with it.
        error: ApplyError,
    },
    /// The server was stopped before all data was loaded.
    #[error("the server was stopped while it loaded its data")]
    GivenUp,
    /// A thread that loads the snapshot has panicked.
    #[error("loading the snapshot has panicked: this is a defect of Tidemark, please report it")]
    Panicked,
}

impl RecoverError {
    /// Returns what the disk has damaged, in words; `None` if the error is another one.
    pub(crate) fn damage(&self) -> Option<String> {
        match self {
            RecoverError::Open(OpenError::Damaged(damage))
            | RecoverError::Replay(ReplayError::Damaged(damage)) => Some(damage_of(damage)),
            RecoverError::Open(OpenError::Missing(missing)) => Some(format!(
                "the log ends at record {}, and had all up to {}",
                missing.last, missing.durable
            )),
            RecoverError::Snapshot(error) => damage_of_snapshot(error),
            // Its frames have their checksums: what does not fit is a block file that they refer to.
            RecoverError::Load { lsn, error: error @ ApplyError::Malformed(_) } => {
                Some(format!("the snapshot at record {lsn}: {error}"))
            }
            RecoverError::Node(NodeError::Damaged(error)) => Some(error.to_string()),
            _ => None,
        }
    }
}

/// Says where a log is damaged, without what to do about it: a member's is got from the others.
pub(crate) fn damage_of(damage: &Damage) -> String {
    format!("{} at byte {}: {}", damage.path, damage.offset, damage.what)
}

/// Returns what a snapshot has damaged, in words; `None` if the error is another one.
pub(crate) fn damage_of_snapshot(error: &SnapshotError) -> Option<String> {
    match error {
        SnapshotError::Damaged { path, offset, what }
        | SnapshotError::DamagedBlock { path, offset, what } => {
            Some(format!("{path} at byte {offset}: {what}"))
        }
        SnapshotError::NoneUsable { newest, .. } => damage_of_snapshot(newest),
        SnapshotError::Missing { floor } => Some(format!(
            "there is no snapshot at record {} or later, where the log begins",
            floor.previous()
        )),
        _ => None,
    }
}
