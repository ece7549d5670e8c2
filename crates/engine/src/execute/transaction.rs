//! Commands that run atomically, and the keys that they depend on.

use crate::command::flags;
use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::{Call, Terms};
use crate::execute::execution::{Executed, FollowUp, expired_keys};
use crate::execute::locking::Access;
use crate::execute::logging::encode_effects;
use crate::execute::moment::Moment;
use crate::execute::once::{Looked, NOTE_BYTES, Once, OnceName};
use crate::execute::watched_keys::Watch;
use crate::housekeeping::counter_commits::note_leases;
use crate::keyspace::{KeyId, SESSIONS};
use crate::persist::level;
use crate::watch::{Acknowledgement, Acknowledging, NotAcknowledged};
use crate::wire::reply::Reply;
use std::collections::HashSet;
use std::sync::Arc;
use tidemark_log::{Lsn, Room};

/// Maximum bytes of an emission's acknowledgement in a record, without the subscription's name.
const ACKNOWLEDGEMENT_BYTES: usize = 64;

/// The keys that a client's next transaction depends on (`WATCH`).
#[derive(Debug, Default)]
pub struct WatchedKeys {
    watch: Arc<Watch>,
    keys: HashSet<KeyId>,
}

impl WatchedKeys {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no key is watched.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of watched keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether a watched key has changed or expired since. The keys' shards must be locked.
    fn is_broken(&self, keys: &mut Keys<'_>) -> bool {
        if self.watch.is_touched() {
            return true;
        }
        self.keys.iter().any(|(db, key)| {
            keys.select(*db);
            keys.has_expired(key) && !keys.shard_mut(key).was_expired(*db, key, &self.watch)
        })
    }
}

/// Commands to run atomically, and under which conditions.
#[derive(Clone, Copy)]
struct AtomicCalls<'a> {
    calls: &'a [Call<'a>],
    /// Keys that must not have changed.
    watch: Option<&'a WatchedKeys>,
    /// Positions that move in the same record.
    done: &'a [Acknowledgement<'a>],
    /// The name under which they must not have been executed.
    once: Option<Once<'a>>,
    now_us: u64,
    terms: Terms,
}

impl Engine {
    /// Runs commands atomically: other clients see all of their changes or none, and the log holds
    /// them in one record. Writes the array of replies, or the null array if a key in `watch` has
    /// changed.
    pub fn execute_transaction(
        &self,
        calls: &[Call<'_>],
        watch: Option<&WatchedKeys>,
        now_us: u64,
        reply: &mut Reply,
    ) -> Executed<'_> {
        self.execute_transaction_as(calls, watch, &[], now_us, Terms::default(), reply)
    }

