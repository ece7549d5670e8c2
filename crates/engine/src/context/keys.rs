//! The keys that a command may touch, in its client's selected database.

use super::effects::{Effects, Rewritten};
use super::locked::Locked;
use crate::blocking::waiter::{Block, Waiter};
use crate::command::parse;
use crate::error::CommandError;
use crate::event::{DELETED, EXPIRED, EventClasses, Events, NEW};
use crate::execute::noted::Noted;
use crate::keyspace::{
    Committing, CounterDefaults, Database, Deadline, Entry, Keyspace, Payload, Shard, ValueRef, hash,
};
use crate::random::Chance;
use crate::value::limit::NO_BOUND;
use crate::value::{Object, Text, Type, TypedValue};
use crate::watch::touched::{Moves, Touched};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use tidemark_log::Lsn;

/// Maximum bytes that the commands of a transaction may log in addition to their arguments, so that
/// the record fits.
const MAX_REWRITTEN_BYTES: usize = 192 << 20;

/// Access to keys in the client's selected database.
///
/// Reads treat an expired key as absent and change nothing; it is removed after them, under
/// sufficient locks (`has_met_expired`). Writes remove an expired key first. In the log, either the
/// command itself has that effect, because its replay uses the same time, or an expiry record does.
pub struct Keys<'k> {
    keyspace: &'k Keyspace,
    locked: Locked<'k>,
    db: usize,
    now_us: u64,
    /// Keys with a deadline at or before this time count as absent. Milliseconds since 1970.
    expired_until_ms: u64,
    chance: &'k Chance,
    can_wait: bool,
    /// Whether reads see the logged form of values that clients see differently.
    sees_logged: bool,
    /// Whether the command is a replay from the log, and therefore admitted.
    is_replayed: bool,
    /// Whether the client wants its change to be durable before the reply.
    wants_durable: bool,
    /// Why the command may not log anything, if so; it may still make volatile changes.
    refusal: Option<Box<CommandError>>,
    /// Whether a command met an expired key: see [`Keys::has_met_expired`].
    has_met_expired: Cell<bool>,
    /// Bytes passed to [`Keys::log_instead`] by all commands under these locks.
    rewritten_bytes: usize,
    /// Events of the commands under these locks, if there are subscribers.
    pub(crate) events: Events,
    pub(crate) effects: Effects,
}

impl<'k> Keys<'k> {
    pub(crate) fn new(
        keyspace: &'k Keyspace,
        locked: Locked<'k>,
        db: u8,
        now_us: u64,
        chance: &'k Chance,
        events: Events,
    ) -> Self {
        Self {
            keyspace,
            locked,
            db: db as usize,
            now_us,
            expired_until_ms: now_us / 1000,
            chance,
            can_wait: true,
            sees_logged: false,
            is_replayed: false,
            wants_durable: false,
            refusal: None,
            has_met_expired: Cell::new(false),
            rewritten_bytes: 0,
            events,
            effects: Effects::default(),
        }
    }

    /// Whether the commands under these locks have consequences beyond the reply and the record.
    #[inline]
    pub(crate) fn concern_others(&self) -> bool {
        self.effects.rare().is_some() || self.events.are_wanted() || self.has_met_expired.get()
    }

    /// Records the LSN of what the commands under these locks have changed.
    #[inline]
    pub(crate) fn note_logged(&mut self, lsn: Lsn) {
        match &mut self.locked {
            Locked::One(_, guard) => guard.note_logged(lsn),
            several => several.each_mut(|shard| shard.note_logged(lsn)),
        }
    }

