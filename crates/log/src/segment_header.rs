//! What a segment says of itself before its first record, however it is spelled.

use crate::Lsn;

/// Version of the file format, in the header of every segment whose first record follows the one before it at once ...
pub(crate) const VERSION: u32 = 1;
/// ... and of one with a gap before it, which programs that know of no gaps must not take for damage.
pub(crate) const VERSION_WITH_GAP: u32 = 2;
/// Size of a binary header; a page, so that records never share a sector with it.
pub(crate) const HEADER_BYTES: usize = 4096;

/// What a segment says of itself before its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// LSN of the first record, also in the file's name.
    pub(crate) first_lsn: Lsn,
    /// The record before it, which is the last of the segment before. Invariant: less than `first_lsn`; what lies between
    /// is a gap.
    pub(crate) follows: Lsn,
    /// Start value of every checksum in this segment. It differs between uses of a recycled file, so that
    /// what an earlier use left behind never passes for a frame.
    pub(crate) salt: u32,
    /// Time of the first record, microseconds since 1970.
    pub(crate) created_us: u64,
    /// Whether the space behind the records holds the leavings of an earlier use instead of zeros.
    pub(crate) recycled: bool,
}

impl SegmentHeader {
    pub(crate) fn version(&self) -> u32 {
        if self.follows == self.first_lsn.previous() { VERSION } else { VERSION_WITH_GAP }
    }

    /// The first position that is looked for in this segment: those of the gap before it belong to it.
    pub(crate) fn from(&self) -> Lsn {
        self.follows.next()
    }
}
