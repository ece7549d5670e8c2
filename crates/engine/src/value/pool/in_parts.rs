//! A pool in parts of a snapshot.

use super::Pool;
use super::capture::{PoolCapture, parts_of};
use crate::persist::record::Cursor;
use crate::value::{InParts, Object, Pieces, SnapshotForm, TypedValue, image_pieces};

/// Most items of a pool that is written whole.
const WHOLE_MAX: usize = 512;

impl Pool {
    /// Each part is a piece of the pool's image, as one element of bytes.
    pub(crate) const SNAPSHOT_FORM: SnapshotForm = SnapshotForm::of_image(join);
}

fn join(pieces: Vec<Object>) -> Option<Object> {
    let pieces = image_pieces(&pieces)?;
    let (head, items) = pieces.split_first()?;
    Some(Pool::assemble(head, items.iter().copied())?.into_object())
}

impl InParts for Pool {
    fn needs_parts(&self) -> bool {
        self.len() > WHOLE_MAX
    }

    /// O(reservations and everything else except items).
    fn begin_capture(&mut self, number: u64) {
        assert!(!self.is_captured(), "value {number} is captured already");
        let mut head = Vec::new();
        self.encode_head(&mut head);
        self.0.capture = Some(Box::new(PoolCapture::new(number, self.len(), &head)));
    }

    fn is_captured(&self) -> bool {
        self.0.capture.is_some()
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        let capture = self.0.capture.take();
        self.0.capture = capture.and_then(|capture| capture.step(&self.0.chained.pool, pieces));
        self.0.capture.is_some()
    }

    fn end_capture(&mut self) {
        self.0.capture = None;
    }

    /// Number of parts, each of which is one element.
    fn count(&self) -> u64 {
        parts_of(self.len()) as u64
    }

    /// Always `None`: a pool is assembled from all of its parts in order.
    fn decode_element(&mut self, _: &mut Cursor<'_>) -> Option<()> {
        None
    }
}
