//! Writing a large collection into a snapshot bit by bit, while commands go on changing it.
//!
//! A collection that has more elements than one lock should pay for is *captured*: from then on it remembers how far a
//! walk over its elements has come, and whatever is about to change beyond is written out first. Elements that are new
//! since the capture are not written at all. The capture lives in the collection and ends with the walk; without one, a
//! change pays for one look at a pointer.
//!
//! What is written are *parts*, in any order: each says which value it belongs to, and holds some of its elements.
//!
//! ```text
//! part   8 │ type u8 │ value's number varint │ [list: index of the first element varint] │ count u32 │ element*
//! ```

use super::Type;
use crate::record::{Cursor, put_varint};
use std::collections::HashSet;

/// A collection that a snapshot can write in parts.
pub(crate) trait InParts {
    /// Whether it should: whether writing it at once would keep everybody waiting.
    fn needs_parts(&self) -> bool;
    /// Begins to let a snapshot see the collection, which needs parts, as it is now. The parts will bear this number.
    fn begin_capture(&mut self, number: u64);
    /// Whether a snapshot has not seen the whole collection yet.
    fn is_captured(&self) -> bool;
    /// Adds the next parts of a captured collection; whether there are more. Takes some tens of microseconds, unless
    /// single elements are large.
    fn capture_step(&mut self, parts: &mut Vec<Vec<u8>>) -> bool;
    /// Ends a capture before the snapshot has seen all.
    fn end_capture(&mut self);
    /// How many elements there are.
    fn count(&self) -> u64;
    /// Reads an element as it stands in a part and adds it: to a list at the back. `None` if the bytes are not one, or it
    /// is there already.
    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()>;
}

/// First byte of a part's form, which tells it from a whole entry's.
pub(crate) const PART: u8 = 8;

/// Elements that one step of a walk writes, and those of a collection that is rather written whole: some tens of
/// microseconds.
pub(super) const STEP_ELEMENTS: usize = 512;

/// Bytes from which a part is complete, and a step too.
pub(super) const PART_BYTES: usize = 64 << 10;

/// Whether elements of these sizes are too many, or too large, to be written at once.
pub(super) fn is_large(count: usize, mut sizes: impl Iterator<Item = usize>) -> bool {
    count > STEP_ELEMENTS
        || sizes
            .try_fold(0, |sum: usize, size| Some(sum + size).filter(|&sum| sum <= 4 * PART_BYTES))
            .is_none()
}

/// Parts of one value, of bounded size but for an element that is larger by itself.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The value's number in its snapshot.
    number: u64,
    kind: Type,
    written: Vec<Vec<u8>>,
    /// Where the last part has its count.
    count_at: usize,
    count: u32,
    /// What index the next element of the last part has.
    next_index: u64,
}

impl Parts {
    pub(super) fn new(number: u64, kind: Type) -> Self {
        Self { number, kind, written: Vec::new(), count_at: 0, count: 0, next_index: 0 }
    }

    /// Adds an element, which `write` appends to what it is given.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.push_at(self.next_index, write);
    }

    /// Adds the element with this index of a value whose elements have a place.
    pub(super) fn push_at(&mut self, index: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let is_open = self.written.last().is_some_and(|part| part.len() < PART_BYTES);
        if !is_open || index != self.next_index {
            let mut part = vec![PART, self.kind.code()];
            put_varint(&mut part, self.number);
            if self.kind == Type::List {
                put_varint(&mut part, index);
            }
            self.count_at = part.len();
            self.count = 0;
            part.extend_from_slice(&[0; 4]);
            self.written.push(part);
        }
        self.next_index = index + 1;
        self.count += 1;
        if let Some(part) = self.written.last_mut() {
            write(part);
            part[self.count_at..self.count_at + 4].copy_from_slice(&self.count.to_le_bytes());
        }
    }

    /// Takes what has been written.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        // The next element opens a part of its own.
        std::mem::take(&mut self.written)
    }
}

/// The capture of a collection whose elements have names, walked in an order in which `P` is a position.
#[derive(Debug)]
pub(super) struct Capture<P> {
    pub(super) parts: Parts,
    /// Where the walk stands.
    pub(super) position: P,
    /// Names beyond that position which the walk must pass over: they have been written, or are new.
    pub(super) settled: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
}

impl<P> Capture<P> {
    pub(super) fn new(number: u64, kind: Type, start: P) -> Self {
        Self { parts: Parts::new(number, kind), position: start, settled: HashSet::default() }
    }

    /// Notes that the walk must pass over a name; whether that is new.
    pub(super) fn settle(&mut self, name: &[u8]) -> bool {
        !self.settled.contains(name) && self.settled.insert(name.into())
    }
}

#[cfg(test)]
mod tests;
