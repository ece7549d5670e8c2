//! The engine: runs commands, one at a time per shard, and logs what they change.

use crate::apply_error::ApplyError;
use crate::blocking::Blocked;
use crate::call::{Call, Terms};
use crate::command::{self, Command, KeySpec, Run};
use crate::context::{Context, Effects, Keys, Locked, RareEffects};
use crate::error::CommandError;
use crate::event::{EventDesk, Events};
use crate::keyspace::{KeyId, Keyspace, MAX_BYTES};
use crate::loader::Loader;
use crate::moment::Moment;
use crate::noted::Noted;
use crate::query::{Acknowledgement, Acknowledging, NotAcknowledged, Registry, Scope};
use crate::random::Chance;
use crate::record::{self, kind};
use crate::reply::Reply;
use crate::snapshot::Snapshot;
use crate::tracking::Tracking;
use crate::watch::Watch;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidemark_log::{Log, Lsn, Record, Room};

/// What came of a call, beside the answer.
#[derive(Debug, Default)]
pub struct Executed<'e> {
    /// The record of the change, if there was one.
    pub lsn: Option<Lsn>,
    /// Whether the command itself asked that its answer wait until the change is durable.
    pub durable: bool,
    /// The command has found nothing to take and no answer was written: its client is to wait.
    pub block: Option<Box<Blocked<'e>>>,
}

/// Most bytes of one command or transaction that changes something, so that its record fits in the log.
const MAX_COMMAND_BYTES: usize = 768 << 20;

/// What an argument's length takes in a record, at most.
const ARGUMENT_OVERHEAD: usize = 5;

/// What the acknowledgement of an emission takes in a record beside the subscription's name, at most.
const ACKNOWLEDGEMENT_BYTES: usize = 64;

/// The keyspace with its log.
pub struct Engine {
    keyspace: Keyspace,
    log: Arc<Log>,
    /// Seeds the random choices of commands; never reaches the log.
    chance: Chance,
    /// Lower bound of the earliest deadline of any key, in milliseconds since 1970; `u64::MAX` if there is none.
    next_deadline: AtomicU64,
    /// Set when a change was made and could not be logged. Memory is then ahead of the log for good, so no further
    /// change may build on it; reads go on.
    ahead_of_log: AtomicBool,
    /// Watched reads.
    registry: Registry,
    /// Who wants to know of which events.
    events: EventDesk,
    /// Clients that keep what they read.
    tracking: Tracking,
}

impl Engine {
    /// An engine over an empty keyspace. `seed` decides what commands such as `SPOP` choose.
    pub fn new(log: Arc<Log>, shards: usize, seed: u64) -> Self {
        Self {
            keyspace: Keyspace::new(shards),
            log,
            chance: Chance::new(seed),
            next_deadline: AtomicU64::new(u64::MAX),
            ahead_of_log: AtomicBool::new(false),
            registry: Registry::default(),
            events: EventDesk::default(),
            tracking: Tracking::default(),
        }
    }

