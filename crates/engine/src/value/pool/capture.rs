//! Capture of a pool by a running snapshot: a block of items is written before one of it changes.
//!
//! The first part contains everything except the items, written at the start; each other part is
//! one block of items, by its place.

use super::inner::Inner;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};
use tidemark_pool::{Capture, Event};

/// Capture by a running snapshot.
#[derive(Debug)]
pub(super) struct PoolCapture {
    parts: Parts,
    capture: Capture,
}

/// Returns the number of parts of a pool with `items` items.
pub(super) fn parts_of(items: usize) -> usize {
    1 + Capture::blocks_of(items)
}

impl PoolCapture {
    /// Captures a pool of `items` items; `head` is everything else.
    pub(super) fn new(number: u64, items: usize, head: &[u8]) -> Self {
        let mut parts = Parts::new(number, Type::Pool, parts_of(items));
        parts.push_run(0, std::iter::once(head));
        Self { parts, capture: Capture::new(items) }
    }

    /// Writes the items that an event is about to change, unless they are written.
    pub(super) fn see(&mut self, pool: &Inner, event: &Event<'_>) {
        let Self { parts, capture } = self;
        capture.see(pool, event, |block, items| push(parts, block, items));
    }

    /// Writes some of the remaining blocks. Returns the capture if there may be more.
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
