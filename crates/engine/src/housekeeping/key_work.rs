//! Work on keys that is due at times: each type says which of its keys is due when, and which command or
//! record does what is due. One walk over the shards does it for all.

use crate::command;
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::{ALL_DATABASES, Database, NextDue, Shard};
use crate::wire::reply::Reply;
use std::sync::MutexGuard;

/// How long work pauses when the log takes no records. Milliseconds.
const RETRY_MS: u64 = 1000;

/// What is due on keys of one type.
pub(super) struct KeyWork {
    /// When the first key of a database is due, in milliseconds since 1970.
    pub(super) next: fn(&Database) -> Option<u64>,
    /// Returns a key that is due by now, in milliseconds since 1970.
    pub(super) take: fn(&mut Database, u64) -> Option<Box<[u8]>>,
    /// Does and logs what is due of a key, at a time in microseconds since 1970. Returns `false` if the
    /// log takes no records: then the rest of the work waits.
    pub(super) run: fn(&mut VisitedShard<'_>, db: u8, key: &[u8], now_us: u64) -> bool,
}

/// A shard whose keys are worked on, locked between two of them.
pub(super) struct VisitedShard<'e> {
    engine: &'e Engine,
    index: usize,
    /// `None` only in [`VisitedShard::unlocked`].
    locked: Option<MutexGuard<'e, Shard>>,
}

impl<'e> VisitedShard<'e> {
    fn lock(engine: &'e Engine, index: usize) -> Self {
        Self { engine, index, locked: Some(engine.keyspace().lock(index)) }
    }

    pub(super) fn engine(&self) -> &'e Engine {
        self.engine
    }

    pub(super) fn shard(&mut self) -> &mut Shard {
        self.locked.as_deref_mut().expect("it is unlocked only for work that does not use it")
    }

    /// Does work that takes locks of its own. The keys may be others afterwards.
    pub(super) fn unlocked<R>(&mut self, work: impl FnOnce(&Engine) -> R) -> R {
        self.locked = None;
        let result = work(self.engine);
        self.locked = Some(self.engine.keyspace().lock(self.index));
        result
    }
}

impl Engine {
    /// Does what is due, on at most `budget` keys. Returns when the next is due, in milliseconds since
    /// 1970, which is also noted in `next`.
    pub(super) fn run_key_work(
        &self,
        works: &[KeyWork],
        next: &NextDue,
        now_us: u64,
        budget: usize,
    ) -> Option<u64> {
        if self.is_following() {
            // The node that leads does it, and this one applies the record.
            return None;
        }
        let now_ms = now_us / 1000;
        next.forget();
        let mut left = budget;
        for index in 0..self.keyspace().shard_count() {
            let mut visited = VisitedShard::lock(self, index);
            for (db, work) in (0..ALL_DATABASES).flat_map(|db| works.iter().map(move |work| (db, work))) {
                while left > 0
                    && let Some(key) = (work.take)(visited.shard().database_mut(db), now_ms)
                {
                    left -= 1;
                    if !(work.run)(&mut visited, db as u8, &key, now_us) {
                        next.lower(now_ms + RETRY_MS);
                        return next.get();
                    }
                }
            }
            let databases = visited.shard().databases();
            let due =
                databases.iter().flat_map(|database| works.iter().filter_map(|work| (work.next)(database)));
            if let Some(at_ms) = due.min() {
                next.lower(at_ms);
            }
        }
        next.get()
    }

    /// Does what is due of a key by the command of its type, which has the key as its only argument.
    /// Returns `false` if the log refused it.
    pub(super) fn run_due(&self, name: &'static str, db: u8, key: &[u8], now_us: u64) -> bool {
        let command = command::find_logged(name).expect("the table has the commands of what is due");
        let mut reply = Reply::default();
        self.execute(&Call { command, args: &[name.as_bytes(), key], db, now_us }, &mut reply);
        // Nothing is due of a key that holds another type by now.
        !reply.bytes().starts_with(b"-") || reply.bytes().starts_with(b"-WRONGTYPE")
    }
}