    /// The keys, for readers of the whole state.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn events(&self) -> &EventDesk {
        &self.events
    }

    /// Whether memory holds a change that the log has refused.
    pub(crate) fn is_ahead_of_log(&self) -> bool {
        self.ahead_of_log.load(Ordering::Relaxed)
    }

    pub(crate) fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// A number at random, for what reaches neither the log nor an answer.
    pub(crate) fn random(&self) -> u64 {
        self.chance.next()
    }

    /// Runs one command and writes its answer, or says that the client waits. Clients that wait for what the command
    /// has put somewhere are served before any other command gets at it.
    #[inline]
    pub fn execute(&self, call: &Call<'_>, reply: &mut Reply) -> Executed<'_> {
        self.execute_as(call, Terms::default(), reply)
    }

    /// As [`Engine::execute`], on the given terms.
    pub fn execute_as(&self, call: &Call<'_>, terms: Terms, reply: &mut Reply) -> Executed<'_> {
        let mut room = Room::NONE;
        if let Err(error) = self.admit(call.command, call.args, &mut room) {
            reply.error(&error);
            return Executed::default();
        }
        let mut keys = self.lock_for(call);
        if let Err(error) = self.admit_under_locks(call.command) {
            reply.error(&error);
            return Executed::default();
        }
        let mark = reply.len();
        self.run(call, &mut keys, reply);
        let lsn = self.log_effects(call, &keys.effects, room, reply, mark);
        let durable = keys.effects.durable || terms.durable;
        if keys.concern_others() || terms.reader.is_some() {
            let block = self.attend(call, terms, keys, lsn, durable, reply);
            return Executed { lsn, durable, block };
        }
        Executed { lsn, durable, block: None }
    }

    /// What follows from a command beside its answer and its record, and few commands have any of: watched reads are
    /// answered anew, clients that keep what they read are told, events are passed on, those who wait are served, or the
    /// client itself is to wait.
    #[cold]
    fn attend<'e>(
        &'e self,
        call: &Call<'_>,
        terms: Terms,
        mut keys: Keys<'e>,
        lsn: Option<Lsn>,
        durable: bool,
        reply: &Reply,
    ) -> Option<Box<Blocked<'e>>> {
        let RareEffects { noted, ready, block, .. } = keys.effects.take_rare();
        if !noted.is_empty() {
            let (time_us, spared) = (call.now_us, terms.spared);
            self.emit(&mut keys, noted, lsn.map(|lsn| Moment { lsn, time_us, durable, spared }));
        }
        if let Some(reader) = terms.reader {
            self.remember(&mut keys, call, reader);
        }
        if keys.events.are_wanted() {
            self.tell_events(&mut keys, lsn, durable);
        }
        if let Some(block) = block {
            return Some(Box::new(Blocked::new(keys, call, block, reply, durable)));
        }
        if !ready.is_empty() {
            keys.effects = Effects::default();
            self.serve(keys, ready);
        }
        None
    }

    /// Runs commands together: nobody sees some of their changes without the others, and the log holds them in one
    /// record. Writes the array of answers, or the null array if a key that `watch` watches has changed.
    pub fn execute_transaction(
        &self,
        calls: &[Call<'_>],
        watch: Option<&WatchedKeys>,
        now_us: u64,
        reply: &mut Reply,
    ) -> Executed<'_> {
        self.execute_transaction_as(calls, watch, &[], now_us, Terms::default(), reply)
    }

    /// As [`Engine::execute_transaction`], on the given terms; the positions of named subscriptions move with it, and if one
    /// of them has been there before, nothing happens and the answer is the null array.
    pub fn execute_transaction_as(
        &self,
        calls: &[Call<'_>],
        watch: Option<&WatchedKeys>,
        done: &[Acknowledgement<'_>],
        now_us: u64,
        terms: Terms,
        reply: &mut Reply,
    ) -> Executed<'_> {
        let mut room = Room::NONE;
        if let Err(error) = self.admit_transaction(calls, done, &mut room) {
            reply.error(&error);
            return Executed::default();
        }
        let mut keys = self.lock_for_transaction(calls, watch, now_us);
        keys.forbid_waiting();
        if let Err(error) = calls.iter().try_for_each(|call| self.admit_under_locks(call.command)) {
            reply.error(&error);
            return Executed::default();
        }
        if watch.is_some_and(|watch| watch.is_broken(&mut keys)) {
            reply.null_array();
            return Executed::default();
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
        let mark = reply.len();
        reply.array(calls.len());
        let mut payloads = Vec::new();
        let (mut ready, mut noted, mut durable) = (Vec::new(), Vec::new(), terms.durable);
        for call in calls {
            keys.select(call.db);
            self.run(call, &mut keys, reply);
            let mut effects = std::mem::take(&mut keys.effects);
            encode_effects(call, &effects, &mut payloads);
            durable |= effects.durable;
            let rare = effects.take_rare();
            if rare.block.is_some() {
                reply.null_array();
            }
            ready.extend(rare.ready);
            noted.extend(rare.noted);
            if let Some(reader) = terms.reader {
                self.remember(&mut keys, call, reader);
            }
        }
        if let Some(acknowledging) = &acknowledging {
            acknowledging.encode(&mut payloads);
        }
        let lsn = if payloads.is_empty() {
            None
        } else {
            self.append_transaction(&payloads, room, now_us, reply, mark)
        };
        if let (Some(acknowledging), Some(_)) = (acknowledging, lsn) {
            acknowledging.finish();
        }
        if !noted.is_empty() {
            let (time_us, spared) = (now_us, terms.spared);
            self.emit(&mut keys, noted, lsn.map(|lsn| Moment { lsn, time_us, durable, spared }));
        }
        if keys.events.are_wanted() {
            self.tell_events(&mut keys, lsn, durable);
        }
        self.serve(keys, ready);
        Executed { lsn, durable, block: None }
    }

    /// Starts watching a key for a transaction.
    pub fn watch(&self, watched: &mut WatchedKeys, db: u8, key: &[u8], now_us: u64) {
        let Entry::Vacant(vacant) = watched.keys.entry((db, key.into())) else { return };
        let mut shard = self.keyspace.lock(self.keyspace.shard_of(key));
        let entry = shard.database(db as usize).get(crate::keyspace::hash(key), key);
        let expired = entry.and_then(crate::keyspace::Entry::deadline).is_some_and(|at| at <= now_us / 1000);
        shard.watch(db, key, &watched.watch);
        vacant.insert(expired);
    }

    /// Ends a transaction's watches.
    pub fn unwatch(&self, watched: &WatchedKeys) {
        for (db, key) in watched.keys.keys() {
            self.keyspace.lock(self.keyspace.shard_of(key)).unwatch(*db, key, &watched.watch);
        }
    }

    /// Applies one record of the log: the way back to the state, at recovery and on a replica. The same records in the
    /// same order give the same state on any machine.
    pub fn apply(&self, record: &Record<'_>, scratch: &mut Reply) -> Result<(), ApplyError> {
        crate::apply::apply(self, record, None, scratch)
    }

    /// Cuts a snapshot of the whole state here and now; see [`Snapshot::next_frame`]. The caller takes one at a time.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::begin(self)
    }

    /// Begins to load a snapshot into the keyspace, which has none of its keys. They count as accessed at `now_us`,
    /// microseconds since 1970: a snapshot does not say when they were.
    pub fn load(&self, now_us: u64) -> Loader<'_> {
        Loader::new(self, &Scope::Everything, (now_us / 1_000_000) as u32)
    }

    /// A digest of the whole state: equal for equal states, whatever their history.
    pub fn digest(&self) -> u128 {
        crate::digest::digest(self)
    }

    /// Removes keys whose time has come, at most `budget` of them, and logs it. Returns the earliest deadline left, in
    /// milliseconds since 1970.
    pub fn expire_due(&self, now_us: u64, budget: usize) -> Option<u64> {
        crate::expiry::expire_due(self, now_us, budget)
    }

    /// When [`Engine::expire_due`] should be called next, in milliseconds since 1970: never later than the earliest
    /// deadline.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        Some(self.next_deadline.load(Ordering::Relaxed)).filter(|&at| at != u64::MAX)
    }

    pub(crate) fn store_next_deadline(&self, at: Option<u64>) {
        self.next_deadline.store(at.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn lower_next_deadline(&self, at: u64) {
        self.next_deadline.fetch_min(at, Ordering::Relaxed);
    }

    /// Runs a command out of the log: as [`Engine::execute`], without logging and without serving anybody. Whom it
    /// concerns goes to `noted`.
    pub(crate) fn replay(&self, call: &Call<'_>, reply: &mut Reply, noted: &mut Vec<Noted>) {
        let mut keys = self.lock_for(call);
        // Whoever wanted to know was told when it happened.
        keys.events = Events::default();
        self.run(call, &mut keys, reply);
        noted.append(&mut keys.effects.take_noted());
    }

    /// Refuses changes while the log cannot take them, and arguments that no key and no value can hold: handlers rely on
    /// it. `room` becomes that for the record of the change.
    #[inline]
    fn admit<'e>(
        &'e self,
        command: &Command,
        args: &[&[u8]],
        room: &mut Room<'e>,
    ) -> Result<(), CommandError> {
        if command.is(command::flags::WRITE) { self.admit_change(args, room) } else { Ok(()) }
    }

    fn admit_change<'e>(&'e self, args: &[&[u8]], room: &mut Room<'e>) -> Result<(), CommandError> {
        self.check_writable()?;
        let bytes: usize = args.iter().map(|arg| arg.len() + ARGUMENT_OVERHEAD).sum();
        if bytes > MAX_BYTES && args.iter().any(|arg| arg.len() > MAX_BYTES) {
            return Err(CommandError::TooLong);
        }
        if bytes > MAX_COMMAND_BYTES {
            return Err(CommandError::Text(
                format!("ERR command of {bytes} bytes exceeds the limit of {MAX_COMMAND_BYTES} bytes").into(),
            ));
        }
        self.make_room(bytes, room)
    }

    /// Sees to it, before anything changes, that the log has room for a record of so many bytes.
    #[inline]
    pub(crate) fn make_room<'e>(&'e self, bytes: usize, room: &mut Room<'e>) -> Result<(), CommandError> {
        match self.log.make_room(bytes) {
            Ok(made) => *room = made,
            Err(error) => return Err(CommandError::LogFailed(error.to_string())),
        }
        Ok(())
    }

    /// Asks once more under the locks: while this command waited for them another may have changed the same keys and
    /// found no place in the log, and nothing may build on that.
    #[inline]
    fn admit_under_locks(&self, command: &Command) -> Result<(), CommandError> {
        if command.is(command::flags::WRITE) { self.check_writable() } else { Ok(()) }
    }

    fn admit_transaction<'e>(
        &'e self,
        calls: &[Call<'_>],
        done: &[Acknowledgement<'_>],
        room: &mut Room<'e>,
    ) -> Result<(), CommandError> {
        let mut bytes: usize = done.iter().map(|one| one.name.len() + ACKNOWLEDGEMENT_BYTES).sum();
        for call in calls {
            self.admit(call.command, call.args, room)?;
            bytes += call.args.iter().map(|arg| arg.len() + ARGUMENT_OVERHEAD).sum::<usize>();
        }
        if bytes > MAX_COMMAND_BYTES {
            return Err(CommandError::Text(
                format!("ERR transaction of {bytes} bytes exceeds the limit of {MAX_COMMAND_BYTES} bytes")
                    .into(),
            ));
        }
        // What a single command was promised would only take away from all together.
        *room = Room::NONE;
        if !done.is_empty() {
            self.check_writable()?;
        }
        if !done.is_empty() || calls.iter().any(|call| call.command.is(command::flags::WRITE)) {
            self.make_room(bytes, room)?;
        }
        Ok(())
    }

    /// Whether changes are accepted: the log takes records, and memory holds nothing that the log does not.
    #[inline]
    pub fn check_writable(&self) -> Result<(), CommandError> {
        self.log.check_writable().map_err(|error| CommandError::LogFailed(error.to_string()))?;
        if self.is_ahead_of_log() {
            return Err(CommandError::LogFailed(
                "an earlier change could not be logged; restart the server".into(),
            ));
        }
        Ok(())
    }

    #[inline]
    fn lock_for(&self, call: &Call<'_>) -> Keys<'_> {
        let locked = match (call.command.keys, call.args) {
            (KeySpec::Range { first: 1, last: 1, .. }, [_, key, ..]) => self.lock_one(key),
            // Locks what it visits by itself.
            (KeySpec::Each, _) => self.lock_shards([]),
            (keys, args) if keys.concerns_all(args) => Locked::All(self.keyspace.lock_all()),
            (keys, args) => self.lock_keys(keys.keys(args)),
        };
        let locked = if call.command.is(command::flags::WRITE) {
            self.lock_destinations(locked, || call.command.keys.keys(call.args))
        } else {
            locked
        };
        self.keys(locked, call.db, call.now_us)
    }

    #[inline]
    pub(crate) fn keys<'e>(&'e self, locked: Locked<'e>, db: u8, now_us: u64) -> Keys<'e> {
        Keys::new(&self.keyspace, locked, db, now_us, &self.chance, self.events.gather())
    }

    #[inline]
    fn lock_one(&self, key: &[u8]) -> Locked<'_> {
        let index = self.keyspace.shard_of(key);
        Locked::One(index, self.keyspace.lock(index))
    }

    fn lock_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Locked<'_> {
        let mut indices: Vec<usize> = keys.map(|key| self.keyspace.shard_of(key)).collect();
        indices.sort_unstable();
        indices.dedup();
        self.lock_shards(indices)
    }

    /// Locks shards, whose indices come in order and each once.
    pub(crate) fn lock_shards(&self, indices: impl IntoIterator<Item = usize>) -> Locked<'_> {
        Locked::Many(indices.into_iter().map(|index| (index, self.keyspace.lock(index))).collect())
    }

    fn lock_for_transaction(&self, calls: &[Call<'_>], watch: Option<&WatchedKeys>, now_us: u64) -> Keys<'_> {
        let locked = if calls.iter().any(|call| call.command.keys.concerns_all(call.args)) {
            Locked::All(self.keyspace.lock_all())
        } else {
            let keys = || calls.iter().flat_map(|call| call.command.keys.keys(call.args));
            let watched = watch.into_iter().flat_map(|watch| watch.keys.keys().map(|(_, key)| &**key));
            self.lock_destinations(self.lock_keys(keys().chain(watched)), keys)
        };
        self.keys(locked, 0, now_us)
    }

    /// Runs a handler; an error replaces whatever it had answered.
    #[inline]
    pub(crate) fn run(&self, call: &Call<'_>, keys: &mut Keys<'_>, reply: &mut Reply) {
        let Run::Keys(handler) = call.command.run else {
            reply.error_text("ERR this command belongs to the connection and cannot run on keys");
            return;
        };
        let mark = reply.len();
        if keys.events.are_wanted() {
            keys.note_misses(call.command, call.args);
        }
        if let Err(error) = handler(&mut Context { keys, reply }, call.args) {
            answer_failure(call, keys, reply, mark, &error);
        }
        if let Some(at) = keys.effects.earliest_deadline.take() {
            self.lower_next_deadline(at);
        }
    }

    /// Appends a command's change to the log while its shards are still locked, so that the log's order is the order of
    /// execution for every key.
    fn log_effects(
        &self,
        call: &Call<'_>,
        effects: &Effects,
        room: Room<'_>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        if let Some(rare) = effects.rare() {
            return self.log_rare_effects(call, effects, rare, room, reply, mark);
        }
        if effects.changed { self.log_command(call, room, reply, mark) } else { None }
    }

    /// As [`Engine::log_effects`], of a command that may have removed expired keys or is logged as others.
    #[cold]
    fn log_rare_effects(
        &self,
        call: &Call<'_>,
        effects: &Effects,
        rare: &RareEffects,
        room: Room<'_>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        if effects.changed && rare.rewritten.is_empty() {
            return self.log_command(call, room, reply, mark);
        }
        if effects.changed {
            let mut payloads = Vec::new();
            encode_effects(call, effects, &mut payloads);
            return self.append_transaction(&payloads, room, call.now_us, reply, mark);
        }
        if rare.expired.is_empty() {
            return None;
        }
        let expired = rare.expired.iter().map(Vec::as_slice);
        let encode = |into: &mut Vec<u8>| encode_expiry(into, call.db, expired);
        let result = self.log.append_into(room, call.now_us, kind::EXPIRY, encode);
        self.appended(result, reply, mark)
    }

    fn log_command(&self, call: &Call<'_>, room: Room<'_>, reply: &mut Reply, mark: usize) -> Option<Lsn> {
        let result = self.log.append_into(room, call.now_us, kind::COMMAND, |into| {
            record::encode_command(into, call.db, call.command.id, arguments(call));
        });
        self.appended(result, reply, mark)
    }

    fn append_transaction(
        &self,
        payloads: &[Vec<u8>],
        room: Room<'_>,
        now_us: u64,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        let result = match payloads {
            [single] => {
                self.log.append_into(room, now_us, kind::COMMAND, |into| into.extend_from_slice(single))
            }
            several => self.log.append_into(room, now_us, kind::TRANSACTION, |into| {
                several.iter().for_each(|payload| record::put_bytes(into, payload));
            }),
        };
        self.appended(result, reply, mark)
    }

    /// The log failed between admission and append: the change is in memory and in no log. Its answer, which
    /// begins at `mark`, becomes an error, and every later write is refused at admission.
    fn appended(
        &self,
        result: Result<Lsn, tidemark_log::AppendError>,
        reply: &mut Reply,
        mark: usize,
    ) -> Option<Lsn> {
        match result {
            Ok(lsn) => Some(lsn),
            Err(error) => {
                self.ahead_of_log.store(true, Ordering::Relaxed);
                reply.truncate(mark);
                reply.error(&CommandError::LogFailed(error.to_string()));
                None
            }
        }
    }

    /// Appends what serving a client has changed, behind the change that made it possible.
    pub(crate) fn log_served(&self, keys: &Keys<'_>, effects: &Effects, reply: &mut Reply) -> Option<Lsn> {
        debug_assert!(
            !effects.changed || effects.rare().is_some_and(|rare| !rare.rewritten.is_empty()),
            "serving says what to log"
        );
        let mut payloads = Vec::new();
        encode_expired(keys.db(), effects, &mut payloads);
        encode_rewritten(keys.db(), effects, &mut payloads);
        if payloads.is_empty() {
            return None;
        }
        self.append_transaction(&payloads, Room::NONE, keys.now_us(), reply, 0)
    }

    /// Appends that a key's time has come, before it is removed.
    pub(crate) fn log_expiry(&self, db: u8, key: &[u8], now_us: u64) -> Option<Lsn> {
        let keys = std::iter::once(key);
        self.log.append(now_us, kind::EXPIRY, |into| encode_expiry(into, db, keys)).ok()
    }

    /// Appends that keys were found expired and removed, if any were, and emits what watched reads answer without them.
    pub(crate) fn log_expired(&self, keys: &mut Keys<'_>) -> Option<Lsn> {
        let RareEffects { expired, noted, .. } = std::mem::take(&mut keys.effects).take_rare();
        if expired.is_empty() {
            debug_assert!(noted.is_empty(), "nothing has changed");
            return None;
        }
        let (db, now_us) = (keys.db(), keys.now_us());
        let removed = expired.iter().map(Vec::as_slice);
        let lsn = self.log.append(now_us, kind::EXPIRY, |into| encode_expiry(into, db, removed)).ok();
        if lsn.is_none() {
            self.ahead_of_log.store(true, Ordering::Relaxed);
        }
        self.emit(keys, noted, lsn.map(|lsn| Moment::of(lsn, now_us)));
        if keys.events.are_wanted() {
            self.tell_events(keys, lsn, false);
        }
        lsn
    }
}

