//! Proof that emitted values have arrived.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The receiver of values at the end of a path.
pub(crate) trait Take: Send + 'static {
    fn take(&mut self, value: u64);
}

/// The number of arrived values, as the scenario reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    arrived: Arc<AtomicU64>,
    expected: u64,
}

/// The end of a path: counts arrivals. Only one thread at a time may count, as receptors of one
/// circuit do.
#[derive(Clone, Debug)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Tally {
    /// Returns a counter for this tally.
    pub(crate) fn counter(&self) -> Counter {
        Counter(Arc::clone(&self.arrived))
    }

    /// Fails unless exactly `count` values have arrived since the last call.
    pub(crate) fn expect(&mut self, count: u64) -> anyhow::Result<()> {
        self.expect_within(&(count..=count))
    }

    /// Fails unless the number of values since the last call is within `counts`.
    pub(crate) fn expect_within(&mut self, counts: &RangeInclusive<u64>) -> anyhow::Result<()> {
        let before = self.expected;
        let arrived = self.arrived.load(Ordering::Acquire);
        self.expected = arrived;
        let new = arrived.wrapping_sub(before);
        let (least, most) = (counts.start(), counts.end());
        anyhow::ensure!(least != most || new == *least, "{new} values arrived where {least} should have");
        anyhow::ensure!(counts.contains(&new), "{new} values arrived where {least} to {most} should have");
        Ok(())
    }
}

impl Counter {
    /// Counts a value and keeps the optimizer from removing it.
    #[inline]
    pub(crate) fn count<T>(&self, value: T) {
        black_box(value);
        // One writer: no read-modify-write is needed.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Sets the total number of arrivals.
    pub(crate) fn count_in_all(&self, count: u64) {
        self.0.store(count, Ordering::Release);
    }
}

impl Take for Counter {
    #[inline]
    fn take(&mut self, value: u64) {
        self.count(value);
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn a_missing_value_and_one_too_many_are_noticed() {
        let mut tally = Tally::default();
        let counter = tally.counter();
        counter.count(1);
        assert!(tally.expect(1).is_ok());
        counter.count(2);
        counter.count(3);
        assert!(tally.expect(1).is_err());
        assert_eq!(tally.expect(1).unwrap_err().to_string(), "0 values arrived where 1 should have");
        counter.count_in_all(5);
        assert!(tally.expect_within(&(1..=2)).is_ok());
        let error = tally.expect_within(&(1..=2)).unwrap_err().to_string();
        assert_eq!(error, "0 values arrived where 1 to 2 should have");
    }
}
