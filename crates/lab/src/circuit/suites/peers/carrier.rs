//! Carriers of values to another core, and their open channels.

use crate::micro::tally::Take;

/// A carrier of values to another core.
pub(super) trait Carrier {
    /// An open channel to that core.
    type Open<T: Take>: Open;

    /// Opens a channel that delivers every value to each of these ends. They receive while it is
    /// open.
    fn open<T: Take>(ends: Vec<T>) -> anyhow::Result<Self::Open<T>>;
}

/// An open channel.
pub(super) trait Open: 'static {
    /// Sends a value of less than 2^63.
    fn send(&mut self, value: u64) -> anyhow::Result<()>;

    /// Sends a value of less than 2^63 and waits until it is received.
    fn ask(&mut self, value: u64) -> anyhow::Result<()>;

    /// Waits until all sent values are received.
    fn flush(&mut self) -> anyhow::Result<()>;
}
