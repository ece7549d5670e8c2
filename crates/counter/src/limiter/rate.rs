//! Refill rates.

use super::{Invalid, MAX_LIMIT};
use std::time::Duration;

/// The longest period, and the longest time to refill a limit: 2^62 ns, 146 years.
const MAX_SPAN_NS: u64 = 1 << 62;

/// A number of units per period, as an exact fraction.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::Rate;
///
/// let rate = Rate::new(3, Duration::from_secs(60))?;
/// assert_eq!((rate.count(), rate.period()), (3, Duration::from_secs(60)));
/// assert!(Rate::new(0, Duration::from_secs(60)).is_err());
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u64,
    period_ns: u64,
}

impl Rate {
    /// Creates a rate of `count` units, 1 to [`MAX_LIMIT`], every `period`, 1 ns to 146 years.
    ///
    /// # Errors
    /// [`Invalid::Count`], [`Invalid::Period`].
    pub fn new(count: u64, period: Duration) -> Result<Self, Invalid> {
        if !(1..=MAX_LIMIT).contains(&count) {
            return Err(Invalid::Count { count, max: MAX_LIMIT });
        }
        Ok(Self { count, period_ns: span_ns(period)? })
    }

    /// Returns the units per period.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Returns the period.
    pub fn period(self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    pub(super) fn period_ns(self) -> u64 {
        self.period_ns
    }

    /// Converts units to *parts*. A unit has as many parts as the period has nanoseconds, so a
    /// whole number of parts is refilled in each nanosecond.
    pub(super) fn parts(self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.period_ns)
    }

    /// Returns the parts refilled in `time`, less than 2^127.
    pub(super) fn flow(self, time: Duration) -> u128 {
        time.as_nanos().min(u128::from(u64::MAX)) * u128::from(self.count)
    }

    /// Returns the time to refill that many parts.
    pub(super) fn time_for(self, parts: u128) -> Duration {
        Duration::from_nanos(u64::try_from(parts.div_ceil(u128::from(self.count))).unwrap_or(u64::MAX))
    }

    /// Checks that `limit` units are refilled within the range of limiters.
    pub(super) fn check_fill(self, limit: u64) -> Result<(), Invalid> {
        let scaled = u128::from(limit) * u128::from(self.period_ns);
        if scaled <= u128::from(MAX_SPAN_NS) * u128::from(self.count) {
            Ok(())
        } else {
            Err(Invalid::TooSlow)
        }
    }
}

/// Checks a period, and returns it in nanoseconds.
pub(super) fn span_ns(period: Duration) -> Result<u64, Invalid> {
    u64::try_from(period.as_nanos())
        .ok()
        .filter(|nanos| (1..=MAX_SPAN_NS).contains(nanos))
        .ok_or(Invalid::Period)
}

/// Checks a limit.
pub(super) fn valid_limit(limit: u64) -> Result<u64, Invalid> {
    if (1..=MAX_LIMIT).contains(&limit) { Ok(limit) } else { Err(Invalid::Limit { limit, max: MAX_LIMIT }) }
}
