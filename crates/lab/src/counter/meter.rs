//! A meter of calls to a store: their number, their writes and their time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Counts calls to a store and adds a delay to each.
#[derive(Debug)]
pub(super) struct Meter {
    delay: Duration,
    calls: AtomicU64,
    writes: AtomicU64,
    nanos: AtomicU64,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Calls.
    pub(super) calls: u64,
    /// Writes: rows, or single events if each is stored.
    pub(super) writes: u64,
    /// Total time of the calls.
    pub(super) nanos: u64,
}

impl Meter {
    /// Creates a meter that delays each call, as precisely as the system's sleep permits.
    pub(super) fn new(delay: Duration) -> Self {
        Meter { delay, calls: AtomicU64::new(0), writes: AtomicU64::new(0), nanos: AtomicU64::new(0) }
    }

    /// Meters a call with so many writes.
    pub(super) fn call<R>(&self, writes: u64, call: impl FnOnce() -> R) -> R {
        self.calls.fetch_add(1, Relaxed);
        self.writes.fetch_add(writes, Relaxed);
        let clock = Instant::now();
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        let result = call();
        self.nanos.fetch_add(u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        result
    }

    /// Meters a call that only writes. Without a delay it takes no time, and none is recorded.
    pub(super) fn write(&self, writes: u64) {
        if self.delay.is_zero() {
            self.calls.fetch_add(1, Relaxed);
            self.writes.fetch_add(writes, Relaxed);
        } else {
            self.call(writes, || ());
        }
    }

    pub(super) fn asked(&self) -> Asked {
        Asked {
            calls: self.calls.load(Relaxed),
            writes: self.writes.load(Relaxed),
            nanos: self.nanos.load(Relaxed),
        }
    }
}

impl Asked {
    /// Returns the mean time of a call if times were recorded.
    pub(super) fn mean_nanos(&self) -> Option<u64> {
        self.nanos.checked_div(self.calls).filter(|nanos| *nanos > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Meter;
    use std::time::Duration;

    #[test]
    fn calls_and_writes_are_counted_and_calls_take_their_time() {
        let meter = Meter::new(Duration::from_millis(1));
        assert_eq!(meter.call(3, || 7), 7);
        meter.write(0);
        let asked = meter.asked();
        assert_eq!((asked.calls, asked.writes), (2, 3));
        assert!(asked.nanos >= 2_000_000, "{asked:?}");
    }

    #[test]
    fn without_a_delay_only_what_is_done_takes_time() {
        let meter = Meter::new(Duration::ZERO);
        meter.write(1);
        assert_eq!(meter.asked().mean_nanos(), None);
        meter.call(1, || std::thread::sleep(Duration::from_millis(1)));
        assert!(meter.asked().mean_nanos().is_some_and(|nanos| nanos >= 500_000));
    }
}
