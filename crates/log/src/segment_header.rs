//! Content of a segment header, in every format.

use crate::Lsn;
use crate::entry::EntryEnd;

/// Version of the file format in the header of a segment without a gap before it ...
pub(crate) const VERSION: u32 = 1;
/// ... and with one: programs that do not support gaps must not take a gap for damage.
pub(crate) const VERSION_WITH_GAP: u32 = 2;
/// Version of a segment whose batches are the entries of a group, with or without a gap before it.
pub(crate) const VERSION_WITH_ENTRIES: u32 = 3;
/// Size of a binary header: one page, so that records never share a sector with it.
pub(crate) const HEADER_BYTES: usize = 4096;

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// LSN of the first record, also in the file's name.
    pub(crate) first_lsn: Lsn,
    /// Last record before this segment. Invariant: less than `first_lsn`; the LSNs in between are a
    /// gap.
    pub(crate) follows: Lsn,
    /// Start value of every checksum in this segment. It differs between uses of a recycled file,
    /// so that old bytes never pass for a frame.
    pub(crate) salt: u32,
    /// Time of the first record, microseconds since 1970.
    pub(crate) created_us: u64,
    /// Whether the space after the records may contain old bytes instead of zeros.
    pub(crate) recycled: bool,
    /// In the log of a group's member: the newest entry that was opened before this segment. The
    /// segment's first records belong to it, up to its last one.
    pub(crate) entry: Option<EntryEnd>,
}

impl SegmentHeader {
    pub(crate) fn version(&self) -> u32 {
        if self.entry.is_some() {
            VERSION_WITH_ENTRIES
        } else if self.follows == self.first_lsn.previous() {
            VERSION
        } else {
            VERSION_WITH_GAP
        }
    }

    /// Returns the first LSN that belongs to this segment, including the gap before it.
    pub(crate) fn from(&self) -> Lsn {
        self.follows.next()
    }
}
