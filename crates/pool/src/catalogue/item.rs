//! Items: id, weight and stock.

/// Maximum weight and stock of an item, and maximum sum of weights. 2⁶³ − 1, so that processors can
/// compare cumulative weights as signed numbers, which is faster.
pub const AMOUNT_MAX: u64 = i64::MAX as u64;

/// Maximum length of an id, in bytes.
pub const ID_BYTES_MAX: usize = 255;

/// Number of units of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// At most [`AMOUNT_MAX`].
    Limited(u64),
    /// Never runs out.
    Unlimited,
}

/// One item of a catalogue. "No prize" is an item like any other.
///
/// ```
/// use tidemark_pool::{Item, Stock};
///
/// let car = Item::limited("car", 1, 3);
/// assert_eq!((car.weight, car.stock), (1, Stock::Limited(3)));
/// assert_eq!(Item::unlimited("better luck next time", 99).stock, Stock::Unlimited);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name in answers and in the log; unique within a catalogue.
    pub id: Box<str>,
    /// Its odds, out of the sum of all weights. An item of weight 0 is drawn only if a rule names
    /// it.
    pub weight: u64,
    /// Its stock.
    pub stock: Stock,
}

impl Item {
    /// Creates an item with limited stock.
    pub fn limited(id: impl Into<Box<str>>, weight: u64, quantity: u64) -> Self {
        Self { id: id.into(), weight, stock: Stock::Limited(quantity) }
    }

    /// Creates an item that never runs out.
    pub fn unlimited(id: impl Into<Box<str>>, weight: u64) -> Self {
        Self { id: id.into(), weight, stock: Stock::Unlimited }
    }
}
