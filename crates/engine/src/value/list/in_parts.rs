//! A list in parts of a snapshot: its capture, and loading its elements.

use super::capture::ListCapture;
use super::{Chunk, List};
use crate::persist::record::Cursor;
use crate::value::capture::is_large;
use crate::value::{InParts, Object, Pieces, SnapshotForm, TypedValue};

impl List {
    /// Each part is a run of consecutive elements.
    pub(crate) const SNAPSHOT_FORM: SnapshotForm = SnapshotForm::Pieces { decode: decode_run, join };
}

fn decode_run(bytes: &mut Cursor<'_>, count: u32) -> Option<Object> {
    let mut run = List::default();
    (0..count).try_for_each(|_| run.push_encoded(bytes))?;
    Some(run.into_object())
}

fn join(runs: Vec<Object>) -> Option<Object> {
    let mut list = List::default();
    for run in runs {
        let Object::List(run) = run else { return None };
        list.append(run);
    }
    Some(list.into_object())
}

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
