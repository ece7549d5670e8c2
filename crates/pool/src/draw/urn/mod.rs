//! The urn: a catalogue, what is left of it, and what is drawn with a given number.

mod advancing;
mod chances;
mod changing;
mod drawing;
mod favouring;
mod image;
mod odds;
mod possible;
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

/// A catalogue and what is left of it. What is drawn follows from a number that somebody else has chosen: a
/// [`Pool`](crate::Pool), or whoever has random numbers of their own.
///
/// Items have numbers, counted from 0 in the order in which they came; they keep them.
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
    /// What the catalogue gives each item, sold out or not; 0 for those that were removed.
    weights: Vec<u64>,
    /// What counts in the next draw: see [`in_force`].
    selector: S,
    rule: Rule,
    /// Where each unit counts: what it weighs, if that has been the same all along for all that have a weight.
    unit_weight: Option<NonZeroU64>,
    /// How many items of the first table have a weight and are not sold out. Kept where weights stay in force behind the last unit.
    on_sale: usize,
    /// The sum of what items count, if all that was drawn is given back and all has come that the schedule promises: at most
    /// [`AMOUNT_MAX`], so both always fit.
    counted: u64,
    /// What comes to the stock, and when, if anything does.
    timetable: Option<Box<Timetable>>,
    /// The tables besides the first, if there are any.
    tables: Option<Box<Tables<S>>>,
    version: u64,
}

/// What an urn is made of.
#[derive(Debug, Default)]
struct Contents {
    ids: Ids,
    stocks: Stocks,
    weights: Vec<u64>,
    timetable: Option<Box<Timetable>>,
    layout: Layout,
}

/// What weights mean, and what becomes of the weight of what is sold out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Odds are fixed, among what is left.
    Renormalise,
    /// Odds are fixed. What is sold out leads to an item, or to nothing.
    Keep { fallback: Option<u32> },
    /// Each unit counts. An item may follow behind the last.
    PerUnit { fallback: Option<u32> },
}

/// An item as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its number.
    pub item: u32,
    /// Its id.
    pub id: &'a str,
    /// What the catalogue gives it.
    pub weight: u64,
    /// What is left.
    pub stock: Stock,
    /// How many have been drawn and not been given back.
    pub drawn: u64,
    /// How many are still to come by the schedule.
    pub to_come: u64,
    /// The name of the table that it is in, if that is not the first.
    pub table: Option<&'a str>,
    /// The name of the table that it leads to, if it is no item to be drawn itself.
    pub leads_to: Option<&'a str>,
    /// Its odds in the next draw, if that comes to its table, are this, divided by the weights of the table: [`Urn::total_weight`] for the first. What is sold out has odds where the pool's rule is to give something
    /// else in its place.
    pub weight_in_force: u64,
}

impl<S: Selector> Urn<S> {
    /// An urn with all that the catalogue has. O(n).
    pub fn new(catalogue: &Catalogue) -> Self {
        Self::with_selector(catalogue, S::new)
    }

    /// As [`new`](Self::new), with the selector that somebody makes of the weights: [`AnySelector::with`](crate::draw::selector::AnySelector::with), say.
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

    /// An urn of these items.
    fn of(rule: Rule, version: u64, contents: Contents, make: impl Fn(&[u64]) -> S) -> Self {
        let Contents { ids, stocks, weights, timetable, layout } = contents;
        let numbered = || (0..).zip(&weights);
        let supply = |item| stocks.supply(item) + promised(timetable.as_deref(), item);
        let is_lead = |item| layout.lead(item).is_some();
        // What leads to a table has no share until that has said what it has.
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

    /// How many items there are, those that were removed included.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Never: a catalogue has items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a weight stands for.
    pub fn mode(&self) -> Mode {
        match self.rule {
            Rule::Renormalise | Rule::Keep { .. } => Mode::FixedOdds,
            Rule::PerUnit { .. } => Mode::PerUnit,
        }
    }

    /// Whether the weight of what is sold out leads to [another item](Self::fallback) or to nothing, and is not shared by the rest.
    pub fn keeps_odds(&self) -> bool {
        matches!(self.rule, Rule::Keep { .. })
    }

    /// The item that is given in place of what is sold out.
    pub fn fallback(&self) -> Option<u32> {
        match self.rule {
            Rule::Renormalise => None,
            Rule::Keep { fallback } | Rule::PerUnit { fallback } => fallback,
        }
    }

    /// What finds the items: see [`selector`](crate::draw::selector).
    pub fn selector(&self) -> &S {
        &self.selector
    }

    /// The version of the catalogue: 1 at first, and one more with each change by hand.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What the odds of the next draw are divided by.
    pub fn total_weight(&self) -> u64 {
        self.selector.total()
    }

    /// The number of the item with this id. O(1).
    pub fn find(&self, id: &str) -> Option<u32> {
        self.ids.find(id)
    }

    /// The id of an item, also of one that was removed.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn id(&self, item: u32) -> &str {
        self.ids.get(item)
    }

    /// Whether there is an item of this number that was not removed. O(1).
    #[inline]
    pub fn has(&self, item: u32) -> bool {
        (item as usize) < self.len() && self.ids.is_owner(item)
    }

    /// How many of an item have been drawn and not been given back.
    pub(crate) fn drawn(&self, item: u32) -> u64 {
        self.stocks.drawn(item)
    }

    /// An item as it stands; `None` if there is none of this number, or if it was removed. O(log n) at most.
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

    /// All items as they stand, in their order, without those that were removed.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len() as u32).filter_map(|item| self.entry(item))
    }

    /// What the items take on the heap, without the selector. Bytes, roughly.
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

    /// Has the selector know what counts of an item now.
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

/// How many units of an item are still to come.
fn promised(timetable: Option<&Timetable>, item: u32) -> u64 {
    timetable.map_or(0, |timetable| timetable.promised(item))
}

/// What an item counts in a draw if all that was drawn of it is given back, and all has come that is promised.
fn counted(rule: Rule, weight: u64, supply: u64) -> u64 {
    match rule {
        Rule::Renormalise | Rule::Keep { .. } => weight,
        Rule::PerUnit { .. } => weight * supply,
    }
}

/// What each unit weighs, where each counts and all that have a weight have the same.
fn unit_weight(rule: Rule, weights: &[u64]) -> Option<NonZeroU64> {
    let mut different = weights.iter().filter_map(|&weight| NonZeroU64::new(weight));
    let first = different.next().filter(|_| matches!(rule, Rule::PerUnit { .. }))?;
    different.all(|weight| weight == first).then_some(first)
}

/// What counts of an item in a draw.
fn in_force(rule: Rule, weight: u64, left: u64) -> u64 {
    match rule {
        Rule::Renormalise if left == 0 => 0,
        Rule::Renormalise | Rule::Keep { .. } => weight,
        Rule::PerUnit { .. } if left > AMOUNT_MAX => 0,
        Rule::PerUnit { .. } => weight * left,
    }
}
