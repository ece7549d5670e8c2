//! The keys that a command may touch, in its client's selected database.

mod changes;
mod counters;
mod events;
mod expiry;
mod libraries;
mod links;
mod points;
pub(crate) mod pools;
mod reading;
mod seeing;
mod sessions;
mod waiting;
mod writing;

pub(crate) use counters::out_of_range;
pub(crate) use links::without_links;
pub(crate) use points::keep_encoder;
pub(crate) use seeing::Seen;

use crate::context::effects::Effects;
use crate::context::locked::Locked;
use crate::error::CommandError;
use crate::event::Events;
use crate::keyspace::{Committing, CounterDefaults, Database, Keyspace, Shard};
use crate::persist::points::PointsEncoder;
use crate::random::Chance;
use crate::value::limit::NO_BOUND;
use crate::value::stream::NodeLimits;
use std::cell::Cell;
use std::io;
use tidemark_log::Lsn;

/// Access to keys in the client's selected database.
///
/// Reads treat an expired key as absent and change nothing; it is removed after them, under
/// sufficient locks (`has_met_expired`). Writes remove an expired key first. In the log, either the
/// command itself has that effect, because its replay uses the same time, or an expiry record does.
/// In a group, keys are removed before reads, which then see every key that is there
/// ([`Engine::expire_first`](crate::Engine)).
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
    /// Whether the locks are released before the rest of a read runs.
    releases_early: bool,
    /// Why the command may not log anything, if so; it may still make volatile changes.
    refusal: Option<Box<CommandError>>,
    /// Whether a command met an expired key: see [`Keys::has_met_expired`].
    has_met_expired: Cell<bool>,
    /// Bytes passed to [`Keys::log_instead`] by all commands under these locks.
    rewritten_bytes: usize,
    /// The key that is looked up several times in a row, if there is one.
    named: Option<NamedKey>,
    /// Points that the commands under these locks have added, if they are logged in columns.
    points: Option<Box<PointsEncoder>>,
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
            releases_early: false,
            refusal: None,
            has_met_expired: Cell::new(false),
            rewritten_bytes: 0,
            named: None,
            points: None,
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

    /// The time of the command, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    /// The time of the command, in microseconds since 1970.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Sets the time of the command. Which keys have expired does not depend on it.
    pub(crate) fn set_now(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    /// The time of the command in seconds since 1970, as stored in entries.
    #[inline]
    pub fn clock(&self) -> u32 {
        (self.now_us / 1_000_000) as u32
    }

    /// Whether all shards are locked.
    pub(crate) fn holds_all(&self) -> bool {
        matches!(self.locked, Locked::All(_)) || self.locked.indices().count() == self.shard_count()
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
        let named = self.named.filter(|named| named.is(key));
        let index = named.map_or_else(|| self.keyspace.shard_of(key), |named| named.shard);
        self.locked.shard(index).expect("every key that a command names has its shard locked")
    }

    #[inline]
    pub(crate) fn shard_mut(&mut self, key: &[u8]) -> &mut Shard {
        shard_mut_in(&mut self.locked, self.keyspace, self.named, key)
    }

    /// Runs `work`, which looks up `key` several times under locks of several shards. Its shard is
    /// computed once.
    #[inline]
    pub(crate) fn with_named<R>(&mut self, key: &[u8], work: impl FnOnce(&mut Self) -> R) -> R {
        if !matches!(self.locked, Locked::One(..)) {
            self.named = Some(NamedKey::new(key, self.keyspace.shard_of(key)));
        }
        let result = work(self);
        self.named = None;
        result
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

    /// Sets whether the caller releases the locks before it runs the rest of a read.
    #[inline]
    pub(crate) fn release_early(&mut self, releases_early: bool) {
        self.releases_early = releases_early;
    }

    /// Whether the locks are released before the rest of a read runs.
    pub(crate) fn releases_early(&self) -> bool {
        self.releases_early
    }

    /// Marks the commands as a replay from the log. Memory that follows the leader of a group publishes the
    /// events of what it applies; at a start, subscribers were notified when the commands first ran.
    pub(crate) fn begin_replay(&mut self, is_following: bool) {
        self.is_replayed = true;
        if !is_following {
            self.events = Events::default();
        }
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

    /// When a block of a stream is full.
    #[inline]
    pub(crate) fn stream_limits(&self) -> NodeLimits {
        self.keyspace.stream_limits()
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
}

/// A key, by its place in memory, and its shard. It means this key while the key is borrowed, because
/// no other one is in the same place.
#[derive(Debug, Clone, Copy)]
struct NamedKey {
    address: usize,
    len: usize,
    shard: usize,
}

impl NamedKey {
    fn new(key: &[u8], shard: usize) -> Self {
        Self { address: key.as_ptr().addr(), len: key.len(), shard }
    }

    #[inline]
    fn is(self, key: &[u8]) -> bool {
        self.address == key.as_ptr().addr() && self.len == key.len()
    }
}

/// Returns a key's shard: see [`Keys::shard_mut`].
#[inline]
fn shard_mut_in<'a>(
    locked: &'a mut Locked<'_>,
    keyspace: &Keyspace,
    named: Option<NamedKey>,
    key: &[u8],
) -> &'a mut Shard {
    match locked {
        Locked::One(index, guard) => {
            // As above.
            debug_assert_eq!(*index, keyspace.shard_of(key), "the key's shard is locked");
            guard
        }
        several => {
            let named = named.filter(|named| named.is(key));
            several_mut(several, named.map_or_else(|| keyspace.shard_of(key), |named| named.shard))
        }
    }
}

#[cold]
fn several_mut<'a>(locked: &'a mut Locked<'_>, index: usize) -> &'a mut Shard {
    locked.shard_mut(index).expect("every key that a command names has its shard locked")
}
