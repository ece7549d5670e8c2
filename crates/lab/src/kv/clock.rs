//! The clock of a run, and which part of it is measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often whoever waits looks whether the window has ended early.
pub(super) const END_CHECK: Duration = Duration::from_millis(100);

/// Nanoseconds since the load began, and the window that is measured.
#[derive(Debug)]
pub(super) struct Clock {
    origin: Instant,
    pub(super) measured_from: u64,
    end: AtomicU64,
}

impl Clock {
    /// A clock whose measured window starts after `warmup` and lasts for `duration`.
    pub(super) fn start_after(warmup: Duration, duration: Duration) -> Self {
        let measured_from = nanos(warmup);
        let end = AtomicU64::new(measured_from.saturating_add(nanos(duration)));
        Clock { origin: Instant::now(), measured_from, end }
    }

    /// The same window, counted from now.
    pub(super) fn restarted(&self) -> Self {
        Clock { origin: Instant::now(), measured_from: self.measured_from, end: AtomicU64::new(self.end()) }
    }

    /// The window's end, which may come nearer but does not go away.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Ends the window now, if it has not ended.
    pub(super) fn end_now(&self) {
        self.end.fetch_min(self.now(), Ordering::Relaxed);
    }

    /// How long the measured window is.
    pub(super) fn measured(&self) -> Duration {
        Duration::from_nanos(self.end().saturating_sub(self.measured_from))
    }

    /// Sleeps until `nanos` after the origin, or until the window has ended.
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

/// The duration in nanoseconds, or the most that there can be.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
