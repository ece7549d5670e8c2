//! Lookup of an urn's tables, by number or by item, and of their weights.

use super::Urn;
use crate::catalogue::nesting::Layout;
use crate::draw::selector::Selector;
use std::ops::Range;

impl<S: Selector> Urn<S> {
    /// Returns the number of nested tables.
    pub fn tables(&self) -> u32 {
        self.tables.as_ref().map_or(0, |tables| tables.len() as u32)
    }

    /// Returns the name of a table.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn table_name(&self, table: u32) -> &str {
        &self.layout().expect("it is there").tables[table as usize].0
    }

    /// Returns the numbers of a table's items, including removed ones.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn table_items(&self, table: u32) -> Range<u32> {
        self.layout().expect("it is there").tables[table as usize].1.clone()
    }

    /// Returns the table that an item is in; `None` is the first. O(log tables).
    pub fn table_of(&self, item: u32) -> Option<u32> {
        self.layout()?.table_of(item)
    }

    /// Returns the table that an item leads to. O(1).
    pub fn leads_to(&self, item: u32) -> Option<u32> {
        self.tables.as_ref()?.lead(item)
    }

    /// Returns the sum of a table's weights in force; `None` is the first table.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn table_weight(&self, table: Option<u32>) -> u64 {
        match (table, &self.tables) {
            (Some(table), Some(tables)) => tables.total(table),
            _ => self.selector.total(),
        }
    }

    /// Returns the selector of a table, and the number of its first item.
    pub(super) fn selector_of(&self, table: Option<u32>) -> (u32, &S) {
        match (table, &self.tables) {
            (Some(table), Some(tables)) => tables.selector_of(table),
            _ => (0, &self.selector),
        }
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.tables.as_ref().map(|tables| &tables.layout)
    }
}
