//! Active expiry: removes expired keys in the order of their deadlines, each with a record. Reservations
//! of pools and fields of hashes have deadlines as well.

use super::fields::FIELDS;
use super::key_work::{KeyWork, VisitedShard};
use super::reservations::RESERVATIONS;
use crate::command::flags;
use crate::context::{Keys, RareEffects};
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::execute::locking::Access;
use crate::execute::logging::encode_expiry;
use crate::execute::moment::Moment;
use crate::keyspace::{Database, Shard, hash};
use crate::persist::record::kind;
use tidemark_fault::{Fault, is_planted};
use tidemark_log::{Lsn, Room};

impl Engine {
    /// Removes expired keys and fields and ends reservations of pools, of at most `budget` keys, and logs that.
    /// Returns the earliest remaining deadline, in milliseconds since 1970.
    pub fn expire_due(&self, now_us: u64, budget: usize) -> Option<u64> {
        self.run_key_work(&[DEADLINES, FIELDS, RESERVATIONS], self.deadlines(), now_us, budget)
    }

    /// When active expiry has to call [`Engine::expire_due`] next, in milliseconds since 1970.
    pub fn next_expiry(&self) -> Option<u64> {
        self.next_deadline().filter(|_| self.expires_actively() && !self.is_following())
    }

    /// Whether the log has space for a record on behalf of no client, such as that of an expired
    /// key that a read has met: such a record does not wait for space.
    pub(crate) fn may_log_unasked(&self) -> bool {
        self.log().has_room() && self.check_writable().is_ok()
    }

    /// In a group, removes and logs the keys that commands are about to meet and whose time has come.
    /// Otherwise, the time of a node that leads later could bring them back. Locks the keys again by
    /// `lock`, if they have to be released.
    ///
    /// A key that cannot be removed, because the log takes no records or removals are held, stays: a read
    /// sees it.
    #[inline]
    pub(crate) fn expire_first<'e, 'a, I: Iterator<Item = (u8, &'a [u8])>>(
        &'e self,
        keys: &mut Keys<'e>,
        named: impl Fn() -> I,
        lock: impl Fn() -> Keys<'e>,
    ) {
        if self.is_in_group() && named().any(|(db, key)| keys.is_due(db, key)) {
            self.expire_between(keys, &lock, &|now_us| {
                named().for_each(|(db, key)| self.expire_key(db, key, now_us));
            });
        }
    }

    /// Removes and logs keys while the locks are released.
    #[cold]
    pub(crate) fn expire_between<'e>(
        &'e self,
        keys: &mut Keys<'e>,
        lock: &dyn Fn() -> Keys<'e>,
        expire: &dyn Fn(u64),
    ) {
        let now_us = keys.now_us();
        *keys = self.keys(self.lock_shards([]), keys.db(), now_us);
        expire(now_us);
        *keys = lock();
    }

    /// In a group, removes and logs a key whose time has come. The caller holds no locks.
    pub(crate) fn expire_key(&self, db: u8, key: &[u8], now_us: u64) {
        if self.is_in_group() && !self.holds_removals(now_us) && self.may_log_unasked() {
            remove_read(self, db, key, now_us);
        }
    }

    /// Whether a command that meets every key may meet one whose time has come.
    pub(crate) fn has_due(&self, now_us: u64) -> bool {
        self.next_deadline().is_some_and(|at_ms| at_ms <= now_us / 1000)
    }

    /// Does the same for such a command, as far as one slice of active expiry goes.
    pub(crate) fn expire_some(&self, now_us: u64) {
        if self.is_in_group() && !self.holds_removals(now_us) {
            self.expire_due(now_us, EXPIRED_BEFORE_ALL);
        }
    }

    /// Removes and logs expired keys that a command has met, as active expiry would, and
    /// invalidates client-side caches of them. If the command was a read of a caching client, the
    /// client counts as a reader of the absent key.
    ///
    /// The caller must hold no locks: the removal may need those of other shards.
    #[cold]
    pub(crate) fn remove_met(&self, call: &Call<'_>, expired: &[&[u8]], reader: Option<u64>) {
        for key in expired {
            let is_logged = !is_planted(Fault::ExpiredUnlogged);
            if is_logged && !self.holds_removals(call.now_us) && self.may_log_unasked() {
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

/// Most keys that are removed before a command that meets every key.
const EXPIRED_BEFORE_ALL: usize = 1000;

/// Keys, due at their deadline.
const DEADLINES: KeyWork = KeyWork {
    next: Database::next_deadline,
    take: |database, now_ms| database.first_due(now_ms).map(Box::from),
    run: expire,
};

/// Removes a key whose deadline has passed. If the log does not take the record, the key stays: no change
/// may happen unrecorded.
fn expire(visited: &mut VisitedShard<'_>, db: u8, key: &[u8], now_us: u64) -> bool {
    let engine = visited.engine();
    if !engine.may_log_unasked() {
        return false;
    }
    let shard = visited.shard();
    if shard.is_read() || shard.database(usize::from(db)).has_links() || !shard.waiting().is_empty() {
        visited.unlocked(|engine| remove_read(engine, db, key, now_us))
    } else {
        remove(engine, shard, db, key, now_us)
    }
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
    // Under the lock: a pause may have begun.
    if engine.check_writable().is_err() {
        return false;
    }
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
