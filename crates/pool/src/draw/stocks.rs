//! Stock of the items.

use crate::catalogue::item::{AMOUNT_MAX, Stock};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Initial `left` of an unlimited item. It is counted down too: the difference is the number of
/// draws.
const UNLIMITED: u64 = u64::MAX;

/// Maximum number of past draws when an item becomes unlimited or is read back; leaves room for as
/// many again.
pub(crate) const UNLIMITED_DRAWN_MAX: u64 = AMOUNT_MAX / 2;

/// Marks a supply that is stored in the map.
const LARGE: u32 = u32::MAX;

/// What is left of each item, and its supply.
///
/// The supply of a limited item is all that was put in, less what an operator took out; the number
/// drawn is supply minus left. 12 bytes an item, plus a map entry if the supply does not fit into
/// 32 bits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stocks {
    /// Above [`AMOUNT_MAX`] if unlimited.
    left: Vec<u64>,
    supplies: Vec<u32>,
    large: HashMap<u32, u64, RandomState>,
}

/// Stock of one item, to restore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    left: u64,
    supply: u64,
}

impl Standing {
    pub(crate) fn limited(left: u64, supply: u64) -> Self {
        assert!(
            left <= supply && supply <= AMOUNT_MAX,
            "{left} units are left of {supply}, {AMOUNT_MAX} at most"
        );
        Self { left, supply }
    }

    /// Creates the standing of an unlimited item that has been drawn this often.
    pub(crate) fn unlimited(drawn: u64) -> Self {
        assert!(
            drawn <= UNLIMITED_DRAWN_MAX,
            "an unlimited item was drawn {drawn} times, {UNLIMITED_DRAWN_MAX} at most"
        );
        Self { left: UNLIMITED - drawn, supply: 0 }
    }

    /// As [`Stocks::left`].
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// As [`Stocks::supply`].
    pub(crate) fn supply(&self) -> u64 {
        self.supply
    }
}

impl Stocks {
    pub(crate) fn with_capacity(items: usize) -> Self {
        Self {
            left: Vec::with_capacity(items),
            supplies: Vec::with_capacity(items),
            large: HashMap::default(),
        }
    }

    pub(crate) fn push(&mut self, stock: Stock) {
        self.push_standing(match stock {
            Stock::Limited(quantity) => Standing::limited(quantity, quantity),
            Stock::Unlimited => Standing::unlimited(0),
        });
    }

    pub(crate) fn push_standing(&mut self, standing: Standing) {
        let item = self.left.len();
        self.left.push(0);
        self.supplies.push(0);
        self.stand(item as u32, standing);
    }

    pub(crate) fn pop(&mut self) {
        self.left.pop().expect("the last item is undone, and there is none");
        self.supplies.pop();
        self.large.remove(&(self.left.len() as u32));
    }

    /// Takes one unit of an item that has some left. Returns the number left before.
    #[inline]
    pub(crate) fn take_one(&mut self, item: u32) -> u64 {
        let left = &mut self.left[item as usize];
        let before = *left;
        // Checked in release builds too: an item that is sold out must never be given.
        assert!(before > 0, "nothing is left of item {item}");
        // Only in debug builds: every draw runs this, and 2^62 draws take centuries.
        debug_assert!(before != AMOUNT_MAX + 1, "an item is drawn less than 2^63 times");
        *left = before - 1;
        before
    }

    /// Takes one unit if any is left. Returns the number left before; above [`AMOUNT_MAX`] if
    /// unlimited.
    #[inline]
    pub(crate) fn take(&mut self, item: u32) -> u64 {
        let left = &mut self.left[item as usize];
        let before = *left;
        *left = before.saturating_sub(1);
        // Only in debug builds, as in `take_one`.
        debug_assert!(before != AMOUNT_MAX + 1, "an item is drawn less than 2^63 times");
        before
    }

    /// Returns units to stock. Returns the number left now; above [`AMOUNT_MAX`] if unlimited.
    ///
    /// # Panics
    /// If fewer units are drawn.
    pub(crate) fn put_back(&mut self, item: u32, count: u64) -> u64 {
        let drawn = self.drawn(item);
        assert!(count <= drawn, "{count} units of item {item} come back, and {drawn} are drawn");
        let left = &mut self.left[item as usize];
        *left += count;
        *left
    }

