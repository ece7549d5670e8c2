//! When a check happens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment: nanoseconds since some beginning, 0 to [`Time::MAX`]. What the beginning is does not matter, as long as all times that one state
/// is asked with have the same: the Unix epoch, the start of the process, the start of a test.
///
/// A moment beyond the range is brought into it, so making one never fails.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::Time;
///
/// let time = Time::from_millis(5) + Duration::from_nanos(7);
/// assert_eq!(time.as_nanos(), 5_000_007);
/// assert_eq!(time.since(Time::from_millis(4)), Duration::from_nanos(1_000_007));
/// assert_eq!(Time::ZERO.since(time), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// The last moment, 292 years behind the beginning: 2262 if that is the Unix epoch. Behind it time stands still.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// So many nanoseconds behind the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::MAX.0 { Self::MAX } else { Self(nanos) }
    }

    /// So many microseconds behind the beginning.
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// So many milliseconds behind the beginning.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// So many seconds behind the beginning.
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the beginning.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long it is from `now` until so long behind this moment, which may be beyond [`MAX`](Self::MAX): so a wait is never zero by being cut.
    pub(super) fn wait_until(self, behind: Duration, now: Self) -> Duration {
        let at = self.0.saturating_add(u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX));
        Duration::from_nanos(at.saturating_sub(now.0))
    }

    /// How long ago `earlier` was: zero if it is yet to come.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::from_nanos(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl std::ops::Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Since the Unix epoch.
impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        Self::ZERO + time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
    }
}
