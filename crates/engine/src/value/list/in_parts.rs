//! A list in parts of a snapshot: its capture, and loading its elements.

use super::capture::ListCapture;
use super::{Chunk, List};
use crate::persist::record::Cursor;
use crate::value::capture::is_large;
use crate::value::{InParts, Pieces};

impl InParts for List {
    fn needs_parts(&self) -> bool {
        // Elements that share a chunk are written faster than those of other collections.
        is_large(self.len / 8, self.chunks.iter().map(Chunk::used))
    }

    /// O(chunks).
    fn begin_capture(&mut self, number: u64) {
        assert!(self.capture.is_none(), "value {number} is captured already");
        self.capture = Some(Box::new(ListCapture::new(number, self.len, &mut self.chunks)));
    }

    fn is_captured(&self) -> bool {
        self.capture.is_some()
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        let capture = self.capture.take();
        self.capture = capture.and_then(|capture| capture.step(&mut self.chunks, pieces));
        self.capture.is_some()
    }

    fn end_capture(&mut self) {
        self.capture = None;
    }

    fn count(&self) -> u64 {
        self.len as u64
    }

    fn decode_element(&mut self, bytes: &mut Cursor<'_>) -> Option<()> {
        self.push_encoded(bytes)
    }
}
