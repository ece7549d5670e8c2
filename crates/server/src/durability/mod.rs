//! What makes changes safe, and what waits until they are: the log's state, snapshots, recovery.

pub(crate) mod hold;
pub(crate) mod loading;
pub(crate) mod log_state;
pub(crate) mod recovery;
pub(crate) mod snapshot_thread;
pub(crate) mod snapshots;
