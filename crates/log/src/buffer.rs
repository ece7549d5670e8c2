//! The batch that appenders fill while the one before is written.

use crate::Lsn;
use crate::format::{Codec, raw};
use crate::ready::Ready;
use crate::segment_header::SegmentHeader;

/// Sealed frames in the order in which they go to disk.
///
/// ```text
/// bytes: [marker][record 41][record 42]│[record 43][record 44]│ half-written record
///                          cuts[0].at ─┘ (new segment)        └─ sealed
/// ```
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    /// Everything before this is whole frames.
    pub(crate) sealed: usize,
    /// Size of the marker at the front; its LSN is filled in when the buffer is written.
    pub(crate) marker_bytes: usize,
    pub(crate) marker_salt: u32,
    /// The newest record in the buffer; `ZERO` while it has none.
    pub(crate) last: Lsn,
    pub(crate) cuts: Vec<Cut>,
}

/// From `at` on, the buffer belongs to another segment.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) at: usize,
    pub(crate) ready: Ready,
    pub(crate) header: SegmentHeader,
}

impl Buffer {
    /// Above this, memory that a burst took is given back once a batch needs less than an eighth of it.
    const KEEP_BYTES: usize = 8 << 20;

    pub(crate) fn has_records(&self) -> bool {
        self.last != Lsn::ZERO
    }

    /// Begins with a marker that will say what is durable when the buffer is written.
    pub(crate) fn open_with_marker(&mut self, codec: &dyn Codec, previous: Lsn, time_us: u64, salt: u32) {
        debug_assert!(self.bytes.is_empty());
        raw::begin(&mut self.bytes, previous, time_us, raw::MARKER);
        self.bytes.extend_from_slice(&[0; raw::MARKER_PAYLOAD_BYTES]);
        codec.seal(&mut self.bytes, 0, salt);
        self.marker_bytes = self.bytes.len();
        self.marker_salt = salt;
        self.sealed = self.bytes.len();
    }

    pub(crate) fn patch_marker(&mut self, codec: &dyn Codec, durable: Lsn) {
        if self.marker_bytes > 0
            && let Some(marker) = self.bytes.get_mut(..self.marker_bytes)
        {
            codec.patch_marker(marker, durable, self.marker_salt);
        }
    }

    pub(crate) fn clear(&mut self) {
        debug_assert!(self.cuts.is_empty(), "every cut was carried out");
        if self.bytes.capacity() > Self::KEEP_BYTES && self.sealed < self.bytes.capacity() / 8 {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.sealed = 0;
        self.marker_bytes = 0;
        self.last = Lsn::ZERO;
    }
}
