//! `CLIENT PAUSE`: commands wait for a time, either all or those that change something.
//!
//! A waiting command stays in the input of its connection and runs from its beginning after the
//! pause, so no state is kept for it. No key expires during a pause.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The pause in force, if any.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// End in milliseconds since 1970, times two, plus one if the pause concerns changes only. One
    /// word, for consistent reads.
    state: AtomicU64,
}

impl Pause {
    /// Begins a pause, replacing any other.
    pub(crate) fn begin(&self, until_ms: u64, changes_only: bool) {
        let until_ms = until_ms.min(u64::MAX >> 1);
        self.state.store((until_ms << 1) | u64::from(changes_only), Ordering::Release);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.state.store(0, Ordering::Release);
    }

    /// End of the latest pause, in milliseconds since 1970.
    pub(crate) fn until_ms(&self) -> u64 {
        self.state.load(Ordering::Acquire) >> 1
    }

    /// Remaining time of the pause, if there is one now.
    #[inline]
    pub(crate) fn rest(&self, now_us: u64) -> Option<Duration> {
        let rest_us = self.until_ms().saturating_mul(1000).saturating_sub(now_us);
        (rest_us > 0).then_some(Duration::from_micros(rest_us))
    }

    /// Whether it concerns changes only.
    pub(crate) fn is_of_changes_only(&self) -> bool {
        self.state.load(Ordering::Acquire) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_replaces_the_one_before_it() {
        let pause = Pause::default();
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (0, false));
        pause.begin(2_000, true);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (2_000, true));
        pause.begin(1_000, false);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (1_000, false));
        assert_eq!(pause.rest(999_999), Some(Duration::from_micros(1)));
        assert_eq!(pause.rest(1_000_000), None);
        pause.begin(u64::MAX, true);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (u64::MAX >> 1, true));
        pause.end();
        assert_eq!(pause.until_ms(), 0);
    }
}
