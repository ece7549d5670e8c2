//! A series in parts of a snapshot.

use super::TimeSeries;
use super::capture::SeriesCapture;
use crate::persist::record::Cursor;
use crate::value::{InParts, Object, Pieces, SnapshotForm, TypedValue, image_pieces};

/// Most blocks of a series that is written whole.
const WHOLE_MAX: usize = 8;

impl TimeSeries {
    /// The first part is the head, each other a block, as one element of bytes.
    pub(crate) const SNAPSHOT_FORM: SnapshotForm = SnapshotForm::of_image(join);
}

fn join(pieces: Vec<Object>) -> Option<Object> {
    let pieces = image_pieces(&pieces)?;
    let (head, parts) = pieces.split_first()?;
    Some(TimeSeries::assemble(head, parts.iter().copied())?.into_object())
}

impl InParts for TimeSeries {
    fn needs_parts(&self) -> bool {
        self.0.points.parts() > WHOLE_MAX
    }

    /// O(blocks).
    fn begin_capture(&mut self, number: u64) {
        assert!(!self.is_captured(), "value {number} is captured already");
        let mut head = Vec::new();
        self.encode_head(&mut head);
        self.0.capture = Some(Box::new(SeriesCapture::new(number, &self.0.points, &head)));
    }

    fn is_captured(&self) -> bool {
        self.0.capture.is_some()
    }

    fn capture_step(&mut self, pieces: &mut Pieces) -> bool {
        self.0.capture = self.0.capture.take().and_then(|capture| capture.step(pieces));
        self.0.capture.is_some()
    }

    fn end_capture(&mut self) {
        self.0.capture = None;
    }

    /// Number of parts, each of which is one element.
    fn count(&self) -> u64 {
        1 + self.0.points.parts() as u64
    }

    /// Always `None`: a series is assembled from all of its parts in order.
    fn decode_element(&mut self, _: &mut Cursor<'_>) -> Option<()> {
        None
    }
}
