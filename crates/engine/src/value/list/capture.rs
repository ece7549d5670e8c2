//! Capture of a list: a chunk is written whole before it changes; it keeps its place until then.
//!
//! A change costs as much as without a capture, plus writing the few chunks that it touches. Chunks
//! that are removed from the list before they are written move to the capture.

use super::chunk::Chunk;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};
use std::collections::VecDeque;

/// Capture by a running snapshot.
#[derive(Debug)]
pub(super) struct ListCapture {
    parts: Parts,
    /// Number of the list's chunks that are not written yet.
    unseen: usize,
    /// Chunks that were removed from the list before they were written.
    departed: Vec<Chunk>,
    /// Index of the chunk where the walk continues. Those before it are written, unless chunks were
    /// added or removed since.
    next: usize,
}

impl ListCapture {
    /// Captures a list of `len` elements in these chunks. O(chunks).
    pub(super) fn new(number: u64, len: usize, chunks: &mut VecDeque<Chunk>) -> Self {
        for (place, chunk) in chunks.iter_mut().enumerate() {
            chunk.set_place(Some(place as u32));
        }
        let parts = Parts::new(number, Type::List, len);
        Self { parts, unseen: chunks.len(), departed: Vec::new(), next: 0 }
    }

    /// Writes some of the remaining chunks. Returns the capture if there may be more.
    pub(super) fn step(
        mut self: Box<Self>,
        chunks: &mut VecDeque<Chunk>,
        pieces: &mut Pieces,
    ) -> Option<Box<Self>> {
        let mut bytes = 0;
        while bytes < PART_BYTES {
            let Some(seen) = self.see_next(chunks) else {
                let unseen = self.unseen;
                assert!(unseen == 0, "the walk over a list is at its end, and has not seen {unseen} chunks");
                self.parts.end(pieces);
                return None;
            };
            bytes += seen;
        }
        self.parts.give_to(pieces);
        Some(self)
    }

    /// Writes a chunk that is about to change, unless it has been written.
    #[cold]
    pub(super) fn see(&mut self, chunk: &mut Chunk) {
        if chunk.place().is_some() {
            self.unseen -= 1;
            self.write(chunk);
            chunk.set_place(None);
        }
    }

    /// Takes over a chunk that was removed from the list, unless it has been written.
    pub(super) fn take_over(&mut self, chunk: Chunk) {
        if chunk.place().is_some() {
            self.unseen -= 1;
            self.departed.push(chunk);
        }
    }

    fn write(&mut self, chunk: &Chunk) {
        let place = chunk.place().expect("a chunk that is not seen has its place at the cut");
        self.parts.push_run(u64::from(place), chunk.iter());
    }

    /// Writes one more chunk and returns its size in bytes; `None` if all are written.
    fn see_next(&mut self, chunks: &mut VecDeque<Chunk>) -> Option<usize> {
        if let Some(chunk) = self.departed.pop() {
            self.write(&chunk);
            return Some(chunk.used());
        }
        if self.unseen == 0 {
            return None;
        }
        let count = chunks.len();
        let start = self.next.min(count);
        let index = (start..count).chain(0..start).find(|&index| chunks[index].place().is_some())?;
        self.next = index + 1;
        let chunk = &mut chunks[index];
        self.see(chunk);
        Some(chunk.used())
    }
}