/// Replaces whatever a command had answered, from `mark` on, by its error.
#[cold]
fn answer_failure(
    call: &Call<'_>,
    keys: &mut Keys<'_>,
    reply: &mut Reply,
    mark: usize,
    error: &CommandError,
) {
    debug_assert!(!keys.effects.changed, "a command that fails has changed nothing: {}", call.command.name);
    keys.events.forget_misses();
    reply.truncate(mark);
    reply.error(error);
}

/// The arguments that a record holds: all but the name. No subcommand changes keys, so there is no second name.
fn arguments<'a>(call: &Call<'a>) -> &'a [&'a [u8]] {
    &call.args[1..]
}

fn encode_effects(call: &Call<'_>, effects: &Effects, payloads: &mut Vec<Vec<u8>>) {
    if !effects.changed {
        return encode_expired(call.db, effects, payloads);
    }
    if effects.rare().is_none_or(|rare| rare.rewritten.is_empty()) {
        let mut payload = Vec::new();
        record::encode_command(&mut payload, call.db, call.command.id, arguments(call));
        payloads.push(payload);
    } else {
        encode_expired(call.db, effects, payloads);
        encode_rewritten(call.db, effects, payloads);
    }
}

/// Inside a transaction, or before rewritten commands, the removal of expired keys is spelled as what it is: a removal.
fn encode_expired(db: u8, effects: &Effects, payloads: &mut Vec<Vec<u8>>) {
    let expired = effects.rare().map_or(&[][..], |rare| &rare.expired);
    if !expired.is_empty() {
        let keys: Vec<&[u8]> = expired.iter().map(Vec::as_slice).collect();
        payloads.push(encode_named(db, "del", &keys));
    }
}

