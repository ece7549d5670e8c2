//! Fenwick tree (binary indexed tree): sums over ranges whose lengths are powers of two.

use super::{Selector, assert_bounds};

/// A Fenwick tree. A selection walks from the longest range to the shortest; a change updates the
/// ranges that contain the item. Both take O(log n) steps, each of which depends on the one before.
#[derive(Debug, Clone)]
pub struct Fenwick {
    /// Node *k*, counted from 1 and stored at *k* − 1, is the sum of the items up to and including
    /// the *k*-th. The lowest set bit of *k* is the number of items:
    ///
    /// ```text
    /// item    1   2   3   4   5   6   7   8
    /// node 8  ├─────────────────────────────┤
    /// node 4  ├─────────────┤
    /// 2, 6    ├─────┤         ├─────┤
    /// 1, 3 …  ├─┤     ├─┤     ├─┤     ├─┤
    /// ```
    nodes: Vec<u64>,
    total: u64,
}

/// Returns the number of items that node `number` sums.
fn stretch(number: usize) -> usize {
    number & number.wrapping_neg()
}

impl Fenwick {
    /// Adds to the weight of an item, modulo 2⁶⁴.
    fn add(&mut self, index: usize, difference: u64) {
        let mut number = index + 1;
        while number <= self.nodes.len() {
            let node = &mut self.nodes[number - 1];
            *node = node.wrapping_add(difference);
            number += stretch(number);
        }
        self.total = self.total.wrapping_add(difference);
        assert_bounds(self.len(), self.total);
    }

    /// Returns the sum of node `number` without its last item.
    fn below(&self, number: usize) -> u64 {
        let lengths = (0..stretch(number).trailing_zeros()).map(|bit| 1 << bit);
        lengths.map(|length: usize| self.nodes[number - length - 1]).sum()
    }
}

impl Selector for Fenwick {
    fn new(weights: &[u64]) -> Self {
        let mut nodes = weights.to_vec();
        for number in 1..=nodes.len() {
            let above = number + stretch(number);
            if above <= nodes.len() {
                nodes[above - 1] += nodes[number - 1];
            }
        }
        let total = weights.iter().sum();
        assert_bounds(weights.len(), total);
        Self { nodes, total }
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    fn total(&self) -> u64 {
        self.total
    }

    fn weight(&self, index: usize) -> u64 {
        self.nodes[index] - self.below(index + 1)
    }

    #[inline]
    fn select(&self, mut point: u64) -> usize {
        debug_assert!(point < self.total, "point {point} is not below the total {}", self.total);
        let mut index = 0;
        let mut length = (self.nodes.len() + 1).next_power_of_two() / 2;
        while length > 0 {
            // If there is no such node, the item lies before it.
            let sum = self.nodes.get(index + length - 1).copied().unwrap_or(u64::MAX);
            let behind = sum <= point;
            point -= std::hint::select_unpredictable(behind, sum, 0);
            index += std::hint::select_unpredictable(behind, length, 0);
            length /= 2;
        }
        index
    }

    fn set(&mut self, index: usize, weight: u64) {
        let difference = weight.wrapping_sub(self.weight(index));
        self.add(index, difference);
    }

    fn lower(&mut self, index: usize, amount: u64) {
        debug_assert!(amount <= self.weight(index), "item {index} weighs less than {amount}");
        self.add(index, amount.wrapping_neg());
    }

    fn push(&mut self, weight: u64) {
        let below = self.below(self.nodes.len() + 1);
        self.nodes.push(below + weight);
        self.total += weight;
        assert_bounds(self.len(), self.total);
    }

    fn pop(&mut self) {
        debug_assert!(self.is_empty() || self.weight(self.len() - 1) == 0, "it weighs nothing");
        // An item is part of later nodes only, besides its own.
        self.nodes.pop();
    }

    fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<u64>()
    }
}
