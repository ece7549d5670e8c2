//! The engine: the keyspace with its log, and those who want to know of changes.
//!
//! What it does is in the files that use this one: `execution` and `transaction` run commands, one at a time per shard, `locking`,
//! `running`, `logging` and `serving` are their steps, `apply`, `loader` and `snapshot` the way to the log and back.

use crate::context::{Keys, Locked};
use crate::error::CommandError;
use crate::event::EventDesk;
use crate::keyspace::Keyspace;
use crate::random::{Chance, SecretSource};
use crate::tracking::Tracking;
use crate::watch::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidemark_log::{Log, Room};

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
    /// Until then reads leave expired keys where they are. Milliseconds since 1970.
    removals_held_until_ms: AtomicU64,
    /// The last record that was applied, or that the snapshot covers which was loaded: see
    /// [`Engine::apply`].
    applied: AtomicU64,
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
            removals_held_until_ms: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            registry: Registry::default(),
            events: EventDesk::default(),
            tracking: Tracking::default(),
        }
    }

    /// The same with secrets from elsewhere than the system: two engines that are told the same are then the same, which a test or
    /// a simulation may want. Who can foresee what `secrets` gives can foresee every draw from a pool.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretSource) -> Self {
        Self { chance: self.chance.with_secrets(secrets), ..self }
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

    pub(crate) fn applied(&self) -> &AtomicU64 {
        &self.applied
    }

    /// Whether memory holds a change that the log has refused.
    pub(crate) fn is_ahead_of_log(&self) -> bool {
        self.ahead_of_log.load(Ordering::Relaxed)
    }

    /// Notes that memory holds a change that the log has refused.
    pub(crate) fn set_ahead_of_log(&self) {
        self.ahead_of_log.store(true, Ordering::Relaxed);
    }

    /// Holds the removal of expired keys that reads meet until the time in milliseconds since 1970; 0 releases it. Such a key
    /// reads as absent meanwhile.
    pub fn hold_removals(&self, until_ms: u64) {
        self.removals_held_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Whether the removal of expired keys that reads meet is held.
    pub(crate) fn holds_removals(&self, now_us: u64) -> bool {
        now_us / 1000 < self.removals_held_until_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// A number at random, for what reaches neither the log nor an answer.
    pub(crate) fn random(&self) -> u64 {
        self.chance.next()
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

    /// Sees to it, before anything changes, that the log has room for a record of so many bytes.
    #[inline]
    pub(crate) fn make_room<'e>(&'e self, bytes: usize, room: &mut Room<'e>) -> Result<(), CommandError> {
        match self.log.make_room(bytes) {
            Ok(made) => *room = made,
            Err(error) => return Err(CommandError::LogFailed(error.to_string())),
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
    pub(crate) fn keys<'e>(&'e self, locked: Locked<'e>, db: u8, now_us: u64) -> Keys<'e> {
        Keys::new(&self.keyspace, locked, db, now_us, &self.chance, self.events.gather())
    }
}
