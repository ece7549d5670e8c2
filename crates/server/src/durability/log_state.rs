//! Progress and health of the log.

use tidemark_log::{Health, Log, Lsn};

/// The log has failed, and its newest records will not be committed by this process: whether they
/// survive is unknown until the restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitLost;

/// LSN of the newest record, if it is not committed yet.
///
/// # Errors
/// The log has failed before it has committed that record.
pub(crate) fn not_yet_committed(log: &Log) -> Result<Option<Lsn>, CommitLost> {
    let newest = log.appended();
    if newest <= log.committed() {
        Ok(None)
    } else if has_failed(log) {
        Err(CommitLost)
    } else {
        Ok(Some(newest))
    }
}

/// Whether a write or sync of the log has failed. A full log has not failed: it still makes its
/// records durable.
pub(crate) fn has_failed(log: &Log) -> bool {
    // Fast path: one load, which nearly always succeeds.
    log.check_writable().is_err() && matches!(log.health(), Health::Failed(_))
}
