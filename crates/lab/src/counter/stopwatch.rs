//! Latencies without what the clock itself takes.

use std::time::{Duration, Instant};

/// Readings of the clock from which its cost is guessed.
const READINGS: usize = 10_001;

/// Takes latencies, and takes off what taking them costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    cost_ns: u64,
}

impl Stopwatch {
    /// Reads the clock some thousand times. Half of the readings cost no more than what is taken off.
    pub(super) fn calibrated() -> Self {
        let mut costs: Vec<u64> = (0..READINGS).map(|_| nanos(Instant::now().elapsed())).collect();
        costs.sort_unstable();
        Stopwatch { cost_ns: costs[READINGS / 2] }
    }

    /// What is taken off of each latency.
    pub(super) fn cost_ns(self) -> u64 {
        self.cost_ns
    }

    /// How long the work took, at least 0.
    #[inline]
    pub(super) fn time<R>(self, work: impl FnOnce() -> R) -> (R, u64) {
        let clock = Instant::now();
        let result = work();
        (result, nanos(clock.elapsed()).saturating_sub(self.cost_ns))
    }
}

/// The duration in nanoseconds, or the most that there can be.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Writes a duration as nanoseconds.
pub(super) fn as_nanos<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(nanos(*duration))
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
