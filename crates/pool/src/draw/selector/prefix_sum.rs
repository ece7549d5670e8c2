//! Prefix sums: running sums of the weights in an array, with binary search.

use super::{Selector, assert_bounds};

/// Running sums of the weights. A selection is a binary search; a change rewrites all later sums:
/// O(n).
#[derive(Debug, Clone)]
pub struct PrefixSum {
    /// Element *i* is the sum of the weights up to and including item *i*.
    sums: Vec<u64>,
}

impl PrefixSum {
    fn before(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |last| self.sums[last])
    }
}

impl Selector for PrefixSum {
    fn new(weights: &[u64]) -> Self {
        let mut total = 0;
        let sums = weights.iter().map(|weight| {
            total += weight;
            total
        });
        let selector = Self { sums: sums.collect() };
        assert_bounds(selector.len(), selector.total());
        selector
    }

    fn len(&self) -> usize {
        self.sums.len()
    }

    #[inline]
    fn total(&self) -> u64 {
        self.before(self.sums.len())
    }

    fn weight(&self, index: usize) -> u64 {
        self.sums[index] - self.before(index)
    }

    #[inline]
    fn select(&self, point: u64) -> usize {
        debug_assert!(point < self.total(), "point {point} is not below the total");
        self.sums.partition_point(|&sum| sum <= point)
    }

    fn set(&mut self, index: usize, weight: u64) {
        let difference = weight.wrapping_sub(self.weight(index));
        for sum in &mut self.sums[index..] {
            *sum = sum.wrapping_add(difference);
        }
        assert_bounds(self.len(), self.total());
    }

    fn push(&mut self, weight: u64) {
        self.sums.push(self.total() + weight);
        assert_bounds(self.len(), self.total());
    }

    fn pop(&mut self) {
        debug_assert!(self.is_empty() || self.weight(self.len() - 1) == 0, "it weighs nothing");
        self.sums.pop();
    }

    fn heap_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<u64>()
    }
}
