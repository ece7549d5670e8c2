//! Writes a large collection to a snapshot in steps, while commands change it.
//!
//! A collection with more elements than one lock should cover is *captured*: it records the
//! position of a walk over its elements, and an element ahead of the walk is written before it
//! changes. Elements added after the capture are not written. The capture is stored in the
//! collection and ends with the walk; without one, a change costs one check of a pointer.
//!
//! The output is *parts*, in any order. Each names its value and contains some of the elements. A
//! list's part also has its place among the parts, from 0.
//!
//! ```text
//! part   8 │ type u8 │ value's number varint │ [list or pool: place varint] │ count u32 │ element*
//! ```

use super::Type;
use crate::persist::blocks::Blocks;
use crate::persist::record::{Cursor, put_bytes, put_varint};

/// A collection that a snapshot can write in parts.
pub trait InParts {
    /// Whether it should be written in parts, because writing it whole would block other clients.
    fn needs_parts(&self) -> bool;
    /// Starts a capture of the present state, which needs parts. The parts will have this number.
    fn begin_capture(&mut self, number: u64);
    /// Whether a capture is running.
    fn is_captured(&self) -> bool;
    /// Adds the next parts of a captured collection. Returns whether there are more. Takes some
    /// tens of microseconds, unless single elements are large.
    fn capture_step(&mut self, pieces: &mut Pieces) -> bool;
    /// Aborts the capture.
    fn end_capture(&mut self);
    /// Returns the number of elements.
    fn count(&self) -> u64;
    /// Parses an element of a part and adds it, at the back of a list. Returns `None` if it is
    /// invalid or already present.
    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()>;
}

/// First byte of a part, which distinguishes it from a whole entry.
pub(crate) const PART: u8 = 8;

/// Elements that one step writes, and most elements of a collection that is written whole: some
/// tens of microseconds.
pub(super) const STEP_ELEMENTS: usize = 512;

/// Bytes at which a part, and a step, is complete.
pub(super) const PART_BYTES: usize = 64 << 10;

/// Whether elements of these sizes are too many or too large to be written whole.
pub(super) fn is_large(count: usize, mut sizes: impl Iterator<Item = usize>) -> bool {
    count > STEP_ELEMENTS
        || sizes
            .try_fold(0, |sum: usize, size| Some(sum + size).filter(|&sum| sum <= 4 * PART_BYTES))
            .is_none()
}

/// Output of a snapshot's walk: entries and parts, in pieces of bounded size. Only a single larger
/// entry or part makes a larger piece.
#[derive(Debug, Default)]
pub struct Pieces {
    /// All complete except the last one.
    filled: Vec<Vec<u8>>,
    /// Number of ended captures, each with as many elements as at the cut.
    pub(crate) ended: u64,
    /// How blocks of series are written.
    pub(crate) blocks: Blocks,
}

impl Pieces {
    /// Bytes at which a piece is complete.
    const FULL: usize = 256 << 10;

    /// Creates an empty output that writes blocks of series in this way.
    pub(crate) fn with_blocks(blocks: &Blocks) -> Self {
        Self { blocks: blocks.clone(), ..Self::default() }
    }

    /// Adds what `write` appends, and returns its size in bytes.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.filled.last().is_none_or(|piece| piece.len() >= Self::FULL) {
            self.filled.push(Vec::new());
        }
        let piece = self.filled.last_mut().expect("there is a piece that is not complete");
        let before = piece.len();
        write(piece);
        piece.len() - before
    }

    /// Returns the pieces, none of which is empty.
    pub(crate) fn into_inner(self) -> Vec<Vec<u8>> {
        self.filled
    }
}

/// Parts of one value, of bounded size unless a single element is larger.
#[derive(Debug)]
pub(super) struct Parts {
    /// The value's number in its snapshot.
    number: u64,
    kind: Type,
    /// Elements that are still to be written.
    missing: u64,
    written: Vec<Vec<u8>>,
    /// Offset of the count in the last part, and the count.
    count_at: usize,
    count: u32,
}

impl Parts {
    /// Creates an empty sequence of parts for a value of `elements` elements.
    pub(super) fn new(number: u64, kind: Type, elements: usize) -> Self {
        Self { number, kind, missing: elements as u64, written: Vec::new(), count_at: 0, count: 0 }
    }

    /// Adds an element, which `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.written.last().is_none_or(|part| part.len() >= PART_BYTES) {
            self.open(|_| ());
        }
        self.add(write);
    }

    /// Adds a run of a list's elements as one part, with its place among the runs.
    pub(super) fn push_run<'a>(&mut self, place: u64, elements: impl Iterator<Item = &'a [u8]>) {
        self.open(|part| put_varint(part, place));
        elements.for_each(|element| self.add(|part| put_bytes(part, element)));
    }

    /// Starts a part; `write` appends the bytes before the count.
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

    /// Moves the written parts to `pieces`.
    pub(super) fn give_to(&mut self, pieces: &mut Pieces) {
        // The next element starts a new part.
        pieces.filled.append(&mut self.written);
    }

    /// Moves the last parts to `pieces`.
    pub(super) fn end(mut self, pieces: &mut Pieces) {
        let (missing, number, kind) = (self.missing, self.number, self.kind);
        assert!(missing == 0, "{missing} elements of value {number}, a {kind:?}, are in none of its parts");
        self.give_to(pieces);
        pieces.ended += 1;
    }
}

#[cfg(test)]
mod tests;
