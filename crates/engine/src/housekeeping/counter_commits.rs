//! Commits counters that are due, or all of them before the log is closed, and reports on them.
//!
//! [`Engine::commit_due`] visits only counters that have moved, never those at rest.

use super::key_work::KeyWork;
use crate::context::Keys;
use crate::engine::Engine;
use crate::keyspace::{CounterDefaults, CounterTotals, DATABASES, Database, Entry, Exposure, hash};
use crate::value::Object;
use tidemark_counter::Promise;
use tidemark_log::{Durability, Lsn};

/// The command that commits a counter.
pub(crate) const COMMIT: &str = "counter.commit";

/// Counters that have moved, due when they are ripe or too old. One whose commit the log refuses is due
/// again by itself.
const COMMITS: KeyWork = KeyWork {
    next: Database::next_commit,
    take: Database::pop_uncommitted,
    run: |visited, db, key, now_us| {
        visited.unlocked(|engine| engine.commit_counter(db, key, now_us));
        true
    },
};

/// Activity of counters and amounts still to commit: see [`Engine::counter_figures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterFigures {
    /// Totals since [`Engine::begin_counting`], or since the start.
    pub totals: CounterTotals,
    /// Commits that the log has refused since the start. Commits that were due are retried; one
    /// that a move needed makes the move fail.
    pub failed: u64,
    /// Uncommitted amounts.
    pub exposure: Exposure,
    /// Number of counters, including expired ones that are not yet removed.
    pub keys: usize,
}

impl Engine {
    /// Sets the default terms of counters. Existing counters keep their terms; the interval applies
    /// to all.
    pub fn set_counter_defaults(&self, defaults: CounterDefaults) {
        self.keyspace().committing().set_defaults(defaults);
    }

    /// When to call [`Engine::commit_due`] next, in milliseconds since 1970; never later than the
    /// first counter is due.
    pub fn next_commit(&self) -> Option<u64> {
        self.keyspace().committing().next_due().get().filter(|_| !self.is_following())
    }

    /// Commits due counters, at most `budget` of them. Returns when the next is due, in
    /// milliseconds since 1970. A commit that the log refuses is due again a second later.
    pub fn commit_due(&self, now_us: u64, budget: usize) -> Option<u64> {
        self.run_key_work(&[COMMITS], self.keyspace().committing().next_due(), now_us, budget)
    }

    /// Commits everything that is uncommitted and gives back all reservations. Returns the number
    /// of counters that the log refused to commit. Call it when no thread moves counters any more: before
    /// the log is closed, or in a pause.
    pub fn commit_all(&self, now_us: u64) -> usize {
        let mut refused = 0;
        for index in 0..self.keyspace().shard_count() {
            for db in 0..DATABASES {
                let keys = self.keyspace().lock(index).database(db).uncommitted_keys();
                refused += keys.iter().filter(|key| !self.commit_counter(db as u8, key, now_us)).count();
            }
        }
        refused
    }

    /// Commits a counter, if the key still holds one. Returns `false` if the log refused it.
    fn commit_counter(&self, db: u8, key: &[u8], now_us: u64) -> bool {
        let is_done = self.run_due(COMMIT, db, key, now_us);
        if !is_done {
            self.keyspace().committing().count_failed();
        }
        is_done
    }

    /// Resets the counts, to exclude the replay of the log, and schedules counters whose doubt
    /// after a crash is given back after a time.
    pub fn begin_counting(&self) {
        for index in 0..self.keyspace().shard_count() {
            let mut shard = self.keyspace().lock(index);
            shard.begin_counting();
            if let Some(at) = shard.databases().iter().filter_map(Database::next_commit).min() {
                self.keyspace().committing().next_due().lower(at);
            }
        }
    }

    /// Number of counters of a database that expire when idle, including expired ones that are not
    /// yet removed.
    pub fn idle_counters(&self, db: u8) -> usize {
        let shards = 0..self.keyspace().shard_count();
        shards.map(|index| self.keyspace().lock(index).database(usize::from(db)).idle_counter_count()).sum()
    }

    /// Totals and uncommitted amounts of counters. O(counters that have moved since their last
    /// commit).
    pub fn counter_figures(&self) -> CounterFigures {
        let mut figures =
            CounterFigures { failed: self.keyspace().committing().failed(), ..CounterFigures::default() };
        for index in 0..self.keyspace().shard_count() {
            let shard = self.keyspace().lock(index);
            figures.totals.add(*shard.counted());
            for database in shard.databases() {
                figures.exposure.add(database.exposure());
                figures.keys += database.counter_count();
            }
        }
        figures
    }
}

/// Stores the commit's LSN in counters on which no reply may depend before it is committed. These are
/// exact counters, which must not grant a reservation twice. In `always` mode and in a group these are
/// all counters: a crash's loss is bounded only if what the promise counts as committed cannot be lost
/// too. The counters' shards must be locked.
#[cold]
pub(crate) fn note_leases(engine: &Engine, keys: &mut Keys<'_>, leased: &[(u8, Vec<u8>)], lsn: Lsn) {
    let always = engine.is_in_group() || engine.log().durability() == Durability::Always;
    let now_ms = keys.now_ms();
    for (db, key) in leased {
        let database = keys.shard_mut(key).database_mut(usize::from(*db));
        if let Some(Object::Counter(counter)) = database.get_mut(hash(key), key).and_then(Entry::object_mut)
            && (always || matches!(counter.terms().promise, Promise::Exact { .. }))
        {
            counter.begin_listing(now_ms).lease = lsn;
        }
    }
}
