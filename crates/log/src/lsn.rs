//! Log sequence numbers.

use std::fmt;

/// Log sequence number. The first record is 1, each next record one more; 0 means "nothing yet".
/// After an unclean stop there is a [`Gap`](crate::Gap) before the next record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before every record.
    pub const ZERO: Self = Self(0);
    /// The first record of a log that was never truncated.
    pub const FIRST: Self = Self(1);

    /// The next LSN. Saturates at `u64::MAX`, which a log cannot reach in practice.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The previous LSN; `ZERO` for `ZERO`.
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
