//! Common parts of rate limiters.

use crate::counter::settings::Settings;
use std::time::Duration;
use tidemark_counter::limiter::{Invalid, Rate};

/// Rate in units per second, and burst.
#[derive(Clone, Copy, Debug)]
pub(in crate::counter) struct Rated {
    per_second: u64,
    pub(super) burst: u64,
}

impl Rated {
    pub(super) fn of(settings: &Settings) -> Self {
        Rated { per_second: settings.rate, burst: settings.burst }
    }

    pub(super) fn rate(self) -> Result<Rate, Invalid> {
        Rate::new(self.per_second, Duration::from_secs(1))
    }

    /// Returns the time until a unit is restored, rounded up.
    pub(super) fn unit(self) -> Duration {
        Duration::from_nanos(1_000_000_000_u64.div_ceil(self.per_second))
    }

    /// Returns the units that may be admitted in this time.
    pub(super) fn limit(self, after: Duration) -> i64 {
        let brought = u128::from(self.per_second).saturating_mul(after.as_nanos()) / 1_000_000_000;
        i64::try_from(brought.saturating_add(self.burst.into())).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Rated;
    use std::time::Duration;

    #[test]
    fn the_burst_comes_at_once_and_the_rate_by_and_by() {
        let rated = Rated { per_second: 3, burst: 10 };
        let limits = [0, 999, 1_000, 10_000].map(|millis| rated.limit(Duration::from_millis(millis)));
        assert_eq!(limits, [10, 12, 13, 40]);
        assert_eq!(rated.unit(), Duration::from_nanos(333_333_334));
        assert_eq!(Rated { per_second: u64::MAX, burst: 1 }.limit(Duration::MAX), i64::MAX);
    }
}
