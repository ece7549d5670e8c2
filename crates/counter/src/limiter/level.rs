//! The level of a bucket.

use super::Rate;

/// Whole units and a fraction of one: an exact amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Level {
    /// Whole units.
    pub units: u64,
    /// Fraction of a unit, in parts of which a unit has as many as the rate's period has
    /// nanoseconds. Larger values count as the greatest valid one, so a level that was stored under
    /// another period is off by less than a unit.
    pub fraction: u64,
}

impl Level {
    pub(super) fn parts(self, rate: Rate) -> u128 {
        rate.parts(self.units) + u128::from(self.fraction.min(rate.period_ns() - 1))
    }

    pub(super) fn of(parts: u128, rate: Rate) -> Self {
        let unit = rate.parts(1);
        Self { units: u64::try_from(parts / unit).unwrap_or(u64::MAX), fraction: (parts % unit) as u64 }
    }
}
