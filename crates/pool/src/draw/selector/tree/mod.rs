//! The wide tree: running sums, sixteen to a node, from the root down.
//!
//! Rejected variants, in nanoseconds a selection from 1,000 items on a processor of 2021. The tree
//! takes 9.5 with AVX2 and 14 without:
//!
//! - Sums up to and including each child, not before it: "before the first child" becomes a special
//!   case between levels, 11.5.
//! - Counting sums in a plain loop compiled for AVX2: the compiler adds a branch for "none", which
//!   is mispredicted, about 30.
//! - Without AVX2: the plain loop, 46; the sign bits of the differences, which the compiler
//!   vectorises, 17; a binary search, 15, but a draw that changes a weight then takes 45 and not
//!   35.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod node;
mod walk;

use self::node::{CHILD_BITS, CHILDREN, Node};
use self::walk::SEVERAL;
use super::{Selector, assert_bounds};

/// A tree whose nodes have, for each of sixteen children, the sum of the children before it. A
/// point belongs to the last child whose sum is at most the point; the sum is subtracted, and the
/// search continues in that child. A change of a weight is added to all later sums, in one node per
/// level.
///
/// ```text
/// root               ┌ 0 40 95 130 130 … 130 ┐           point 101: third child, 101 − 95 = 6
///                    └─┼──┼──┼───────────────┘
///            ┌─────────┘  │  └─────────┐
/// leaves  ┌ 0 5 9 … ┐ ┌ 0 7 7 … ┐ ┌ 0 2 4 9 35 … 35 ┐    point 6: third item of the third leaf
/// ```
///
/// Nodes have no pointers: the position of a node determines the positions of its children. Items
/// are appended; when the root is full, it becomes the first child of a new root. Places after the
/// last item weigh nothing, and no point reaches them: their sums equal the total of the node.
///
/// On x86-64 with AVX2, detected once per tree, all sums of a node are compared in parallel.
/// Elsewhere, two rounds of three comparisons find the child. Both find the same item for every
/// point.
#[derive(Debug, Clone)]
pub struct WideTree {
    /// Levels, root first; there is always a root.
    levels: Vec<Vec<Node>>,
    len: usize,
    /// Sum of all weights; no node has it.
    total: u64,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<avx2::Avx2>,
}

impl WideTree {
    /// Creates a tree that does not use the processor's vector instructions. It finds the same
    /// items: for comparison.
    pub fn portable(weights: &[u64]) -> Self {
        let (leaves, mut sums) = level_above(weights);
        let mut levels = vec![leaves];
        while sums.len() > 1 {
            let (level, above) = level_above(&sums);
            levels.push(level);
            sums = above;
        }
        levels.reverse();
        if weights.is_empty() {
            levels[0].push(Node::default());
        }
        let total = sums.first().copied().unwrap_or(0);
        assert_bounds(weights.len(), total);
        Self {
            levels,
            len: weights.len(),
            total,
            #[cfg(target_arch = "x86_64")]
            avx2: None,
        }
    }

    /// Adds to the weight of an item, modulo 2⁶⁴.
    #[inline]
    fn add(&mut self, index: usize, difference: u64) {
        debug_assert!(index < self.len, "there is no item {index}");
        self.total = self.total.wrapping_add(difference);
        assert_bounds(self.len, self.total);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.add(&mut self.levels, index, difference);
        }
        walk::add(&mut self.levels, index, difference);
    }

    fn select_several(&self, points: &[u64; SEVERAL]) -> [usize; SEVERAL] {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.select_several(&self.levels, points);
        }
        walk::select_several(&self.levels, points)
    }

    /// Returns whether all levels have their maximum length.
    fn is_full(&self) -> bool {
        let behind = self.len.checked_shr(CHILD_BITS * self.levels.len() as u32);
        behind.is_some_and(|behind| behind > 0)
    }
}

/// Returns the nodes above these weights, and the weight of each node.
fn level_above(weights: &[u64]) -> (Vec<Node>, Vec<u64>) {
    weights.chunks(CHILDREN).map(|children| Node::of(children.iter().copied())).unzip()
}

impl Selector for WideTree {
    fn new(weights: &[u64]) -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            avx2: avx2::Avx2::detect(),
            ..Self::portable(weights)
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn total(&self) -> u64 {
        self.total
    }

    #[inline]
    fn weight(&self, index: usize) -> u64 {
        debug_assert!(index < self.len, "there is no item {index}");
        walk::weight(&self.levels, self.total, index)
    }

    #[inline]
    fn select(&self, point: u64) -> usize {
        debug_assert!(point < self.total, "point {point} is not below the total {}", self.total);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.select(&self.levels, point);
        }
        walk::select(&self.levels, point)
    }

    fn select_each(&self, points: &[u64], items: &mut [usize]) {
        debug_assert_eq!(points.len(), items.len(), "an item for each point");
        debug_assert!(points.iter().all(|&point| point < self.total), "a point is not below {}", self.total);
        let (several, rest) = points.as_chunks();
        let (found, last) = items.split_at_mut(points.len() - rest.len());
        for (points, items) in several.iter().zip(found.as_chunks_mut().0) {
            *items = self.select_several(points);
        }
        for (&point, item) in rest.iter().zip(last) {
            *item = self.select(point);
        }
    }

    #[inline]
    fn set(&mut self, index: usize, weight: u64) {
        self.add(index, weight.wrapping_sub(self.weight(index)));
    }

    #[inline]
    fn lower(&mut self, index: usize, amount: u64) {
        debug_assert!(amount <= self.weight(index), "item {index} weighs less than {amount}");
        self.add(index, amount.wrapping_neg());
    }

    #[inline]
    fn take(&mut self, point: u64, amount: u64) -> usize {
        debug_assert!(point < self.total, "point {point} is not below the total {}", self.total);
        debug_assert!(
            amount <= self.weight(self.select(point)),
            "the item at {point} weighs less than {amount}"
        );
        self.total -= amount;
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.take(&mut self.levels, point, amount);
        }
        walk::take(&mut self.levels, point, amount)
    }

    fn push(&mut self, weight: u64) {
        if self.is_full() {
            self.levels.insert(0, vec![Node::of([self.total]).0]);
        }
        let mut position = self.len;
        for level in self.levels.iter_mut().rev() {
            position >>= CHILD_BITS;
            if position == level.len() {
                level.push(Node::default());
            }
        }
        self.len += 1;
        self.add(self.len - 1, weight);
    }

    fn pop(&mut self) {
        debug_assert!(self.is_empty() || self.weight(self.len - 1) == 0, "it weighs nothing");
        // The place is after the last item now: its sum is the total.
        self.len = self.len.saturating_sub(1);
    }

    fn heap_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| level.capacity() * size_of::<Node>());
        levels.sum::<usize>() + self.levels.capacity() * size_of::<Vec<Node>>()
    }
}
