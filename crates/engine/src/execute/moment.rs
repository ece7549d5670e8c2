//! The log record of a change, as the context in which subscribers are notified.

use tidemark_log::Lsn;

/// The record whose change is being published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) lsn: Lsn,
    pub(crate) time_us: u64,
    /// Whether the change is published only when it is durable.
    pub(crate) durable: bool,
    /// Tracker that is not notified, because the change is its own.
    pub(crate) spared: Option<u64>,
}

impl Moment {
    /// Creates the moment of a record whose change need not be durable before it is published.
    pub(crate) fn of(lsn: Lsn, time_us: u64) -> Self {
        Self { lsn, time_us, durable: false, spared: None }
    }
}
