//! Selectors find the item at a point on a line where items lie end to end, each as long as its
//! weight.
//!
//! | selector | `select` | `set` | bytes an item | for |
//! |---|---|---|---|---|
//! | [`WideTree`] | O(log n), base 16 | O(log n) | 8.5 | everything: the default |
//! | [`Alias`] | O(1), one cache line | O(n) | 24 to 40 | many items, rarely changing weights |
//! | [`Fenwick`] | O(log n), base 2 | O(log n) | 8 | comparison: the textbook structure |
//! | [`PrefixSum`] | O(log n), base 2 | O(n) | 8 | comparison: binary search in running sums |
//!
//! `cargo bench -p tidemark-pool -- SelectorOps` prints the cost of each.

mod alias;
mod any;
mod fenwick;
mod kind;
mod prefix_sum;
mod tree;

pub use alias::Alias;
pub use any::AnySelector;
pub use fenwick::Fenwick;
pub use kind::{SelectorKind, UnknownSelector};
pub use prefix_sum::PrefixSum;
pub use tree::WideTree;

use crate::catalogue::item::AMOUNT_MAX;

/// Finds items by weight. Selectors differ only in the cost of selections and changes, except that
/// [`Alias`] orders points differently.
///
/// A selector holds at most 2³² − 1 items, and its weights add up to at most [`AMOUNT_MAX`]. A
/// checked catalogue never exceeds this. Both are asserted.
///
/// ```
/// use tidemark_pool::selector::{Selector, WideTree};
///
/// let mut selector = WideTree::new(&[3, 0, 2]);
/// let items: Vec<usize> = (0..selector.total()).map(|point| selector.select(point)).collect();
/// assert_eq!(items, [0, 0, 0, 2, 2]);
///
/// // A raffle: the ticket that is drawn is gone.
/// assert_eq!(selector.take(1, 1), 0);
/// assert_eq!((selector.weight(0), selector.total()), (2, 4));
/// ```
pub trait Selector {
    /// Creates a selector from weights. O(n).
    fn new(weights: &[u64]) -> Self
    where
        Self: Sized;

    /// Returns the number of items, including those of weight 0.
    fn len(&self) -> usize;

    /// Returns whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sum of all weights.
    fn total(&self) -> u64;

    /// Returns the weight of an item, which must exist.
    fn weight(&self, index: usize) -> u64;

    /// Returns the item at a point, which must be less than [`total`](Self::total). Each item has
    /// as many points as its weight.
    fn select(&self, point: u64) -> usize;

    /// Returns whether items lie in order. All selectors in order find the same item at a point.
    fn in_order(&self) -> bool {
        true
    }

    /// Calls [`select`](Self::select) for each point. A tree searches for several at a time, up to
    /// twice as fast with many items. Both slices must have the same length.
    fn select_each(&self, points: &[u64], items: &mut [usize]) {
        debug_assert_eq!(points.len(), items.len(), "an item for each point");
        for (&point, item) in points.iter().zip(items) {
            *item = self.select(point);
        }
    }

    /// Sets the weight of an item, which must exist.
    fn set(&mut self, index: usize, weight: u64);

    /// Lowers the weight of an item, which must be at least `amount`. Cheaper than
    /// [`set`](Self::set) where that would first have to compute the weight.
    fn lower(&mut self, index: usize, amount: u64) {
        debug_assert!(amount <= self.weight(index), "item {index} weighs less than {amount}");
        self.set(index, self.weight(index) - amount);
    }

    /// Selects an item and lowers its weight, which must be at least `amount`:
    /// [`select`](Self::select) and [`lower`](Self::lower) in one. For raffles where all units
    /// weigh the same; if the amount depends on the item, call both.
    fn take(&mut self, point: u64, amount: u64) -> usize {
        let index = self.select(point);
        self.lower(index, amount);
        index
    }

    /// Appends an item.
    fn push(&mut self, weight: u64);

    /// Removes the last item, whose weight must be 0.
    fn pop(&mut self);

    /// Returns the heap size in bytes.
    fn heap_bytes(&self) -> usize;
}

/// Asserts the limits of a selector.
#[inline]
fn assert_bounds(items: usize, total: u64) {
    assert!(u32::try_from(items).is_ok(), "{items} items are more than {}", u32::MAX);
    assert!(total <= AMOUNT_MAX, "the weights add up to {total}, which is more than {AMOUNT_MAX}");
}
