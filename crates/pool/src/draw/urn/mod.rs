//! The urn: a catalogue with its stock, drawn from with given numbers.

mod advancing;
mod chances;
mod changing;
mod drawing;
mod favouring;
mod image;
mod odds;
mod possible;
mod shares;
mod table_lookup;
mod tables;
mod timetable;

pub(crate) use advancing::Advance;
pub(crate) use changing::Altered;
pub use changing::Change;
pub(crate) use favouring::{Favour, Hidden, NotDrawn};
pub(crate) use image::Unread;
pub use odds::{Odds, OddsInTurn};

use crate::catalogue::ids::Ids;
use crate::catalogue::item::{AMOUNT_MAX, Stock};
use crate::catalogue::nesting::Layout;
use crate::catalogue::{Catalogue, Mode, SoldOut};
use crate::draw::selector::Selector;
use crate::draw::stocks::Stocks;
use crate::refusal::Refusal;
use std::num::NonZeroU64;
use tables::Tables;
use timetable::Timetable;

/// A catalogue with its stock. The result of a draw follows from a number that the caller chooses:
/// a [`Pool`](crate::Pool), or a program with its own random numbers.
///
/// Items are numbered from 0 in the order in which they were added. Numbers do not change.
///
/// ```
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::{Catalogue, Item, Urn};
///
/// let items = vec![Item::limited("car", 1, 1), Item::unlimited("mug", 9)];
/// let mut urn = Urn::<WideTree>::new(&Catalogue::new(items).unwrap());
/// assert_eq!(urn.draw(|below| { assert_eq!(below, 10); 0 }), Ok(Some(0)), "of ten points, the first is the car's");
/// assert_eq!(urn.draw(|below| { assert_eq!(below, 9); 0 }), Ok(Some(1)), "there was one car");
/// ```
#[derive(Debug)]
pub struct Urn<S> {
    ids: Ids,
    stocks: Stocks,
    /// Weights from the catalogue, even if sold out; 0 for removed items.
    weights: Vec<u64>,
    /// Weights in force in the next draw: see [`in_force`].
    selector: S,
    rule: Rule,
    /// Weight of each unit in a raffle, if all items with a weight have always had the same.
    unit_weight: Option<NonZeroU64>,
    /// Number of items of the first table with a weight and with units left.
    on_sale: usize,
    /// Sum of the weights that would be in force if all drawn units came back and all scheduled
    /// ones had come. At most [`AMOUNT_MAX`], so both always fit.
    counted: u64,
    /// The releases, if there are any.
    timetable: Option<Box<Timetable>>,
    /// The nested tables, if there are any.
    tables: Option<Box<Tables<S>>>,
    version: u64,
}

/// Parts to build an urn from.
#[derive(Debug, Default)]
struct Contents {
    ids: Ids,
    stocks: Stocks,
    weights: Vec<u64>,
    timetable: Option<Box<Timetable>>,
    layout: Layout,
}

/// What weights mean, and what happens to the weight of a sold-out item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Fixed odds, shared among the items that are left.
    Renormalise,
    /// Fixed odds. A sold-out item gives the fallback item, or nothing.
    Keep { fallback: Option<u32> },
    /// Raffle: each unit counts. The fallback item may follow after the last ticket.
    PerUnit { fallback: Option<u32> },
}

/// Current state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its number.
    pub item: u32,
    /// Its id.
    pub id: &'a str,
    /// Its weight in the catalogue.
    pub weight: u64,
    /// What is left.
    pub stock: Stock,
    /// Number of units drawn and not given back.
    pub drawn: u64,
    /// Number of units still to come by the schedule.
    pub to_come: u64,
    /// Name of its table, unless it is in the first.
    pub table: Option<&'a str>,
    /// Name of the table that it leads to, if it leads to one.
    pub leads_to: Option<&'a str>,
    /// Its weight in the next draw, out of the weight of its table ([`Urn::total_weight`] for the
    /// first), if the draw reaches that table. A sold-out item has a weight if the pool's rule is
    /// to give something else in its place.
    pub weight_in_force: u64,
}

