//! Segments: the files of the log, their names and their table.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::entry::EntryEnd;
use crate::format::Codec;
use crate::segment_header::SegmentHeader;
use crate::storage::StorageFile;
use crate::{Format, Lsn};

const SEGMENT_PREFIX: &str = "segment-";
const SPARE_PREFIX: &str = "spare-";
const SUFFIX: &str = ".tide";
/// Suffix of files under construction. Those that a crash left are removed at open.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// A segment of the log. Readers hold it while they read; a held file is not recycled.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) header: SegmentHeader,
    pub(crate) format: Format,
    /// Offset of the first frame.
    pub(crate) data_offset: u64,
    pub(crate) file: Box<dyn StorageFile>,
}

impl Segment {
    pub(crate) fn codec(&self) -> &'static dyn Codec {
        self.format.codec()
    }
}

/// The log's segments, keyed by the first LSN that belongs to each, including the gap before it.
///
/// ```text
/// 1 ─ first segment ─ 100 │ 101 ─ gap ─ 4294967295 │ 4294967296 ─ second segment ─ …
/// key 1                   │ key 101
/// ```
///
/// A segment without records, left by a crash, has the same key as the one that replaces it.
#[derive(Debug, Default)]
pub(crate) struct SegmentTable {
    segments: BTreeMap<Lsn, Arc<Segment>>,
}

impl SegmentTable {
    /// Adds a segment that is newer than all others. Returns the one that it replaces, which has no
    /// records.
    pub(crate) fn insert(&mut self, segment: Arc<Segment>) -> Option<Arc<Segment>> {
        self.segments.insert(segment.header.from(), segment)
    }

    /// Returns the start of the oldest segment, including its gap.
    pub(crate) fn from(&self) -> Option<Lsn> {
        self.segments.keys().next().copied()
    }

    /// Returns the segment that holds or will hold `lsn`, or that follows the gap around it. Also
    /// returns the last LSN of that segment if another follows.
    pub(crate) fn find(&self, lsn: Lsn) -> Option<(Arc<Segment>, Option<Lsn>)> {
        let (from, segment) = self.segments.range(..=lsn).next_back()?;
        let end = self.segments.range(from.next()..).next().map(|(next, _)| next.previous());
        Some((segment.clone(), end))
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the newest segment.
    pub(crate) fn newest(&self) -> Option<Arc<Segment>> {
        self.segments.values().next_back().cloned()
    }

    /// Drops the newest segment.
    pub(crate) fn pop_last(&mut self) -> Option<Arc<Segment>> {
        Some(self.segments.pop_last()?.1)
    }

    /// Returns the newest segment before which the entry `index` had not been opened: its marker, if
    /// the log has it, is there.
    pub(crate) fn find_entry(&self, index: u64) -> Option<Arc<Segment>> {
        let holds =
            |segment: &&Arc<Segment>| segment.header.entry.is_some_and(|entry| entry.id.index < index);
        self.segments.values().rev().find(holds).cloned()
    }

    /// Returns the newest entry that a segment's header names and that ends at or before `lsn`.
    pub(crate) fn entry_before(&self, lsn: Lsn) -> Option<EntryEnd> {
        let entries = self.segments.values().rev().filter_map(|segment| segment.header.entry);
        entries.into_iter().find(|entry| entry.last <= lsn)
    }

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

/// Returns whether a file belongs or belonged to a log: a directory without any was never used.
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