    /// Returns the locks, to a caller that may need more of them.
    pub(crate) fn into_locked(self) -> Locked<'k> {
        self.locked
    }

    /// The time of the command, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    /// The time of the command, in microseconds since 1970.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The time of the command in seconds since 1970, as stored in entries.
    #[inline]
    pub fn clock(&self) -> u32 {
        (self.now_us / 1_000_000) as u32
    }

    /// Number of the selected database.
    pub fn db(&self) -> u8 {
        self.db as u8
    }

    pub(crate) fn select(&mut self, db: u8) {
        self.db = db as usize;
    }

    /// Returns a random number. A command whose change depends on it must log the result: see
    /// [`Keys::log_instead`].
    pub fn random(&mut self) -> u64 {
        self.chance.next()
    }

    /// Returns secret bytes. A command whose change depends on them must log the result: see
    /// [`Keys::log_instead`].
    pub fn secret<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.chance.secret()
    }

    /// Index of a key's shard, locked or not.
    pub(crate) fn shard_of(&self, key: &[u8]) -> usize {
        self.keyspace.shard_of(key)
    }

    #[inline]
    fn shard(&self, key: &[u8]) -> &Shard {
        match &self.locked {
            Locked::One(index, guard) => {
                // Not in release builds: every access to a key would compute its slot once more.
                debug_assert_eq!(*index, self.keyspace.shard_of(key), "the key's shard is locked");
                guard
            }
            Locked::Many(_) | Locked::All(_) => self.shard_of_several(key),
        }
    }

    /// Out of line, to keep the path of single-key commands small.
    #[cold]
    fn shard_of_several(&self, key: &[u8]) -> &Shard {
        let shard = self.locked.shard(self.keyspace.shard_of(key));
        shard.expect("every key that a command names has its shard locked")
    }

    #[inline]
    pub(crate) fn shard_mut(&mut self, key: &[u8]) -> &mut Shard {
        match &mut self.locked {
            Locked::One(index, guard) => {
                // As above.
                debug_assert_eq!(*index, self.keyspace.shard_of(key), "the key's shard is locked");
                guard
            }
            several => several_mut(several, self.keyspace.shard_of(key)),
        }
    }

    #[inline]
    fn database(&self, key: &[u8]) -> &Database {
        self.shard(key).database(self.db)
    }

    #[inline]
    fn database_mut(&mut self, key: &[u8]) -> &mut Database {
        let db = self.db;
        self.shard_mut(key).database_mut(db)
    }

    /// All locked shards, for commands over the whole keyspace.
    pub(crate) fn shards(&self) -> Box<dyn Iterator<Item = &Shard> + '_> {
        match &self.locked {
            Locked::One(_, guard) => Box::new(std::iter::once(&**guard)),
            Locked::Many(guards) => Box::new(guards.iter().map(|(_, guard)| &**guard)),
            Locked::All(guards) => Box::new(guards.iter().map(|guard| &**guard)),
        }
    }

    pub(crate) fn shards_mut(&mut self) -> Box<dyn Iterator<Item = &mut Shard> + '_> {
        match &mut self.locked {
            Locked::One(_, guard) => Box::new(std::iter::once(&mut **guard)),
            Locked::Many(guards) => Box::new(guards.iter_mut().map(|(_, guard)| &mut **guard)),
            Locked::All(guards) => Box::new(guards.iter_mut().map(|guard| &mut **guard)),
        }
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.keyspace.shard_count()
    }

    /// Visits one shard, for a command over every key that needs no consistent view across shards:
    /// see [`crate::KeySpec::Each`]. Locks the shard for the visit, unless a transaction has locked
    /// all shards.
    pub(crate) fn visit<R>(&self, index: usize, look: impl FnOnce(&Shard) -> R) -> R {
        match &self.locked {
            Locked::All(guards) => look(&guards[index]),
            Locked::One(..) | Locked::Many(_) => {
                assert!(
                    matches!(&self.locked, Locked::Many(guards) if guards.is_empty()),
                    "shard {index} is visited by a command that has locked some shards, and may wait for itself"
                );
                look(&self.keyspace.lock(index))
            }
        }
    }

    /// Returns the entry of a key that has not expired, and records an access to it.
    #[inline]
    pub fn entry(&self, key: &[u8]) -> Option<&Entry> {
        let entry = self.peek(key)?;
        entry.touch(self.clock());
        Some(entry)
    }

    /// As [`Keys::entry`], without recording an access.
    #[inline]
    pub fn peek(&self, key: &[u8]) -> Option<&Entry> {
        let entry = self.database(key).get(hash(key), key)?;
        if self.is_expired(entry) {
            self.has_met_expired.set(true);
            return None;
        }
        Some(entry)
    }

    /// Whether a command under these locks has met an expired key.
    pub(crate) fn has_met_expired(&self) -> bool {
        self.has_met_expired.get()
    }

    /// Whether an entry has expired.
    #[inline]
    pub fn is_expired(&self, entry: &Entry) -> bool {
        entry.deadline().is_some_and(|at| at <= self.expired_until_ms)
    }

    /// Runs `look` with reads that see the logged state: a key exists until a record removes it,
    /// and a counter has its committed position.
    pub(crate) fn as_logged<R>(&mut self, look: impl FnOnce(&mut Self) -> R) -> R {
        let until_ms = std::mem::replace(&mut self.expired_until_ms, 0);
        let saw_logged = std::mem::replace(&mut self.sees_logged, true);
        let result = look(self);
        (self.expired_until_ms, self.sees_logged) = (until_ms, saw_logged);
        result
    }

    pub(crate) fn sees_logged(&self) -> bool {
        self.sees_logged
    }

    /// Sets the terms of the commands: whether their changes must be durable before the reply, and
    /// why they may not log anything, if so.
    #[inline]
    pub(crate) fn set_terms(&mut self, wants_durable: bool, refusal: Option<Box<CommandError>>) {
        self.wants_durable = wants_durable;
        self.refusal = refusal;
    }

    /// Whether the client wants its change to be durable before the reply.
    #[inline]
    pub(crate) fn wants_durable(&self) -> bool {
        self.wants_durable
    }

    /// Why the command may not log anything, if so.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<&CommandError> {
        self.refusal.as_deref()
    }

    /// Marks the command as a replay from the log.
    pub(crate) fn begin_replay(&mut self) {
        self.is_replayed = true;
    }

    /// Whether the command is a replay from the log.
    pub(crate) fn is_replayed(&self) -> bool {
        self.is_replayed
    }

    /// Maximum number of leases of a limiter, for commands that grant more. Unlimited in a replay,
    /// which must not depend on the setting.
    pub(crate) fn leases_max(&self) -> usize {
        if self.is_replayed { NO_BOUND } else { self.keyspace.leases_max() }
    }

    /// Checks that the command may log.
    pub(crate) fn check_admitted(&self) -> Result<(), CommandError> {
        self.refusal().map_or(Ok(()), |refusal| Err(refusal.clone()))
    }

    #[inline]
    pub(crate) fn committing(&self) -> &'k Committing {
        self.keyspace.committing()
    }

    pub(crate) fn counter_defaults(&self) -> CounterDefaults {
        self.committing().defaults()
    }

    /// Whether the key exists.
    pub fn exists(&self, key: &[u8]) -> bool {
        self.peek(key).is_some()
    }

    /// Type of a key's value.
    pub fn type_of(&self, key: &[u8]) -> Option<Type> {
        self.peek(key).map(Entry::type_of)
    }

    /// Returns a string's value, or an error if the key holds another type.
    #[inline]
    pub fn string(&self, key: &[u8]) -> Result<Option<Text<'_>>, CommandError> {
        self.entry(key).map(Entry::text).transpose()
    }

    /// Returns a string's value as an integer, or an error if it is not one.
    #[inline]
    pub fn integer(&self, key: &[u8]) -> Result<Option<i64>, CommandError> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        match entry.value() {
            ValueRef::Int(value) => Ok(Some(value)),
            _ => parse::integer(&entry.text()?).map(Some),
        }
    }

    /// Returns a collection, or an error if the key holds another type.
    pub fn read<T: TypedValue>(&self, key: &[u8]) -> Result<Option<&T>, CommandError> {
        self.entry(key).map(Entry::collection).transpose()
    }

    /// Changes a collection if the key exists; removes the key if the collection is empty
    /// afterwards.
    ///
    /// The caller reports changes by [`Keys::changed`].
    pub fn update<T: TypedValue, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, CommandError> {
        self.drop_expired(key);
        let (hash, clock) = (hash(key), self.clock());
        let database = self.database_mut(key);
        let Some(entry) = database.get_mut(hash, key) else { return Ok(None) };
        entry.touch(clock);
        let collection = entry.object_mut().and_then(T::from_object_mut).ok_or(CommandError::WrongType)?;
        let result = change(collection);
        if collection.is_empty() {
            database.remove(hash, key);
        }
        Ok(Some(result))
    }

    /// Changes a collection, creating it if the key does not exist; removes the key if the
    /// collection is empty afterwards.
    pub fn upsert<T: TypedValue + Default, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, CommandError> {
        self.drop_expired(key);
        let (hash, clock) = (hash(key), self.clock());
        let database = self.database_mut(key);
        if let Some(entry) = database.get_mut(hash, key) {
            entry.touch(clock);
            let collection =
                entry.object_mut().and_then(T::from_object_mut).ok_or(CommandError::WrongType)?;
            let result = change(collection);
            if collection.is_empty() {
                database.remove(hash, key);
            }
            return Ok(result);
        }
        let mut collection = T::default();
        let result = change(&mut collection);
        if !collection.is_empty() {
            let object = Box::new(collection.into_object());
            let entry = Entry::new(key, Payload::Object(object), None);
            entry.touch(clock);
            database.insert(hash, entry);
            if self.events.are_wanted() {
                self.note_new(key);
            }
        }
        Ok(result)
    }

    /// Replaces the key's value with a collection without a deadline; an empty one removes the key.
    pub fn put<T: TypedValue>(&mut self, key: &[u8], value: T) {
        if value.is_empty() {
            self.remove(key);
        } else {
            let object = Box::new(value.into_object());
            self.set(key, Payload::Object(object), Deadline::Clear);
        }
    }

    /// Sets a string to the bytes that the client sent.
    #[inline]
    pub fn set_string(&mut self, key: &[u8], value: &[u8], deadline: Deadline) {
        match parse::canonical_integer(value) {
            Some(integer) => self.set(key, Payload::Int(integer), deadline),
            None => self.set(key, Payload::Raw(value), deadline),
        }
    }

    /// Sets a key's value, replacing any.
    #[inline]
    pub fn set(&mut self, key: &[u8], payload: Payload<'_>, deadline: Deadline) {
        match deadline {
            Deadline::Keep => self.drop_expired(key),
            Deadline::Clear => {}
            Deadline::At(at) => self.note_deadline(at),
        }
        if self.events.are_wanted() {
            self.note_coming(key);
        }
        let clock = self.clock();
        self.database_mut(key).set(hash(key), key, payload, deadline, clock);
    }

    /// Returns a string that can grow in place, creating an empty one if the key does not exist.
    pub fn growing_string(&mut self, key: &[u8]) -> Result<&mut Vec<u8>, CommandError> {
        self.drop_expired(key);
        if self.events.are_wanted() {
            self.note_coming(key);
        }
        let (hash, clock) = (hash(key), self.clock());
        let database = self.database_mut(key);
        let bytes = match database.get(hash, key) {
            None => Some(Vec::new()),
            Some(entry) => match entry.value() {
                ValueRef::Object(Object::String(_)) => None,
                _ => Some(entry.text()?.to_vec()),
            },
        };
        if let Some(bytes) = bytes {
            let object = Box::new(Object::String(bytes));
            database.set(hash, key, Payload::Object(object), Deadline::Keep, clock);
        }
        let entry = database.get_mut(hash, key);
        match entry.inspect(|entry| entry.touch(clock)).and_then(Entry::object_mut) {
            Some(Object::String(bytes)) => Ok(bytes),
            other => unreachable!("the key was given a string that can grow, and holds {other:?}"),
        }
    }

    /// Removes a key. Returns whether it existed.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.unlink(key).is_some()
    }

    /// Takes a key's entry out, to place it under another key.
    pub fn take(&mut self, key: &[u8]) -> Option<Entry> {
        self.drop_expired(key);
        self.database_mut(key).take(hash(key), key)
    }

    /// Removes a key and returns its entry, for callers that drop it elsewhere.
    pub fn unlink(&mut self, key: &[u8]) -> Option<Entry> {
        self.drop_expired(key);
        self.database_mut(key).remove(hash(key), key)
    }

    /// Places an entry, replacing the value of its key.
    pub fn place(&mut self, entry: Entry) {
        let (key, clock) = (entry.key().to_vec(), self.clock());
        if self.events.are_wanted() {
            self.drop_expired(&key);
            self.note_new(&key);
        }
        let database = self.database_mut(&key);
        let hash = hash(&key);
        let deadline = entry.deadline();
        entry.touch(clock);
        database.remove(hash, &key);
        database.place(hash, entry);
        // `commit_due` may have passed this shard already and not yet the entry's old one.
        if let Some(at) = database.next_commit() {
            self.committing().lower_next_due(at);
        }
        if let Some(at) = deadline {
            self.note_deadline(at);
        }
    }

    /// Sets or clears the deadline of a key, in milliseconds since 1970. Returns whether the key
    /// exists.
    pub fn set_deadline(&mut self, key: &[u8], deadline: Option<u64>) -> bool {
        self.drop_expired(key);
        if let Some(at) = deadline {
            self.note_deadline(at);
        }
        self.database_mut(key).set_deadline(hash(key), key, deadline)
    }

    pub(super) fn note_deadline(&mut self, at: u64) {
        let earliest = self.effects.earliest_deadline.map_or(at, |earliest| earliest.min(at));
        self.effects.earliest_deadline = Some(earliest);
    }

    /// Whether the key is present, expired or not.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.database(key).get(hash(key), key).is_some()
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
        let (database, hash) = (self.database_mut(key), hash(key));
        if database.get(hash, key).and_then(Entry::deadline).is_some_and(|at| at <= now) {
            database.remove(hash, key);
            let db = self.db();
            let shard = self.shard_mut(key);
            shard.tally_mut().count_expired();
            shard.touch(db, key);
            if shard.is_read() {
                self.note_queries(key, &Touched::Everything);
            }
            if self.events.are_wanted() {
                self.note_expired(key);
            }
            self.effects.rare_mut().expired.push(key.to_vec());
        }
    }

    /// Reports that the key has changed: the command is logged, transactions that watch the key
    /// abort, and clients blocked on it are served after the command. `event` is the name of the
    /// Redis keyspace event.
    #[inline]
    pub fn changed(&mut self, key: &[u8], event: &'static str) {
        self.changed_in(key, event, || Touched::Everything);
    }

    /// As [`Keys::changed`], with the parts of the value that were touched: watched reads of other
    /// parts are not evaluated. Call it while the key is in its final state.
    #[inline]
    pub(crate) fn changed_in<'t>(
        &mut self,
        key: &[u8],
        event: &'static str,
        touched: impl FnOnce() -> Touched<'t>,
    ) {
        // Not in release builds: the names are constants, and each new name has a test.
        debug_assert!(event.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        self.effects.changed = true;
        let db = self.db();
        let shard = self.shard_mut(key);
        shard.touch(db, key);
        let (is_awaited, is_read) = (!shard.waiting().is_empty(), shard.is_read());
        if shard.database(usize::from(db)).is_copying() {
            shard.database(usize::from(db)).assert_seen(hash(key), key);
        }
        if is_awaited {
            self.note_ready(key);
        }
        if is_read {
            self.note_queries(key, &touched());
        }
        if self.events.are_wanted() {
            self.note_event(key, event);
        }
    }

    /// Aborts transactions that watch the key, although nothing changed: Redis counts it as a
    /// change.
    pub(crate) fn abort_watches(&mut self, key: &[u8]) {
        let db = self.db();
        self.shard_mut(key).touch(db, key);
    }

    /// Reports a change of the key's volatile state, which is not logged: aborts transactions that
    /// watch the key and invalidates its client-side caches.
    #[inline]
    pub(crate) fn moved(&mut self, key: &[u8]) {
        let db = self.db();
        let shard = self.shard_mut(key);
        shard.touch(db, key);
        if shard.is_read() {
            self.note_kept(key);
        }
    }

    #[cold]
    fn note_kept(&mut self, key: &[u8]) {
        let mut noted = self.effects.take_noted();
        self.shard_mut(key).note_kept(key, &mut noted);
        if !noted.is_empty() {
            self.effects.rare_mut().noted = noted;
        }
    }

    /// Collects the watched reads and caching clients that the key's change concerns.
    #[cold]
    fn note_queries(&mut self, key: &[u8], touched: &Touched<'_>) {
        let (db, mut noted) = (self.db(), self.effects.take_noted());
        let spared = self.shard_mut(key).note(db, key, touched, &mut noted);
        self.keyspace.count_spared(spared);
        if !noted.is_empty() {
            self.effects.rare_mut().noted = noted;
        }
    }

    /// Creates the record in which a command notes how it moves a sorted set's members, for
    /// [`Keys::changed_in`].
    pub(crate) fn moves(&self, key: &[u8]) -> Moves {
        let shard = self.shard(key);
        Moves::none(shard.is_read() && !shard.index().of_key(self.db(), key).is_empty())
    }

    /// Marks the key as ready if a client is blocked on it.
    #[cold]
    fn note_ready(&mut self, key: &[u8]) {
        let db = self.db();
        if let Some(held) = self.type_of(key)
            && self.shard(key).waiting().is_awaited(db, key, held)
        {
            self.effects.rare_mut().ready.push((db, key.to_vec()));
        }
    }

    /// Reports a change of more than single keys: of the database `db`, and of `other` if the two
    /// were swapped.
    pub(crate) fn changed_everything(&mut self, db: u8, other: Option<u8>) {
        self.effects.changed = true;
        let (mut ready, mut noted) = (Vec::new(), self.effects.take_noted());
        let expired_until_ms = self.expired_until_ms;
        for shard in self.shards_mut() {
            shard.touch_database(db, other, expired_until_ms);
            for db in [Some(db), other].into_iter().flatten() {
                ready.extend(shard.waiting().keys(db).map(|key| (db, key.to_vec())));
                shard.note_database(db, &mut noted);
            }
        }
        noted.push(Noted::Everything);
        let rare = self.effects.rare_mut();
        rare.noted = noted;
        rare.ready.append(&mut ready);
    }

    /// Logs another command in place of the running one: a command with the same effect,
    /// independent of randomness, clock and blocking. May be called several times.
    pub fn log_instead(&mut self, name: &'static str, args: &[&[u8]]) {
        self.rewritten_bytes += args.iter().map(|arg| arg.len()).sum::<usize>();
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        self.effects.rare_mut().rewritten.push(Rewritten { name, args });
    }

    /// Whether [`Keys::log_instead`] may be called with this many bytes. Commands that log more
    /// than their arguments must check it before they change anything.
    pub fn may_log_instead(&self, bytes: usize) -> bool {
        bytes <= self.left_to_log_instead()
    }

    /// Bytes that may still be passed to [`Keys::log_instead`].
    pub(crate) fn left_to_log_instead(&self) -> usize {
        MAX_REWRITTEN_BYTES.saturating_sub(self.rewritten_bytes)
    }

    /// Delays the reply until the change is durable, in any durability mode.
    pub fn make_durable(&mut self) {
        self.effects.durable = true;
    }

    /// Delays a reply that shows earlier changes until they are durable, in any durability mode.
    pub(crate) fn tell_durable(&mut self) {
        self.effects.tells_logged = true;
        self.effects.durable = true;
    }

    /// Whether a command may block its client; not in a transaction.
    pub fn can_wait(&self) -> bool {
        self.can_wait
    }

    pub(crate) fn forbid_waiting(&mut self) {
        self.can_wait = false;
    }

    /// Claims the client that has waited longest for a value of this type at the key.
    pub(crate) fn claim_waiting(&mut self, key: &[u8], held: Type) -> Option<Arc<Waiter>> {
        let db = self.db();
        self.shard_mut(key).waiting_mut().claim(db, key, held)
    }

    /// Blocks the client instead of answering it. The handler must not have written a reply. A
    /// client that cannot wait (in a transaction) immediately receives the null array.
    pub fn block(&mut self, block: Block) {
        self.effects.rare_mut().block = Some(Box::new(block));
    }

    /// Reports an event of an unchanged key; [`Keys::changed`] reports those of changes.
    #[inline]
    pub(crate) fn happened(&mut self, key: &[u8], event: &'static str) {
        if self.events.are_wanted() {
            self.note_event(key, event);
        }
    }

    /// Adds an event. After an event of a collection's elements, adds the removal of the key if no
    /// element is left.
    #[cold]
    fn note_event(&mut self, key: &[u8], event: &'static str) {
        let class = EventClasses::of(event).unwrap_or_else(|| panic!("the event {event} has no class"));
        let db = self.db();
        self.events.add(class, db, event, key);
        if class.is_of_elements() && !self.holds(key) {
            self.events.add(EventClasses::GENERIC, db, DELETED, key);
        }
    }

    #[cold]
    fn note_expired(&mut self, key: &[u8]) {
        let db = self.db();
        self.events.add(EventClasses::EXPIRED, db, EXPIRED, key);
    }

    #[cold]
    fn note_new(&mut self, key: &[u8]) {
        let db = self.db();
        self.events.add(EventClasses::NEW, db, NEW, key);
    }

    /// As [`Keys::note_new`], before a key's value is set; does nothing if the key exists.
    #[cold]
    fn note_coming(&mut self, key: &[u8]) {
        self.drop_expired(key);
        if self.events.want(EventClasses::NEW) && !self.holds(key) {
            self.note_new(key);
        }
    }
}

#[cold]
fn several_mut<'a>(locked: &'a mut Locked<'_>, index: usize) -> &'a mut Shard {
    locked.shard_mut(index).expect("every key that a command names has its shard locked")
}
