//! Alias table over integers: columns of equal capacity, each shared by at most two items.

use super::{Selector, assert_bounds};

/// An alias table (Walker, Vose). A selection reads one cache line, whatever the number of items; a
/// change of a weight rebuilds the table, in O(n).
///
/// **A point belongs to a different item than with other selectors.** Each item has exactly as many
/// of the points `0..total` as its weight, but they are not adjacent, and a change of one weight
/// moves the points of other items. So the same random numbers draw other items than from a tree,
/// with the same odds. The table follows from the weights alone.
///
/// ```text
/// weights 5, 1, 2 of items a, b, c: four columns of two points
///
///        ┌─────┬─────┬─────┬─────┐
///        │ b c │ c a │ a a │ a a │     column: own item, its number of points, alias
///        └─────┴─────┴─────┴─────┘
/// point    0 1   2 3   4 5   6 7
/// ```
#[derive(Debug, Clone)]
pub struct Alias {
    weights: Vec<u64>,
    total: u64,
    columns: Vec<Column>,
    /// A column holds 2 to the power of this. Only the last one may hold less.
    shift: u32,
}

/// A quarter of a cache line; it never crosses a line border.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
struct Column {
    /// Number of points that belong to its own item; the rest belong to its alias.
    threshold: u64,
    own: u32,
    alias: u32,
}

impl Alias {
    /// Builds the columns from the weights.
    ///
    /// The capacity C is the largest power of two that is at most the average weight of the items
    /// that have one. Each step fills a column exactly with one or two items, except the last
    /// column. Proof: let c columns be empty, let k items have weight left, with k ≤ c, and let S
    /// be the sum of what is left, with (c − 1) C < S ≤ c C. This holds at the start, and each step
    /// preserves it:
    ///
    /// 1. Some rests are below C, others are not: one of either kind fills a column, and the
    ///    smaller is used up.
    /// 2. None is below C: one fills a column alone. If k = c, then S ≥ k C = c C, so each is C,
    ///    and it is used up.
    /// 3. All are below C: k = c follows from (c − 1) C < S < k C. The k − 2 others sum to less
    ///    than (k − 2) C, so any two sum to more than C: they fill a column, and the first is used
    ///    up. The last one, where k = c = 1, has the last column to itself.
    fn rebuild(&mut self) {
        self.total = self.weights.iter().sum();
        assert_bounds(self.len(), self.total);
        self.columns.clear();
        let weighty = self.weights.iter().filter(|&&weight| weight > 0).count() as u64;
        let Some(average) = self.total.checked_div(weighty) else { return };
        self.shift = average.ilog2();
        let capacity = 1 << self.shift;
        self.columns.reserve_exact(self.total.div_ceil(capacity) as usize);

        let mut rests = Rests { capacity, small: Vec::new(), large: Vec::new() };
        for (item, &weight) in self.weights.iter().enumerate() {
            rests.keep(Rest { item: item as u32, weight });
        }
        while let Some(own) = rests.small.pop().or_else(|| rests.large.pop()) {
            let threshold = own.weight.min(capacity);
            let alias = if own.weight < capacity { rests.filler() } else { Some(own) };
            self.columns.push(Column { threshold, own: own.item, alias: alias.unwrap_or(own).item });
            if let Some(alias) = alias {
                let used = if own.weight < capacity { capacity - threshold } else { capacity };
                rests.keep(Rest { weight: alias.weight - used, ..alias });
            }
        }
        debug_assert_eq!(self.columns.len() as u64, self.total.div_ceil(capacity));
    }
}

/// Weight of an item that is not yet in a column.
#[derive(Clone, Copy)]
struct Rest {
    item: u32,
    weight: u64,
}

/// Weights of all items that are not yet in columns.
struct Rests {
    capacity: u64,
    /// Rests below the capacity.
    small: Vec<Rest>,
    /// All other rests.
    large: Vec<Rest>,
}