impl<S: Selector> Urn<S> {
    /// Creates an urn with the full stock of a catalogue. O(n).
    pub fn new(catalogue: &Catalogue) -> Self {
        Self::with_selector(catalogue, S::new)
    }

    /// As [`new`](Self::new), with the selector that `make` builds from the weights, for example
    /// [`AnySelector::with`](crate::draw::selector::AnySelector::with).
    pub fn with_selector(catalogue: &Catalogue, make: impl Fn(&[u64]) -> S) -> Self {
        let items = catalogue.items();
        let mut ids = Ids::default();
        let mut stocks = Stocks::with_capacity(items.len());
        for item in items {
            ids.push_text(&item.id);
            stocks.push(item.stock);
        }
        let claimed = ids.claim_all(0..items.len() as u32);
        claimed.expect("a catalogue has no id twice");
        let weights: Vec<u64> = items.iter().map(|item| item.weight).collect();
        let fallback = match catalogue.sold_out() {
            SoldOut::Fallback(id) => ids.find(id),
            SoldOut::Renormalise | SoldOut::NoPrize => None,
        };
        let rule = match (catalogue.mode(), catalogue.sold_out()) {
            (Mode::FixedOdds, SoldOut::Renormalise) => Rule::Renormalise,
            (Mode::FixedOdds, _) => Rule::Keep { fallback },
            (Mode::PerUnit, _) => Rule::PerUnit { fallback },
        };
        let schedule = catalogue.schedule().resolve(|id| ids.find(id));
        let schedule = schedule.expect("a catalogue has the items that its schedule names");
        let timetable = Timetable::new(schedule, 0);
        let layout = catalogue.layout().clone();
        Self::of(rule, 1, Contents { ids, stocks, weights, timetable, layout }, make)
    }

    fn of(rule: Rule, version: u64, contents: Contents, make: impl Fn(&[u64]) -> S) -> Self {
        let Contents { ids, stocks, weights, timetable, layout } = contents;
        let numbered = || (0..).zip(&weights);
        let supply = |item| stocks.supply(item) + promised(timetable.as_deref(), item);
        let is_lead = |item| layout.lead(item).is_some();
        // An item that leads to a table has no share until the table has reported its state.
        let share =
            |(item, &weight)| if is_lead(item) { 0 } else { in_force(rule, weight, stocks.left(item)) };
        let mut shares: Vec<u64> = numbered().map(share).collect();
        let is_on_sale = |item: u32| weights[item as usize] > 0 && stocks.left(item) > 0 && !is_lead(item);
        let counted = numbered().map(|(item, &weight)| counted(rule, weight, supply(item))).sum();
        let mut on_sale = (0..weights.len() as u32).filter(|&item| is_on_sale(item)).count();
        let tables = layout.inner_items().map(|inner| {
            let tables = Tables::new(layout.clone(), &shares, is_on_sale, &make);
            on_sale -= inner.clone().filter(|&item| is_on_sale(item)).count();
            shares[inner.start as usize..inner.end as usize].fill(0);
            Box::new(tables)
        });
        let selector = make(&shares);
        let unit_weight = unit_weight(rule, &weights);
        let mut urn = Self {
            ids,
            stocks,
            weights,
            selector,
            rule,
            unit_weight,
            on_sale,
            counted,
            timetable,
            tables,
            version,
        };
        urn.open_tables();
        urn
    }

    /// Returns the number of items, including removed ones.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Always returns `false`: a catalogue has items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what a weight means.
    pub fn mode(&self) -> Mode {
        match self.rule {
            Rule::Renormalise | Rule::Keep { .. } => Mode::FixedOdds,
            Rule::PerUnit { .. } => Mode::PerUnit,
        }
    }

    /// Returns whether a sold-out item keeps its odds and gives [another item](Self::fallback) or
    /// nothing.
    pub fn keeps_odds(&self) -> bool {
        matches!(self.rule, Rule::Keep { .. })
    }

    /// Returns the item that is given in place of sold-out ones.
    pub fn fallback(&self) -> Option<u32> {
        match self.rule {
            Rule::Renormalise => None,
            Rule::Keep { fallback } | Rule::PerUnit { fallback } => fallback,
        }
    }

