//! Serialisation of an urn: a head, and its items in parts.

use super::timetable::{self, Timetable};
use super::{Contents, Rule, Urn, promised};
use crate::catalogue::ITEMS_MAX;
use crate::catalogue::id_check::check_id;
use crate::catalogue::item::AMOUNT_MAX;
use crate::catalogue::nesting::{Layout, TABLES_MAX};
use crate::draw::selector::Selector;
use crate::draw::stocks::{Standing, UNLIMITED_DRAWN_MAX};
use crate::record::bytes::{Reader, put_bytes, put_number};
use std::ops::Range;

const RENORMALISE: u64 = 0;
const KEEP: u64 = 1;
const PER_UNIT: u64 = 2;

/// Flags of an item: it has lost its id; it is unlimited.
const REMOVED: u64 = 1;
const UNLIMITED: u64 = 2;

impl<S: Selector> Urn<S> {
    /// Appends everything except the items, the timetable and the tables.
    pub(crate) fn write_head(&self, into: &mut Vec<u8>) {
        let (tag, fallback) = match self.rule {
            Rule::Renormalise => (RENORMALISE, None),
            Rule::Keep { fallback } => (KEEP, fallback),
            Rule::PerUnit { fallback } => (PER_UNIT, fallback),
        };
        put_number(into, tag);
        put_number(into, fallback.map_or(0, |item| u64::from(item) + 1));
        put_number(into, self.version);
        put_number(into, self.len() as u64);
    }

    /// Appends the releases, and the time up to which they are done.
    pub(crate) fn write_timetable(&self, into: &mut Vec<u8>) {
        match &self.timetable {
            Some(timetable) => timetable.write(into),
            None => timetable::write_none(into),
        }
    }

    /// Appends the item ranges of the tables, and the leads.
    pub(crate) fn write_tables(&self, into: &mut Vec<u8>) {
        let none = Layout::default();
        let Layout { tables, leads } = self.layout().unwrap_or(&none);
        put_number(into, tables.len() as u64);
        for (name, items) in tables {
            put_bytes(into, name.as_bytes());
            put_number(into, u64::from(items.start));
            put_number(into, u64::from(items.end));
        }
        if tables.is_empty() {
            return;
        }
        put_number(into, leads.len() as u64);
        for &(item, table) in leads {
            put_number(into, u64::from(item));
            put_number(into, u64::from(table));
        }
    }

    /// Appends a range of the items.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub(crate) fn write_items(&self, items: Range<u32>, into: &mut Vec<u8>) {
        for item in items {
            let standing = self.stocks.standing(item);
            let removed = if self.ids.is_owner(item) { 0 } else { REMOVED };
            let (unlimited, left) = match standing.left() {
                left if left > AMOUNT_MAX => (UNLIMITED, u64::MAX - left),
                left => (0, left),
            };
            put_number(into, removed | unlimited);
            put_bytes(into, self.ids.get(item).as_bytes());
            put_number(into, self.weights[item as usize]);
            put_number(into, left);
            if unlimited == 0 {
                put_number(into, standing.supply());
            }
        }
    }
}

/// An urn that is being read.
#[derive(Debug)]
pub(crate) struct Unread {
    rule: Rule,
    version: u64,
    items: usize,
    contents: Contents,
    /// Items that have lost their ids, in order.
    removed: Vec<u32>,
    counted: u64,
}

impl Unread {
    /// Reads the output of [`Urn::write_head`]; `None` if it is invalid.
    pub(crate) fn head(reader: &mut Reader<'_>) -> Option<Self> {
        let tag = reader.number()?;
        let fallback = match reader.number()? {
            0 => None,
            item => Some(u32::try_from(item - 1).ok()?),
        };
        let rule = match tag {
            RENORMALISE if fallback.is_none() => Rule::Renormalise,
            KEEP => Rule::Keep { fallback },
            PER_UNIT => Rule::PerUnit { fallback },
            _ => return None,
        };
        let (version, items) = (reader.number()?, reader.small::<usize>()?);
        let fits = items <= ITEMS_MAX
            && version <= AMOUNT_MAX
            && fallback.is_none_or(|item| (item as usize) < items);
        fits.then(|| Self {
            rule,
            version,
            items,
            contents: Contents::default(),
            removed: Vec::new(),
            counted: 0,
        })
    }

    /// Reads the output of [`Urn::write_timetable`], before any items; `None` if it is invalid.
    pub(crate) fn timetable(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let items = self.contents.weights.len();
        assert!(items == 0, "{items} items are read, and what they count depends on the timetable");
        self.contents.timetable = Timetable::read(reader, self.items)?;
        Some(())
    }

