//! `CLIENT PAUSE`: for some time clients' commands wait, all of them or those that change something.
//!
//! A command that has to wait stays in the input of its connection and runs from its beginning when the pause is over, so
//! nothing is remembered about it. Nothing expires meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The pause in force, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// When it ends in milliseconds since 1970, times two, plus one if it concerns changes only. In one word, so that
    /// the two always belong together.
    state: AtomicU64,
}

impl Pause {
    /// Begins a pause, which replaces any other.
    pub(crate) fn begin(&self, until_ms: u64, changes_only: bool) {
        let until_ms = until_ms.min(u64::MAX >> 1);
        self.state.store((until_ms << 1) | u64::from(changes_only), Ordering::Release);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.state.store(0, Ordering::Release);
    }

    /// When the latest pause ends or ended, in milliseconds since 1970.
    pub(crate) fn until_ms(&self) -> u64 {
        self.state.load(Ordering::Acquire) >> 1
    }

    /// How long the pause goes on, if there is one now.
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
