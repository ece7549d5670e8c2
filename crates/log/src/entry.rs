//! Entries: the batches of a group's log, each with an index and a term.
//!
//! The group decides on entries, one after the other; the log stores records. An entry's marker
//! says where it begins, and which record is its last:
//!
//! ```text
//! [marker: index 7, term 2, last 43][record 41][record 42]│[record 43]  [marker: index 8, term 2, last 44][record 44]
//!                                   a new segment begins ─┘
//! ```

use std::fmt;

use crate::Lsn;

/// Name of an entry, the same on all members of a group. Indices are dense and begin at 1; 0 is
/// before the first entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// Position among all entries.
    pub index: u64,
    /// Term of the leader that made the entry.
    pub term: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of term {}", self.index, self.term)
    }
}

/// An entry and its last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryEnd {
    /// The entry.
    pub id: EntryId,
    /// Its last record; that of the log's beginning for index 0.
    pub last: Lsn,
}

/// What an entry's marker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryMark {
    pub(crate) id: EntryId,
    /// The entry's last record.
    pub(crate) last: Lsn,
    /// What the group had committed when the entry was written.
    pub(crate) committed: Lsn,
}

impl EntryMark {
    pub(crate) fn end(self) -> EntryEnd {
        EntryEnd { id: self.id, last: self.last }
    }

    /// Returns whether this entry can come directly behind `before`.
    pub(crate) fn follows(self, before: EntryEnd) -> bool {
        Some(self.id.index) == before.id.index.checked_add(1)
            && self.id.term >= before.id.term
            && self.last > before.last
            && self.committed <= before.last
    }
}
