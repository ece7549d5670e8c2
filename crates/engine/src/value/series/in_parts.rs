//! A series in parts of a snapshot.

use super::TimeSeries;
use super::capture::{HEAD, RUN, SeriesCapture, elements};
use super::image::decode_parts;
use crate::persist::record::Cursor;
use crate::value::{InParts, Object, Pieces, SnapshotForm, TypedValue};

/// Most blocks of a series that is written whole.
const WHOLE_MAX: usize = 8;

impl TimeSeries {
    /// The first part is the head, each other a run of the series' parts, as one element of bytes.
    pub(crate) const SNAPSHOT_FORM: SnapshotForm = SnapshotForm::Pieces { decode: decode_element, join };
}

/// Parses a head as its bytes, and a run as a series that has only those parts.
fn decode_element(bytes: &mut Cursor<'_>, count: u32) -> Option<Object> {
    let mut element = (count == 1).then(|| bytes.nested()).flatten()?;
    match element.u8()? {
        HEAD => Some(Object::String(element.take(element.remaining())?.to_vec())),
        RUN => Some(TimeSeries::of_run(decode_parts(usize::MAX, &mut element)?)?.into_object()),
        _ => None,
    }
}

fn join(elements: Vec<Object>) -> Option<Object> {
    let mut elements = elements.into_iter();
    let Some(Object::String(head)) = elements.next() else { return None };
    let mut parts = Vec::new();
    for run in elements {
        let Object::Series(run) = run else { return None };
        parts.extend(run.into_parts());
    }
    Some(TimeSeries::assemble(&head, parts)?.into_object())
}

impl InParts for TimeSeries {
    fn needs_parts(&self) -> bool {
        self.0.points.parts() > WHOLE_MAX
    }

    /// O(blocks).
    fn begin_capture(&mut self, number: u64) {
        assert!(!self.is_captured(), "value {number} is captured already");
        let mut head = vec![HEAD];
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
        elements(&self.0.points) as u64
    }

    /// Always `None`: a series is assembled from all of its parts in order.
    fn decode_element(&mut self, _: &mut Cursor<'_>) -> Option<()> {
        None
    }
}
