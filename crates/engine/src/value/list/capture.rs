//! The capture of a list: a chunk is seen whole, before it changes, and bears its place at the cut until then.
//!
//! So a change costs what it would cost without a capture, and the writing of the few chunks that it touches. Chunks that
//! leave the list unseen belong to the snapshot from then on.

use super::{Chunk, End, List};
use crate::keyspace::MAX_BYTES;
use crate::record::Cursor;
use crate::value::capture::{PART_BYTES, Parts, is_large};
use crate::value::{InParts, Pieces, Type};

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

impl InParts for List {
    fn needs_parts(&self) -> bool {
        // Elements that share a chunk are written faster than those of other collections.
        is_large(self.len / 8, self.chunks.iter().map(Chunk::used))
    }

    /// O(chunks).
    fn begin_capture(&mut self, number: u64) {
        debug_assert!(self.capture.is_none());
        for (place, chunk) in self.chunks.iter_mut().enumerate() {
            chunk.set_place(Some(place as u32));
        }
        let parts = Parts::new(number, Type::List, self.len);
        let unseen = self.chunks.len();
        self.capture = Some(Box::new(ListCapture { parts, unseen, departed: Vec::new(), next: 0 }));
    }

    fn is_captured(&self) -> bool {
        self.capture.is_some()
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        let Some(mut capture) = self.capture.take() else { return false };
        let mut bytes = 0;
        while bytes < PART_BYTES {
            let Some(seen) = capture.see_next(self) else {
                debug_assert_eq!(capture.unseen, 0);
                capture.parts.end(pieces);
                return false;
            };
            bytes += seen;
        }
        capture.parts.give_to(pieces);
        self.capture = Some(capture);
        true
    }

    fn end_capture(&mut self) {
        self.capture = None;
    }

    fn count(&self) -> u64 {
        self.len as u64
    }

    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        self.push(End::Back, bytes.bytes().filter(|element| element.len() <= MAX_BYTES)?);
        Some(())
    }
}

impl List {
    /// To be called before the chunk with this index changes.
    #[inline]
    pub(super) fn before_change(&mut self, index: usize) {
        if let Some(capture) = &mut self.capture
            && let Some(chunk) = self.chunks.get_mut(index)
        {
            capture.see(chunk);
        }
    }

    /// To be called with a chunk that has left the list.
    #[inline]
    pub(super) fn after_departure(&mut self, chunk: Option<Chunk>) {
        if let Some(capture) = &mut self.capture
            && let Some(chunk) = chunk.filter(|chunk| chunk.place().is_some())
        {
            capture.unseen -= 1;
            capture.departed.push(chunk);
        }
    }
}

impl ListCapture {
    #[cold]
    fn see(&mut self, chunk: &mut Chunk) {
        if chunk.place().is_some() {
            self.unseen -= 1;
            self.write(chunk);
            chunk.set_place(None);
        }
    }

    fn write(&mut self, chunk: &Chunk) {
        self.parts.push_run(chunk.place().map_or(0, u64::from), chunk.iter());
    }

    /// Sees one chunk more; how many bytes it has. `None` if all have been seen.
    fn see_next(&mut self, list: &mut List) -> Option<usize> {
        if let Some(chunk) = self.departed.pop() {
            self.write(&chunk);
            return Some(chunk.used());
        }
        if self.unseen == 0 {
            return None;
        }
        let count = list.chunks.len();
        let start = self.next.min(count);
        let index = (start..count).chain(0..start).find(|&index| list.chunks[index].place().is_some())?;
        self.next = index + 1;
        let chunk = &mut list.chunks[index];
        self.see(chunk);
        Some(chunk.used())
    }
}
