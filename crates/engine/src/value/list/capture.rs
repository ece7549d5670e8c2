//! The capture of a list: a chunk is seen whole, before it changes, and bears its place at the cut until then.
//!
//! So a change costs what it would cost without a capture, and the writing of the few chunks that it touches. Chunks that
//! leave the list unseen belong to the snapshot from then on.

use super::chunk::Chunk;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};
use std::collections::VecDeque;

/// The capture by a running snapshot.
#[derive(Debug)]
pub(super) struct ListCapture {
    parts: Parts,
    /// How many chunks of the list have not been seen.
    unseen: usize,
    /// Chunks that left the list unseen.
    departed: Vec<Chunk>,
    /// The index of the chunk where the walk goes on; those before it have been seen, unless chunks came or went since.
    next: usize,
}

impl ListCapture {
    /// The capture of a list of so many elements, whose chunks these are. O(chunks).
    pub(super) fn new(number: u64, len: usize, chunks: &mut VecDeque<Chunk>) -> Self {
        for (place, chunk) in chunks.iter_mut().enumerate() {
            chunk.set_place(Some(place as u32));
        }
        let parts = Parts::new(number, Type::List, len);
        Self { parts, unseen: chunks.len(), departed: Vec::new(), next: 0 }
    }

    /// Sees some of the chunks that have not been seen; what is to go on with if there may be more.
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

    /// Sees a chunk that is about to change, unless it has been seen.
    #[cold]
    pub(super) fn see(&mut self, chunk: &mut Chunk) {
        if chunk.place().is_some() {
            self.unseen -= 1;
            self.write(chunk);
            chunk.set_place(None);
        }
    }

    /// Takes a chunk over that has left the list, unless it has been seen.
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

    /// Sees one chunk more; how many bytes it has. `None` if all have been seen.
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