    /// Returns the selector of the first table: see [`selector`](crate::draw::selector).
    pub fn selector(&self) -> &S {
        &self.selector
    }

    /// Returns the version of the catalogue: 1 at first, and one more with each change by an
    /// operator.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the sum of the first table's weights in force.
    pub fn total_weight(&self) -> u64 {
        self.selector.total()
    }

    /// Returns the number of the item with this id. O(1).
    pub fn find(&self, id: &str) -> Option<u32> {
        self.ids.find(id)
    }

    /// Returns the id of an item, even if it was removed.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn id(&self, item: u32) -> &str {
        self.ids.get(item)
    }

    /// Returns whether the item exists and was not removed. O(1).
    #[inline]
    pub fn has(&self, item: u32) -> bool {
        (item as usize) < self.len() && self.ids.is_owner(item)
    }

    /// Returns the number of units drawn and not given back.
    pub(crate) fn drawn(&self, item: u32) -> u64 {
        self.stocks.drawn(item)
    }

    /// Returns the state of an item; `None` if it does not exist or was removed. O(log n) at most.
    pub fn entry(&self, item: u32) -> Option<Entry<'_>> {
        self.has(item).then(|| Entry {
            item,
            id: self.ids.get(item),
            weight: self.weights[item as usize],
            stock: self.stocks.stock(item),
            drawn: self.stocks.drawn(item),
            to_come: promised(self.timetable.as_deref(), item),
            weight_in_force: self.share(item),
            table: self.table_of(item).map(|table| self.table_name(table)),
            leads_to: self.leads_to(item).map(|table| self.table_name(table)),
        })
    }

    /// Returns the states of all items in order, without removed ones.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len() as u32).filter_map(|item| self.entry(item))
    }

    /// Returns the heap size of the items in bytes, roughly, without the first table's selector.
    pub fn heap_bytes(&self) -> usize {
        let tables = self.tables.as_ref().map_or(0, |tables| tables.heap_bytes());
        self.ids.heap_bytes() + self.stocks.heap_bytes() + self.weights.capacity() * 8 + tables
    }

    pub(crate) fn rule(&self) -> Rule {
        self.rule
    }

    fn found(&self, id: &str) -> Result<u32, Refusal> {
        self.ids.find(id).ok_or_else(|| Refusal::UnknownItem { id: id.into() })
    }

    /// Updates the weight in force of an item.
    fn refresh(&mut self, item: u32) {
        let weight = self.weights[item as usize];
        let has_weight = self.tables.as_ref().is_none_or(|tables| tables.has_weight(item));
        let share = if has_weight { in_force(self.rule, weight, self.stocks.left(item)) } else { 0 };
        self.set_share(item, share);
    }

    fn is_on_sale(&self, item: u32) -> bool {
        let is_open = || self.tables.as_ref().is_none_or(|tables| tables.is_open(item));
        self.weights[item as usize] > 0 && self.stocks.left(item) > 0 && is_open()
    }
}

/// Returns the number of units of an item still to come.
fn promised(timetable: Option<&Timetable>, item: u32) -> u64 {
    timetable.map_or(0, |timetable| timetable.promised(item))
}

/// Returns the weight an item would have in force with its whole supply.
fn counted(rule: Rule, weight: u64, supply: u64) -> u64 {
    match rule {
        Rule::Renormalise | Rule::Keep { .. } => weight,
        Rule::PerUnit { .. } => weight * supply,
    }
}

/// Returns the weight of each unit in a raffle, if all items with a weight have the same.
fn unit_weight(rule: Rule, weights: &[u64]) -> Option<NonZeroU64> {
    let mut different = weights.iter().filter_map(|&weight| NonZeroU64::new(weight));
    let first = different.next().filter(|_| matches!(rule, Rule::PerUnit { .. }))?;
    different.all(|weight| weight == first).then_some(first)
}

/// Returns an item's weight in force.
fn in_force(rule: Rule, weight: u64, left: u64) -> u64 {
    match rule {
        Rule::Renormalise if left == 0 => 0,
        Rule::Renormalise | Rule::Keep { .. } => weight,
        Rule::PerUnit { .. } if left > AMOUNT_MAX => 0,
        Rule::PerUnit { .. } => weight * left,
    }
}
