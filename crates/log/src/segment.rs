//! Segments: the files that the log is cut into, their names, headers and table.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::Codec;
use crate::storage::StorageFile;
use crate::{Format, Lsn};

/// Version of the file format, in the header of every segment whose first record follows the one before it at once ...
pub(crate) const VERSION: u32 = 1;
/// ... and of one with a gap before it, which programs that know of no gaps must not take for damage.
pub(crate) const VERSION_WITH_GAP: u32 = 2;
/// Size of a binary header; a page, so that records never share a sector with it.
pub(crate) const HEADER_BYTES: usize = 4096;

const SEGMENT_PREFIX: &str = "segment-";
const SPARE_PREFIX: &str = "spare-";
const SUFFIX: &str = ".tide";
/// Files that a crash left half made; removed at open.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

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

/// A segment that is part of the log. Readers hold it while they read; a held file is not recycled.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) header: SegmentHeader,
    pub(crate) format: Format,
    /// Where frames begin.
    pub(crate) data_offset: u64,
    pub(crate) file: Box<dyn StorageFile>,
}

impl Segment {
    pub(crate) fn codec(&self) -> &'static dyn Codec {
        self.format.codec()
    }
}

/// The log's segments by the first position that is looked for in them.
///
/// ```text
/// 1 ─ first segment ─ 100 │ 101 ─ gap ─ 4294967295 │ 4294967296 ─ second segment ─ …
/// key 1                   │ key 101
/// ```
///
/// A segment without records, which a crash left, has the key of the one that takes its place.
#[derive(Debug, Default)]
pub(crate) struct SegmentTable {
    segments: BTreeMap<Lsn, Arc<Segment>>,
}

impl SegmentTable {
    /// Adds a segment that is newer than all others. Returns the one whose place it takes, which is of no use any more.
    pub(crate) fn insert(&mut self, segment: Arc<Segment>) -> Option<Arc<Segment>> {
        self.segments.insert(segment.header.from(), segment)
    }

    /// Where the oldest segment begins, its gap included.
    pub(crate) fn from(&self) -> Option<Lsn> {
        self.segments.keys().next().copied()
    }

    /// The segment in which `lsn` is or will be, or behind whose gap the log goes on, and the last LSN that it holds if
    /// another follows.
    pub(crate) fn find(&self, lsn: Lsn) -> Option<(Arc<Segment>, Option<Lsn>)> {
        let (from, segment) = self.segments.range(..=lsn).next_back()?;
        let end = self.segments.range(from.next()..).next().map(|(next, _)| next.previous());
        Some((segment.clone(), end))
    }

    /// Removes and returns the oldest segment.
    pub(crate) fn pop_first(&mut self) -> Option<Arc<Segment>> {
        Some(self.segments.pop_first()?.1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.values()
    }
}

pub(crate) fn segment_name(first: Lsn) -> String {
    format!("{SEGMENT_PREFIX}{:020}{SUFFIX}", first.0)
}

pub(crate) fn parse_segment_name(name: &str) -> Option<Lsn> {
    let first = Lsn(name.strip_prefix(SEGMENT_PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?);
    (segment_name(first) == name).then_some(first)
}

/// Whether a file is one of a log's, or was made of one: a directory without any was never used.
pub(crate) fn is_of_log(name: &str) -> bool {
    name.contains(SUFFIX)
}

pub(crate) fn spare_name(number: u64) -> String {
    format!("{SPARE_PREFIX}{number:06}{SUFFIX}")
}

pub(crate) fn parse_spare_name(name: &str) -> Option<u64> {
    let number = name.strip_prefix(SPARE_PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
    (spare_name(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_exactly() {
        assert_eq!(parse_segment_name(&segment_name(Lsn(17))), Some(Lsn(17)));
        assert_eq!(parse_spare_name(&spare_name(3)), Some(3));
        for name in ["segment-17.tide", "segment-.tide", "segment-+0000000000000000017.tide", "spare-3.tide"]
        {
            assert_eq!((parse_segment_name(name), parse_spare_name(name)), (None, None), "{name}");
        }
    }
}
