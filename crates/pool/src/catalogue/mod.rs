//! The catalogue: the items of a pool and their rules, checked so that a pool can hold them.

pub(crate) mod id_check;
pub(crate) mod ids;
pub(crate) mod item;
pub(crate) mod nesting;
pub(crate) mod rules;
pub(crate) mod schedule;

use crate::catalogue::id_check::{InvalidId, check_id};
use crate::catalogue::item::{AMOUNT_MAX, ID_BYTES_MAX, Item, Stock};
use crate::catalogue::nesting::{Layout, Lead, NestingError, Table};
use crate::catalogue::rules::{RuleError, RuleKind, Rules};
use crate::catalogue::schedule::{Schedule, ScheduleError};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// Maximum number of items in a catalogue.
pub const ITEMS_MAX: usize = 1 << 24;

/// Meaning of an item's weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// An item's odds are its weight out of all weights, whatever its stock, until it is sold out.
    #[default]
    FixedOdds,
    /// Each unit left has the item's weight: a raffle, where each unit is a ticket.
    PerUnit,
}

/// Result of a draw that meets a sold-out item.
///
/// A draw is refused if nothing can be given: no item with a weight is left, nor the fallback. In a
/// raffle, a sold-out item has no tickets, so no draw meets it; the fallback follows after the last
/// ticket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SoldOut {
    /// Another item: the odds of the remaining items grow.
    #[default]
    Renormalise,
    /// The item with this id, and nothing once that is sold out too.
    Fallback(Box<str>),
    /// Nothing.
    NoPrize,
}

/// The items of a pool and their rules, checked.
///
/// ```
/// use tidemark_pool::{Catalogue, Item};
///
/// let items = vec![Item::limited("car", 1, 3), Item::limited("mug", 99, 10_000)];
/// let catalogue = Catalogue::new(items).unwrap();
/// assert_eq!(catalogue.items().len(), 2);
///
/// let twice = vec![Item::limited("car", 1, 3), Item::limited("car", 9, 1)];
/// assert_eq!(
///     Catalogue::new(twice).unwrap_err().to_string(),
///     "item 2 has the id \"car\" of item 1: give each item an id of its own",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    items: Vec<Item>,
    mode: Mode,
    sold_out: SoldOut,
    rules: Rules,
    schedule: Schedule,
    layout: Layout,
}

impl Catalogue {
    /// Creates a catalogue of fixed odds, which are renormalised when an item sells out.
    ///
    /// # Errors
    /// The first error in the items. O(n), with a hash table of their ids.
    pub fn new(items: Vec<Item>) -> Result<Self, CatalogueError> {
        Self::with(items, Mode::default(), SoldOut::default())
    }

    /// As [`new`](Self::new), with a mode and a rule for sold-out items.
    ///
    /// # Errors
    /// As [`new`](Self::new); also if the rule names an item that does not exist.
    pub fn with(items: Vec<Item>, mode: Mode, sold_out: SoldOut) -> Result<Self, CatalogueError> {
        if items.is_empty() {
            return Err(CatalogueError::Empty);
        }
        if items.len() > ITEMS_MAX {
            return Err(CatalogueError::TooManyItems { items: items.len() });
        }
        check_ids(&items)?;
        check_amounts(&items, mode, |_| 0)?;
        if let SoldOut::Fallback(id) = &sold_out
            && !items.iter().any(|item| item.id == *id)
        {
            return Err(CatalogueError::UnknownFallback { id: id.clone() });
        }
        Ok(Self {
            items,
            mode,
            sold_out,
            rules: Rules::default(),
            schedule: Schedule::default(),
            layout: Layout::default(),
        })
    }

