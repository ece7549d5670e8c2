//! The clock of a run and its measured window.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a sleeper checks whether the window has ended early.
pub(super) const END_CHECK: Duration = Duration::from_millis(100);

/// Nanoseconds since the load began, and the measured window.
#[derive(Debug)]
pub(super) struct Clock {
    origin: Instant,
    pub(super) measured_from: u64,
    end: AtomicU64,
}

impl Clock {
    /// Creates a clock whose measured window starts after `warmup` and lasts for `duration`.
    pub(super) fn start_after(warmup: Duration, duration: Duration) -> Self {
        let measured_from = nanos(warmup);
        let end = AtomicU64::new(measured_from.saturating_add(nanos(duration)));
        Clock { origin: Instant::now(), measured_from, end }
    }

    /// Returns the same window, counted from now.
    pub(super) fn restarted(&self) -> Self {
        Clock { origin: Instant::now(), measured_from: self.measured_from, end: AtomicU64::new(self.end()) }
    }

    /// Returns the end of the window. It can only move to an earlier time.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Ends the window now unless it has ended.
    pub(super) fn end_now(&self) {
        self.end.fetch_min(self.now(), Ordering::Relaxed);
    }

    /// Returns the length of the measured window.
    pub(super) fn measured(&self) -> Duration {
        Duration::from_nanos(self.end().saturating_sub(self.measured_from))
    }

    /// Sleeps until `nanos` after the origin, or until the window ends.
    pub(super) fn sleep_until(&self, nanos: u64) {
        loop {
            let left = nanos.min(self.end()).saturating_sub(self.now());
            if left == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left).min(END_CHECK));
        }
    }

    pub(super) fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }
}

/// Returns the duration in nanoseconds, saturating at `u64::MAX`.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
