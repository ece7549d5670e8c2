//! Latencies without the cost of reading the clock.

use std::time::{Duration, Instant};

/// Number of clock readings from which their cost is estimated.
const READINGS: usize = 10_001;

/// Measures latencies and subtracts the cost of the measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    cost_ns: u64,
}

impl Stopwatch {
    /// Reads the clock some thousand times and takes the median as its cost.
    pub(super) fn calibrated() -> Self {
        let mut costs: Vec<u64> = (0..READINGS).map(|_| nanos(Instant::now().elapsed())).collect();
        costs.sort_unstable();
        Stopwatch { cost_ns: costs[READINGS / 2] }
    }

    /// Returns the cost that is subtracted from each latency.
    pub(super) fn cost_ns(self) -> u64 {
        self.cost_ns
    }

    /// Returns the duration of the work, at least 0.
    #[inline]
    pub(super) fn time<R>(self, work: impl FnOnce() -> R) -> (R, u64) {
        let clock = Instant::now();
        let result = work();
        (result, nanos(clock.elapsed()).saturating_sub(self.cost_ns))
    }
}

/// Returns the duration in nanoseconds, saturating at `u64::MAX`.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Stopwatch;
    use std::time::Duration;

    #[test]
    fn what_the_clock_costs_is_taken_off_and_nothing_else() {
        let asleep = Duration::from_millis(2);
        let stopwatch = Stopwatch { cost_ns: 1_000 };
        let ((), nanos) = stopwatch.time(|| std::thread::sleep(asleep));
        assert!(nanos >= 2_000_000 - 1_000, "{nanos}");
        let never_below_zero = Stopwatch { cost_ns: u64::MAX };
        assert_eq!(never_below_zero.time(|| 7), (7, 0));
    }
}
