//! The batch that appenders fill while the previous one is written.

use std::ops::Range;

use tidemark_fault::{Fault, is_planted};

use crate::Lsn;
use crate::format::{Codec, Marker, raw};
use crate::ready::Ready;
use crate::segment_header::SegmentHeader;

/// Sealed frames in the order in which they are written.
///
/// ```text
/// bytes: [marker][record 41][record 42]│[record 43][record 44]│ half-written record
///                          cuts[0].at ─┘ (new segment)        └─ sealed
/// ```
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    /// Everything before this offset is whole frames.
    pub(crate) sealed: usize,
    /// Size of the marker at the front; its content is filled in when the buffer is written.
    pub(crate) marker_bytes: usize,
    pub(crate) marker_salt: u32,
    /// The oldest record in the buffer; `ZERO` while it has none.
    pub(crate) first: Lsn,
    /// The newest record in the buffer; `ZERO` while it has none. The LSNs from `first` to `last`
    /// are dense.
    pub(crate) last: Lsn,
    pub(crate) cuts: Vec<Cut>,
}

/// From `at` on, the buffer belongs to the next segment.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) at: usize,
    pub(crate) ready: Ready,
    pub(crate) header: SegmentHeader,
}

impl Buffer {
    /// Capacity above this is freed once a batch needs less than an eighth of it.
    const KEEP_BYTES: usize = 8 << 20;

    pub(crate) fn has_records(&self) -> bool {
        self.last != Lsn::ZERO
    }

    /// Starts the buffer with a marker. Its durable LSN is filled in when the buffer is written.
    pub(crate) fn open_with_marker(&mut self, codec: &dyn Codec, previous: Lsn, time_us: u64, salt: u32) {
        self.write_marker(codec, previous, time_us, raw::MARKER_PAYLOAD_BYTES);
        self.marker_salt = salt;
        self.sealed = self.bytes.len();
    }

    /// Starts the buffer with the marker of an entry, whose segment is known only when the first
    /// record is placed. Its content is filled in when the buffer is written.
    pub(crate) fn open_with_entry(&mut self, codec: &dyn Codec, previous: Lsn, time_us: u64) {
        self.write_marker(codec, previous, time_us, raw::ENTRY_MARKER_PAYLOAD_BYTES);
    }

    fn write_marker(&mut self, codec: &dyn Codec, previous: Lsn, time_us: u64, payload_bytes: usize) {
        assert!(self.bytes.is_empty(), "a marker opens a batch that has {} bytes", self.bytes.len());
        raw::begin(&mut self.bytes, previous, time_us, raw::MARKER);
        self.bytes.resize(raw::OVERHEAD_BYTES + payload_bytes, 0);
        codec.seal(&mut self.bytes, 0, 0);
        self.marker_bytes = self.bytes.len();
    }

    pub(crate) fn patch_marker(&mut self, codec: &dyn Codec, marker: &Marker) {
        if self.marker_bytes > 0 {
            codec.patch_marker(&mut self.bytes[..self.marker_bytes], marker, self.marker_salt);
        }
    }

    /// Seals everything in the buffer, whose last frame is that of record `lsn`.
    #[inline]
    pub(crate) fn seal(&mut self, lsn: Lsn) {
        if self.first == Lsn::ZERO {
            self.first = lsn;
        } else {
            assert!(lsn == self.last.next(), "record {lsn} is appended behind record {}", self.last);
        }
        self.last = lsn;
        if !is_planted(Fault::Seal) {
            self.sealed = self.bytes.len();
        }
    }

    /// Checks that `range` is whole frames of dense records starting at `next`, after the marker if
    /// the range starts the buffer. Returns the LSN after them.
    ///
    /// # Panics
    /// If they are not: only sealed frames may be written.
    pub(crate) fn check_part(&self, codec: &dyn Codec, range: Range<usize>, next: Lsn) -> Lsn {
        let (start, marker) = (range.start.max(self.marker_bytes), self.marker_bytes);
        assert!(start <= range.end, "the marker of {marker} bytes is cut: the write ends at {}", range.end);
        codec.check_sealed(&self.bytes[start..range.end], next)
    }

    pub(crate) fn clear(&mut self) {
        assert!(self.cuts.is_empty(), "{} cuts of a written batch were not carried out", self.cuts.len());
        if self.bytes.capacity() > Self::KEEP_BYTES && self.sealed < self.bytes.capacity() / 8 {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.sealed = 0;
        self.marker_bytes = 0;
        self.first = Lsn::ZERO;
        self.last = Lsn::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A batch that starts with a marker, followed by the records 7 to 9.
    fn batch(format: Format) -> Buffer {
        let codec = format.codec();
        let mut buffer = Buffer::default();
        buffer.open_with_marker(codec, Lsn(6), 0, 0);
        for lsn in 7..10 {
            let start = buffer.bytes.len();
            raw::begin(&mut buffer.bytes, Lsn(lsn), 0, 1);
            buffer.bytes.extend_from_slice(b"two\nlines");
            codec.seal(&mut buffer.bytes, start, 0);
            buffer.seal(Lsn(lsn));
        }
        buffer
    }

    #[test]
    fn a_part_of_whole_dense_frames_ends_behind_its_last_record() {
        for format in Format::ALL {
            let buffer = batch(format);
            let all = 0..buffer.sealed;
            assert_eq!(buffer.check_part(format.codec(), all, Lsn(7)), Lsn(10), "{format}");
            let marker = 0..buffer.marker_bytes;
            assert_eq!(buffer.check_part(format.codec(), marker, Lsn(7)), Lsn(7), "{format}");
        }
    }

    #[test]
    fn a_part_that_cuts_a_frame_stops_the_commit() {
        for format in Format::ALL {
            let buffer = batch(format);
            let cut = 0..buffer.sealed - 1;
            let check = AssertUnwindSafe(|| buffer.check_part(format.codec(), cut, Lsn(7)));
            let checked = catch_unwind(check);
            assert!(checked.is_err(), "{format}");
        }
    }

    #[test]
    #[should_panic(expected = "the frame of record 8 is written as record 7")]
    fn a_frame_of_another_record_stops_the_commit() {
        let buffer = batch(Format::Binary);
        buffer.check_part(Format::Binary.codec(), 0..buffer.sealed, Lsn(8));
    }

    #[test]
    #[should_panic(expected = "record 11 is appended behind record 9")]
    fn a_record_that_leaves_one_out_stops_the_append() {
        batch(Format::Binary).seal(Lsn(11));
    }
}
