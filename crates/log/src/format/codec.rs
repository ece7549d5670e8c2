//! The interface of all formats.

use super::raw::Marker;
use crate::Lsn;
use crate::segment_header::SegmentHeader;

/// Upper bound of the size of a marker in any format.
pub(crate) const MARKER_BYTES_MAX: usize = 160;

/// Result of decoding the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid frame of `consumed` bytes, which may be a marker.
    Frame { consumed: usize, lsn: Lsn, marker: Option<Marker> },
    /// Nothing was ever written here.
    Unwritten,
    /// At least `needed` bytes are required to decide.
    Incomplete { needed: usize },
    /// No valid frame, and why.
    Invalid(&'static str),
}

/// Encoding of headers and records. Encoders write to memory; decoders read untrusted bytes and
/// never panic.
pub(crate) trait Codec: Sync {
    fn encode_header(&self, header: &SegmentHeader) -> Vec<u8>;

    /// Decodes the header at the front of `bytes`; returns it and its size.
    fn decode_header(&self, bytes: &[u8]) -> Result<(SegmentHeader, usize), &'static str>;

    /// Returns whether files are preallocated and recycled.
    fn preallocates(&self) -> bool;

    /// Turns the raw frame from `start` to the end of `bytes` into its final form.
    fn seal(&self, bytes: &mut Vec<u8>, start: usize, salt: u32);

    /// Recomputes the checksum of the one sealed frame in `frame`.
    fn reseal(&self, frame: &mut [u8], salt: u32);

    /// Sets the content of the one sealed marker in `bytes`, without changing its size, and reseals
    /// it.
    fn patch_marker(&self, bytes: &mut [u8], marker: &Marker, salt: u32);

    /// Checks that `frames` are whole sealed frames of dense records starting at `first`, without
    /// markers. Returns the LSN after them.
    ///
    /// Line formats count the records and do not read their LSNs.
    ///
    /// # Panics
    /// If they are not.
    fn check_sealed(&self, frames: &[u8], first: Lsn) -> Lsn;

    /// Decodes the front of `bytes`. Formats other than binary append the raw form of a valid frame
    /// to `raw`.
    fn decode(&self, bytes: &[u8], salt: u32, raw: &mut Vec<u8>) -> Step;

    /// Returns the salt with which the frame at the front of `bytes` is valid; `None` if there is
    /// no whole frame.
    fn salt_of(&self, bytes: &[u8]) -> Option<u32>;

    /// Returns the offset of the first valid marker in `window` that proves `lsn` durable.
    fn find_proof(&self, window: &[u8], salt: u32, lsn: Lsn) -> Option<usize>;
}
