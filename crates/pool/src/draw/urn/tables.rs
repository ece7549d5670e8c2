//! The tables of an urn besides the first, and how items of one stand for another.
//!
//! An item that leads to a table is open as long as the table has anything: its share of its own table is its weight then, and
//! nothing otherwise. So a table that has sold out closes what leads to it, and with that perhaps another table; and what comes back opens
//! them again. All items have a place in the first table's selector, where those of others weigh nothing: there an item's place is its number.

use super::Urn;
use crate::catalogue::nesting::Layout;
use crate::draw::selector::Selector;
use std::ops::Range;

/// In place of a table: none.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Tables<S> {
    pub(super) layout: Layout,
    inner: Vec<Inner<S>>,
    /// By the items that there were in the beginning: where they lead.
    leads_to: Box<[u32]>,
}

/// A table besides the first.
#[derive(Debug)]
struct Inner<S> {
    items: Range<u32>,
    selector: S,
    /// How many of its items have a weight and are not sold out.
    on_sale: usize,
    /// The items that lead to it.
    leads: Box<[u32]>,
    /// What they were told last.
    told: State,
}

/// What there is to a table for those that lead to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    /// Whether a draw can go on there.
    has_weight: bool,
    /// Whether it has anything to give.
    is_on_sale: bool,
}

impl<S: Selector> Tables<S> {
    /// Tables of these shares, of which nobody has been told anything.
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

    /// The table that an item leads to.
    #[inline]
    pub(super) fn lead(&self, item: u32) -> Option<u32> {
        self.leads_to.get(item as usize).copied().filter(|&table| table != NONE)
    }

    /// Whether what an item leads to has something to give; so has what leads nowhere.
    pub(super) fn is_open(&self, item: u32) -> bool {
        self.lead(item).is_none_or(|table| self.inner[table as usize].told.is_on_sale)
    }

    /// Whether a draw can go on where an item leads; what leads nowhere does not keep it from anything.
    pub(super) fn has_weight(&self, item: u32) -> bool {
        self.lead(item).is_none_or(|table| self.inner[table as usize].told.has_weight)
    }

    /// The sum of the weights in force of a table.
    pub(super) fn total(&self, table: u32) -> u64 {
        self.inner[table as usize].selector.total()
    }

    /// What an item leads to in the end; `choose` is asked for a number below the weights of each table on the way.
    #[inline]
    pub(super) fn descend(&self, mut met: u32, choose: &mut impl FnMut(u64) -> u64) -> u32 {
        while let Some(table) = self.lead(met) {
            let Inner { items, selector, .. } = &self.inner[table as usize];
            met = items.start + selector.select(choose(selector.total())) as u32;
        }
        met
    }

    /// What an item of a table besides the first has of it; `None` of any other.
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
    /// How many tables there are besides the first.
    pub fn tables(&self) -> u32 {
        self.tables.as_ref().map_or(0, |tables| tables.inner.len() as u32)
    }

    /// The name of a table.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn table_name(&self, table: u32) -> &str {
        &self.layout().expect("it is there").tables[table as usize].0
    }

    /// The numbers of a table's items, those that were removed included.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn table_items(&self, table: u32) -> Range<u32> {
        self.layout().expect("it is there").tables[table as usize].1.clone()
    }

    /// The table that an item is in; `None` is the first. O(log tables).
    pub fn table_of(&self, item: u32) -> Option<u32> {
        self.layout()?.table_of(item)
    }

    /// The table that an item leads to, if it does. O(1).
    pub fn leads_to(&self, item: u32) -> Option<u32> {
        self.tables.as_ref()?.lead(item)
    }

    /// The sum of the weights in force of a table.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn table_weight(&self, table: Option<u32>) -> u64 {
        match (table, &self.tables) {
            (Some(table), Some(tables)) => tables.total(table),
            _ => self.selector.total(),
        }
    }

    /// What finds the items of a table, and the number of the first of them.
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

    /// Has all that leads to tables know what these have.
    pub(super) fn open_tables(&mut self) {
        (0..self.tables()).for_each(|table| self.tell(table));
    }

    /// What an item has of its table.
    #[inline]
    pub(super) fn share(&self, item: u32) -> u64 {
        let inside = self.tables.as_ref().and_then(|tables| tables.share(item));
        inside.unwrap_or_else(|| self.selector.weight(item as usize))
    }

    /// Gives an item another share of its table.
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

    /// An item has come to be on sale.
    pub(super) fn come_on_sale(&mut self, item: u32) {
        *self.on_sale_of(item) += 1;
        self.tell_of(item);
    }

    /// An item is no more on sale.
    #[inline]
    pub(super) fn go_off_sale(&mut self, item: u32) {
        let on_sale = self.on_sale_of(item);
        *on_sale =
            on_sale.checked_sub(1).unwrap_or_else(|| panic!("no item is on sale, and {item} is sold out"));
        self.tell_of(item);
    }

    /// How many items are on sale in the table of this one.
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

    /// Has all that leads to a table know what it has, if that is something else than before.
    fn tell(&mut self, table: u32) {
        let tables = self.tables.as_mut().expect("a table besides the first is among the tables");
        let inner = &mut tables.inner[table as usize];
        let now = State { has_weight: inner.selector.total() > 0, is_on_sale: inner.on_sale > 0 };
        let before = std::mem::replace(&mut inner.told, now);
        if now == before {
            return;
        }
        // No table leads to itself, so nobody else asks for them meanwhile.
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
