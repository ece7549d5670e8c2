//! The moment at which others are told of a change: behind its record.

use tidemark_log::Lsn;

/// The record behind which answers are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) lsn: Lsn,
    pub(crate) time_us: u64,
    /// Its change is not to be told of before it is durable.
    pub(crate) durable: bool,
    /// The tracker that is not told, because the change is its own.
    pub(crate) spared: Option<u64>,
}

impl Moment {
    /// A record whose change need not be durable before it is told.
    pub(crate) fn of(lsn: Lsn, time_us: u64) -> Self {
        Self { lsn, time_us, durable: false, spared: None }
    }
}
