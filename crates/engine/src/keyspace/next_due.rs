//! When work is due next, for threads that wait for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lower bound of the time at which the next of some work is due. Commands lower it, and it rises only
/// where all of the work is looked at, so it is never later than the first.
#[derive(Debug)]
pub(crate) struct NextDue(AtomicU64);

impl Default for NextDue {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl NextDue {
    /// Returns it in milliseconds since 1970; `None` if nothing is due at any time.
    #[inline]
    pub(crate) fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&at_ms| at_ms != u64::MAX)
    }

    /// Notes work that is due at a time.
    #[inline]
    pub(crate) fn lower(&self, at_ms: u64) {
        self.0.fetch_min(at_ms, Relaxed);
    }

    /// Forgets it, before all work is looked at. What becomes due after this lowers it.
    pub(crate) fn forget(&self) {
        self.0.store(u64::MAX, Relaxed);
    }
}
