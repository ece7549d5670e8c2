//! Result of a recovery: stock, computed in two ways, and the report.

use super::item::OriginalItem;
use super::report::Report;
use crate::Catalogue;
use crate::CatalogueError;
use crate::Item;
use std::fmt;

/// Basis of a computation of stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// `snapshot.json` and the records after it.
    Snapshot,
    /// The configuration's catalogue and all records.
    History,
}

/// An item after a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredItem {
    /// Amounts left, in the original's form.
    pub item: OriginalItem,
    /// Number of units that the applied records gave.
    pub drawn: u64,
    /// Number of these that were given when nothing was left.
    pub beyond: u64,
}

impl fmt::Display for RecoveredItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OriginalItem { id, quantity, weight } = &self.item;
        match *quantity {
            OriginalItem::UNLIMITED => write!(f, "{id}: unlimited")?,
            left => write!(f, "{id}: {} left", left.max(0))?,
        }
        write!(f, ", weight {weight}, {} drawn", self.drawn)?;
        if self.beyond > 0 {
            write!(f, " of {}", self.drawn - self.beyond)?;
        }
        Ok(())
    }
}

/// Stock on one basis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stocks {
    /// The items, in the order of their catalogue.
    pub items: Vec<RecoveredItem>,
    /// Items that were drawn but are not in the catalogue, with the number of draws.
    pub unknown: Vec<(Box<str>, u64)>,
}

impl Stocks {
    /// Converts the items to those of a catalogue: see [`OriginalItem::to_item`].
    pub fn items(&self) -> Vec<Item> {
        self.items.iter().map(|recovered| recovered.item.to_item()).collect()
    }

    /// Returns a catalogue of what is left, with fixed odds, renormalised when an item sells out,
    /// as in the original.
    ///
    /// # Errors
    /// If the items are valid in the original but not in a catalogue, such as empty or too long
    /// ids.
    pub fn catalogue(&self) -> Result<Catalogue, CatalogueError> {
        Catalogue::new(self.items())
    }

    /// Returns the items of which more was given than there was.
    pub fn over_awarded(&self) -> impl Iterator<Item = &RecoveredItem> {
        self.items.iter().filter(|recovered| recovered.beyond > 0)
    }
}

impl fmt::Display for Stocks {
    /// Writes a line for each item.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            writeln!(f, "{item}")?;
        }
        self.unknown
            .iter()
            .try_for_each(|(id, drawn)| writeln!(f, "{id}: not in the catalogue, {drawn} drawn"))
    }
}

/// Result of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Stock from the snapshot; `None` if there is no usable one.
    pub from_snapshot: Option<Stocks>,
    /// Stock from all records; `None` if the initial stock is unknown.
    pub from_history: Option<Stocks>,
    /// Recommended basis: the snapshot, unless it is known to miss draws. `None` if there is
    /// neither.
    pub recommended: Option<Basis>,
    /// Largest draw number. The next one must be one more, whatever happened before.
    pub last_request: u64,
    /// Findings.
    pub report: Report,
}

impl Recovered {
    /// Returns the stock on a basis.
    pub fn stocks(&self, basis: Basis) -> Option<&Stocks> {
        match basis {
            Basis::Snapshot => self.from_snapshot.as_ref(),
            Basis::History => self.from_history.as_ref(),
        }
    }

    /// Returns the stock on the recommended basis.
    pub fn recommended_stocks(&self) -> Option<&Stocks> {
        self.recommended.and_then(|basis| self.stocks(basis))
    }
}
