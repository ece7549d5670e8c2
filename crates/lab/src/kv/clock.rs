//! The clock of a run, and which part of it is measured.

use std::time::{Duration, Instant};

/// Nanoseconds since the load began, and the window that is measured.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    origin: Instant,
    pub(super) measured_from: u64,
    pub(super) end: u64,
}

impl Clock {
    /// A clock whose measured window starts after `warmup` and lasts for `duration`.
    pub(super) fn start_after(warmup: Duration, duration: Duration) -> Self {
        let measured_from = nanos(warmup);
        Clock { origin: Instant::now(), measured_from, end: measured_from.saturating_add(nanos(duration)) }
    }

    /// The same window, counted from now.
    pub(super) fn restarted(&self) -> Self {
        Clock { origin: Instant::now(), ..self.clone() }
    }

    pub(super) fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    /// The instant at `nanos` after the origin.
    pub(super) fn instant(&self, nanos: u64) -> Instant {
        self.origin + Duration::from_nanos(nanos)
    }
}

/// The duration in nanoseconds, or the most that there can be.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
