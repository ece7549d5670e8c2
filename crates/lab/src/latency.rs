//! Latencies: recorded in a histogram of constant size, summarised in milliseconds.

use hdrhistogram::Histogram;

/// A histogram of nanoseconds with three significant digits, up to an hour.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// The quantiles that reports show, in milliseconds; when nothing was recorded, they are not numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencySummary {
    /// How many were recorded.
    pub count: u64,
    /// Half were at most this.
    pub p50: f64,
    /// 95 of 100 were at most this.
    pub p95: f64,
    /// 99 of 100 were at most this.
    pub p99: f64,
    /// 999 of 1000 were at most this.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Default for LatencySummary {
    /// Nothing was recorded.
    fn default() -> Self {
        LatencySummary {
            count: 0,
            p50: f64::NAN,
            p95: f64::NAN,
            p99: f64::NAN,
            p999: f64::NAN,
            max: f64::NAN,
        }
    }
}

const NANOS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, NANOS_MAX, SIGNIFICANT_DIGITS);
        Latencies(histogram.expect("the bounds are valid constants"))
    }
}

impl Latencies {
    /// Counts one latency; above an hour it counts as an hour.
    pub fn record_nanos(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    /// Adds all that `other` has counted.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("histograms of equal bounds can be added");
    }

    /// So great a part of all, from 0 to 1, were at most this many nanoseconds. Panics when nothing was recorded: there
    /// is no number that would not be taken for a latency.
    #[must_use]
    pub fn nanos_at(&self, quantile: f64) -> u64 {
        assert!(!self.0.is_empty(), "no latency was recorded, so none is at quantile {quantile}");
        self.0.value_at_quantile(quantile)
    }

    /// The quantiles of what was counted.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        if self.0.is_empty() {
            return LatencySummary::default();
        }
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let quantile = |quantile| millis(self.nanos_at(quantile));
        LatencySummary {
            count: self.0.len(),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: millis(self.0.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Latencies, LatencySummary};

    #[test]
    fn quantiles_are_exact_to_three_digits() {
        let mut latencies = Latencies::default();
        for micros in 1..=10_000 {
            latencies.record_nanos(micros * 1_000);
        }
        let summary = latencies.summary();
        assert_eq!(summary.count, 10_000);
        for (measured, expected) in
            [(summary.p50, 5.0), (summary.p95, 9.5), (summary.p99, 9.9), (summary.max, 10.0)]
        {
            assert!((measured / expected - 1.0).abs() < 0.002, "{measured} is not {expected}");
        }
    }

    #[test]
    fn nothing_recorded_has_no_quantiles_and_too_long_is_not_lost() {
        let mut latencies = Latencies::default();
        let LatencySummary { count, p50, p95, p99, p999, max } = latencies.summary();
        assert_eq!(count, 0);
        assert!([p50, p95, p99, p999, max].iter().all(|figure| figure.is_nan()));
        latencies.record_nanos(u64::MAX);
        assert_eq!(latencies.summary().count, 1);
    }

    #[test]
    fn histograms_of_several_threads_add_up() {
        let (mut first, mut second) = (Latencies::default(), Latencies::default());
        first.record_nanos(1_000_000);
        second.record_nanos(3_000_000);
        first.add(&second);
        assert_eq!(first.summary().count, 2);
        assert!(first.summary().max > 2.99);
    }
}
