//! The capture of a pool: its items are seen in blocks, before one of a block changes; everything else is seen at once.
//!
//! The first part has what a pool has beside its items, and each other one a block of items, by its place.

use super::inner::Inner;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};
use std::ops::Range;
use tidemark_pool::{Ending, Event};

/// So many items are seen together: some kilobytes, unless their ids are long.
const BLOCK: usize = 128;

/// The capture by a running snapshot.
#[derive(Debug)]
pub(super) struct PoolCapture {
    parts: Parts,
    /// How many items there were at the cut. Those that came behind them are not written.
    items: usize,
    /// Which blocks have been seen.
    seen: Vec<bool>,
    /// The block where the walk goes on; those before it have been seen.
    next: usize,
}

/// In how many parts a pool of so many items is written.
pub(super) fn parts_of(items: usize) -> usize {
    1 + items.div_ceil(BLOCK)
}

impl PoolCapture {
    /// The capture of a pool of so many items, of which this is all else.
    pub(super) fn new(number: u64, items: usize, head: &[u8]) -> Self {
        let mut parts = Parts::new(number, Type::Pool, parts_of(items));
        parts.push_run(0, std::iter::once(head));
        Self { parts, items, seen: vec![false; items.div_ceil(BLOCK)], next: 0 }
    }

    /// Sees the items that an event is about to change, unless they have been seen.
    pub(super) fn see(&mut self, pool: &Inner, event: &Event<'_>) {
        match event {
            Event::Drew(Some(item))
            | Event::Changed { item, .. }
            | Event::Removed { item }
            | Event::GivenBack { item, .. }
            | Event::GivenBackBy { item, .. } => self.see_item(pool, *item),
            Event::DrewDifferent { items } | Event::Reserved { items, .. } => {
                items.iter().flatten().for_each(|item| self.see_item(pool, *item));
            }
            Event::Asked(asked) => {
                asked.items.iter().flatten().for_each(|item| self.see_item(pool, *item));
            }
            Event::Advanced { now_ms } => {
                pool.urn().due_items(*now_ms).for_each(|item| self.see_item(pool, item));
            }
            Event::Ended { number, how: Ending::Cancelled | Ending::Expired } => {
                let reservation = pool.reservation(*number);
                let items = reservation.into_iter().flat_map(|reservation| &reservation.draws);
                items.filter_map(|draw| draw.item).for_each(|item| self.see_item(pool, item));
            }
            Event::Drew(None)
            | Event::Added { .. }
            | Event::Epoch { .. }
            | Event::Ended { how: Ending::Confirmed, .. } => {}
        }
    }

    fn see_item(&mut self, pool: &Inner, item: u32) {
        let block = item as usize / BLOCK;
        if self.seen.get(block) == Some(&false) {
            self.write(pool, block);
        }
    }

    /// How many bytes were written.
    fn write(&mut self, pool: &Inner, block: usize) -> usize {
        self.seen[block] = true;
        let mut items = Vec::new();
        pool.write_items(self.items_of(block), &mut items);
        self.parts.push_run(1 + block as u64, std::iter::once(&*items));
        items.len()
    }

    fn items_of(&self, block: usize) -> Range<u32> {
        let first = block * BLOCK;
        first as u32..(first + BLOCK).min(self.items) as u32
    }

    /// Sees some of the blocks that have not been seen; what is to go on with if there may be more.
    pub(super) fn step(mut self: Box<Self>, pool: &Inner, pieces: &mut Pieces) -> Option<Box<Self>> {
        let mut bytes = 0;
        while bytes < PART_BYTES {
            let Some(&is_seen) = self.seen.get(self.next) else {
                self.parts.end(pieces);
                return None;
            };
            if !is_seen {
                bytes += self.write(pool, self.next);
            }
            self.next += 1;
        }
        self.parts.give_to(pieces);
        Some(self)
    }
}
