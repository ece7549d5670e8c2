//! Which shards a command locks.
//!
//! Those of its keys, in the order of their indices. What follows is about the further ones that a change may need.
//!
//! To serve a `BLMOVE` is to push into its destination, whose shard the command at hand knows nothing of; and whoever
//! waits there may move further. Locks are only ever taken in the order of the shards' indices, so that nobody waits in
//! a circle, and none can be added in the middle. Therefore a writing command sees to it, before it changes anything,
//! that its locks are *closed*: where a client waits to move from one of the command's keys, the destination's shard is
//! locked as well, and with it every shard where any move leads that waits in a shard thus added. If one is missing, all
//! locks are given back and taken again with it, in order. What has been found once stays in the set, so this ends after
//! as many rounds as there are shards at the latest, whatever others do meanwhile; and since clients begin to wait under
//! the locks of all of their keys, a closed set stays closed as long as it is held.
//!
//! A watched read of keys in several shards reaches further in the same way: whoever changes one of the keys answers the
//! read anew, and locks what it reads. One over every key makes every change lock all shards.
//!
//! In a shard where nobody waits to move something, and from which no watched read reaches further, this costs two
//! comparisons.

use crate::command::{KeySpec, flags};
use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::execute::call::Call;
use std::collections::{BTreeSet, HashSet};

impl Engine {
    #[inline]
    pub(crate) fn lock_for(&self, call: &Call<'_>) -> Keys<'_> {
        let locked = match (call.command.keys, call.args) {
            (KeySpec::Range { first: 1, last: 1, .. }, [_, key, ..]) => self.lock_one(key),
            // Locks what it visits by itself.
            (KeySpec::Each, _) => self.lock_shards([]),
            (keys, args) if keys.concerns_all(args) => Locked::All(self.keyspace().lock_all()),
            (keys, args) => self.lock_keys(keys.keys(args)),
        };
        let locked = if call.command.is(flags::WRITE) {
            self.lock_destinations(locked, || call.command.keys.keys(call.args))
        } else {
            locked
        };
        self.keys(locked, call.db, call.now_us)
    }

    #[inline]
    fn lock_one(&self, key: &[u8]) -> Locked<'_> {
        let index = self.keyspace().shard_of(key);
        Locked::One(index, self.keyspace().lock(index))
    }

    pub(crate) fn lock_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Locked<'_> {
        let mut indices: Vec<usize> = keys.map(|key| self.keyspace().shard_of(key)).collect();
        indices.sort_unstable();
        indices.dedup();
        self.lock_shards(indices)
    }

    /// Locks shards, whose indices come in order and each once.
    pub(crate) fn lock_shards(&self, indices: impl IntoIterator<Item = usize>) -> Locked<'_> {
        Locked::Many(indices.into_iter().map(|index| (index, self.keyspace().lock(index))).collect())
    }

    /// Adds the locks that serving waiting moves may need to those of a command that may change `keys`.
    #[inline]
    pub(crate) fn lock_destinations<'e, 'a, I: Iterator<Item = &'a [u8]>>(
        &'e self,
        locked: Locked<'e>,
        keys: impl Fn() -> I,
    ) -> Locked<'e> {
        if locked.reaches_further() { self.close(locked, &keys) } else { locked }
    }

    #[cold]
    fn close<'e, 'a, I: Iterator<Item = &'a [u8]>>(
        &'e self,
        mut locked: Locked<'e>,
        keys: &impl Fn() -> I,
    ) -> Locked<'e> {
        loop {
            if locked.reads_everything() {
                drop(locked);
                return Locked::All(self.keyspace().lock_all());
            }
            let held = locked.indices().count();
            let reached = self.reached(&locked, keys());
            assert!(held <= reached.len(), "{held} shards are locked, and only {} are to be", reached.len());
            if reached.len() == held {
                return locked;
            }
            drop(locked);
            locked = self.lock_shards(reached);
        }
    }

    /// The shards that are locked and those where moves lead, as far as the locked ones tell.
    fn reached<'a>(&self, locked: &Locked<'_>, keys: impl Iterator<Item = &'a [u8]>) -> BTreeSet<usize> {
        let mut reached: BTreeSet<usize> = locked.indices().collect();
        let mut open: Vec<usize> = Vec::new();
        for key in keys {
            let shard =
                locked.shard(self.keyspace().shard_of(key)).expect("the shard of a command's key is locked");
            open.extend(shard.waiting().destinations(key));
            reached.extend(shard.index().reached_from(key));
        }
        let mut followed = HashSet::new();
        while let Some(index) = open.pop() {
            reached.insert(index);
            if followed.insert(index) {
                // Which key of the shard is moved to is not known here, so any may be.
                let Some(shard) = locked.shard(index) else { continue };
                open.extend(shard.waiting().all_destinations());
                reached.extend(shard.index().reached());
            }
        }
        reached
    }
}
