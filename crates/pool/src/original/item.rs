//! Items of the original: amounts are signed and unchecked.

use crate::Item;
use crate::Stock;

/// An item of the original's configuration or snapshot, unchanged.
///
/// ```
/// use tidemark_pool::Stock;
/// use tidemark_pool::original::OriginalItem;
///
/// assert_eq!(OriginalItem::new("rock", -1, 40).to_item().stock, Stock::Unlimited);
/// assert_eq!(OriginalItem::new("gold", 100, -5).to_item().weight, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalItem {
    /// `item_id`.
    pub id: Box<str>,
    /// `quantity`: number left; −1 if unlimited. Lower values count as 0.
    pub quantity: i64,
    /// `probability`, which is a weight. A negative one falsifies the original's odds of all items.
    pub weight: i64,
}

impl OriginalItem {
    /// Quantity of an unlimited item.
    pub const UNLIMITED: i64 = -1;

    /// Creates an item.
    pub fn new(id: impl Into<Box<str>>, quantity: i64, weight: i64) -> Self {
        Self { id: id.into(), quantity, weight }
    }

    /// Converts it to an item of a catalogue. A negative weight becomes 0, so the item is not
    /// drawn; a quantity below −1 becomes 0, as the original treats it.
    pub fn to_item(&self) -> Item {
        let stock = match self.quantity {
            Self::UNLIMITED => Stock::Unlimited,
            quantity => Stock::Limited(u64::try_from(quantity).unwrap_or(0)),
        };
        Item { id: self.id.clone(), weight: u64::try_from(self.weight).unwrap_or(0), stock }
    }
}

impl From<&Item> for OriginalItem {
    /// Converts an item of a catalogue. Amounts that a catalogue would refuse are clamped.
    fn from(item: &Item) -> Self {
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let quantity = match item.stock {
            Stock::Limited(quantity) => signed(quantity),
            Stock::Unlimited => Self::UNLIMITED,
        };
        Self::new(item.id.clone(), quantity, signed(item.weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_the_same_there_and_back() {
        for item in [Item::limited("gold", 20, 100), Item::unlimited("rock", 40), Item::limited("gone", 1, 0)]
        {
            assert_eq!(OriginalItem::from(&item).to_item(), item);
        }
        assert_eq!(OriginalItem::from(&Item::limited("all", 1, u64::MAX)).quantity, i64::MAX);
    }
}
