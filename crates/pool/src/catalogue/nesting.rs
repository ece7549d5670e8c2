//! Nested tables: an item may lead to a table, which gives one of its own items.

use crate::catalogue::id_check::{InvalidId, check_id};
use crate::catalogue::item::{Item, Stock};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of nested tables.
pub const TABLES_MAX: usize = 4096;

/// Maximum number of nested tables that a draw passes.
pub const TABLE_DEPTH_MAX: usize = 8;

/// A nested table. A draw that an item leads here gets one of its items, by their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: Box<str>,
    /// Its items. Ids are unique over all tables.
    pub items: Vec<Item>,
}

/// Link from an item to a table. The item itself is not given: a draw that meets it continues in
/// the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// Id of the item. It must be unlimited: what is left is the stock of the table.
    pub item: Box<str>,
    /// Name of the table.
    pub table: Box<str>,
}

/// Error in nested tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NestingError {
    /// In a raffle, a table has no weight of its own.
    #[error(
        "tables inside of tables go with fixed odds alone: leave them out, or let the mode be fixed odds"
    )]
    PerUnit,
    /// There are more tables than [`TABLES_MAX`].
    #[error("there are {count} tables besides the first, at most {TABLES_MAX} are possible: leave some out")]
    TooMany {
        /// Number of tables.
        count: usize,
    },
    /// A name is empty, too long or contains control characters.
    #[error("table {number} has the name {name:?}: a name has 1 to 255 bytes, and no control characters")]
    Name {
        /// Number of the table, from 1.
        number: usize,
        /// Its name.
        name: Box<str>,
    },
    /// Two tables have the same name.
    #[error("two tables have the name {name:?}: give each one of its own")]
    Twice {
        /// The name.
        name: Box<str>,
    },
    /// No item of the table has a weight.
    #[error("nothing in the table {name:?} has a weight: give it an item that has one")]
    NoWeight {
        /// The table.
        name: Box<str>,
    },
    /// The table does not exist.
    #[error("the item {item:?} leads to the table {table:?}, which is not there: name one of the tables")]
    UnknownTable {
        /// The item.
        item: Box<str>,
        /// The unknown name.
        table: Box<str>,
    },
    /// The item does not exist.
    #[error("the item {item:?} is to lead to the table {table:?}, and there is no such item: name one")]
    UnknownItem {
        /// The unknown id.
        item: Box<str>,
        /// The table.
        table: Box<str>,
    },
    /// An item leads to two tables, or leads to a table and has a quantity of its own.
    #[error("the item {item:?} leads to a table: it leads to one alone, and has no quantity of its own")]
    NotAlone {
        /// The item.
        item: Box<str>,
    },
    /// No item leads to the table.
    #[error("no item leads to the table {name:?}: let one, or leave the table out")]
    Unreachable {
        /// The table.
        name: Box<str>,
    },
    /// Tables lead to each other in a cycle.
    #[error("the table {name:?} leads to itself, or what leads to it does: a draw would find no end")]
    Circle {
        /// A table of the cycle, or one that the cycle leads to.
        name: Box<str>,
    },
    /// A draw would pass more tables than [`TABLE_DEPTH_MAX`].
    #[error("the table {name:?} lies more than {TABLE_DEPTH_MAX} tables deep: put some together")]
    TooDeep {
        /// A table that is too deep.
        name: Box<str>,
    },
    /// The fallback item leads to a table.
    #[error("{item:?} is given in place of what is sold out, and leads to a table: name an item that is one")]
    FallbackLeads {
        /// The item.
        item: Box<str>,
    },
    /// A limit names an item that leads to a table; limits count items that are given.
    #[error("limit {number} names {item:?}, which leads to a table: name the items of the table")]
    LimitedLead {
        /// Number of the limit, from 1.
        number: usize,
        /// The item.
        item: Box<str>,
    },
    /// A guarantee names an item of a nested table; guarantees apply to the first table.
    #[error(
        "guarantee {number} names {item:?}, which is in another table than the first: name the item that leads there"
    )]
    GuaranteedInside {
        /// Number of the guarantee, from 1.
        number: usize,
        /// The item.
        item: Box<str>,
    },
    /// A guarantee names an item that leads to a table, and odds are not renormalised: the draw
    /// could meet a sold-out item of the table.
    #[error(
        "guarantee {number} names {item:?}, which leads to a table: that goes with a pool alone in which what is sold out makes the \
         others likelier"
    )]
    GuaranteedLead {
        /// Number of the guarantee, from 1.
        number: usize,
        /// The item.
        item: Box<str>,
    },
}

/// Item ranges of the tables, and the leads, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Nested tables with the numbers of their items. The ranges follow the first table's items,
    /// without gaps.
    pub(crate) tables: Vec<(Box<str>, Range<u32>)>,
    /// Pairs of an item and the table that it leads to, sorted by item.
    pub(crate) leads: Vec<(u32, u32)>,
}

