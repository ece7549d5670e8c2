//! What can be drawn: an item's id, its weight and its stock.

/// The largest weight and the largest stock of an item, and the largest sum of weights. 2⁶³ − 1, so that cumulative weights can be
/// compared as signed numbers, which processors do faster.
pub const AMOUNT_MAX: u64 = i64::MAX as u64;

/// The longest id. Bytes.
pub const ID_BYTES_MAX: usize = 255;

/// How many units of an item there are to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// So many, at most [`AMOUNT_MAX`].
    Limited(u64),
    /// As many as are drawn.
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
    /// What it is called in answers and in the log; unique within its catalogue.
    pub id: Box<str>,
    /// How likely it is, against the sum of all weights. An item of weight 0 is drawn only where a rule names it.
    pub weight: u64,
    /// How many there are.
    pub stock: Stock,
}

impl Item {
    /// An item of which there are so many.
    pub fn limited(id: impl Into<Box<str>>, weight: u64, quantity: u64) -> Self {
        Self { id: id.into(), weight, stock: Stock::Limited(quantity) }
    }

    /// An item that never runs out.
    pub fn unlimited(id: impl Into<Box<str>>, weight: u64) -> Self {
        Self { id: id.into(), weight, stock: Stock::Unlimited }
    }
}
