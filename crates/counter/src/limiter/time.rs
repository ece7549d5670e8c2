//! Times of checks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: nanoseconds since an arbitrary origin, 0 to [`Time::MAX`]. All times used with
/// one state must have the same origin: the Unix epoch, the start of the process, the start of a
/// test.
///
/// Values out of range are clamped, so construction never fails.
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
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The last point in time, 292 years after the origin: the year 2262 for the Unix epoch. Later
    /// times are equal to it.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// Creates a time from nanoseconds since the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::MAX.0 { Self::MAX } else { Self(nanos) }
    }

    /// Creates a time from microseconds since the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// Creates a time from milliseconds since the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Creates a time from seconds since the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the whole milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the time from `now` until `behind` after this time, which may exceed
    /// [`MAX`](Self::MAX): clamping never makes a wait zero.
    pub(super) fn wait_until(self, behind: Duration, now: Self) -> Duration {
        let at = self.0.saturating_add(u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX));
        Duration::from_nanos(at.saturating_sub(now.0))
    }

    /// Returns the time since `earlier`: zero if that is in the future.
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

/// Nanoseconds since the Unix epoch.
impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        Self::ZERO + time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
    }
}