fn encode_rewritten(db: u8, effects: &Effects, payloads: &mut Vec<Vec<u8>>) {
    for rewritten in effects.rare().map_or(&[][..], |rare| &rare.rewritten) {
        let args: Vec<&[u8]> = rewritten.args.iter().map(Vec::as_slice).collect();
        payloads.push(encode_named(db, rewritten.name, &args));
    }
}

fn encode_named(db: u8, name: &'static str, args: &[&[u8]]) -> Vec<u8> {
    let command = command::find(name.as_bytes()).expect("handlers name commands of the table");
    let mut payload = Vec::new();
    record::encode_command(&mut payload, db, command.id, args);
    payload
}

fn encode_expiry<'a>(into: &mut Vec<u8>, db: u8, keys: impl Iterator<Item = &'a [u8]>) {
    into.push(db);
    keys.for_each(|key| record::put_bytes(into, key));
}

/// The keys that a client's next transaction depends on.
#[derive(Debug, Default)]
pub struct WatchedKeys {
    watch: Arc<Watch>,
    /// Each key with whether it had already expired when its watch began.
    keys: HashMap<KeyId, bool>,
}

impl WatchedKeys {
    /// Nothing watched.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys are watched.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether a watched key has changed or expired since. The keys' shards are locked.
    fn is_broken(&self, keys: &mut Keys<'_>) -> bool {
        if self.watch.is_touched() {
            return true;
        }
        self.keys.iter().any(|((db, key), was_expired)| {
            keys.select(*db);
            !was_expired && keys.has_expired(key)
        })
    }
}