    /// Adds nested tables; the items so far are the first table. O(n).
    ///
    /// ```
    /// use tidemark_pool::{Catalogue, Item, Lead, Table};
    ///
    /// let first = vec![Item::unlimited("common", 90), Item::unlimited("rare", 10)];
    /// let mugs = vec![Item::limited("white mug", 1, 500), Item::limited("blue mug", 1, 500)];
    /// let cars = vec![Item::limited("car", 1, 3), Item::limited("bicycle", 4, 20)];
    /// let tables = vec![Table { name: "mugs".into(), items: mugs }, Table { name: "wheels".into(), items: cars }];
    /// let lead = |item: &str, table: &str| Lead { item: item.into(), table: table.into() };
    /// let catalogue = Catalogue::new(first).unwrap();
    /// let catalogue = catalogue.nested(tables, &[lead("common", "mugs"), lead("rare", "wheels")]).unwrap();
    /// assert_eq!(catalogue.items().len(), 6);
    /// ```
    ///
    /// # Errors
    /// The first error in the tables, their items, or rules that name them.
    pub fn nested(self, tables: Vec<Table>, leads: &[Lead]) -> Result<Self, CatalogueError> {
        if tables.is_empty() && leads.is_empty() {
            return Ok(self);
        }
        if self.mode == Mode::PerUnit {
            return Err(NestingError::PerUnit.into());
        }
        let all = self.items.len() + tables.iter().map(|table| table.items.len()).sum::<usize>();
        if all > ITEMS_MAX {
            return Err(CatalogueError::TooManyItems { items: all });
        }
        let mut items = self.items;
        let ranges = tables.into_iter().map(|Table { name, items: inner }| {
            let begin = items.len() as u32;
            items.extend(inner);
            (name, begin..items.len() as u32)
        });
        let ranges = ranges.collect();
        check_ids(&items)?;
        let wanted: HashSet<&str, RandomState> = leads.iter().map(|lead| &*lead.item).collect();
        let numbered = (0..).zip(&items).filter(|(_, item)| wanted.contains(&*item.id));
        let numbers: HashMap<&str, u32, RandomState> =
            numbered.map(|(number, item)| (&*item.id, number)).collect();
        let layout = Layout::new(&items, ranges, leads, |id| numbers.get(id).copied())?;
        if let SoldOut::Fallback(item) = &self.sold_out
            && wanted.contains(&**item)
        {
            return Err(NestingError::FallbackLeads { item: item.clone() }.into());
        }
        check_amounts(&items, self.mode, |_| 0)?;
        let nested = Self { items, layout, ..self };
        nested.check_rules_of_tables(&nested.rules)?;
        Ok(nested)
    }

    /// Sets the rules about users.
    ///
    /// # Errors
    /// If a rule names an item that does not exist.
    pub fn ruled(self, rules: Rules) -> Result<Self, CatalogueError> {
        let wanted: HashSet<&str, RandomState> = rules.items().map(|(.., id)| &**id).collect();
        let known: HashSet<&str, RandomState> =
            self.items.iter().map(|item| &*item.id).filter(|id| wanted.contains(id)).collect();
        if let Some((what, number, id)) = rules.items().find(|(.., id)| !known.contains(&***id)) {
            return Err(RuleError::UnknownItem { what, number, id: id.clone() }.into());
        }
        self.check_rules_of_tables(&rules)?;
        Ok(Self { rules, ..self })
    }

    /// Sets the schedule. O(n).
    ///
    /// # Errors
    /// If the schedule names an item that does not exist or is unlimited, or if all units together
    /// exceed a limit.
    pub fn scheduled(self, schedule: Schedule) -> Result<Self, CatalogueError> {
        let mut units: HashMap<&str, u64, RandomState> =
            schedule.releases().iter().map(|release| (&*release.item, 0)).collect();
        let mut known: HashMap<&str, &Item, RandomState> = HashMap::default();
        known
            .extend(self.items.iter().map(|item| (&*item.id, item)).filter(|(id, _)| units.contains_key(id)));
        for (number, release) in (1..).zip(schedule.releases()) {
            let id = || release.item.clone();
            let Some(item) = known.get(&*release.item) else {
                return Err(ScheduleError::UnknownItem { number, id: id() }.into());
            };
            let Stock::Limited(quantity) = item.stock else {
                return Err(ScheduleError::Unlimited { number, id: id() }.into());
            };
            let sum = units.entry(&*item.id).or_default();
            *sum = sum
                .checked_add(release.units)
                .filter(|sum| sum.checked_add(quantity).is_some_and(|supply| supply <= AMOUNT_MAX))
                .ok_or_else(|| ScheduleError::TooManyUnits { number, id: id() })?;
        }
        check_amounts(&self.items, self.mode, |id| units.get(id).copied().unwrap_or(0))?;
        Ok(Self { schedule, ..self })
    }