    /// Reads the output of [`Urn::write_tables`]; `None` if it is invalid.
    pub(crate) fn tables(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let count: usize = reader.small().filter(|&count| count <= TABLES_MAX)?;
        if count == 0 {
            return Some(());
        }
        let mut layout = Layout::default();
        for _ in 0..count {
            let (name, start) = (reader.text()?, reader.small::<u32>()?);
            let end = reader.small::<u32>().filter(|&end| start < end && end as usize <= self.items)?;
            check_id(name).ok()?;
            let follows = layout.tables.last().map_or(start > 0, |(_, before)| before.end == start);
            let is_new = layout.tables.iter().all(|(other, _)| **other != *name);
            if !follows || !is_new {
                return None;
            }
            layout.tables.push((name.into(), start..end));
        }
        for _ in 0..reader.small::<usize>().filter(|&leads| leads <= self.items)? {
            let item = reader.small::<u32>().filter(|&item| (item as usize) < self.items)?;
            let table = reader.small::<u32>().filter(|&table| (table as usize) < count)?;
            layout.leads.push((item, table));
        }
        let is_sorted = layout.leads.is_sorted_by(|(one, _), (other, _)| one < other);
        let fits = is_sorted && !matches!(self.rule, Rule::PerUnit { .. }) && layout.check().is_ok();
        let falls_back = |&(lead, _): &(u32, u32)| self.rule == Rule::Keep { fallback: Some(lead) };
        (fits && !layout.leads.iter().any(falls_back)).then(|| self.contents.layout = layout)
    }

    /// Returns the number of items the urn will have.
    pub(crate) fn len(&self) -> usize {
        self.items
    }

    /// Reads items until the bytes end; `None` if they are invalid.
    pub(crate) fn items(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        while !reader.is_at_end() {
            self.item(reader)?;
        }
        Some(())
    }

    fn item(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let flags = reader.number()?;
        let (id, weight, left) = (reader.text()?, reader.number()?, reader.number()?);
        if self.contents.weights.len() == self.items || flags > (REMOVED | UNLIMITED) || left > AMOUNT_MAX {
            return None;
        }
        check_id(id).ok()?;
        let standing = if flags & UNLIMITED == 0 {
            let supply = reader.number().filter(|&supply| (left..=AMOUNT_MAX).contains(&supply))?;
            Standing::limited(left, supply)
        } else if left <= UNLIMITED_DRAWN_MAX {
            Standing::unlimited(left)
        } else {
            return None;
        };
        let coming = promised(self.contents.timetable.as_deref(), self.contents.weights.len() as u32);
        let supply = standing.supply().checked_add(coming).filter(|&supply| supply <= AMOUNT_MAX)?;
        let counted = match self.rule {
            Rule::PerUnit { .. } if flags & UNLIMITED != 0 && weight > 0 => return None,
            Rule::PerUnit { .. } => weight.checked_mul(supply)?,
            Rule::Renormalise | Rule::Keep { .. } => weight,
        };
        self.counted = self.counted.checked_add(counted).filter(|&sum| sum <= AMOUNT_MAX)?;
        if flags & REMOVED == 0 {
            self.contents.ids.push_text(id);
        } else {
            if weight > 0 {
                return None;
            }
            self.removed.push(self.contents.ids.push_released(id));
        }
        self.contents.stocks.push_standing(standing);
        self.contents.weights.push(weight);
        Some(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.contents.weights.len() == self.items
    }

    /// Builds the urn once all items have been read; `None` if some are missing or do not fit
    /// together.
    pub(crate) fn finish<S: Selector>(self, make: impl Fn(&[u64]) -> S) -> Option<Urn<S>> {
        let Self { rule, version, items, mut contents, removed, counted: sum } = self;
        if contents.weights.len() != items || items == 0 {
            return None;
        }
        let owns = |item: &u32| removed.binary_search(item).is_err();
        contents.ids.claim_all((0..items as u32).filter(owns))?;
        let Contents { ids, stocks, layout, .. } = &contents;
        if let Rule::Keep { fallback: Some(item) } | Rule::PerUnit { fallback: Some(item) } = rule
            && !ids.is_owner(item)
        {
            return None;
        }
        // An item that leads to a table is unlimited.
        if layout.leads.iter().any(|&(lead, _)| ids.is_owner(lead) && stocks.left(lead) <= AMOUNT_MAX) {
            return None;
        }
        let urn = Urn::of(rule, version, contents, make);
        assert_eq!(urn.counted, sum, "what the items count is what was added up while they were read");
        Some(urn)
    }
}
