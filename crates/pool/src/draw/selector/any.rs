//! A selector chosen at run time.

use super::{Alias, Fenwick, PrefixSum, Selector, SelectorKind, WideTree};

/// One of the selectors, dispatched by `match` instead of a pointer.
///
/// ```
/// use tidemark_pool::selector::{AnySelector, Selector, SelectorKind};
///
/// let selector = AnySelector::with(SelectorKind::Fenwick, &[1, 2]);
/// assert_eq!(selector.select(2), 1);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnySelector {
    /// The default.
    Tree(WideTree),
    /// Fast to select, slow to change.
    Alias(Alias),
    /// The textbook tree.
    Fenwick(Fenwick),
    /// Slow to change.
    PrefixSum(PrefixSum),
}

impl AnySelector {
    /// Creates a selector of this kind.
    pub fn with(kind: SelectorKind, weights: &[u64]) -> Self {
        match kind {
            SelectorKind::Tree => Self::Tree(WideTree::new(weights)),
            SelectorKind::Alias => Self::Alias(Alias::new(weights)),
            SelectorKind::Fenwick => Self::Fenwick(Fenwick::new(weights)),
            SelectorKind::PrefixSum => Self::PrefixSum(PrefixSum::new(weights)),
        }
    }

    /// Returns its kind.
    pub fn kind(&self) -> SelectorKind {
        match self {
            Self::Tree(_) => SelectorKind::Tree,
            Self::Alias(_) => SelectorKind::Alias,
            Self::Fenwick(_) => SelectorKind::Fenwick,
            Self::PrefixSum(_) => SelectorKind::PrefixSum,
        }
    }
}

macro_rules! forward {
    ($any:expr, $selector:ident => $call:expr) => {
        match $any {
            AnySelector::Tree($selector) => $call,
            AnySelector::Alias($selector) => $call,
            AnySelector::Fenwick($selector) => $call,
            AnySelector::PrefixSum($selector) => $call,
        }
    };
}

impl Selector for AnySelector {
    /// Creates a selector of the default kind.
    fn new(weights: &[u64]) -> Self {
        Self::with(SelectorKind::default(), weights)
    }

    #[inline]
    fn len(&self) -> usize {
        forward!(self, selector => selector.len())
    }

    #[inline]
    fn total(&self) -> u64 {
        forward!(self, selector => selector.total())
    }

    #[inline]
    fn weight(&self, index: usize) -> u64 {
        forward!(self, selector => selector.weight(index))
    }

    #[inline]
    fn select(&self, point: u64) -> usize {
        forward!(self, selector => selector.select(point))
    }

    fn in_order(&self) -> bool {
        forward!(self, selector => selector.in_order())
    }

    fn select_each(&self, points: &[u64], items: &mut [usize]) {
        forward!(self, selector => selector.select_each(points, items));
    }

    #[inline]
    fn set(&mut self, index: usize, weight: u64) {
        forward!(self, selector => selector.set(index, weight));
    }

    #[inline]
    fn lower(&mut self, index: usize, amount: u64) {
        forward!(self, selector => selector.lower(index, amount));
    }

    #[inline]
    fn take(&mut self, point: u64, amount: u64) -> usize {
        forward!(self, selector => selector.take(point, amount))
    }

    fn push(&mut self, weight: u64) {
        forward!(self, selector => selector.push(weight));
    }

    fn pop(&mut self) {
        forward!(self, selector => selector.pop());
    }

    fn heap_bytes(&self) -> usize {
        forward!(self, selector => selector.heap_bytes())
    }
}
