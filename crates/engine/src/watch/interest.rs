//! Interest in the keys of one shard: watched reads, and clients that cache what they read.
//!
//! A shard has an [`Interest`] only while a query or client uses one of its keys. Otherwise a
//! change costs one comparison.

use crate::execute::noted::Noted;
use crate::keyspace::Entry;
use crate::tracking::Tracked;
use crate::watch::Index;
use crate::watch::touched::Touched;

/// Interest in one shard's keys. Guarded by the shard's lock.
#[derive(Default)]
pub(crate) struct Interest {
    pub(crate) queries: Index,
    pub(crate) tracked: Tracked,
}

impl Interest {
    pub(crate) fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.tracked.is_empty()
    }

    /// Notes the queries and clients that a change of this key concerns. A caching client is noted
    /// once; it must read the key again to be notified of the next change. `entry` returns the
    /// key's entry after the change. Returns the number of watched reads of the key that the change
    /// does not concern.
    pub(crate) fn note<'e>(
        &mut self,
        db: u8,
        key: &[u8],
        touched: &Touched<'_>,
        entry: impl Fn() -> Option<&'e Entry>,
        noted: &mut Vec<Noted>,
    ) -> usize {
        let spared = self.queries.note(db, key, touched, entry, noted);
        self.tracked.note(key, noted);
        spared
    }

    /// Notes the watched reads of a whole database. Caching clients are notified by
    /// [`Noted::Everything`].
    pub(crate) fn note_database(&mut self, db: u8, noted: &mut Vec<Noted>) {
        self.queries.note_database(db, noted);
        self.tracked.forget_keys();
    }
}
