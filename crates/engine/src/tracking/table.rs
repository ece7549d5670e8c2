//! The clients that have read each key of one shard.

use super::broadcast::Prefixes;
use super::changed::{Changed, Readers};
use super::totals::Totals;
use crate::execute::noted::Noted;
use crate::keyspace::{Keyed, Table, hash};
use std::sync::Arc;

/// Overhead of a key: its entry, its slot in the table, and the allocator's headers. Bytes.
const KEY_BYTES: usize = size_of::<TrackedKey>() + 40;

/// Reads of one shard's keys, and the subscribed prefixes. Protected by the shard's lock.
#[derive(Default)]
pub(crate) struct Tracked {
    keys: Option<TrackedKeys>,
    /// Set only while a client subscribes to a prefix.
    prefixes: Option<Arc<Prefixes>>,
}

impl Tracked {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_none() && self.prefixes.is_none()
    }

    /// Turns the comparison of changes with prefixes on or off.
    pub(crate) fn set_prefixes(&mut self, prefixes: Option<&Arc<Prefixes>>) {
        self.prefixes = prefixes.cloned();
    }

    /// Adds a change of the key to `noted` if it has readers or subscribers, and removes its
    /// readers.
    pub(crate) fn note(&mut self, key: &[u8], noted: &mut Vec<Noted>) {
        let readers = self.forget(key).unwrap_or_default();
        let is_broadcast = self.prefixes.as_ref().is_some_and(|prefixes| prefixes.concern(key));
        if is_broadcast || !readers.is_empty() {
            noted.push(Noted::Key(Box::new(Changed { key: key.into(), readers })));
        }
    }

    /// Records that a tracker has read the key.
    pub(crate) fn remember(&mut self, key: &[u8], reader: u64, totals: &Arc<Totals>) {
        self.keys.get_or_insert_with(|| TrackedKeys::new(Arc::clone(totals))).remember(key, reader);
    }

    /// Evicts a random key, if there is one, and returns it with its readers.
    pub(crate) fn forget_any(&mut self, random: impl FnMut() -> u64) -> Option<Changed> {
        let key: Box<[u8]> = self.keys.as_ref()?.table.random(random)?.key.clone();
        let readers = self.forget(&key)?;
        Some(Changed { key: key.into(), readers })
    }

    pub(crate) fn forget_keys(&mut self) {
        self.keys = None;
    }

    fn forget(&mut self, key: &[u8]) -> Option<Readers> {
        let keys = self.keys.as_mut()?;
        let readers = keys.forget(key);
        self.keys.take_if(|keys| keys.table.is_empty());
        readers
    }
}

/// The keys of one shard that were read, in any database: clients are notified of a key's name
/// only.
struct TrackedKeys {
    table: Table<Box<TrackedKey>>,
    readers: usize,
    bytes: usize,
    totals: Arc<Totals>,
}

struct TrackedKey {
    key: Box<[u8]>,
    readers: Readers,
}

impl TrackedKey {
    fn bytes(&self) -> usize {
        KEY_BYTES + self.key.len() + self.readers.len() * size_of::<u64>()
    }
}

impl Keyed for Box<TrackedKey> {
    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl TrackedKeys {
    fn new(totals: Arc<Totals>) -> Self {
        Self { table: Table::new(), readers: 0, bytes: 0, totals }
    }

    fn remember(&mut self, key: &[u8], reader: u64) {
        let hash = hash(key);
        if let Some(tracked) = self.table.get_mut(hash, key) {
            if let Err(at) = tracked.readers.binary_search(&reader) {
                tracked.readers.insert(at, reader);
                self.readers += 1;
                self.bytes += size_of::<u64>();
                self.totals.add(0, 1, size_of::<u64>());
            }
            return;
        }
        let tracked = Box::new(TrackedKey { key: key.into(), readers: Readers::from_elem(reader, 1) });
        let bytes = tracked.bytes();
        self.table.insert(hash, tracked);
        self.readers += 1;
        self.bytes += bytes;
        self.totals.add(1, 1, bytes);
    }

    fn forget(&mut self, key: &[u8]) -> Option<Readers> {
        let tracked = self.table.remove(hash(key), key)?;
        let (readers, bytes) = (tracked.readers.len(), tracked.bytes());
        let (all, all_bytes) = (self.readers, self.bytes);
        assert!(
            readers <= all && bytes <= all_bytes,
            "a key with {readers} readers and {bytes} bytes goes from a table of {all} readers and {all_bytes} bytes"
        );
        self.readers -= readers;
        self.bytes -= bytes;
        self.totals.remove(1, readers, bytes);
        Some(tracked.readers)
    }
}

impl Drop for TrackedKeys {
    fn drop(&mut self) {
        let (keys, readers, bytes) = (self.table.len(), self.readers, self.bytes);
        self.totals.remove(keys, readers, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrackingLimits;
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Debug, Clone)]
    enum Step {
        Read(u8, u64),
        Change(u8),
        ForgetAny(u64),
        ForgetAll,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (any::<u8>(), 0..6_u64).prop_map(|(key, reader)| Step::Read(key, reader)),
            4 => any::<u8>().prop_map(Step::Change),
            1 => any::<u64>().prop_map(Step::ForgetAny),
            1 => Just(Step::ForgetAll),
        ]
    }

    fn name(key: u8) -> Vec<u8> {
        vec![b'k'; usize::from(key % 7) + 1].into_iter().chain([key]).collect()
    }

    proptest! {
        /// Each reader of a key since its last change is notified of the next change once, and no
        /// other client is; the totals match the tables.
        #[test]
        fn readers_are_notified_once_of_the_next_change(steps in proptest::collection::vec(step(), 0..400)) {
            let totals = Arc::new(Totals::new(TrackingLimits::default()));
            let mut tracked = Tracked::default();
            let mut model: BTreeMap<Vec<u8>, BTreeSet<u64>> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Read(key, reader) => {
                        tracked.remember(&name(key), reader, &totals);
                        model.entry(name(key)).or_default().insert(reader);
                    }
                    Step::Change(key) => {
                        let mut noted = Vec::new();
                        tracked.note(&name(key), &mut noted);
                        let notified: Vec<(Vec<u8>, Vec<u64>)> = noted
                            .into_iter()
                            .filter_map(|noted| match noted {
                                Noted::Key(changed) => Some((changed.key.to_vec(), changed.readers.to_vec())),
                                Noted::Query(_) | Noted::Points { .. } | Noted::Everything => None,
                            })
                            .collect();
                        let expected = model.remove(&name(key)).map(|readers| (name(key), readers.into_iter().collect()));
                        prop_assert_eq!(notified, expected.into_iter().collect::<Vec<_>>());
                    }
                    Step::ForgetAny(seed) => {
                        let forgotten = tracked.forget_any(|| seed);
                        prop_assert_eq!(forgotten.is_some(), !model.is_empty());
                        if let Some(changed) = forgotten {
                            let readers = model.remove(&*changed.key);
                            prop_assert_eq!(readers, Some(changed.readers.into_iter().collect()));
                        }
                    }
                    Step::ForgetAll => {
                        tracked.forget_keys();
                        model.clear();
                    }
                }
                let readers: usize = model.values().map(BTreeSet::len).sum();
                let names: usize = model.keys().map(|key| KEY_BYTES + key.len()).sum();
                prop_assert_eq!((totals.keys(), totals.readers()), (model.len(), readers));
                prop_assert_eq!(totals.bytes(), names + readers * size_of::<u64>());
                prop_assert_eq!(tracked.is_empty(), model.is_empty());
            }
        }
    }
}
