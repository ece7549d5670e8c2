//! Running time of an operation, readable from other threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Start time of an operation, if it is under way. Starting and stopping are one store each.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    made: Instant,
    /// Nanoseconds from `made` to the start, plus one; 0 when stopped.
    since: AtomicU64,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self { made: Instant::now(), since: AtomicU64::new(0) }
    }

    /// Starts or restarts the watch.
    pub(crate) fn start(&self) {
        self.since.store(self.nanos().saturating_add(1), Ordering::Release);
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

    fn nanos(&self) -> u64 {
        // Enough for 584 years.
        u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_one_has_run() {
        let watch = Stopwatch::new();
        assert!(!watch.is_running() && !watch.has_run_for(Duration::ZERO));
        watch.start();
        assert!(watch.is_running() && watch.has_run_for(Duration::ZERO));
        assert!(!watch.has_run_for(Duration::from_hours(1)));
        watch.stop();
        assert!(!watch.is_running() && !watch.has_run_for(Duration::ZERO));
    }
}
