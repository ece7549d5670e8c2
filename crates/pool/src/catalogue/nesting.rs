//! Tables inside of tables: an item of one may lead to another, which gives one of its own.

use crate::catalogue::item::{Item, Stock};
use crate::catalogue::{CatalogueError, check_id};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::ops::Range;

/// The most tables besides the first.
pub const TABLES_MAX: usize = 4096;

/// So many tables a draw goes through at most behind the first.
pub const TABLE_DEPTH_MAX: usize = 8;

/// A table besides the first: where something leads to it, it gives one of its items, by their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What it is called.
    pub name: Box<str>,
    /// Its items, whose ids no other table has.
    pub items: Vec<Item>,
}

/// An item that gives nothing itself: whoever meets it goes on in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The id of the item, which is unlimited: what is left is what the table has.
    pub item: Box<str>,
    /// The name of the table.
    pub table: Box<str>,
}

/// What is wrong with tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NestingError {
    /// Where each unit counts, a table has no weight of its own.
    #[error(
        "tables inside of tables go with fixed odds alone: leave them out, or let the mode be fixed odds"
    )]
    PerUnit,
    /// More tables than [`TABLES_MAX`].
    #[error("there are {count} tables besides the first, at most {TABLES_MAX} are possible: leave some out")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// A name that is empty, too long or has control characters.
    #[error("table {number} has the name {name:?}: a name has 1 to 255 bytes, and no control characters")]
    Name {
        /// Which one, counted from 1.
        number: usize,
        /// Its name.
        name: Box<str>,
    },
    /// Two tables have one name.
    #[error("two tables have the name {name:?}: give each one of its own")]
    Twice {
        /// The name.
        name: Box<str>,
    },
    /// A table that could give nothing.
    #[error("nothing in the table {name:?} has a weight: give it an item that has one")]
    NoWeight {
        /// The table.
        name: Box<str>,
    },
    /// There is no such table.
    #[error("the item {item:?} leads to the table {table:?}, which is not there: name one of the tables")]
    UnknownTable {
        /// The item.
        item: Box<str>,
        /// What was named.
        table: Box<str>,
    },
    /// There is no such item.
    #[error("the item {item:?} is to lead to the table {table:?}, and there is no such item: name one")]
    UnknownItem {
        /// What was named.
        item: Box<str>,
        /// The table.
        table: Box<str>,
    },
    /// An item cannot lead to two tables, nor have a quantity of its own.
    #[error("the item {item:?} leads to a table: it leads to one alone, and has no quantity of its own")]
    NotAlone {
        /// The item.
        item: Box<str>,
    },
    /// Nothing leads to a table.
    #[error("no item leads to the table {name:?}: let one, or leave the table out")]
    Unreachable {
        /// The table.
        name: Box<str>,
    },
    /// Tables lead to each other in a circle.
    #[error("the table {name:?} leads to itself, or what leads to it does: a draw would find no end")]
    Circle {
        /// One of them, or one behind them.
        name: Box<str>,
    },
    /// A draw would go through more tables than [`TABLE_DEPTH_MAX`].
    #[error("the table {name:?} lies more than {TABLE_DEPTH_MAX} tables deep: put some together")]
    TooDeep {
        /// One of those that do.
        name: Box<str>,
    },
    /// What is sold out cannot lead to a table.
    #[error("{item:?} is given in place of what is sold out, and leads to a table: name an item that is one")]
    FallbackLeads {
        /// The item.
        item: Box<str>,
    },
    /// Limits count items that are given.
    #[error("limit {number} names {item:?}, which leads to a table: name the items of the table")]
    LimitedLead {
        /// Which limit, counted from 1.
        number: usize,
        /// The item.
        item: Box<str>,
    },
    /// Guarantees are for the first table.
    #[error(
        "guarantee {number} names {item:?}, which is in another table than the first: name the item that leads there"
    )]
    GuaranteedInside {
        /// Which guarantee, counted from 1.
        number: usize,
        /// The item.
        item: Box<str>,
    },
    /// What is sold out in a table could be met in place of what is guaranteed.
    #[error(
        "guarantee {number} names {item:?}, which leads to a table: that goes with a pool alone in which what is sold out makes the \
         others likelier"
    )]
    GuaranteedLead {
        /// Which guarantee, counted from 1.
        number: usize,
        /// The item.
        item: Box<str>,
    },
}

/// Where the items of each table are, and which of them lead where: by numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The tables besides the first, with the numbers of their items, which follow each other without gaps behind those of the first.
    pub(crate) tables: Vec<(Box<str>, Range<u32>)>,
    /// Items and the tables that they lead to, sorted by the items.
    pub(crate) leads: Vec<(u32, u32)>,
}

impl Layout {
    /// The layout of tables, the items of which have these places among all; `find` finds the places of those that lead somewhere.
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
            check_id(number, name)
                .map_err(|_: CatalogueError| NestingError::Name { number, name: name.clone() })?;
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

    /// The items of all tables besides the first, if there are any.
    pub(crate) fn inner_items(&self) -> Option<Range<u32>> {
        let ((_, first), (_, last)) = (self.tables.first()?, self.tables.last()?);
        Some(first.start..last.end)
    }

    /// The table that an item is in; `None` is the first.
    pub(crate) fn table_of(&self, item: u32) -> Option<u32> {
        let place = self.tables.partition_point(|(_, items)| items.end <= item);
        self.tables.get(place).filter(|(_, items)| items.contains(&item)).map(|_| place as u32)
    }

    /// The table that an item leads to.
    pub(crate) fn lead(&self, item: u32) -> Option<u32> {
        let place = self.leads.binary_search_by_key(&item, |&(item, _)| item).ok()?;
        Some(self.leads[place].1)
    }

    /// The items of these tables and of all that can be reached from them: ranges in their order, between which there are others.
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

    /// The leads of a table's items, or of the first table's.
    fn leads_in(&self, table: Option<u32>) -> &[(u32, u32)] {
        let first = self.inner_items().map_or(0, |inner| inner.start);
        let Range { start, end } = table.map_or(0..first, |table| self.tables[table as usize].1.clone());
        let place = |number: u32| self.leads.partition_point(|(item, _)| *item < number);
        &self.leads[place(start)..place(end)]
    }

    /// Whether each table is reached, by ways that end and are not too long. O(leads · log leads).
    pub(crate) fn check(&self) -> Result<(), NestingError> {
        let name = |table: usize| self.tables[table].0.clone();
        let mut waiting_for = vec![0_usize; self.tables.len()];
        self.leads.iter().for_each(|(_, to)| waiting_for[*to as usize] += 1);
        if let Some(table) = waiting_for.iter().position(|&leads| leads == 0) {
            return Err(NestingError::Unreachable { name: name(table) });
        }
        // Tables in an order in which each comes behind all that lead to it, with the longest way there.
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
