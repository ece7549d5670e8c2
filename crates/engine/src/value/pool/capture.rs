//! The capture of a pool by a running snapshot: its items are seen in blocks, before one of a block changes; everything else is seen at once.
//!
//! The first part has what a pool has beside its items, and each other one a block of items, by its place.

use super::inner::Inner;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};
use tidemark_pool::{Capture, Event};

/// The capture by a running snapshot.
#[derive(Debug)]
pub(super) struct PoolCapture {
    parts: Parts,
    capture: Capture,
}

/// In how many parts a pool of so many items is written.
pub(super) fn parts_of(items: usize) -> usize {
    1 + Capture::blocks_of(items)
}

impl PoolCapture {
    /// The capture of a pool of so many items, of which this is all else.
    pub(super) fn new(number: u64, items: usize, head: &[u8]) -> Self {
        let mut parts = Parts::new(number, Type::Pool, parts_of(items));
        parts.push_run(0, std::iter::once(head));
        Self { parts, capture: Capture::new(items) }
    }

    /// Sees the items that an event is about to change, unless they have been seen.
    pub(super) fn see(&mut self, pool: &Inner, event: &Event<'_>) {
        let Self { parts, capture } = self;
        capture.see(pool, event, |block, items| push(parts, block, items));
    }

    /// Sees some of the blocks that have not been seen; what is to go on with if there may be more.
    pub(super) fn step(mut self: Box<Self>, pool: &Inner, pieces: &mut Pieces) -> Option<Box<Self>> {
        let Self { parts, capture } = &mut *self;
        let mut bytes = 0;
        while bytes < PART_BYTES {
            let is_more = capture.step(pool, |block, items| {
                push(parts, block, items);
                bytes += items.len();
            });
            if !is_more {
                self.parts.end(pieces);
                return None;
            }
        }
        self.parts.give_to(pieces);
        Some(self)
    }
}

fn push(parts: &mut Parts, block: usize, items: &[u8]) {
    parts.push_run(1 + block as u64, std::iter::once(items));
}
