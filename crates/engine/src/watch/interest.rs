//! Who is to be told when keys of one shard change: watched reads, and clients that keep what they have read.
//!
//! A shard has this only while somebody is interested in any of its keys. A change in another one costs a comparison.

use crate::execute::noted::Noted;
use crate::keyspace::Entry;
use crate::tracking::Tracked;
use crate::watch::Index;
use crate::watch::touched::Touched;

/// Those who are interested in one shard's keys. Whoever holds the shard's lock may look and change.
#[derive(Default)]
pub(crate) struct Interest {
    pub(crate) queries: Index,
    pub(crate) tracked: Tracked,
}

impl Interest {
    pub(crate) fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.tracked.is_empty()
    }

    /// Notes whom a change of this key concerns. Clients that keep what they have read of it count as told: they have to
    /// read it again to be told of the next change. `entry` gives the key's entry after the change. Says how many watched reads of
    /// the key it does not concern.
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

    /// Notes the watched reads of a whole database. Those who keep anything are told by [`Noted::Everything`].
    pub(crate) fn note_database(&mut self, db: u8, noted: &mut Vec<Noted>) {
        self.queries.note_database(db, noted);
        self.tracked.forget_keys();
    }
}
