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
//! watched read of every key makes every change lock all shards. One of the series with some labels does so
//! only for changes of these series, and for commands that may bring such a series.
//!
//! A shard without waiting moves, such watched reads and links costs three comparisons.

use crate::command::{KeySpec, WriteReach, flags};
use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::{Shard, hash};
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
            (_, args) if self.concerns_all(call.command, args) => Locked::All(self.keyspace().lock_all()),
            (keys, args) => self.lock_keys(keys.keys(args)),
        };
        let keys = || call.command.keys.keys(call.args);
        let has_links = |shard: &Shard| match call.command.reach {
            WriteReach::OtherDatabase => shard.has_links(),
            _ => shard.database(usize::from(call.db)).has_links(),
        };
        let locked = if call.command.is(flags::WRITE) {
            let is_open = |shard: &Shard| shard.reaches_further() || has_links(shard);
            let brings = |locked: &Locked<'_>| self.may_bring_selected(locked, call);
            if locked.any(is_open) || self.concerns_selections(&locked, &keys, &brings) {
                self.close(locked, Access::Write, &keys, &brings)
            } else {
                locked
            }
        } else if call.command.follows_links() && locked.any(has_links) {
            self.close(locked, Access::Read, &keys, &|_| false)
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

    /// Whether a command may bring a series that watched reads select by its labels, to one of its keys.
    pub(crate) fn may_bring_selected(&self, locked: &Locked<'_>, call: &Call<'_>) -> bool {
        let command = call.command;
        // A series that is there keeps its labels when it gets points.
        let keeps_labels = |shard: &Shard, key: &[u8]| {
            let entry = shard.database(usize::from(call.db)).get(hash(key), key);
            command.is(flags::COLUMNS) && entry.is_some_and(|entry| entry.deadline().is_none())
        };
        let may_bring = |key: &[u8]| {
            let shard = locked.shard(self.keyspace().shard_of(key));
            shard.is_none_or(|shard| shard.index().selects() && !keeps_labels(shard, key))
        };
        command.may_bring_series() && command.keys.keys(call.args).any(may_bring)
    }

    /// Whether changes of `keys` may concern watched reads that select series by their labels, and so need
    /// all locks. `brings` tells whether a series may come that they select.
    fn concerns_selections<'a, I: Iterator<Item = &'a [u8]>>(
        &self,
        locked: &Locked<'_>,
        keys: &impl Fn() -> I,
        brings: &dyn Fn(&Locked<'_>) -> bool,
    ) -> bool {
        let is_selected = |key: &[u8]| {
            let shard = locked.shard(self.keyspace().shard_of(key));
            shard.is_some_and(|shard| shard.index().is_selected(key))
        };
        locked.any(|shard| shard.index().selects()) && (keys().any(is_selected) || brings(locked))
    }

    /// Adds the locks that access to `keys`, in any database, may need. `brings` tells whether it may bring
    /// a series that watched reads select: see [`Engine::may_bring_selected`].
    pub(crate) fn lock_reachable<'e, 'a, I: Iterator<Item = &'a [u8]>>(
        &'e self,
        locked: Locked<'e>,
        access: Access,
        keys: impl Fn() -> I,
        brings: impl Fn(&Locked<'_>) -> bool,
    ) -> Locked<'e> {
        let reaches =
            |shard: &Shard| (access == Access::Write && shard.reaches_further()) || shard.has_links();
        let is_open = locked.any(reaches)
            || (access == Access::Write && self.concerns_selections(&locked, &keys, &brings));
        if is_open { self.close(locked, access, &keys, &brings) } else { locked }
    }

    #[cold]
    fn close<'e, 'a, I: Iterator<Item = &'a [u8]>>(
        &'e self,
        mut locked: Locked<'e>,
        access: Access,
        keys: &impl Fn() -> I,
        brings: &dyn Fn(&Locked<'_>) -> bool,
    ) -> Locked<'e> {
        loop {
            let needs_all = |locked: &Locked<'_>| {
                locked.any(|shard| shard.index().reads_everything())
                    || self.concerns_selections(locked, keys, brings)
            };
            if access == Access::Write && needs_all(&locked) {
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
                if shard.index().selects() && shard.index().is_selected(key) {
                    return (0..self.keyspace().shard_count()).collect();
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;
    use crate::watch::{Filter, Read};
    use crate::wire::reply::{Protocol, Reply};
    use std::sync::Arc;
    use tidemark_log::{Log, MemoryStorage, Options};

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn only_what_may_concern_series_with_watched_labels_takes_all_locks() {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("an empty log");
        let engine = Engine::new(Arc::new(log), 8, 42);
        let run = |line: &str| {
            let args = words(line);
            let call =
                Call { command: command::resolve(&args).expect("a command"), args: &args, db: 0, now_us: 1 };
            let mut reply = Reply::new(Protocol::Resp3);
            engine.execute(&call, &mut reply);
            assert_ne!(reply.bytes().first(), Some(&b'-'), "{line}");
        };
        for line in [
            "TS.CREATE hall LABELS room hall",
            "TS.CREATE attic LABELS room attic",
            "TS.CREATE source LABELS room attic",
            "TS.CREATERULE source hall AGGREGATION max 10",
            "TS.CREATE seen",
            "TS.CREATE unseen",
            "LENS.CREATE below seen abs",
            "LENS.CREATE lens below abs LABELS room hall",
            "LENS.CREATE beside unseen abs LABELS room attic",
            "SET text 1",
        ] {
            run(line);
        }
        let read = Read::new(0, Protocol::Resp3, &words("TS.MRANGE - + FILTER room=hall"), Filter::default());
        engine.subscribe(read.expect("a read"), 0, 1).expect("it can be watched");
        for (line, expected) in [
            ("SET text 2", false),
            ("SET new 2", false),
            ("HSET new f 2", false),
            ("DEL text attic", false),
            ("EXPIRE attic 100", false),
            ("TS.ADD attic 1 1", false),
            ("TS.MADD attic 1 1 attic 2 2", false),
            ("TS.DEL attic 1 2", false),
            ("TS.MRANGE - + FILTER room=hall", true),
            ("SET hall 2", true),
            ("DEL text hall", true),
            ("TS.ADD hall 1 1", true),
            ("TS.ADD source 1 1", true),
            ("TS.ADD new 1 1", true),
            ("TS.ADD unseen 1 1", false),
            ("DEL unseen", false),
            ("LENS.DROP beside", false),
            ("TS.ADD seen 1 1", true),
            ("DEL seen", true),
            ("LENS.DROP below", true),
            ("LENS.DROP lens", true),
            ("LENS.CREATE other unseen LABELS room attic", true),
            ("TS.MADD attic 1 1 new 2 2", true),
            ("TS.ALTER attic LABELS room hall", true),
            ("RENAME attic other", true),
            ("COPY attic other", true),
            ("MOVE attic 3", true),
        ] {
            let args = words(line);
            let call =
                Call { command: command::resolve(&args).expect("a command"), args: &args, db: 0, now_us: 1 };
            assert_eq!(engine.lock_for(&call).holds_all(), expected, "{line}");
        }
    }
}