impl Rests {
    fn keep(&mut self, rest: Rest) {
        match rest.weight {
            0 => (),
            weight if weight < self.capacity => self.small.push(rest),
            _ => self.large.push(rest),
        }
    }

    /// Returns the item that fills up a column after a small one. `None` for the last column.
    fn filler(&mut self) -> Option<Rest> {
        self.large.pop().or_else(|| self.small.pop())
    }
}

impl Selector for Alias {
    fn new(weights: &[u64]) -> Self {
        let mut selector = Self { weights: weights.to_vec(), total: 0, columns: Vec::new(), shift: 0 };
        selector.rebuild();
        selector
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    #[inline]
    fn total(&self) -> u64 {
        self.total
    }

    #[inline]
    fn weight(&self, index: usize) -> u64 {
        self.weights[index]
    }

    #[inline]
    fn select(&self, point: u64) -> usize {
        debug_assert!(point < self.total, "point {point} is not below the total {}", self.total);
        let column = &self.columns[(point >> self.shift) as usize];
        let height = point & ((1 << self.shift) - 1);
        std::hint::select_unpredictable(height < column.threshold, column.own, column.alias) as usize
    }

    fn in_order(&self) -> bool {
        false
    }

    /// O(n), and O(1) if the weight does not change.
    fn set(&mut self, index: usize, weight: u64) {
        if self.weights[index] != weight {
            self.weights[index] = weight;
            self.rebuild();
        }
    }

    /// O(n), and O(1) amortised for weight 0.
    fn push(&mut self, weight: u64) {
        self.weights.push(weight);
        if weight > 0 {
            self.rebuild();
        }
    }

    fn pop(&mut self) {
        let weight = self.weights.pop();
        debug_assert!(weight.is_none_or(|weight| weight == 0), "what has a weight has columns");
    }

    fn heap_bytes(&self) -> usize {
        self.weights.capacity() * size_of::<u64>() + self.columns.capacity() * size_of::<Column>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::item::AMOUNT_MAX;
    use proptest::prelude::*;

    /// Number of points of each item, counted from the columns.
    fn points(table: &Alias) -> Vec<u64> {
        let mut points = vec![0; table.len()];
        let mut rest = table.total;
        for column in &table.columns {
            let height = rest.min(1 << table.shift);
            let own = column.threshold.min(height);
            points[column.own as usize] += own;
            points[column.alias as usize] += height - own;
            rest -= height;
        }
        assert_eq!(rest, 0, "the columns hold all points");
        points
    }

    #[test]
    fn a_column_is_a_quarter_of_a_cache_line() {
        assert_eq!((size_of::<Column>(), align_of::<Column>()), (16, 16));
    }

    #[test]
    fn the_picture_is_right() {
        let table = Alias::new(&[5, 1, 2]);
        let items: Vec<usize> = (0..8).map(|point| table.select(point)).collect();
        assert_eq!(items, [1, 2, 2, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_weight_that_stays_does_not_touch_the_table() {
        let mut table = Alias::new(&[5, 1, 2]);
        let columns = table.columns.as_ptr();
        table.columns[0].threshold = 77;
        table.set(0, 5);
        table.push(0);
        assert_eq!((table.columns.as_ptr(), table.columns[0].threshold), (columns, 77));
        table.set(0, 4);
        assert_eq!(points(&table), [4, 1, 2, 0]);
    }

    proptest! {
        #[test]
        fn columns_give_each_item_its_weight_and_are_at_most_twice_as_many_as_items(
            weights in prop::collection::vec(
                prop_oneof![Just(0), 1..10_u64, Just(64), 0..AMOUNT_MAX / 200, (0..55_u32).prop_map(|bit| 1 << bit)],
                0..200,
            ),
        ) {
            let table = Alias::new(&weights);
            prop_assert_eq!(points(&table), &*weights);
            let weighty = weights.iter().filter(|&&weight| weight > 0).count();
            prop_assert!((weighty..=2 * weighty).contains(&table.columns.len()));
        }
    }
}
