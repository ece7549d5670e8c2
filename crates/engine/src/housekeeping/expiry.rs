//! Active expiry: removes expired keys in the order of their deadlines, each with a record, and
//! ends reservations of pools that are over.

use crate::command::{self, flags};
use crate::context::{Keys, RareEffects};
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::execute::locking::Access;
use crate::execute::logging::encode_expiry;
use crate::execute::moment::Moment;
use crate::keyspace::{DATABASES, Shard, hash};
use crate::persist::record::kind;
use crate::wire::reply::Reply;
use tidemark_log::{Lsn, Room};

/// How long expiry pauses when the log takes no records. Milliseconds.
const RETRY_MS: u64 = 1000;

impl Engine {
    /// Removes expired keys, at most `budget` of them, and logs the removals. Returns the earliest
    /// remaining deadline, in milliseconds since 1970.
    pub fn expire_due(&self, now_us: u64, budget: usize) -> Option<u64> {
        expire_due(self, now_us, budget)
    }

    /// Whether the log has space for a record on behalf of no client, such as that of an expired
    /// key that a read has met: such a record does not wait for space.
    fn may_log_unasked(&self) -> bool {
        self.log().has_room() && self.check_writable().is_ok()
    }

    /// Removes and logs expired keys that a command has met, as active expiry would, and
    /// invalidates client-side caches of them. If the command was a read of a caching client, the
    /// client counts as a reader of the absent key.
    ///
    /// The caller must hold no locks: the removal may need those of other shards.
    #[cold]
    pub(crate) fn remove_met(&self, call: &Call<'_>, expired: &[&[u8]], reader: Option<u64>) {
        for key in expired {
            if !self.holds_removals(call.now_us) && self.may_log_unasked() {
                remove_read(self, call.db, key, call.now_us);
            }
            if let Some(reader) = reader.filter(|_| call.command.is(flags::READONLY)) {
                self.remember_absent(call, key, reader);
            }
        }
    }

    /// Logs keys that were found expired and removed, if any, and evaluates watched reads without
    /// them.
    pub(crate) fn log_expired(&self, keys: &mut Keys<'_>) -> Option<Lsn> {
        let RareEffects { expired, noted, .. } = std::mem::take(&mut keys.effects).take_rare();
        if expired.is_empty() {
            let count = noted.len();
            assert!(
                count == 0,
                "{count} watched reads or keys are noted as changed, and nothing has expired"
            );
            return None;
        }
        let (db, now_us) = (keys.db(), keys.now_us());
        let removed = expired.iter().map(Vec::as_slice);
        let encode = |into: &mut Vec<u8>| encode_expiry(into, db, removed);
        let lsn = self.log().append_into(Room::NONE, now_us, kind::EXPIRY, encode).ok();
        match lsn {
            Some(lsn) => keys.note_logged(lsn),
            None => self.set_ahead_of_log(),
        }
        self.emit(keys, noted, lsn.map(|lsn| Moment::of(lsn, now_us)));
        if keys.events.are_wanted() {
            self.publish_events(keys, lsn, false);
        }
        lsn
    }
}

fn expire_due(engine: &Engine, now_us: u64, budget: usize) -> Option<u64> {
    let now_ms = now_us / 1000;
    // Deadlines that commands set after this lower the bound themselves.
    engine.store_next_deadline(None);
    let mut left = budget;
    let mut next: Option<u64> = None;
    for index in 0..engine.keyspace().shard_count() {
        let mut shard = engine.keyspace().lock(index);
        for db in 0..DATABASES {
            while left > 0
                && let Some(key) = shard.database(db).first_due(now_ms).map(<[u8]>::to_vec)
            {
                // If the log does not take the record, the key stays: no change may happen
                // unrecorded.
                let is_removed = engine.may_log_unasked()
                    && if shard.is_read() || shard.database(db).has_links() || !shard.waiting().is_empty() {
                        drop(shard);
                        let is_removed = remove_read(engine, db as u8, &key, now_us);
                        shard = engine.keyspace().lock(index);
                        is_removed
                    } else {
                        remove(engine, &mut shard, db as u8, &key, now_us)
                    };
                if !is_removed {
                    engine.lower_next_deadline(now_ms + RETRY_MS);
                    return engine.next_deadline();
                }
                left -= 1;
            }
            while left > 0
                && let Some(key) = shard.database(db).first_reserving(now_ms).map(<[u8]>::to_vec)
            {
                drop(shard);
                let is_done = end_reservations(engine, db as u8, &key, now_us);
                shard = engine.keyspace().lock(index);
                if !is_done {
                    engine.lower_next_deadline(now_ms + RETRY_MS);
                    return engine.next_deadline();
                }
                left -= 1;
            }
            let database = shard.database(db);
            next = [next, database.next_deadline(), database.next_reservation()].into_iter().flatten().min();
        }
    }
    if let Some(at) = next {
        engine.lower_next_deadline(at);
    }
    engine.next_deadline()
}

/// Ends a pool's reservations that are over. Returns `false` if the log refused it.
fn end_reservations(engine: &Engine, db: u8, key: &[u8], now_us: u64) -> bool {
    const EXPIRE: &str = "pool.expire";
    if !engine.may_log_unasked() {
        return false;
    }
    let command = command::find(EXPIRE.as_bytes()).expect("the table has the command that ends reservations");
    let mut reply = Reply::default();
    engine.execute(&Call { command, args: &[EXPIRE.as_bytes(), key], db, now_us }, &mut reply);
    // A key that holds another type by now has no reservations.
    !reply.bytes().starts_with(b"-") || reply.bytes().starts_with(b"-WRONGTYPE")
}

/// Logs and removes an expired key. Returns `false` if the log refused it.
fn remove(engine: &Engine, shard: &mut Shard, db: u8, key: &[u8], now_us: u64) -> bool {
    let Some(lsn) = engine.log_expiry(db, key, now_us) else { return false };
    shard.note_logged(lsn);
    shard.database_mut(db as usize).remove(hash(key), key);
    shard.tally_mut().count_expired();
    shard.touch(db, key);
    engine.publish_expiry(db, key, lsn);
    true
}

/// As [`remove`], for a key in a shard with subscribers, blocked clients or links: locks all shards that are read
/// together with it, or have keys that it links to. Returns `false` also if the log failed after the removal; then expiry stops likewise.
fn remove_read(engine: &Engine, db: u8, key: &[u8], now_us: u64) -> bool {
    let locked =
        engine.lock_reachable(engine.lock_one(key), Access::Write, || std::iter::once(key), |_| false);
    let mut keys = engine.keys(locked, db, now_us);
    keys.drop_expired(key);
    // Another thread may have removed the key or extended its deadline while it was unlocked; that
    // is fine.
    let is_there = keys.effects.rare().is_none_or(|rare| rare.expired.is_empty());
    let ready = keys.effects.take_ready();
    let is_logged = is_there || engine.log_expired(&mut keys).is_some();
    if !ready.is_empty() {
        engine.serve(keys, ready);
    }
    is_logged
}