impl Layout {
    /// Creates a layout from item ranges and leads; `find` returns the number of an item.
    pub(crate) fn new(
        items: &[Item],
        tables: Vec<(Box<str>, Range<u32>)>,
        leads: &[Lead],
        find: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, NestingError> {
        if tables.len() > TABLES_MAX {
            return Err(NestingError::TooMany { count: tables.len() });
        }
        let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
        for (number, (name, range)) in (1..).zip(&tables) {
            check_id(name).map_err(|_: InvalidId| NestingError::Name { number, name: name.clone() })?;
            if numbers.insert(name, number as u32 - 1).is_some() {
                return Err(NestingError::Twice { name: name.clone() });
            }
            if items[range.start as usize..range.end as usize].iter().all(|item| item.weight == 0) {
                return Err(NestingError::NoWeight { name: name.clone() });
            }
        }
        let resolved = leads.iter().map(|Lead { item, table }| {
            let (name, from) = (|| table.clone(), find(item));
            let from = from.ok_or_else(|| NestingError::UnknownItem { item: item.clone(), table: name() })?;
            let to = numbers.get(&**table).copied();
            let to = to.ok_or_else(|| NestingError::UnknownTable { item: item.clone(), table: name() })?;
            if items[from as usize].stock != Stock::Unlimited {
                return Err(NestingError::NotAlone { item: item.clone() });
            }
            Ok((from, to))
        });
        let mut leads = resolved.collect::<Result<Vec<_>, _>>()?;
        leads.sort_unstable();
        if let Some(pair) = leads.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(NestingError::NotAlone { item: items[pair[0].0 as usize].id.clone() });
        }
        let layout = Self { tables, leads };
        layout.check().map(|()| layout)
    }

    /// Returns the items of all nested tables, if there are any.
    pub(crate) fn inner_items(&self) -> Option<Range<u32>> {
        let ((_, first), (_, last)) = (self.tables.first()?, self.tables.last()?);
        Some(first.start..last.end)
    }

    /// Returns the table that an item is in; `None` is the first.
    pub(crate) fn table_of(&self, item: u32) -> Option<u32> {
        let place = self.tables.partition_point(|(_, items)| items.end <= item);
        self.tables.get(place).filter(|(_, items)| items.contains(&item)).map(|_| place as u32)
    }

    /// Returns the table that an item leads to.
    pub(crate) fn lead(&self, item: u32) -> Option<u32> {
        let place = self.leads.binary_search_by_key(&item, |&(item, _)| item).ok()?;
        Some(self.leads[place].1)
    }

    /// Returns the items of these tables and of all tables reachable from them, as sorted disjoint
    /// ranges.
    pub(crate) fn below(&self, tables: impl IntoIterator<Item = u32>) -> Vec<Range<u32>> {
        let mut is_reached = vec![false; self.tables.len()];
        let mut next: Vec<u32> = tables.into_iter().collect();
        while let Some(table) = next.pop() {
            if !std::mem::replace(&mut is_reached[table as usize], true) {
                next.extend(self.leads_in(Some(table)).iter().map(|(_, to)| *to));
            }
        }
        let reached = self.tables.iter().zip(is_reached).filter(|(_, is_reached)| *is_reached);
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for (_, items) in reached.map(|(table, _)| table) {
            match ranges.last_mut() {
                Some(last) if last.end == items.start => last.end = items.end,
                _ => ranges.push(items.clone()),
            }
        }
        ranges
    }

    /// Returns the leads of a table's items; `None` is the first table.
    fn leads_in(&self, table: Option<u32>) -> &[(u32, u32)] {
        let first = self.inner_items().map_or(0, |inner| inner.start);
        let Range { start, end } = table.map_or(0..first, |table| self.tables[table as usize].1.clone());
        let place = |number: u32| self.leads.partition_point(|(item, _)| *item < number);
        &self.leads[place(start)..place(end)]
    }

    /// Checks that each table is reachable, without cycles and not too deep. O(leads · log leads).
    pub(crate) fn check(&self) -> Result<(), NestingError> {
        let name = |table: usize| self.tables[table].0.clone();
        let mut waiting_for = vec![0_usize; self.tables.len()];
        self.leads.iter().for_each(|(_, to)| waiting_for[*to as usize] += 1);
        if let Some(table) = waiting_for.iter().position(|&leads| leads == 0) {
            return Err(NestingError::Unreachable { name: name(table) });
        }
        // Topological order of the tables, with the longest path to each.
        let (mut order, mut depths) = (vec![None], vec![0_usize; self.tables.len()]);
        while let Some(table) = order.pop() {
            let depth = 1 + table.map_or(0, |table: u32| depths[table as usize]);
            for to in self.leads_in(table).iter().map(|(_, to)| *to as usize) {
                depths[to] = depths[to].max(depth);
                waiting_for[to] -= 1;
                if waiting_for[to] == 0 {
                    order.push(Some(to as u32));
                }
            }
        }
        if let Some(table) = waiting_for.iter().position(|&leads| leads > 0) {
            return Err(NestingError::Circle { name: name(table) });
        }
        match depths.iter().position(|&depth| depth > TABLE_DEPTH_MAX) {
            Some(table) => Err(NestingError::TooDeep { name: name(table) }),
            None => Ok(()),
        }
    }
}
