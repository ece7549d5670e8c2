//! Who carries values to another core, and the way that is open to there.

use crate::micro::tally::Take;

/// Who carries values to another core.
pub(super) trait Carrier {
    /// A way to there.
    type Open<T: Take>: Open;

    /// Opens a way at whose end each of these is given every value. They take them as long as the way is open.
    fn open<T: Take>(ends: Vec<T>) -> anyhow::Result<Self::Open<T>>;
}

/// An open way.
pub(super) trait Open: 'static {
    /// Sends a value of less than 2^63.
    fn send(&mut self, value: u64) -> anyhow::Result<()>;

    /// Sends such a value and waits until it is taken.
    fn ask(&mut self, value: u64) -> anyhow::Result<()>;

    /// Waits until all that was sent is taken.
    fn flush(&mut self) -> anyhow::Result<()>;
}
