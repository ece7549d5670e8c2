//! Nested tables of an urn, and the items that lead to them.
//!
//! A table is open while it can give anything. An item that leads to an open table has its weight
//! as its share of its own table, otherwise none. A table that sells out closes the items that lead
//! to it, and that may close another table; units that come back open them again. All items have a
//! place in the first table's selector, at their number; items of other tables have weight 0 there.

use super::Urn;
use crate::catalogue::nesting::Layout;
use crate::draw::selector::Selector;
use std::ops::Range;

/// Stands for no table.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Tables<S> {
    pub(super) layout: Layout,
    inner: Vec<Inner<S>>,
    /// For each item of the initial catalogue, the table that it leads to.
    leads_to: Box<[u32]>,
}

/// A nested table.
#[derive(Debug)]
struct Inner<S> {
    items: Range<u32>,
    selector: S,
    /// Number of its items with a weight and with units left.
    on_sale: usize,
    /// Items that lead to it.
    leads: Box<[u32]>,
    /// State last propagated to the leads.
    told: State,
}

/// State of a table that matters to the items that lead to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    /// Whether a draw can continue there.
    has_weight: bool,
    /// Whether it has anything to give.
    is_on_sale: bool,
}

impl<S: Selector> Tables<S> {
    /// Builds tables from these shares, without propagating their states.
    pub(super) fn new(
        layout: Layout,
        shares: &[u64],
        is_on_sale: impl Fn(u32) -> bool,
        make: impl Fn(&[u64]) -> S,
    ) -> Self {
        let (mut leads_to, mut leads) = (vec![NONE; shares.len()], vec![Vec::new(); layout.tables.len()]);
        for &(item, table) in &layout.leads {
            leads_to[item as usize] = table;
            leads[table as usize].push(item);
        }
        let inner = leads.into_iter().zip(&layout.tables).map(|(leads, (_, items))| Inner {
            items: items.clone(),
            selector: make(&shares[items.start as usize..items.end as usize]),
            on_sale: items.clone().filter(|&item| is_on_sale(item)).count(),
            leads: leads.into(),
            told: State::default(),
        });
        Self { inner: inner.collect(), leads_to: leads_to.into(), layout }
    }

    #[inline]
    pub(super) fn lead(&self, item: u32) -> Option<u32> {
        self.leads_to.get(item as usize).copied().filter(|&table| table != NONE)
    }

    /// Returns whether the table that an item leads to has anything to give; true if it leads to
    /// none.
    pub(super) fn is_open(&self, item: u32) -> bool {
        self.lead(item).is_none_or(|table| self.inner[table as usize].told.is_on_sale)
    }

    /// Returns whether a draw can continue in the table that an item leads to; true if it leads to
    /// none.
    pub(super) fn has_weight(&self, item: u32) -> bool {
        self.lead(item).is_none_or(|table| self.inner[table as usize].told.has_weight)
    }

    pub(super) fn total(&self, table: u32) -> u64 {
        self.inner[table as usize].selector.total()
    }

    /// Follows leads to the final item. Calls `choose` with the total weight of each table on the
    /// way.
    #[inline]
    pub(super) fn descend(&self, mut met: u32, choose: &mut impl FnMut(u64) -> u64) -> u32 {
        while let Some(table) = self.lead(met) {
            let Inner { items, selector, .. } = &self.inner[table as usize];
            met = items.start + selector.select(choose(selector.total())) as u32;
        }
        met
    }

    /// Returns the share of an item in its nested table; `None` if it is in the first.
    pub(super) fn share(&self, item: u32) -> Option<u64> {
        let inner = &self.inner[self.layout.table_of(item)? as usize];
        Some(inner.selector.weight((item - inner.items.start) as usize))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let inner = self.inner.iter().map(|inner| inner.selector.heap_bytes() + inner.leads.len() * 4 + 128);
        self.leads_to.len() * 4 + inner.sum::<usize>()
    }
}

impl<S: Selector> Urn<S> {
    /// Returns the number of nested tables.
    pub fn tables(&self) -> u32 {
        self.tables.as_ref().map_or(0, |tables| tables.inner.len() as u32)
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
            (Some(table), Some(tables)) => {
                let Inner { items, selector, .. } = &tables.inner[table as usize];
                (items.start, selector)
            }
            _ => (0, &self.selector),
        }
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.tables.as_ref().map(|tables| &tables.layout)
    }

    /// Propagates the states of all tables to the items that lead to them.
    pub(super) fn open_tables(&mut self) {
        (0..self.tables()).for_each(|table| self.tell(table));
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
            let Inner { items, selector, .. } = &mut tables.inner[table as usize];
            selector.set((item - items.start) as usize, share);
            self.tell(table);
        } else {
            self.selector.set(item as usize, share);
        }
    }

    pub(super) fn come_on_sale(&mut self, item: u32) {
        *self.on_sale_of(item) += 1;
        self.tell_of(item);
    }

    #[inline]
    pub(super) fn go_off_sale(&mut self, item: u32) {
        let on_sale = self.on_sale_of(item);
        *on_sale =
            on_sale.checked_sub(1).unwrap_or_else(|| panic!("no item is on sale, and {item} is sold out"));
        self.tell_of(item);
    }

    /// Returns the number of items on sale in the table of this item.
    #[inline]
    fn on_sale_of(&mut self, item: u32) -> &mut usize {
        if let Some(tables) = &mut self.tables
            && let Some(table) = tables.layout.table_of(item)
        {
            return &mut tables.inner[table as usize].on_sale;
        }
        &mut self.on_sale
    }

    #[inline]
    fn tell_of(&mut self, item: u32) {
        if let Some(tables) = &self.tables
            && let Some(table) = tables.layout.table_of(item)
        {
            self.tell(table);
        }
    }

    /// Propagates the state of a table to the items that lead to it, if it has changed.
    fn tell(&mut self, table: u32) {
        let tables = self.tables.as_mut().expect("a table besides the first is among the tables");
        let inner = &mut tables.inner[table as usize];
        let now = State { has_weight: inner.selector.total() > 0, is_on_sale: inner.on_sale > 0 };
        let before = std::mem::replace(&mut inner.told, now);
        if now == before {
            return;
        }
        // No table leads to itself, so the recursion does not need these leads.
        let leads = std::mem::take(&mut inner.leads);
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
        tables.inner[table as usize].leads = leads;
    }
}
