//! Which lenses see a key. Keys are known by name, whether they exist or not.

use std::collections::{BTreeSet, HashMap};

/// The lenses that see keys of a shard's part of a database.
///
/// The lenses may be in other shards, so the index is changed by those that have the locks of both: see
/// `context::keys::links`. It follows from the lenses, and is made again when they are loaded.
#[derive(Debug, Default)]
pub(super) struct Sights(HashMap<Box<[u8]>, BTreeSet<Box<[u8]>>>);

impl Sights {
    /// Whether no key is seen.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lenses that see a key, in the order of their names.
    pub(super) fn of(&self, key: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.0.get(key).into_iter().flatten().map(|lens| &**lens)
    }

    /// Notes that a lens sees a key.
    pub(super) fn add(&mut self, key: &[u8], lens: &[u8]) {
        let lenses = self.0.entry(key.into()).or_default();
        if !lenses.contains(lens) {
            lenses.insert(lens.into());
        }
    }

    /// Notes that a lens sees a key no more.
    pub(super) fn remove(&mut self, key: &[u8], lens: &[u8]) {
        let Some(lenses) = self.0.get_mut(key) else { return };
        lenses.remove(lens);
        if lenses.is_empty() {
            self.0.remove(key);
        }
    }
}
