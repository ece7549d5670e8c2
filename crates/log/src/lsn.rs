//! A record's position in the one order of the log.

use std::fmt;

/// Log sequence number: the first record is 1, each next record is one more, 0 means "nothing yet". Behind a start that was
/// not clean there is a [`Gap`](crate::Gap), and the next record is more than one more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before every record.
    pub const ZERO: Self = Self(0);
    /// The first record of a log that was never truncated.
    pub const FIRST: Self = Self(1);

    /// The position after this one. A log cannot reach the end of `u64` in practice; it stays there if it does.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The position before this one; `ZERO` has none and stays.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
