//! Progress and health of the log.

use tidemark_log::{Health, Log, Lsn};

/// LSN of the newest record, if it is not durable yet and can still become so. `None` once the log
/// has failed: reads continue without waiting.
pub(crate) fn not_yet_durable(log: &Log) -> Option<Lsn> {
    let newest = log.appended();
    (newest > log.durable() && !has_failed(log)).then_some(newest)
}

/// Whether a write or sync of the log has failed. A full log has not failed: it still makes its
/// records durable.
pub(crate) fn has_failed(log: &Log) -> bool {
    // Fast path: one load, which nearly always succeeds.
    log.check_writable().is_err() && matches!(log.health(), Health::Failed(_))
}