    /// Returns the number left; above [`AMOUNT_MAX`] if unlimited.
    #[inline]
    pub(crate) fn left(&self, item: u32) -> u64 {
        self.left[item as usize]
    }

    pub(crate) fn stock(&self, item: u32) -> Stock {
        let left = self.left(item);
        if left > AMOUNT_MAX { Stock::Unlimited } else { Stock::Limited(left) }
    }

    /// Returns the number left plus the number drawn of a limited item; 0 if unlimited.
    pub(crate) fn supply(&self, item: u32) -> u64 {
        self.standing(item).supply
    }

    /// Returns the number drawn and not given back.
    pub(crate) fn drawn(&self, item: u32) -> u64 {
        let Standing { left, supply } = self.standing(item);
        if left > AMOUNT_MAX { UNLIMITED - left } else { supply - left }
    }

    /// Changes what is left, but not what is drawn. `None`, without a change, if that exceeds the
    /// limits.
    pub(crate) fn restock(&mut self, item: u32, stock: Stock) -> Option<()> {
        let drawn = self.drawn(item);
        let standing = match stock {
            Stock::Limited(left) => {
                let supply = left.checked_add(drawn).filter(|&supply| supply <= AMOUNT_MAX)?;
                Standing::limited(left, supply)
            }
            Stock::Unlimited if drawn > UNLIMITED_DRAWN_MAX => return None,
            Stock::Unlimited => Standing::unlimited(drawn),
        };
        self.stand(item, standing);
        Some(())
    }

    pub(crate) fn standing(&self, item: u32) -> Standing {
        let supply = match self.supplies[item as usize] {
            LARGE => self.large[&item],
            supply => u64::from(supply),
        };
        Standing { left: self.left[item as usize], supply }
    }

    pub(crate) fn stand(&mut self, item: u32, standing: Standing) {
        let Standing { left, supply } = standing;
        assert!(left > AMOUNT_MAX || left <= supply, "{left} units of item {item} are left of {supply}");
        self.left[item as usize] = left;
        let small = u32::try_from(supply).ok().filter(|&supply| supply != LARGE);
        self.supplies[item as usize] = small.unwrap_or(LARGE);
        match small {
            Some(_) => self.large.remove(&item),
            None => self.large.insert(item, supply),
        };
    }

    /// Returns the heap size in bytes, roughly.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.left.capacity() * 8 + self.supplies.capacity() * 4 + self.large.capacity() * 17
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(stock: Stock) -> Stocks {
        let mut stocks = Stocks::default();
        stocks.push(stock);
        stocks
    }

    #[test]
    fn what_is_drawn_is_what_is_missing() {
        let mut stocks = one(Stock::Limited(2));
        assert_eq!([stocks.take(0), stocks.take(0), stocks.take(0)], [2, 1, 0]);
        assert_eq!((stocks.stock(0), stocks.drawn(0)), (Stock::Limited(0), 2));
        stocks.put_back(0, 1);
        assert_eq!((stocks.stock(0), stocks.drawn(0)), (Stock::Limited(1), 1));
        stocks.restock(0, Stock::Limited(u64::from(LARGE))).expect("fits");
        assert_eq!((stocks.stock(0), stocks.drawn(0)), (Stock::Limited(u64::from(LARGE)), 1));
        stocks.restock(0, Stock::Unlimited).expect("fits");
        assert_eq!((stocks.stock(0), stocks.drawn(0), stocks.large.len()), (Stock::Unlimited, 1, 0));
        stocks.take(0);
        stocks.restock(0, Stock::Limited(0)).expect("fits");
        assert_eq!((stocks.stock(0), stocks.drawn(0)), (Stock::Limited(0), 2));
    }

    #[test]
    fn how_it_stood_comes_back() {
        for stock in [Stock::Limited(0), Stock::Limited(7), Stock::Limited(AMOUNT_MAX), Stock::Unlimited] {
            let mut stocks = one(stock);
            let before = stocks.standing(0);
            stocks.take(0);
            stocks.restock(0, Stock::Limited(3)).expect("fits");
            stocks.stand(0, before);
            assert_eq!((stocks.stock(0), stocks.drawn(0)), (stock, 0));
        }
    }
}