    /// Checks that rules may name the items of nested tables that they name.
    fn check_rules_of_tables(&self, rules: &Rules) -> Result<(), CatalogueError> {
        let Some(inside) = self.layout.inner_items() else { return Ok(()) };
        let named: HashSet<&str, RandomState> = rules.items().map(|(.., id)| &**id).collect();
        let numbers: HashMap<&str, u32, RandomState> = (0..)
            .zip(&self.items)
            .filter(|(_, item)| named.contains(&*item.id))
            .map(|(number, item)| (&*item.id, number))
            .collect();
        for (what, number, id) in rules.items() {
            let (of, item) = (numbers[&**id], id.clone());
            let leads = self.layout.lead(of).is_some();
            match what {
                RuleKind::Limit if leads => return Err(NestingError::LimitedLead { number, item }.into()),
                RuleKind::Guarantee if inside.contains(&of) => {
                    return Err(NestingError::GuaranteedInside { number, item }.into());
                }
                RuleKind::Guarantee if leads && self.sold_out != SoldOut::Renormalise => {
                    return Err(NestingError::GuaranteedLead { number, item }.into());
                }
                RuleKind::Limit | RuleKind::Guarantee => {}
            }
        }
        Ok(())
    }

    /// Returns the items of the first table.
    pub fn first_items(&self) -> &[Item] {
        let end = self.layout.inner_items().map_or(self.items.len(), |inside| inside.start as usize);
        &self.items[..end]
    }

    /// Returns the nested tables, each with its name and items.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = (&str, &[Item])> {
        let tables = self.layout.tables.iter();
        tables.map(|(name, items)| (&**name, &self.items[items.start as usize..items.end as usize]))
    }

    /// Returns the name of the table that an item leads to.
    pub fn leads_to(&self, item: u32) -> Option<&str> {
        self.layout.lead(item).map(|table| &*self.layout.tables[table as usize].0)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns all items in order, first table first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the meaning of weights.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the rules about users.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the rule for sold-out items.
    pub fn sold_out(&self) -> &SoldOut {
        &self.sold_out
    }
}

fn check_ids(items: &[Item]) -> Result<(), CatalogueError> {
    let hasher = RandomState::default();
    let hash = |position: usize| hasher.hash_one(&*items[position].id);
    let mut known: HashTable<u32> = HashTable::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        let number = position + 1;
        check_item_id(number, &item.id)?;
        let same = known.find(hash(position), |&other| items[other as usize].id == item.id);
        if let Some(&first) = same {
            return Err(CatalogueError::DuplicateId {
                number,
                first: first as usize + 1,
                id: item.id.clone(),
            });
        }
        known.insert_unique(hash(position), position as u32, |&other| hash(other as usize));
    }
    Ok(())
}

/// Checks that the id of an item is allowed. `number` is the item's position, from 1.
pub(crate) fn check_item_id(number: usize, id: &str) -> Result<(), CatalogueError> {
    check_id(id).map_err(|invalid| match invalid {
        InvalidId::Empty => CatalogueError::EmptyId { number },
        InvalidId::TooLong { bytes } => CatalogueError::IdTooLong { number, bytes },
        InvalidId::ControlCharacter => CatalogueError::ControlCharacter { number, id: id.into() },
    })
}

