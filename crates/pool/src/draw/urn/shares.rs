//! Shares of items in the weight of their tables, and the opening and closing of tables.
//!
//! A table is open while it can give anything. An item that leads to an open table has its weight
//! as its share of its own table, otherwise none. A table that sells out closes the items that lead
//! to it, and that may close another table; units that come back open them again. All items have a
//! place in the first table's selector, at their number; items of other tables have weight 0 there.

use super::Urn;
use crate::draw::selector::Selector;

impl<S: Selector> Urn<S> {
    /// Propagates the states of all tables to the items that lead to them.
    pub(super) fn open_tables(&mut self) {
        (0..self.tables()).for_each(|table| self.update(table));
    }

    #[inline]
    pub(super) fn share(&self, item: u32) -> u64 {
        let inside = self.tables.as_ref().and_then(|tables| tables.share(item));
        inside.unwrap_or_else(|| self.selector.weight(item as usize))
    }

    #[inline]
    pub(super) fn set_share(&mut self, item: u32, share: u64) {
        if let Some(tables) = &mut self.tables
            && let Some(table) = tables.layout.table_of(item)
        {
            tables.set_share(table, item, share);
            self.update(table);
        } else {
            self.selector.set(item as usize, share);
        }
    }

    pub(super) fn come_on_sale(&mut self, item: u32) {
        *self.on_sale_of(item) += 1;
        self.update_of(item);
    }

    #[inline]
    pub(super) fn go_off_sale(&mut self, item: u32) {
        let on_sale = self.on_sale_of(item);
        *on_sale =
            on_sale.checked_sub(1).unwrap_or_else(|| panic!("no item is on sale, and {item} is sold out"));
        self.update_of(item);
    }

    /// Returns the number of items on sale in the table of this item.
    #[inline]
    fn on_sale_of(&mut self, item: u32) -> &mut usize {
        if let Some(tables) = &mut self.tables
            && let Some(table) = tables.layout.table_of(item)
        {
            return tables.on_sale_mut(table);
        }
        &mut self.on_sale
    }

    #[inline]
    fn update_of(&mut self, item: u32) {
        if let Some(tables) = &self.tables
            && let Some(table) = tables.layout.table_of(item)
        {
            self.update(table);
        }
    }

    /// Propagates the state of a table to the items that lead to it, if it has changed.
    fn update(&mut self, table: u32) {
        let tables = self.tables.as_mut().expect("a table besides the first is among the tables");
        let Some((before, now)) = tables.record_state(table) else { return };
        // No table leads to itself, so the recursion does not need these leads.
        let leads = std::mem::take(tables.leads_mut(table));
        for &lead in &leads {
            let weight = self.weights[lead as usize];
            if now.has_weight != before.has_weight {
                self.set_share(lead, if now.has_weight { weight } else { 0 });
            }
            if now.is_on_sale != before.is_on_sale && weight > 0 {
                if now.is_on_sale { self.come_on_sale(lead) } else { self.go_off_sale(lead) }
            }
        }
        let tables = self.tables.as_mut().expect("tables stay");
        *tables.leads_mut(table) = leads;
    }
}
