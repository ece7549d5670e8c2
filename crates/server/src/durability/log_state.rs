//! How safe the log is.

use tidemark_log::{Health, Log, Lsn};

/// The newest record, if it is not durable yet and can still become so. Once the log has failed nothing more does,
/// and reads go on.
pub(crate) fn not_yet_durable(log: &Log) -> Option<Lsn> {
    let newest = log.appended();
    (newest > log.durable() && !has_failed(log)).then_some(newest)
}

/// Whether a write or sync of the log has failed. A log that is merely full still makes durable what it has.
pub(crate) fn has_failed(log: &Log) -> bool {
    // The first question is one load, and its answer nearly always no.
    log.check_writable().is_err() && matches!(log.health(), Health::Failed(_))
}
