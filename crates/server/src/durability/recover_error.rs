//! Why the data cannot be served.

use crate::group::NodeError;
use std::io;
use std::path::PathBuf;
use tidemark_engine::ApplyError;
use tidemark_log::{Lsn, OpenError, ReplayError, SnapshotError};

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
