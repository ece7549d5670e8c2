//! Running time of an operation, readable from other threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Clock;

/// Start time of an operation, if it is under way. Starting and stopping are one store each.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    clock: Clock,
    made: Instant,
    /// Nanoseconds from `made` to the start, plus one; 0 when stopped.
    since: AtomicU64,
}

impl Stopwatch {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), made: clock.now(), since: AtomicU64::new(0) }
    }

    /// Starts or restarts the watch.
    pub(crate) fn start(&self) {
        self.since.store(self.nanos(), Ordering::Release);
    }

    pub(crate) fn stop(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// Returns whether it is running. One load.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.since.load(Ordering::Acquire) != 0
    }

    /// Returns whether it has been running for at least `time`.
    #[inline]
    pub(crate) fn has_run_for(&self, time: Duration) -> bool {
        let since = self.since.load(Ordering::Acquire);
        since != 0 && u128::from(self.nanos().saturating_sub(since)) >= time.as_nanos()
    }

    /// Nanoseconds since `made`, plus one.
    fn nanos(&self) -> u64 {
        // Enough for 584 years.
        u64::try_from(self.clock.elapsed(self.made).as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    #[test]
    fn only_a_running_one_has_run() {
        let manual = ManualClock::new();
        let watch = Stopwatch::new(&Clock::from(&manual));
        assert!(!watch.is_running() && !watch.has_run_for(Duration::ZERO));
        watch.start();
        assert!(watch.is_running() && watch.has_run_for(Duration::ZERO));
        let hour = Duration::from_hours(1);
        manual.advance(hour);
        assert!(watch.has_run_for(hour) && !watch.has_run_for(hour + Duration::from_nanos(1)));
        watch.stop();
        assert!(!watch.is_running() && !watch.has_run_for(Duration::ZERO));
    }
}
