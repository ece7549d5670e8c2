//! Nested tables of an urn, and the items that lead to them.

use crate::catalogue::nesting::Layout;
use crate::draw::selector::Selector;
use std::ops::Range;

/// Stands for no table.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Tables<S> {
    pub(super) layout: Layout,
    inner: Vec<InnerTable<S>>,
    /// For each item of the initial catalogue, the table that it leads to.
    leads_to: Box<[u32]>,
}

/// A nested table.
#[derive(Debug)]
struct InnerTable<S> {
    items: Range<u32>,
    selector: S,
    /// Number of its items with a weight and with units left.
    on_sale: usize,
    /// Items that lead to it.
    leads: Box<[u32]>,
    /// State last propagated to the leads.
    published: TableState,
}

/// State of a table that matters to the items that lead to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TableState {
    /// Whether a draw can continue there.
    pub(super) has_weight: bool,
    /// Whether it has anything to give.
    pub(super) is_on_sale: bool,
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
        let inner = leads.into_iter().zip(&layout.tables).map(|(leads, (_, items))| InnerTable {
            items: items.clone(),
            selector: make(&shares[items.start as usize..items.end as usize]),
            on_sale: items.clone().filter(|&item| is_on_sale(item)).count(),
            leads: leads.into(),
            published: TableState::default(),
        });
        Self { inner: inner.collect(), leads_to: leads_to.into(), layout }
    }

    /// Returns the number of tables.
    pub(super) fn len(&self) -> usize {
        self.inner.len()
    }

    #[inline]
    pub(super) fn lead(&self, item: u32) -> Option<u32> {
        self.leads_to.get(item as usize).copied().filter(|&table| table != NONE)
    }

    /// Returns whether the table that an item leads to has anything to give; true if it leads to
    /// none.
    pub(super) fn is_open(&self, item: u32) -> bool {
        self.lead(item).is_none_or(|table| self.inner[table as usize].published.is_on_sale)
    }

    /// Returns whether a draw can continue in the table that an item leads to; true if it leads to
    /// none.
    pub(super) fn has_weight(&self, item: u32) -> bool {
        self.lead(item).is_none_or(|table| self.inner[table as usize].published.has_weight)
    }

    pub(super) fn total(&self, table: u32) -> u64 {
        self.inner[table as usize].selector.total()
    }

    /// Returns the selector of a table, and the number of its first item.
    pub(super) fn selector_of(&self, table: u32) -> (u32, &S) {
        let InnerTable { items, selector, .. } = &self.inner[table as usize];
        (items.start, selector)
    }

    /// Follows leads to the final item. Calls `choose` with the total weight of each table on the
    /// way.
    #[inline]
    pub(super) fn descend(&self, mut met: u32, choose: &mut impl FnMut(u64) -> u64) -> u32 {
        while let Some(table) = self.lead(met) {
            let InnerTable { items, selector, .. } = &self.inner[table as usize];
            met = items.start + selector.select(choose(selector.total())) as u32;
        }
        met
    }

    /// Returns the share of an item in its nested table; `None` if it is in the first.
    pub(super) fn share(&self, item: u32) -> Option<u64> {
        let inner = &self.inner[self.layout.table_of(item)? as usize];
        Some(inner.selector.weight((item - inner.items.start) as usize))
    }

    /// Sets the share of an item in its table.
    #[inline]
    pub(super) fn set_share(&mut self, table: u32, item: u32, share: u64) {
        let InnerTable { items, selector, .. } = &mut self.inner[table as usize];
        selector.set((item - items.start) as usize, share);
    }

    /// Returns mutable access to the number of a table's items with a weight and with units left.
    #[inline]
    pub(super) fn on_sale_mut(&mut self, table: u32) -> &mut usize {
        &mut self.inner[table as usize].on_sale
    }

    /// Records the current state of a table as propagated to its leads. Returns the states before
    /// and now, if they differ.
    pub(super) fn record_state(&mut self, table: u32) -> Option<(TableState, TableState)> {
        let inner = &mut self.inner[table as usize];
        let now = TableState { has_weight: inner.selector.total() > 0, is_on_sale: inner.on_sale > 0 };
        let before = std::mem::replace(&mut inner.published, now);
        (now != before).then_some((before, now))
    }

    /// Returns mutable access to the items that lead to a table.
    pub(super) fn leads_mut(&mut self, table: u32) -> &mut Box<[u32]> {
        &mut self.inner[table as usize].leads
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let inner = self.inner.iter().map(|inner| inner.selector.heap_bytes() + inner.leads.len() * 4 + 128);
        self.leads_to.len() * 4 + inner.sum::<usize>()
    }
}
