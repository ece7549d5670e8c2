//! A clock for limiters whose state lives in one process.

use super::Time;
use std::time::Instant;

/// Time since the clock was created, from the system's monotonic clock: it never steps. For states
/// that end with their process. A stored state, or a window of the calendar, needs the time of day:
/// `Time::from(SystemTime::now())`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// Creates a clock that starts now.
    #[expect(clippy::new_without_default, reason = "two of them are never the same")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Returns the time. Costs one reading of the system's clock, some tens of nanoseconds; use one
    /// reading for many checks if that matters.
    #[inline]
    pub fn now(&self) -> Time {
        Time::ZERO + self.0.elapsed()
    }
}
