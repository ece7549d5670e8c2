//! An urn as bytes: what it is by, and its items some at a time.

use super::timetable::{self, Timetable};
use super::{Rule, Urn, promised};
use crate::bytes::{Reader, put_bytes, put_number};
use crate::catalogue::{ITEMS_MAX, check_id};
use crate::ids::Ids;
use crate::item::AMOUNT_MAX;
use crate::selector::Selector;
use crate::stocks::{Standing, Stocks, UNLIMITED_DRAWN_MAX};
use std::ops::Range;

const RENORMALISE: u64 = 0;
const KEEP: u64 = 1;
const PER_UNIT: u64 = 2;

/// In front of an item: whether its id is still its own, and whether it is limited.
const REMOVED: u64 = 1;
const UNLIMITED: u64 = 2;

/// So many items at most have memory before they have been read: some 14 MB.
const BELIEVED: usize = 1 << 20;

impl<S: Selector> Urn<S> {
    /// Appends everything but the items.
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

    /// Appends what comes to the stock, and how far that has come.
    pub(crate) fn write_timetable(&self, into: &mut Vec<u8>) {
        match &self.timetable {
            Some(timetable) => timetable.write(into),
            None => timetable::write_none(into),
        }
    }

    /// Appends some of the items.
    ///
    /// # Panics
    /// If there are not so many.
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
    ids: Ids,
    stocks: Stocks,
    weights: Vec<u64>,
    counted: u64,
    timetable: Option<Box<Timetable>>,
}

impl Unread {
    /// What was written by [`Urn::write_head`]; `None` if that is not it.
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
            // What is said of the size is not yet believed, but for a table that is made for it, and not made anew again and again.
            ids: Ids::with_capacity(items.min(BELIEVED)),
            stocks: Stocks::default(),
            weights: Vec::new(),
            counted: 0,
            timetable: None,
        })
    }

    /// What was written by [`Urn::write_timetable`], before there are items; `None` if that is not it.
    pub(crate) fn timetable(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        debug_assert!(self.weights.is_empty(), "what an item counts depends on it");
        self.timetable = Timetable::read(reader, self.items)?;
        Some(())
    }

    /// How many items it will have.
    pub(crate) fn len(&self) -> usize {
        self.items
    }

    /// Reads items until the bytes end; `None` if they are not those of a sound urn.
    pub(crate) fn items(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        while !reader.is_at_end() {
            self.item(reader)?;
        }
        Some(())
    }

    fn item(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let flags = reader.number()?;
        let (id, weight, left) = (reader.text()?, reader.number()?, reader.number()?);
        if self.weights.len() == self.items || flags > (REMOVED | UNLIMITED) || left > AMOUNT_MAX {
            return None;
        }
        check_id(self.weights.len() + 1, id).ok()?;
        let standing = if flags & UNLIMITED == 0 {
            let supply = reader.number().filter(|&supply| (left..=AMOUNT_MAX).contains(&supply))?;
            Standing::limited(left, supply)
        } else if left <= UNLIMITED_DRAWN_MAX {
            Standing::unlimited(left)
        } else {
            return None;
        };
        let coming = promised(self.timetable.as_deref(), self.weights.len() as u32);
        let supply = standing.supply().checked_add(coming).filter(|&supply| supply <= AMOUNT_MAX)?;
        let counted = match self.rule {
            Rule::PerUnit { .. } if flags & UNLIMITED != 0 && weight > 0 => return None,
            Rule::PerUnit { .. } => weight.checked_mul(supply)?,
            Rule::Renormalise | Rule::Keep { .. } => weight,
        };
        self.counted = self.counted.checked_add(counted).filter(|&sum| sum <= AMOUNT_MAX)?;
        if flags & REMOVED == 0 {
            self.ids.claim(id)?;
        } else {
            if weight > 0 {
                return None;
            }
            self.ids.push_released(id);
        }
        self.stocks.push_standing(standing);
        self.weights.push(weight);
        Some(())
    }

    /// Whether all items have been read.
    pub(crate) fn is_complete(&self) -> bool {
        self.weights.len() == self.items
    }

    /// The urn, once all items have been read; `None` if there are too few.
    pub(crate) fn finish<S: Selector>(self, make: impl FnOnce(&[u64]) -> S) -> Option<Urn<S>> {
        let Self { rule, version, items, ids, stocks, weights, counted: sum, timetable } = self;
        if weights.len() != items || items == 0 {
            return None;
        }
        if let Rule::Keep { fallback: Some(item) } | Rule::PerUnit { fallback: Some(item) } = rule
            && !ids.is_owner(item)
        {
            return None;
        }
        let urn = Urn::of(rule, version, ids, stocks, weights, timetable, make);
        debug_assert_eq!(urn.counted, sum, "it was added up while it was read");
        Some(urn)
    }
}
