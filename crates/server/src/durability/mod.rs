//! Durability of changes, and what waits for it: the log's state, snapshots, recovery.

pub(crate) mod hold;
pub(crate) mod loading;
pub(crate) mod log_state;
pub(crate) mod recover_error;
pub(crate) mod recovery;
pub(crate) mod scrub;
pub(crate) mod snapshot_thread;
pub(crate) mod snapshots;
