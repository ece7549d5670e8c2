//! Broadcast mode: clients that are notified of every change of keys with a prefix, whether they
//! have read them or not.
//!
//! Changes are collected per prefix, under the prefix's own lock only, and passed on to the clients
//! by a listener of the audience when it runs. The cost of a write does not depend on the number of
//! clients, and a key that changes several times between two runs is reported once.

use super::tracker::{Invalidation, OVERHEAD_BYTES, PENDING_BYTES, Stale, Tracker};
use crate::execute::moment::Moment;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tidemark_log::Lsn;

/// A prefix, its subscribers, and the changes since they were last passed on.
pub struct Broadcast {
    prefix: Arc<[u8]>,
    trackers: RwLock<Vec<Arc<Tracker>>>,
    batch: Mutex<Batch>,
}

#[derive(Default)]
struct Batch {
    /// Each key with the tracker to exempt, because it made the last change itself.
    keys: BTreeMap<Arc<[u8]>, Option<u64>>,
    bytes: usize,
    /// Whether more has changed than is kept.
    has_overflowed: bool,
    lsn: Lsn,
    /// Whether the listener was notified and has not run since.
    is_notified: bool,
}

impl Broadcast {
    fn new(prefix: &[u8]) -> Self {
        Self { prefix: prefix.into(), trackers: RwLock::default(), batch: Mutex::default() }
    }

    /// The prefix.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Adds a change. Returns whether the listener must be notified.
    pub(super) fn add(&self, key: &Arc<[u8]>, moment: Option<Moment>) -> bool {
        let spared = moment.and_then(|moment| moment.spared);
        let mut batch = self.batch();
        if !batch.has_overflowed {
            match batch.keys.entry(Arc::clone(key)) {
                Entry::Vacant(place) => {
                    place.insert(spared);
                    batch.bytes += key.len() + OVERHEAD_BYTES;
                }
                // A client that did not make all of the changes must learn of them.
                Entry::Occupied(mut known) if *known.get() != spared => {
                    known.insert(None);
                }
                Entry::Occupied(_) => {}
            }
            if batch.bytes > PENDING_BYTES {
                batch.has_overflowed = true;
                batch.keys = BTreeMap::new();
            }
        }
        batch.lsn = batch.lsn.max(moment.map_or(Lsn::ZERO, |moment| moment.lsn));
        !std::mem::replace(&mut batch.is_notified, true)
    }

    /// Passes the collected changes on to every client. The next change notifies the listener
    /// again.
    pub fn pass_on(&self) {
        let Batch { keys, has_overflowed, lsn, .. } = std::mem::take(&mut *self.batch());
        let all: Arc<[Arc<[u8]>]> = keys.keys().cloned().collect();
        let trackers = self.trackers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for tracker in trackers {
            let is_spared = |spared: &Option<u64>| *spared == Some(tracker.id());
            let stale = if has_overflowed {
                Stale::Everything
            } else if keys.values().any(is_spared) {
                let others = keys.iter().filter(|(_, spared)| !is_spared(spared));
                Stale::Keys(others.map(|(key, _)| Arc::clone(key)).collect())
            } else {
                Stale::Keys(Arc::clone(&all))
            };
            if !matches!(&stale, Stale::Keys(keys) if keys.is_empty()) {
                tracker.add(Invalidation { stale, lsn });
            }
        }
    }

    fn trackers_mut(&self) -> RwLockWriteGuard<'_, Vec<Arc<Tracker>>> {
        self.trackers.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broadcast")
            .field("prefix", &self.prefix.escape_ascii().to_string())
            .finish_non_exhaustive()
    }
}

type ByPrefix = BTreeMap<Arc<[u8]>, Arc<Broadcast>>;

/// All prefixes that clients have subscribed to.
#[derive(Default)]
pub(crate) struct Prefixes(RwLock<ByPrefix>);

impl Prefixes {
    pub(super) fn concern(&self, key: &[u8]) -> bool {
        let mut is_concerned = false;
        self.matching(key, |_| {
            is_concerned = true;
            false
        });
        is_concerned
    }

