//! Which shards a command locks.
//!
//! A command locks the shards of its keys, in the order of their indices. A change may need further
//! shards.
//!
//! Serving a `BLMOVE` pushes to its destination, in a shard that the current command does not name;
//! clients that wait there may move elements further. Locks are only taken in index order, to
//! prevent deadlock, so none can be added in the middle. A writing command therefore makes its lock
//! set *closed* before it changes anything. If a client waits to move from one of the command's
//! keys, the destination's shard is locked too, and transitively the destination of every move that
//! waits in an added shard. If a shard is missing, all locks are released and retaken in order with
//! it. Shards are never removed from the set, so this ends after at most as many rounds as there
//! are shards. A client starts to wait only under the locks of all of its keys, so a closed set
//! stays closed while it is held.
//!
//! A watched read of keys in several shards extends the set likewise: a change to one of the keys
//! evaluates the read and locks all that it reads. A watched read of every key makes every change
//! lock all shards.
//!
//! A shard without waiting moves and without such watched reads costs two comparisons.

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
            // Locks each shard when it visits it.
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
    pub(crate) fn lock_one(&self, key: &[u8]) -> Locked<'_> {
        let index = self.keyspace().shard_of(key);
        Locked::One(index, self.keyspace().lock(index))
    }

    pub(crate) fn lock_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Locked<'_> {
        let mut indices: Vec<usize> = keys.map(|key| self.keyspace().shard_of(key)).collect();
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

    /// Adds the locks that serving blocked moves may need to those of a command that may change
    /// `keys`.
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

    /// The locked shards and the shards that the locked ones show to be reachable from them.
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
                // The destination key is unknown here, so assume any key of the shard.
                let Some(shard) = locked.shard(index) else { continue };
                open.extend(shard.waiting().all_destinations());
                reached.extend(shard.index().reached());
            }
        }
        reached
    }
}
