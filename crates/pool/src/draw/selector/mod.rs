//! Selectors: which item a point belongs to, where items lie one behind the other, each as long as its weight.
//!
//! | selector | `select` | `set` | bytes an item | for |
//! |---|---|---|---|---|
//! | [`WideTree`] | O(log n), to the base of 16 | O(log n) | 8.5 | everything: the default |
//! | [`Alias`] | O(1), one cache line | O(n) | 24 to 40 | many items whose weights hardly ever change |
//! | [`Fenwick`] | O(log n), to the base of 2 | O(log n) | 8 | comparison: the textbook's structure |
//! | [`PrefixSum`] | O(log n), to the base of 2 | O(n) | 8 | comparison: the cumulative scan, searched |
//!
//! `cargo bench -p tidemark-pool -- SelectorOps` prints what each costs.

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

/// Finds items by weight. Selectors differ in what a selection and a change of weights cost, and in nothing else but where
/// [`Alias`] says so.
///
/// A selector holds at most 2³² − 1 items, and its weights add up to at most [`AMOUNT_MAX`]: who has checked
/// a catalogue need not handle errors here. Both are asserted in debug builds.
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
    /// A selector of these weights. O(n).
    fn new(weights: &[u64]) -> Self
    where
        Self: Sized;

    /// How many items there are, those of weight 0 included.
    fn len(&self) -> usize;

    /// Whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum of all weights.
    fn total(&self) -> u64;

    /// The weight of an item. The item must be there.
    fn weight(&self, index: usize) -> u64;

    /// The item that a point belongs to, which must be less than [`total`](Self::total): each item has as many points as its
    /// weight says.
    fn select(&self, point: u64) -> usize;

    /// Whether the items lie in their order, so that a point belongs to the same item as with any other selector that says so.
    fn in_order(&self) -> bool {
        true
    }

    /// The items that several points belong to, one for one: [`select`](Self::select) for each, but a tree searches for several at a
    /// time, which is up to twice as fast a point where there are many items. Both must be of one length.
    fn select_each(&self, points: &[u64], items: &mut [usize]) {
        debug_assert_eq!(points.len(), items.len(), "an item for each point");
        for (&point, item) in points.iter().zip(items) {
            *item = self.select(point);
        }
    }

    /// Gives an item another weight. The item must be there.
    fn set(&mut self, index: usize, weight: u64);

    /// Lowers the weight of an item, which must weigh as much. What [`set`](Self::set) does, at less cost where that would first have to
    /// find out what the item weighs.
    fn lower(&mut self, index: usize, amount: u64) {
        debug_assert!(amount <= self.weight(index), "item {index} weighs less than {amount}");
        self.set(index, self.weight(index) - amount);
    }

    /// The item that a point belongs to, which becomes lighter by `amount` and must weigh as much: [`select`](Self::select) and
    /// [`lower`](Self::lower) in one. For raffles in which all units weigh the same; where the amount depends on the item, it takes both.
    fn take(&mut self, point: u64, amount: u64) -> usize {
        let index = self.select(point);
        self.lower(index, amount);
        index
    }

    /// Adds an item behind the last.
    fn push(&mut self, weight: u64);

    /// Removes the last item, whose weight must be 0.
    fn pop(&mut self);

    /// How much memory it has allocated. Bytes.
    fn heap_bytes(&self) -> usize;
}

/// Asserts that a selector has no more items and weight than it can have.
#[inline]
fn assert_bounds(items: usize, total: u64) {
    assert!(u32::try_from(items).is_ok(), "{items} items are more than {}", u32::MAX);
    assert!(total <= AMOUNT_MAX, "the weights add up to {total}, which is more than {AMOUNT_MAX}");
}
