//! Which shards a command locks.
//!
//! A command locks the shards of its keys, in the order of their indices. It may need further shards,
//! for keys that it does not name:
//!
//! | reason | found by |
//! |---|---|
//! | Serving a `BLMOVE` pushes to its destination; clients that wait there may move elements further. | the shard's waiting clients |
//! | A change of a key evaluates the watched reads of it, which may read other keys as well. | the shard's index of watched reads |
//! | A value links to other keys: a series to those that it is compacted into. | the value: see [`crate::value::links`] |
//!
//! Locks are only taken in index order, to prevent deadlock, so none can be added in the middle. A
//! command therefore makes its lock set *closed* before it runs: every shard is in it that the locked
//! ones show to be reachable. If one is missing, all locks are released and retaken in order with it.
//! Shards are never removed from the set, so this ends after at most as many rounds as there are
//! shards. A client starts to wait, and a link is made, only under the locks of all keys concerned, so
//! a closed set stays closed while it is held.
//!
//! A writing command follows everything, a reading one only the links by which values read keys. A
//! watched read of every key makes every change lock all shards.
//!
//! A shard without waiting moves, such watched reads and links costs three comparisons.

use crate::command::{KeySpec, WriteReach, flags};
use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::Shard;
use crate::value::links::LinkUse;
use std::collections::{BTreeSet, HashSet};

/// What a command does with the keys from which its locks are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Engine {
    #[inline]
    pub(crate) fn lock_for(&self, call: &Call<'_>) -> Keys<'_> {
        let locked = match (call.command.keys, call.args) {
            (KeySpec::Range { first: 1, last: 1, .. }, [_, key, ..]) => self.lock_one(key),
            // Locks each shard when it visits it.
            (KeySpec::Each, _) => self.lock_shards([]),
            (keys, args) if keys.concerns_all(args) => Locked::All(self.keyspace().lock_all()),
            (keys, args) => self.lock_keys(keys.keys(args)),
        };
        let keys = || call.command.keys.keys(call.args);
        let has_links = |shard: &Shard| match call.command.reach {
            WriteReach::OtherDatabase => shard.has_links(),
            _ => shard.database(usize::from(call.db)).has_links(),
        };
        let locked = if call.command.is(flags::WRITE) {
            let is_open = |shard: &Shard| shard.reaches_further() || has_links(shard);
            if locked.any(is_open) { self.close(locked, Access::Write, &keys) } else { locked }
        } else if call.command.group.follows_links() && locked.any(has_links) {
            self.close(locked, Access::Read, &keys)
        } else {
            locked
        };
        self.keys(locked, call.db, call.now_us)
    }

    #[inline]
    pub(crate) fn lock_one(&self, key: &[u8]) -> Locked<'_> {
        let index = self.keyspace().shard_of(key);
        Locked::One(index, self.keyspace().lock(index))
    }

    pub(crate) fn lock_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Locked<'_> {
        let mut indices: Vec<usize> = Vec::with_capacity(keys.size_hint().0);
        let mut before: Option<&[u8]> = None;
        for key in keys {
            // The points of a batch often name the same key one after the other.
            if before != Some(key) {
                indices.push(self.keyspace().shard_of(key));
            }
            before = Some(key);
        }
        indices.sort_unstable();
        indices.dedup();
        match indices[..] {
            [only] => Locked::One(only, self.keyspace().lock(only)),
            _ => self.lock_shards(indices),
        }
    }

    /// Locks shards; the indices must be sorted and unique.
    pub(crate) fn lock_shards(&self, indices: impl IntoIterator<Item = usize>) -> Locked<'_> {
        Locked::Many(indices.into_iter().map(|index| (index, self.keyspace().lock(index))).collect())
    }

    /// Adds the locks that access to `keys`, in any database, may need.
    pub(crate) fn lock_reachable<'e, 'a, I: Iterator<Item = &'a [u8]>>(
        &'e self,
        locked: Locked<'e>,
        access: Access,
        keys: impl Fn() -> I,
    ) -> Locked<'e> {
        let reaches =
            |shard: &Shard| (access == Access::Write && shard.reaches_further()) || shard.has_links();
        if locked.any(reaches) { self.close(locked, access, &keys) } else { locked }
    }

    #[cold]
    fn close<'e, 'a, I: Iterator<Item = &'a [u8]>>(
        &'e self,
        mut locked: Locked<'e>,
        access: Access,
        keys: &impl Fn() -> I,
    ) -> Locked<'e> {
        loop {
            if access == Access::Write && locked.any(|shard| shard.index().reads_everything()) {
                drop(locked);
                return Locked::All(self.keyspace().lock_all());
            }
            let held = locked.indices().count();
            let reached = self.reached(&locked, access, keys());
            assert!(held <= reached.len(), "{held} shards are locked, and only {} are to be", reached.len());
            if reached.len() == held {
                return locked;
            }
            drop(locked);
            locked = self.lock_shards(reached);
        }
    }

    /// The locked shards and the shards that the locked ones show to be reachable from them.
    fn reached<'a>(
        &self,
        locked: &Locked<'_>,
        access: Access,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> BTreeSet<usize> {
        let mut reached: BTreeSet<usize> = locked.indices().collect();
        // Shards to which elements are moved, to keys that are unknown here.
        let mut moved_to: Vec<usize> = Vec::new();
        let mut open: Vec<(Access, Box<[u8]>)> = keys.map(|key| (access, key.into())).collect();
        let mut followed = HashSet::new();
        while let Some(next) = open.pop() {
            if followed.contains(&next) {
                continue;
            }
            let (access, key) = &next;
            let index = self.keyspace().shard_of(key);
            reached.insert(index);
            let Some(shard) = locked.shard(index) else { continue };
            shard.for_each_link(key, |linked, link_use| match (access, link_use) {
                (Access::Write, LinkUse::Writes | LinkUse::Shows) => {
                    open.push((Access::Write, linked.into()));
                }
                (_, LinkUse::Reads | LinkUse::Sees) => open.push((Access::Read, linked.into())),
                (Access::Read, LinkUse::Writes | LinkUse::Shows) => {}
            });
            if *access == Access::Write {
                moved_to.extend(shard.waiting().destinations(key));
                shard.index().for_each_read_beside(key, |read| open.push((Access::Read, read.into())));
            }
            followed.insert(next);
        }
        let mut followed = HashSet::new();
        while let Some(index) = moved_to.pop() {
            reached.insert(index);
            if followed.insert(index) {
                // The destination key is unknown here, so assume any key of the shard.
                let Some(shard) = locked.shard(index) else { continue };
                if shard.has_links() {
                    return (0..self.keyspace().shard_count()).collect();
                }
                moved_to.extend(shard.waiting().all_destinations());
                reached.extend(shard.index().reached());
            }
        }
        reached
    }
}
