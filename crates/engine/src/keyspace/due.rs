//! Keys that are to be looked at at some time, in the order in which they are due.
//!
//! A key is listed by its hash. Which entry is meant is known by the time as well, which whoever is listed knows of itself.

use std::collections::BTreeSet;

/// Keys in the order in which they are due. Every operation is O(log n).
#[derive(Default)]
pub(super) struct DueKeys(BTreeSet<(u64, u64)>);

impl DueKeys {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the next key is due. Milliseconds since 1970.
    pub(super) fn next(&self) -> Option<u64> {
        self.0.first().map(|&(due_ms, _)| due_ms)
    }

    /// The next key that is due by now: when it was, and its hash.
    pub(super) fn first_due(&self, now_ms: u64) -> Option<(u64, u64)> {
        self.0.first().copied().filter(|&(due_ms, _)| due_ms <= now_ms)
    }

    /// Lists a key that is due then.
    pub(super) fn insert(&mut self, due_ms: u64, hash: u64) {
        self.0.insert((due_ms, hash));
    }

    /// Takes a key out of the list that is due then.
    pub(super) fn remove(&mut self, due_ms: u64, hash: u64) {
        self.0.remove(&(due_ms, hash));
    }

    pub(super) fn clear(&mut self) {
        self.0 = BTreeSet::new();
    }

    /// When keys are due, and their hashes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }
}
