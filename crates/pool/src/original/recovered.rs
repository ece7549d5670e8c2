//! What comes out of a recovery: stock, by two ways, and the report.

use super::item::OriginalItem;
use super::report::Report;
use crate::Catalogue;
use crate::CatalogueError;
use crate::Item;
use std::fmt;

/// What stock is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// `snapshot.json` and the records behind it.
    Snapshot,
    /// The configuration's catalogue and all records of all files.
    History,
}

/// An item after a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredItem {
    /// What is left, in the original's terms.
    pub item: OriginalItem,
    /// How many units the records gave out, as far as they were applied.
    pub drawn: u64,
    /// How many of them were given out when nothing was left: more than there was.
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

/// Stock by one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stocks {
    /// The items, in the order of their catalogue.
    pub items: Vec<RecoveredItem>,
    /// Items that were drawn but are not in the catalogue, and how often.
    pub unknown: Vec<(Box<str>, u64)>,
}

impl Stocks {
    /// The items in the terms of a catalogue: see [`OriginalItem::to_item`].
    pub fn items(&self) -> Vec<Item> {
        self.items.iter().map(|recovered| recovered.item.to_item()).collect()
    }

    /// A catalogue with what is left: fixed odds, renormalised where an item is sold out, as in the original.
    ///
    /// # Errors
    /// What the original lets pass and a catalogue does not, such as ids that are empty or too long.
    pub fn catalogue(&self) -> Result<Catalogue, CatalogueError> {
        Catalogue::new(self.items())
    }

    /// Items of which more was given out than there was.
    pub fn over_awarded(&self) -> impl Iterator<Item = &RecoveredItem> {
        self.items.iter().filter(|recovered| recovered.beyond > 0)
    }
}

impl fmt::Display for Stocks {
    /// A line for each item.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            writeln!(f, "{item}")?;
        }
        self.unknown
            .iter()
            .try_for_each(|(id, drawn)| writeln!(f, "{id}: not in the catalogue, {drawn} drawn"))
    }
}

/// What could be recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Stock by the snapshot; `None` if there is none that can be used.
    pub from_snapshot: Option<Stocks>,
    /// Stock by all records; `None` if it is not known what there was in the beginning.
    pub from_history: Option<Stocks>,
    /// The one to go on with: the snapshot, unless draws are known to be missing in it. `None` if there is neither.
    pub recommended: Option<Basis>,
    /// The largest number of a draw. The next one is one more, whatever happened before.
    pub last_request: u64,
    /// What was found.
    pub report: Report,
}

impl Recovered {
    /// Stock by this way.
    pub fn stocks(&self, basis: Basis) -> Option<&Stocks> {
        match basis {
            Basis::Snapshot => self.from_snapshot.as_ref(),
            Basis::History => self.from_history.as_ref(),
        }
    }

    /// The stock to go on with.
    pub fn recommended_stocks(&self) -> Option<&Stocks> {
        self.recommended.and_then(|basis| self.stocks(basis))
    }
}
