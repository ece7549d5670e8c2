//! Writing a large collection into a snapshot bit by bit, while commands go on changing it.
//!
//! A collection that has more elements than one lock should pay for is *captured*: from then on it remembers how far a
//! walk over its elements has come, and whatever is about to change beyond is written out first. Elements that are new
//! since the capture are not written at all. The capture lives in the collection and ends with the walk; without one, a
//! change pays for one look at a pointer.
//!
//! What is written are *parts*, in any order: each says which value it belongs to, and holds some of its elements. A
//! list's also says which place it has among them, counted from 0.
//!
//! ```text
//! part   8 │ type u8 │ value's number varint │ [list or pool: place varint] │ count u32 │ element*
//! ```

use super::Type;
use crate::persist::record::{Cursor, put_bytes, put_varint};

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
    fn capture_step(&mut self, pieces: &mut Pieces) -> bool;
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

/// What a snapshot's walk brings: forms of entries and parts, in pieces of bounded size. Only what is larger by itself
/// makes a larger piece.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// All complete but the last one.
    filled: Vec<Vec<u8>>,
    /// Captures that have ended, each with as many elements as there were at the cut.
    pub(crate) ended: u64,
}

impl Pieces {
    /// Bytes from which a piece is complete.
    const FULL: usize = 256 << 10;

    /// Adds what `write` appends; how many bytes that is.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.filled.last().is_none_or(|piece| piece.len() >= Self::FULL) {
            self.filled.push(Vec::new());
        }
        let piece = self.filled.last_mut().expect("there is a piece that is not complete");
        let before = piece.len();
        write(piece);
        piece.len() - before
    }

    /// The pieces, none of which is empty.
    pub(crate) fn into_inner(self) -> Vec<Vec<u8>> {
        self.filled
    }
}

/// Parts of one value, of bounded size but for an element that is larger by itself.
#[derive(Debug)]
pub(super) struct Parts {
    /// The value's number in its snapshot.
    number: u64,
    kind: Type,
    /// How many elements are still to be written.
    missing: u64,
    written: Vec<Vec<u8>>,
    /// Where the last part has its count, and the count.
    count_at: usize,
    count: u32,
}

impl Parts {
    /// No parts yet of a value of `elements` elements.
    pub(super) fn new(number: u64, kind: Type, elements: usize) -> Self {
        Self { number, kind, missing: elements as u64, written: Vec::new(), count_at: 0, count: 0 }
    }

    /// Adds an element, which `write` appends to what it is given.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.written.last().is_none_or(|part| part.len() >= PART_BYTES) {
            self.open(|_| ());
        }
        self.add(write);
    }

    /// Adds the elements that have this place among a list's runs of elements, as one part.
    pub(super) fn push_run<'a>(&mut self, place: u64, elements: impl Iterator<Item = &'a [u8]>) {
        self.open(|part| put_varint(part, place));
        elements.for_each(|element| self.add(|part| put_bytes(part, element)));
    }

    /// Begins a part; `write` appends what stands before the count.
    fn open(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut part = vec![PART, self.kind.code()];
        put_varint(&mut part, self.number);
        write(&mut part);
        self.count_at = part.len();
        self.count = 0;
        part.extend_from_slice(&[0; 4]);
        self.written.push(part);
    }

    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let (number, kind) = (self.number, self.kind);
        assert!(
            self.missing > 0,
            "value {number}, a {kind:?}, has more elements in its parts than it had at the cut"
        );
        self.missing -= 1;
        self.count += 1;
        let part = self.written.last_mut().expect("a part was opened before");
        write(part);
        part[self.count_at..self.count_at + 4].copy_from_slice(&self.count.to_le_bytes());
    }

    /// Gives away what has been written.
    pub(super) fn give_to(&mut self, pieces: &mut Pieces) {
        // The next element opens a part of its own.
        pieces.filled.append(&mut self.written);
    }

    /// Gives away the last parts.
    pub(super) fn end(mut self, pieces: &mut Pieces) {
        let (missing, number, kind) = (self.missing, self.number, self.kind);
        assert!(missing == 0, "{missing} elements of value {number}, a {kind:?}, are in none of its parts");
        self.give_to(pieces);
        pieces.ended += 1;
    }
}

#[cfg(test)]
mod tests;
