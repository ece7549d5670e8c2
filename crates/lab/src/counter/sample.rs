//! An unbiased sample of latencies in bounded memory, and its statistics.

use crate::random::Random;

/// Keeps a bounded number of latencies, each with the same probability (reservoir sampling). It
/// allocates its memory once.
#[derive(Clone, Debug)]
pub(super) struct Reservoir {
    kept: Vec<u64>,
    capacity: usize,
    seen: u64,
    random: Random,
}

/// Statistics of latencies, in nanoseconds; `None` without samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Latencies {
    /// Number of kept samples.
    pub(super) samples: usize,
    pub(super) p50_ns: Option<u64>,
    pub(super) p95_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
    /// Number of samples above [`LONG`] times the median, which shows waits for other threads.
    pub(super) long: usize,
    /// Number of samples below each of [`BOUNDS`] and not below the previous one, then of those not
    /// below the last.
    pub(super) histogram: Vec<usize>,
}

/// Multiple of the median above which an operation is long.
const LONG: u64 = 5;

/// Bounds of the histogram, in nanoseconds.
pub(super) const BOUNDS: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000,
];

impl Reservoir {
    pub(super) fn new(capacity: usize, seed: u64, worker: usize) -> Self {
        // A stream that no worker's traffic uses.
        let random = Random::new(!seed, worker as u64 + 1);
        Reservoir { kept: Vec::with_capacity(capacity), capacity, seen: 0, random }
    }

    #[inline]
    pub(super) fn add(&mut self, nanos: u64) {
        self.seen += 1;
        if self.kept.len() < self.capacity {
            self.kept.push(nanos);
        } else {
            let place = self.random.below(self.seen);
            if place < self.capacity as u64 {
                self.kept[place as usize] = nanos;
            }
        }
    }

    pub(super) fn into_samples(self) -> Vec<u64> {
        self.kept
    }
}

impl Latencies {
    /// Returns the statistics, without quantiles if there are no samples.
    pub(super) fn of(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let Some(max_ns) = samples.last().copied() else { return Latencies::default() };
        let at = |percentile: usize| samples[(samples.len() - 1) * percentile / 100];
        let below = |bound: u64| samples.partition_point(|nanos| *nanos < bound);
        let mut before = 0;
        let mut histogram: Vec<usize> = BOUNDS
            .iter()
            .map(|bound| {
                let all = below(*bound);
                all - std::mem::replace(&mut before, all)
            })
            .collect();
        histogram.push(samples.len() - before);
        Latencies {
            samples: samples.len(),
            p50_ns: Some(at(50)),
            p95_ns: Some(at(95)),
            p99_ns: Some(at(99)),
            max_ns: Some(max_ns),
            long: samples.len() - below((at(50) * LONG).saturating_add(1)),
            histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS, Latencies, Reservoir};

    #[test]
    fn quantiles_histogram_and_long_ones_are_exact() {
        let mut samples: Vec<u64> = (1..=100).map(|number| number * 10).collect();
        samples.push(20_000_000);
        let latencies = Latencies::of(samples);
        assert_eq!(
            (latencies.p50_ns, latencies.p95_ns, latencies.p99_ns),
            (Some(510), Some(960), Some(1_000))
        );
        assert_eq!((latencies.max_ns, latencies.long), (Some(20_000_000), 1));
        assert_eq!(latencies.histogram.len(), BOUNDS.len() + 1);
        assert_eq!(latencies.histogram[..4], [9, 10, 30, 50]);
        assert_eq!(latencies.histogram.iter().sum::<usize>(), 101);
        assert_eq!(latencies.histogram.last(), Some(&1));
        assert_eq!(Latencies::of(Vec::new()), Latencies::default());
    }

    #[test]
    fn a_reservoir_keeps_a_fair_sample_in_its_memory() {
        let mut reservoir = Reservoir::new(1_000, 1, 0);
        let memory = reservoir.kept.as_ptr();
        (0..100_000).for_each(|nanos| reservoir.add(nanos));
        assert_eq!(reservoir.kept.as_ptr(), memory);
        let samples = reservoir.into_samples();
        assert_eq!(samples.len(), 1_000);
        // The mean of 1,000 unbiased draws is within six standard errors of the middle.
        let mean = samples.iter().sum::<u64>() / 1_000;
        assert!((44_500..55_500).contains(&mean), "{mean}");
        let mut none = Reservoir::new(0, 1, 0);
        none.add(5);
        assert!(none.into_samples().is_empty());
    }
}