/// Checks the sums of the items, with the units that `coming` adds to each.
fn check_amounts(items: &[Item], mode: Mode, coming: impl Fn(&str) -> u64) -> Result<(), CatalogueError> {
    let (mut total, mut any_weight) = (0_u64, false);
    for (position, item) in items.iter().enumerate() {
        let (number, id) = (position + 1, || item.id.clone());
        if let Stock::Limited(quantity) = item.stock
            && quantity > AMOUNT_MAX
        {
            return Err(CatalogueError::QuantityTooLarge { number, id: id(), quantity });
        }
        any_weight |= item.weight > 0;
        let odds = match (mode, item.stock) {
            (Mode::FixedOdds, _) => Some(item.weight),
            (Mode::PerUnit, Stock::Limited(quantity)) => item.weight.checked_mul(quantity + coming(&item.id)),
            (Mode::PerUnit, Stock::Unlimited) if item.weight > 0 => {
                return Err(CatalogueError::UnlimitedTickets { number, id: id() });
            }
            (Mode::PerUnit, Stock::Unlimited) => Some(0),
        };
        total = odds
            .and_then(|odds| total.checked_add(odds))
            .filter(|&total| total <= AMOUNT_MAX)
            .ok_or_else(|| CatalogueError::WeightOverflow { number, id: id() })?;
    }
    if any_weight { Ok(()) } else { Err(CatalogueError::NoWeight) }
}

/// Error in a catalogue. Items are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// There are no items.
    #[error("the catalogue has no items: name at least one")]
    Empty,
    /// There are more items than [`ITEMS_MAX`].
    #[error("the catalogue has {items} items, at most {ITEMS_MAX} are possible: split it into several pools")]
    TooManyItems {
        /// Number of items.
        items: usize,
    },
    /// An id is empty.
    #[error("item {number} has an empty id: give it one")]
    EmptyId {
        /// Number of the item.
        number: usize,
    },
    /// An id is longer than [`ID_BYTES_MAX`].
    #[error("the id of item {number} has {bytes} bytes, at most {ID_BYTES_MAX} are possible: shorten it")]
    IdTooLong {
        /// Number of the item.
        number: usize,
        /// Length of the id.
        bytes: usize,
    },
    /// An id contains a line break, a tab or another control character.
    #[error("the id of item {number}, {id:?}, has a control character: take it out")]
    ControlCharacter {
        /// Number of the item.
        number: usize,
        /// Its id.
        id: Box<str>,
    },
    /// Two items have the same id.
    #[error("item {number} has the id {id:?} of item {first}: give each item an id of its own")]
    DuplicateId {
        /// Number of the second item.
        number: usize,
        /// Number of the first item.
        first: usize,
        /// The id.
        id: Box<str>,
    },
    /// A quantity is above [`AMOUNT_MAX`].
    #[error(
        "item {number}, {id:?}, has a quantity of {quantity}, at most {AMOUNT_MAX} is possible: lower it, or make it unlimited"
    )]
    QuantityTooLarge {
        /// Number of the item.
        number: usize,
        /// Its id.
        id: Box<str>,
        /// The quantity.
        quantity: u64,
    },
    /// No item has a weight.
    #[error("all weights are 0, so nothing could be drawn: give at least one item a weight")]
    NoWeight,
    /// The sum of the weights (of all units in a raffle) is above [`AMOUNT_MAX`].
    #[error(
        "with item {number}, {id:?}, the weights add up to more than {AMOUNT_MAX}: divide them all by the same number"
    )]
    WeightOverflow {
        /// Number of the item.
        number: usize,
        /// Its id.
        id: Box<str>,
    },
    /// An unlimited item in a raffle has a weight: it would have unlimited tickets.
    #[error(
        "item {number}, {id:?}, is unlimited and has a weight, but in a raffle each unit counts: give it a quantity, or weight 0"
    )]
    UnlimitedTickets {
        /// Number of the item.
        number: usize,
        /// Its id.
        id: Box<str>,
    },
    /// A rule about users is not valid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The nested tables are not valid.
    #[error(transparent)]
    Nesting(#[from] NestingError),
    /// The schedule is not valid.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The fallback item does not exist.
    #[error("there is no item {id:?} to fall back to: name one of the catalogue")]
    UnknownFallback {
        /// The unknown id.
        id: Box<str>,
    },
}
