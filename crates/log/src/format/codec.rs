//! What every format can do, whichever it is.

use crate::Lsn;
use crate::segment_header::SegmentHeader;

/// Upper bound of the size of a marker in any format.
pub(crate) const MARKER_BYTES_MAX: usize = 160;

/// What was found at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid frame of `consumed` bytes; `durable` is set when it is a marker.
    Frame { consumed: usize, lsn: Lsn, durable: Option<Lsn> },
    /// Nothing was ever written here.
    Unwritten,
    /// At least `needed` bytes are wanted to decide.
    Incomplete { needed: usize },
    /// No valid frame, and why.
    Invalid(&'static str),
}

/// One spelling of headers and records. Encoders write to memory, decoders read untrusted bytes and never panic.
pub(crate) trait Codec: Sync {
    /// The bytes that open a segment.
    fn encode_header(&self, header: &SegmentHeader) -> Vec<u8>;

    /// The header at the front of `bytes` and its size.
    fn decode_header(&self, bytes: &[u8]) -> Result<(SegmentHeader, usize), &'static str>;

    /// Whether files are filled with zeros ahead of use and used again.
    fn preallocates(&self) -> bool;

    /// Turns the raw frame from `start` to the end of `bytes` into its final form.
    fn seal(&self, bytes: &mut Vec<u8>, start: usize, salt: u32);

    /// Recomputes the checksum of the one sealed frame in `frame`.
    fn reseal(&self, frame: &mut [u8], salt: u32);

    /// Sets the LSN of the one sealed marker in `marker`, whose size stays, and reseals it.
    fn patch_marker(&self, marker: &mut [u8], durable: Lsn, salt: u32);

    /// Checks that `frames` are whole sealed frames of dense records, none of them a marker, the first
    /// of them `first`. Returns the LSN behind them.
    ///
    /// Line formats count the records and do not read their LSNs.
    ///
    /// # Panics
    /// If they are not.
    fn check_sealed(&self, frames: &[u8], first: Lsn) -> Lsn;

    /// Examines the front of `bytes`. A format that is not binary appends the raw form of a valid frame to `raw`.
    fn decode(&self, bytes: &[u8], salt: u32, raw: &mut Vec<u8>) -> Step;

    /// The salt with which the frame at the front of `bytes` is valid; `None` if no whole frame is there.
    fn salt_of(&self, bytes: &[u8]) -> Option<u32>;

    /// Offset of the first valid marker in `window` that proves durability of `lsn`.
    fn find_proof(&self, window: &[u8], salt: u32, lsn: Lsn) -> Option<usize>;
}
