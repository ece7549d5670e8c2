//! Keys ordered by due time.
//!
//! A key is listed by its hash and its due time. Each listed entry stores its own due time, which
//! identifies it among entries with the same hash.

use std::collections::BTreeSet;

/// Keys ordered by due time. Every operation is O(log n).
#[derive(Default)]
pub(crate) struct DueKeys(BTreeSet<(u64, u64)>);

impl DueKeys {
    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// When the next key is due, in milliseconds since 1970.
    pub(crate) fn next(&self) -> Option<u64> {
        self.0.first().map(|&(due_ms, _)| due_ms)
    }

    /// Returns the due time and hash of the first key that is due by now.
    pub(crate) fn first_due(&self, now_ms: u64) -> Option<(u64, u64)> {
        self.0.first().copied().filter(|&(due_ms, _)| due_ms <= now_ms)
    }

    pub(crate) fn insert(&mut self, due_ms: u64, hash: u64) {
        self.0.insert((due_ms, hash));
    }

    pub(crate) fn remove(&mut self, due_ms: u64, hash: u64) {
        self.0.remove(&(due_ms, hash));
    }

    /// All due times, with the hashes of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }
}
