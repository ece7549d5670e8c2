//! A stream in parts of a snapshot: the walk over a copy that shares its blocks.
//!
//! Changes made meanwhile copy what they change, so they need not wait for the walk.

use super::image::decode_element;
use super::{State, Stream};
use crate::persist::record::Cursor;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{InParts, Object, Pieces, SnapshotForm, Type, TypedValue};

/// Most elements of a stream that is written whole: its head and about 64 KiB.
const WHOLE_MAX: usize = 2;

/// Capture by a running snapshot.
#[derive(Debug)]
pub(super) struct StreamCapture {
    parts: Parts,
    state: State,
    /// The element to be written next.
    next: usize,
}

impl StreamCapture {
    /// Writes some of the remaining elements. Returns the capture if there may be more.
    fn step(mut self: Box<Self>, pieces: &mut Pieces) -> Option<Box<Self>> {
        let (mut bytes, mut element) = (0, Vec::new());
        let elements = self.state.elements();
        while self.next < elements {
            if bytes >= PART_BYTES {
                self.parts.give_to(pieces);
                return Some(self);
            }
            element.clear();
            self.state.encode_element(self.next, &mut element);
            self.parts.push_run(self.next as u64, std::iter::once(&element[..]));
            self.next += 1;
            bytes += element.len();
        }
        self.parts.end(pieces);
        None
    }
}

impl Stream {
    /// Each part is one element: see [`super::image`].
    pub(crate) const SNAPSHOT_FORM: SnapshotForm = SnapshotForm::Pieces { decode: decode_piece, join };
}

fn decode_piece(bytes: &mut Cursor<'_>, count: u32) -> Option<Object> {
    let mut element = (count == 1).then(|| bytes.nested()).flatten()?;
    decode_element(&mut element)
}

fn join(elements: Vec<Object>) -> Option<Object> {
    Some(Stream::assemble(elements)?.into_object())
}

impl InParts for Stream {
    fn needs_parts(&self) -> bool {
        self.state.elements() > WHOLE_MAX
            || self.state.blocks.iter().map(|block| block.used()).sum::<usize>() > 4 * PART_BYTES
    }

    /// O(blocks, consumers, and chunks of pending entries).
    fn begin_capture(&mut self, number: u64) {
        assert!(!self.is_captured(), "value {number} is captured already");
        let parts = Parts::new(number, Type::Stream, self.state.elements());
        let state = State::clone(&self.state);
        self.capture = Some(Box::new(StreamCapture { parts, state, next: 0 }));
    }

    fn is_captured(&self) -> bool {
        self.capture.is_some()
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        self.capture = self.capture.take().and_then(|capture| capture.step(pieces));
        self.capture.is_some()
    }

    fn end_capture(&mut self) {
        self.capture = None;
    }

    /// Number of parts, each of which is one element.
    fn count(&self) -> u64 {
        self.state.elements() as u64
    }

    /// Always `None`: a stream is assembled from all of its parts in order.
    fn decode_element(&mut self, _: &mut Cursor<'_>) -> Option<()> {
        None
    }
}