    /// Runs a command as [`Engine::execute_as`], unless one was executed under this name before: then
    /// writes the answer that it had. The command must be one that changes keys and does not block.
    ///
    /// An answer is recorded whether or not the command changed anything or failed. A command that was
    /// refused before it ran is not recorded, and may be repeated: the log accepts no records, or there
    /// are too many sessions.
    pub fn execute_once(
        &self,
        name: OnceName<'_>,
        call: &Call<'_>,
        terms: Terms,
        reply: &mut Reply,
    ) -> Executed<'_> {
        let calls = std::slice::from_ref(call);
        let once = Some(Once::of_command(name, calls));
        self.execute_atomically(
            AtomicCalls { calls, watch: None, done: &[], once, now_us: call.now_us, terms },
            reply,
        )
    }

    /// Runs commands as [`Engine::execute_transaction_as`], unless some were executed under this name
    /// before: see [`Engine::execute_once`]. That a watched key has changed is an answer too.
    pub fn execute_transaction_once(
        &self,
        name: OnceName<'_>,
        calls: &[Call<'_>],
        watch: Option<&WatchedKeys>,
        now_us: u64,
        terms: Terms,
        reply: &mut Reply,
    ) -> Executed<'_> {
        let once = Some(Once::of_transaction(name, calls));
        self.execute_atomically(AtomicCalls { calls, watch, done: &[], once, now_us, terms }, reply)
    }

    /// As [`Engine::execute_transaction`], on the given terms, and advances the positions of the
    /// named subscriptions in `done` in the same record. If one of them has reached its position
    /// already, nothing runs and the reply is the null array.
    pub fn execute_transaction_as(
        &self,
        calls: &[Call<'_>],
        watch: Option<&WatchedKeys>,
        done: &[Acknowledgement<'_>],
        now_us: u64,
        terms: Terms,
        reply: &mut Reply,
    ) -> Executed<'_> {
        self.execute_atomically(AtomicCalls { calls, watch, done, once: None, now_us, terms }, reply)
    }

    fn execute_atomically(&self, atomic: AtomicCalls<'_>, reply: &mut Reply) -> Executed<'_> {
        let AtomicCalls { mut calls, watch, done, once, now_us, terms } = atomic;
        let mut room = Room::NONE;
        if let Err(error) = self.admit_transaction(&atomic, &mut room) {
            reply.error(&error);
            return Executed::default();
        }
        let session = once.map(|once| once.name.session);
        let lock = || self.lock_for_transaction(atomic.calls, watch, session, now_us);
        let met = || {
            let calls = atomic.calls.iter();
            let named = calls.flat_map(|call| call.command.keys.keys(call.args).map(|key| (call.db, key)));
            let watched =
                watch.into_iter().flat_map(|watch| watch.keys.iter().map(|(db, key)| (*db, &**key)));
            named.chain(watched).chain(session.map(|session| (SESSIONS, session)))
        };
        let mut keys = lock();
        if keys.has_due_fields() || calls.iter().any(|call| call.db != keys.db()) {
            self.expire_fields_first(&mut keys, met, lock);
        }
        self.expire_first(&mut keys, met, lock);
        let is_in_group = self.is_in_group();
        keys.see_expired(is_in_group);
        keys.forbid_waiting();
        // A number is not given to moves of counters that no record has.
        keys.set_terms(terms.durable || once.is_some(), None);
        let admitted = calls.iter().try_for_each(|call| self.admit_under_locks(call.command));
        if let Err(error) = admitted.and_then(|()| once.map_or(Ok(()), |_| self.check_writable())) {
            reply.error(&error);
            return Executed::default();
        }
        if once.is_some_and(|once| once.look(&keys, reply) == Looked::Answered) {
            // What the number did may have needed a durable answer, and shows it once more.
            return Executed { durable: true, ..Executed::default() };
        }
        let is_broken = watch.is_some_and(|watch| watch.is_broken(&mut keys));
        if is_broken {
            if once.is_none() {
                reply.null_array();
                return Executed::default();
            }
            calls = &[];
        }
        let acknowledging = match Acknowledging::begin(self, done) {
            Ok(acknowledging) => acknowledging,
            Err(NotAcknowledged::Before) => {
                reply.null_array();
                return Executed::default();
            }
            Err(NotAcknowledged::Refused(error)) => {
                reply.error(&error);
                return Executed::default();
            }
        };
        // Under the lock of the positions, as commands are admitted under those of their keys.
        if acknowledging.is_some()
            && let Err(error) = self.check_writable()
        {
            reply.error(&error);
            return Executed::default();
        }
        let mark = reply.len();
        if is_broken {
            reply.null_array();
        } else if once.is_none_or(|once| once.is_transaction) {
            reply.array(calls.len());
        }
        let mut payloads = Vec::new();
        let (mut ready, mut noted, mut durable) = (Vec::new(), Vec::new(), terms.durable);
        let (mut leased, mut awaited, mut reveals_logged) = (Vec::new(), Lsn::ZERO, false);
        let (mut expired, mut published) = (Vec::new(), Vec::new());
        for call in calls {
            keys.select(call.db);
            keys.see_expired(is_in_group && !call.command.is(flags::WRITE));
            self.run(call, &mut keys, reply);
            let mut effects = std::mem::take(&mut keys.effects);
            encode_effects(call, &effects, &mut payloads);
            durable |= effects.durable;
            awaited = awaited.max(effects.awaited);
            reveals_logged |= effects.reveals_logged;
            let rare = effects.take_rare();
            if rare.block.is_some() {
                reply.null_array();
            }
            ready.extend(rare.ready);
            noted.extend(rare.noted);
            leased.extend(rare.leased);
            published.extend(rare.published);
            if let Some(reader) = terms.reader {
                self.remember(&mut keys, call, reader, effects.script_reads);
            }
            expired.extend(expired_keys(&keys, call).into_iter().map(|key| (call, key)));
        }
        if let Some(once) = once {
            let mut effects = self.note_once(once, now_us, &mut keys, (reply, mark), &mut payloads);
            noted.extend(effects.take_noted());
        }
        // Serving clients is a change, like the commands that made it possible.
        keys.see_expired(false);
        if let Some(acknowledging) = &acknowledging {
            acknowledging.encode(&mut payloads);
        }
        let lsn = if payloads.is_empty() {
            None
        } else {
            self.append_transaction(&payloads, room, now_us, reply, mark)
        };
        if let Some(lsn) = lsn {
            keys.note_logged(lsn);
        }
        if let Some(lsn) = lsn
            && !leased.is_empty()
        {
            note_leases(self, &mut keys, &leased, lsn);
        }
        if let (Some(acknowledging), Some(lsn)) = (acknowledging, lsn) {
            acknowledging.finish(lsn);
        }
        if !noted.is_empty() {
            let (time_us, spared) = (now_us, terms.spared);
            self.emit(&mut keys, noted, lsn.map(|lsn| Moment { lsn, time_us, durable, spared }));
        }
        if keys.events.are_wanted() {
            self.publish_events(&mut keys, lsn, durable);
        }
        self.serve(keys, ready);
        expired.into_iter().for_each(|(call, key)| self.remove_met(call, &[key], terms.reader));
        let awaited = Some(awaited).filter(|awaited| *awaited > Lsn::ZERO);
        // What memory has includes every lease.
        let revealed = if reveals_logged { Some(self.applied()) } else { awaited };
        Executed {
            lsn: lsn.or(revealed),
            durable: durable || awaited.is_some(),
            follow_up: FollowUp::publish(published),
        }
    }

    /// Watches a key for a transaction.
    pub fn watch(&self, watched: &mut WatchedKeys, db: u8, key: &[u8], now_us: u64) {
        if watched.keys.insert((db, key.into())) {
            self.expire_key(db, key, now_us);
            self.expire_fields(db, key, now_us);
            let mut shard = self.keyspace().lock(self.keyspace().shard_of(key));
            shard.watch(db, key, &watched.watch, now_us / 1000);
        }
    }

    /// Ends all watches of a transaction.
    pub fn unwatch(&self, watched: &WatchedKeys) {
        for (db, key) in &watched.keys {
            self.keyspace().lock(self.keyspace().shard_of(key)).unwatch(*db, key, &watched.watch);
        }
    }

    fn admit_transaction<'e>(
        &'e self,
        atomic: &AtomicCalls<'_>,
        room: &mut Room<'e>,
    ) -> Result<(), CommandError> {
        let AtomicCalls { calls, done, once, .. } = *atomic;
        if let Some(once) = once {
            self.check_level(level::ONCE, "once")?;
            self.admit_session(once.name)?;
        }
        let mut bytes: usize = done.iter().map(|one| one.name.len() + ACKNOWLEDGEMENT_BYTES).sum();
        bytes += once.map_or(0, |once| once.name.session.len() + NOTE_BYTES);
        for call in calls {
            self.admit(call.command, call.args, room)?;
            bytes += Self::record_bytes(call.args);
        }
        self.check_size("transaction", bytes)?;
        // Release what single commands reserved: it would reduce the space for the whole
        // transaction.
        *room = Room::NONE;
        let is_noted = !done.is_empty() || once.is_some();
        if is_noted {
            self.check_writable()?;
        }
        if is_noted || calls.iter().any(|call| call.command.is(flags::WRITE)) {
            self.make_room(bytes, room)?;
        }
        Ok(())
    }

    /// Locks what commands that run together may touch, the keys in `watch`, and a session.
    pub(crate) fn lock_for_transaction(
        &self,
        calls: &[Call<'_>],
        watch: Option<&WatchedKeys>,
        session: Option<&[u8]>,
        now_us: u64,
    ) -> Keys<'_> {
        let locked = if calls.iter().any(|call| self.concerns_all(call.command, call.args)) {
            Locked::All(self.keyspace().lock_all())
        } else {
            let keys = || calls.iter().flat_map(|call| call.command.keys.keys(call.args));
            let watched = watch.into_iter().flat_map(|watch| watch.keys.iter().map(|(_, key)| &**key));
            let brings = |locked: &Locked<'_>| calls.iter().any(|call| self.may_bring_selected(locked, call));
            self.lock_reachable(
                self.lock_keys(keys().chain(watched).chain(session)),
                Access::Write,
                keys,
                brings,
            )
        };
        self.keys(locked, 0, now_us)
    }
}