    /// Visits the prefixes of the key, longest first, until `visit` returns `false`.
    pub(super) fn matching(&self, key: &[u8], mut visit: impl FnMut(&Arc<Broadcast>) -> bool) {
        let by_prefix = self.read();
        let mut most = key;
        // The greatest prefix up to `most` either is a prefix of the key, or shows how much of the
        // key the remaining ones can share: everything between such a prefix and `most` begins with
        // it.
        while let Some((prefix, broadcast)) = by_prefix.range::<[u8], _>(up_to(most)).next_back() {
            let common = prefix.iter().zip(most).take_while(|(one, other)| one == other).count();
            if common < prefix.len() {
                most = &key[..common];
            } else if visit(broadcast) && common > 0 {
                most = &key[..common - 1];
            } else {
                return;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.read().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Subscribes a tracker to a prefix that it has not subscribed to yet.
    pub(super) fn join(&self, prefix: &[u8], tracker: &Arc<Tracker>) {
        let mut by_prefix = self.write();
        let broadcast = match by_prefix.get(prefix) {
            Some(broadcast) => broadcast,
            None => {
                let broadcast = Arc::new(Broadcast::new(prefix));
                by_prefix.entry(Arc::clone(&broadcast.prefix)).or_insert(broadcast)
            }
        };
        broadcast.trackers_mut().push(Arc::clone(tracker));
    }

    pub(super) fn leave(&self, prefix: &[u8], tracker: &Arc<Tracker>) {
        let mut by_prefix = self.write();
        let Some(broadcast) = by_prefix.get(prefix) else { return };
        let mut trackers = broadcast.trackers_mut();
        trackers.retain(|other| other.id() != tracker.id());
        let is_unused = trackers.is_empty();
        drop(trackers);
        if is_unused {
            by_prefix.remove(prefix);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, ByPrefix> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByPrefix> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn up_to(most: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn tracker(id: u64) -> Arc<Tracker> {
        Arc::new(Tracker::new(id, id, Box::new(|_| {})))
    }

    fn moment(lsn: u64, spared: Option<u64>) -> Option<Moment> {
        Some(Moment { spared, ..Moment::of(Lsn(lsn), 0) })
    }

    fn keys(names: &[&str]) -> Stale {
        Stale::Keys(names.iter().map(|name| Arc::from(name.as_bytes())).collect())
    }

    #[test]
    fn collected_keys_are_published_once_and_not_to_the_tracker_that_changed_them() {
        let prefixes = Prefixes::default();
        let (one, other) = (tracker(1), tracker(2));
        prefixes.join(b"k", &one);
        prefixes.join(b"k", &other);
        let mut notifications = 0;
        // If several trackers have changed a key, the last of them is notified too.
        for (name, lsn, spared) in
            [("kb", 1, None), ("ka", 2, Some(2)), ("ka", 3, Some(2)), ("kb", 4, Some(1))]
        {
            prefixes.matching(name.as_bytes(), |broadcast| {
                notifications += u32::from(broadcast.add(&Arc::from(name.as_bytes()), moment(lsn, spared)));
                true
            });
        }
        assert_eq!(notifications, 1, "until it has looked");
        prefixes.matching(b"k", |broadcast| {
            broadcast.pass_on();
            true
        });
        let message = |stale| Some(Invalidation { stale, lsn: Lsn(4) });
        assert_eq!(one.take(1), message(keys(&["ka", "kb"])));
        assert_eq!(other.take(2), message(keys(&["kb"])));
        assert_eq!((one.take(1), other.take(2)), (None, None));
    }

    #[test]
    fn more_changes_than_are_kept_become_one_word() {
        let prefixes = Prefixes::default();
        let one = tracker(1);
        prefixes.join(b"", &one);
        let long = vec![b'k'; PENDING_BYTES / 4];
        for number in 0..6_u8 {
            let key: Arc<[u8]> = long.iter().copied().chain([number]).collect();
            prefixes.matching(&key, |broadcast| {
                broadcast.add(&key, moment(u64::from(number), Some(1)));
                true
            });
        }
        prefixes.matching(b"", |broadcast| {
            broadcast.pass_on();
            true
        });
        let everything = Invalidation { stale: Stale::Everything, lsn: Lsn(5) };
        assert_eq!((one.take(1), one.take(1)), (Some(everything), None));
    }

    proptest! {
        #[test]
        fn exactly_the_prefixes_of_a_key_are_found(
            prefixes in proptest::collection::btree_set("[ab\u{1}]{0,5}", 0..30),
            key in "[ab\u{1}]{0,7}",
            left in "[ab\u{1}]{0,2}",
        ) {
            let (all, one) = (Prefixes::default(), tracker(1));
            prefixes.iter().for_each(|prefix| all.join(prefix.as_bytes(), &one));
            all.leave(left.as_bytes(), &one);
            let mut found = Vec::new();
            all.matching(key.as_bytes(), |broadcast| {
                found.push(String::from_utf8_lossy(broadcast.prefix()).into_owned());
                true
            });
            let mut expected: Vec<String> =
                prefixes.iter().filter(|prefix| **prefix != left && key.starts_with(&***prefix)).cloned().collect();
            expected.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
            prop_assert_eq!(all.concern(key.as_bytes()), !expected.is_empty());
            prop_assert_eq!(&found, &expected);
            let names: BTreeSet<&String> = found.iter().collect();
            prop_assert_eq!(names.len(), found.len());
        }
    }
}
