//! Expired keys and fields: what counts as expired, and removal before a write.

use super::Keys;
use crate::context::locked::Locked;
use crate::keyspace::{Entry, Shard, hash};
use crate::value::{Hash, TypedValue};
use crate::watch::touched::Touched;

impl Keys<'_> {
    /// Whether a command under these locks has met an expired key.
    pub(crate) fn has_met_expired(&self) -> bool {
        self.has_met_expired.get()
    }

    /// Whether an entry has expired.
    #[inline]
    pub fn is_expired(&self, entry: &Entry) -> bool {
        entry.deadline().is_some_and(|at| at <= self.expired_until_ms)
    }

    /// Sets whether the commands see keys whose time has come, and which no record has removed yet.
    pub(crate) fn see_expired(&mut self, sees: bool) {
        self.expired_until_ms = if sees { 0 } else { self.now_ms() };
    }

    /// Whether a key of a database is present and its time has come. Its shard is locked.
    pub(crate) fn is_due(&self, db: u8, key: &[u8]) -> bool {
        let (database, now_ms) = (self.shard(key).database(usize::from(db)), self.now_ms());
        let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        // Usually nothing in this database is due, which saves the lookup.
        is_due(database.next_deadline()) && is_due(database.get(hash(key), key).and_then(Entry::deadline))
    }

    /// Whether a hash of a locked shard has a field whose time has come, and which no record has removed
    /// yet. Few instructions.
    #[inline]
    pub(crate) fn has_due_fields(&self) -> bool {
        match &self.locked {
            Locked::One(_, shard) if shard.database(self.db).timed_hash_count() == 0 => false,
            _ => self.looks_for_due_fields(),
        }
    }

    #[cold]
    fn looks_for_due_fields(&self) -> bool {
        let (db, now_ms) = (self.db, self.now_ms());
        let is_due =
            |shard: &Shard| shard.database(db).next_field_time().is_some_and(|at_ms| at_ms <= now_ms);
        match &self.locked {
            Locked::One(_, shard) => is_due(shard),
            several => several.has(is_due),
        }
    }

    /// Whether a key of a database has a field whose time has come. Its shard is locked.
    pub(crate) fn is_field_due(&self, db: u8, key: &[u8]) -> bool {
        let (database, now_ms) = (self.shard(key).database(usize::from(db)), self.now_ms());
        let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let next_time = |entry: &Entry| entry.object().and_then(Hash::from_object)?.next_time();
        is_due(database.next_field_time()) && is_due(database.get(hash(key), key).and_then(next_time))
    }

    /// Lists a hash by its earliest field anew, or removes its key with the last field.
    #[cold]
    pub(super) fn list_hash(&mut self, key: &[u8]) {
        let hash = hash(key);
        let database = self.database_mut(key);
        let next_ms = database.list_hash(hash, key);
        let is_empty = |entry: &Entry| entry.object().is_some_and(|object| object.value().is_empty());
        if database.get(hash, key).is_some_and(is_empty) {
            database.remove(hash, key);
        }
        // A time that has come is being worked on.
        if let Some(at_ms) = next_ms.filter(|&at_ms| at_ms > self.now_ms()) {
            self.note_deadline(at_ms);
        }
    }

    /// Notes when a field of a hash that has come expires first.
    #[inline]
    pub(super) fn note_field_times(&mut self, key: &[u8]) {
        if let Some(at_ms) = self.database(key).next_field_time() {
            self.note_deadline(at_ms);
        }
    }

    pub(super) fn note_deadline(&mut self, at: u64) {
        let earliest = self.effects.earliest_deadline.map_or(at, |earliest| earliest.min(at));
        self.effects.earliest_deadline = Some(earliest);
    }

    /// Whether the key is present and has expired.
    pub(crate) fn has_expired(&self, key: &[u8]) -> bool {
        self.database(key).get(hash(key), key).is_some_and(|entry| self.is_expired(entry))
    }

    /// Removes the key if it has expired, so that a write starts from what clients see.
    #[inline]
    pub(crate) fn drop_expired(&mut self, key: &[u8]) {
        let now = self.now_ms();
        // Usually nothing in this database is due, which saves the lookup.
        if self.database_mut(key).next_deadline().is_some_and(|earliest| earliest <= now) {
            self.drop_if_expired(key, now);
        }
    }

    #[cold]
    fn drop_if_expired(&mut self, key: &[u8], now: u64) {
        let deadline = self.database(key).get(hash(key), key).and_then(Entry::deadline);
        if deadline.is_some_and(|at| at <= now) {
            self.shard_mut(key).tally_mut().count_expired();
            self.remove_expired(key);
            if self.events.are_wanted() {
                self.note_expired(key);
            }
            self.effects.rare_mut().expired.push(key.to_vec());
        }
    }

    /// Removes a key, present or not, as the record of its expiry says.
    pub(crate) fn remove_expired(&mut self, key: &[u8]) {
        self.cut_links(key);
        self.database_mut(key).remove(hash(key), key);
        if self.database(key).has_links() {
            self.follow_sights(key);
        }
        let db = self.db();
        let shard = self.shard_mut(key);
        shard.touch(db, key);
        let (is_awaited, is_read) = (!shard.waiting().is_empty(), shard.is_read());
        if is_awaited {
            self.note_ready(key);
        }
        if is_read {
            self.note_queries(key, &Touched::Everything);
        }
    }
}
