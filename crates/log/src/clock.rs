//! The clock: the one place where a log, and a server over it, reads time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Source of time: the system's clocks, or a clock that a test moves.
///
/// The clock decides which deadlines have passed. It does not decide how long a thread blocks: a
/// timeout of a condition variable, of `epoll` or of a timer of tokio is real time, whichever clock
/// it was computed from. So [`ManualClock::advance`] wakes no thread. A thread that blocks for
/// [`Clock::timeout`] sees the new time within a millisecond; any other blocked thread sees it when
/// its real timeout ends or another thread notifies it.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The system's monotonic clock and its wall clock.
    #[default]
    System,
    /// A clock that stands still until a test advances it.
    Manual(ManualClock),
}

impl Clock {
    /// Returns the monotonic time.
    #[inline]
    pub fn now(&self) -> Instant {
        match self {
            Self::System => Instant::now(),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// Returns the time since `earlier`; zero if `earlier` has not come yet.
    #[inline]
    pub fn elapsed(&self, earlier: Instant) -> Duration {
        self.now().saturating_duration_since(earlier)
    }

    /// Returns the real time for which a thread that waits for `deadline` may block; zero if the
    /// deadline has passed. With a manual clock at most a millisecond: the thread then reads the
    /// clock again.
    pub fn timeout(&self, deadline: Instant) -> Duration {
        self.real_time(deadline.saturating_duration_since(self.now()))
    }

    /// Like [`timeout`](Self::timeout), for a deadline on the wall clock. In microseconds since
    /// 1970.
    pub fn timeout_us(&self, deadline_us: u64) -> Duration {
        self.real_time(Duration::from_micros(deadline_us.saturating_sub(self.now_us())))
    }

    fn real_time(&self, rest: Duration) -> Duration {
        match self {
            Self::System => rest,
            Self::Manual(_) => rest.min(ManualClock::LOOK_PAUSE),
        }
    }

    /// Returns the wall clock in microseconds since 1970; 0 if the wall clock is set before 1970.
    #[inline]
    pub fn now_us(&self) -> u64 {
        match self {
            Self::System => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
            }
            Self::Manual(clock) => clock.now_us(),
        }
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Self {
        Self::Manual(clock.clone())
    }
}

/// Clock for tests. Stands still until [`advance`](Self::advance) moves its monotonic time and its
/// wall clock together. Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    /// Monotonic time of the creation: an `Instant` cannot be made up.
    began: Instant,
    /// Nanoseconds that the clock was advanced by.
    advanced: Arc<AtomicU64>,
}

impl ManualClock {
    /// Wall clock of a new one, in microseconds since 1970: 9 September 2001, 01:46:40 UTC.
    pub const BEGAN_US: u64 = 1_000_000_000_000_000;
    /// Longest time between two looks of a waiting thread at the clock.
    const LOOK_PAUSE: Duration = Duration::from_millis(1);

    /// Creates a clock that shows the present monotonic time and [`BEGAN_US`](Self::BEGAN_US).
    #[expect(clippy::new_without_default, reason = "a default would hide that it reads the system's clock")]
    pub fn new() -> Self {
        Self { began: Instant::now(), advanced: Arc::default() }
    }

    /// Moves the time forward. At most 584 years in all.
    ///
    /// To an operation that is under way on another thread the whole step is its own duration: a
    /// step of [`Options::stall_after`](crate::Options::stall_after) during a write makes a log
    /// refuse records.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).expect("a clock is advanced by at most 584 years");
        self.advanced.fetch_add(nanos, Ordering::SeqCst);
    }

    fn advanced(&self) -> Duration {
        Duration::from_nanos(self.advanced.load(Ordering::SeqCst))
    }

    fn now(&self) -> Instant {
        self.began + self.advanced()
    }

    fn now_us(&self) -> u64 {
        Self::BEGAN_US + self.advanced().as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_stands_still_until_it_is_advanced() {
        let manual = ManualClock::new();
        let clock = Clock::from(&manual);
        let began = clock.now();
        assert_eq!((clock.now(), clock.now_us()), (began, ManualClock::BEGAN_US));
        manual.advance(Duration::from_millis(3));
        manual.clone().advance(Duration::from_hours(1));
        let moved = Duration::from_hours(1) + Duration::from_millis(3);
        assert_eq!((clock.elapsed(began), clock.now_us()), (moved, ManualClock::BEGAN_US + 3_600_003_000));
        assert_eq!(clock.elapsed(clock.now() + moved), Duration::ZERO, "the time has not come yet");
    }

    #[test]
    fn a_thread_blocks_until_its_deadline_or_looks_at_a_manual_clock_again() {
        let (system, manual) = (Clock::System, Clock::from(&ManualClock::new()));
        let hour = Duration::from_hours(1);
        assert!(system.timeout(system.now() + hour) > hour / 2);
        assert!(system.timeout_us(system.now_us() + 3_600_000_000) > hour / 2);
        assert_eq!(manual.timeout(manual.now() + hour), ManualClock::LOOK_PAUSE);
        assert_eq!(manual.timeout_us(ManualClock::BEGAN_US + 7), Duration::from_micros(7));
        for clock in [system, manual] {
            assert_eq!((clock.timeout(clock.now()), clock.timeout_us(0)), (Duration::ZERO, Duration::ZERO));
        }
    }

    #[test]
    fn the_system_clock_moves_by_itself() {
        let clock = Clock::default();
        let began = clock.now();
        while clock.elapsed(began).is_zero() {
            std::hint::spin_loop();
        }
        assert!(clock.now_us() > ManualClock::BEGAN_US);
    }
}
