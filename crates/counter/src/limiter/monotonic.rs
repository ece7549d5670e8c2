//! A clock for limiters that live in one process.

use super::Time;
use std::time::Instant;

/// Time since the clock was made, by the system's monotonic clock: it never steps. For states that end with their process; a state that
/// is stored, or a window of the calendar, needs the time of day: `Time::from(SystemTime::now())`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// A clock that begins now.
    #[expect(clippy::new_without_default, reason = "two of them are never the same")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// The time. Costs what the system's clock costs, some tens of nanoseconds: a caller that asks much more often may use one reading
    /// for many checks.
    #[inline]
    pub fn now(&self) -> Time {
        Time::ZERO + self.0.elapsed()
    }
}
