//! The engine: the keyspace, its log, and the subscribers to its changes.
//!
//! `execution` and `transaction` run commands, one at a time per shard; their steps are `locking`,
//! `running`, `logging` and `serving`. `apply`, `loader` and `snapshot` read and write the
//! persistent state.

use crate::applied::Applied;
use crate::context::{Keys, Locked};
use crate::error::CommandError;
use crate::event::EventDesk;
use crate::keyspace::{Keyspace, NextDue};
use crate::persist::level;
use crate::random::{Chance, SecretSource};
use crate::script::Scripts;
use crate::tracking::Tracking;
use crate::watch::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use tidemark_log::{Log, Room};

/// The keyspace and its log.
pub struct Engine {
    keyspace: Keyspace,
    log: Arc<Log>,
    /// Source of the random choices of commands; never reaches the log.
    chance: Chance,
    /// The earliest deadline of any key.
    deadlines: NextDue,
    /// Whether keys are removed at their deadlines, before a client meets them.
    active_expiry: AtomicBool,
    /// Why changes are refused: bits of [`crate::execute::pausing`], 0 if they are accepted. Reads continue.
    refusals: AtomicU8,
    /// Until this time, reads do not remove expired keys. Milliseconds since 1970.
    removals_held_until_ms: AtomicU64,
    applied: Applied,
    registry: Registry,
    /// Subscriptions to keyspace events.
    events: EventDesk,
    /// Clients that cache what they read.
    tracking: Tracking,
    /// Scripts that clients have sent.
    scripts: Scripts,
    /// Memory for the points of sealed blocks, in bytes.
    series_memory: AtomicUsize,
    /// The highest level of records that may be appended.
    level: AtomicU8,
}

impl Engine {
    /// An engine over an empty keyspace. `seed` decides what commands such as `SPOP` choose.
    ///
    /// Over the log of a group's member it follows the log: see [`Engine::lead`].
    pub fn new(log: Arc<Log>, shards: usize, seed: u64) -> Self {
        let is_in_group = log.is_member();
        Self {
            keyspace: Keyspace::new(shards),
            log,
            chance: Chance::new(seed),
            deadlines: NextDue::default(),
            active_expiry: AtomicBool::new(true),
            refusals: AtomicU8::new(0),
            removals_held_until_ms: AtomicU64::new(0),
            applied: Applied::new(is_in_group),
            registry: Registry::default(),
            events: EventDesk::default(),
            tracking: Tracking::default(),
            scripts: Scripts::default(),
            series_memory: AtomicUsize::new(usize::MAX),
            level: AtomicU8::new(if is_in_group { level::FIRST } else { level::NEWEST }),
        }
    }

    /// Raises the highest [level] of records that may be appended. All members of a group must apply them; an
    /// engine that is in none needs no call.
    pub fn raise_level(&self, level: u8) {
        self.level.fetch_max(level, Ordering::Relaxed);
    }

    /// The highest [level] of records that may be appended. One load.
    pub fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// Replaces the system's source of secrets, so that a test or simulation can reproduce an
    /// engine exactly. A party that can predict `secrets` can predict every draw from a pool.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretSource) -> Self {
        Self { chance: self.chance.with_secrets(secrets), ..self }
    }

    /// The keyspace, for readers of the whole state.
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

    #[inline]
    pub(crate) fn applied_state(&self) -> &Applied {
        &self.applied
    }

    #[inline]
    pub(crate) fn refusals(&self) -> &AtomicU8 {
        &self.refusals
    }

    /// Defers the removal of expired keys by reads until `until_ms`, in milliseconds since 1970; 0
    /// ends the deferral. An expired key still reads as absent.
    pub fn hold_removals(&self, until_ms: u64) {
        self.removals_held_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Whether reads leave expired keys in place.
    pub(crate) fn holds_removals(&self, now_us: u64) -> bool {
        now_us / 1000 < self.removals_held_until_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// The scripts that clients have sent.
    pub fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// A random number, for uses that reach neither the log nor a reply.
    pub(crate) fn random(&self) -> u64 {
        self.chance.next()
    }

    /// When to call [`Engine::expire_due`] next, in milliseconds since 1970; never later than the
    /// earliest deadline.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.get()
    }

    /// The earliest deadline of any key.
    #[inline]
    pub(crate) fn deadlines(&self) -> &NextDue {
        &self.deadlines
    }

    /// Sets whether keys are removed at their deadlines, and reservations end, before a client meets them.
    pub fn set_active_expiry(&self, is_on: bool) {
        self.active_expiry.store(is_on, Ordering::Relaxed);
    }

    pub(crate) fn expires_actively(&self) -> bool {
        self.active_expiry.load(Ordering::Relaxed)
    }

    /// Limits the memory of the points of sealed blocks, in bytes. Takes effect with
    /// [`Engine::drop_points`], and when a snapshot is loaded.
    pub fn limit_series_memory(&self, bytes: usize) {
        self.series_memory.store(bytes, Ordering::Relaxed);
    }

    /// Returns the memory that points of sealed blocks may take, in bytes.
    pub fn series_memory(&self) -> usize {
        self.series_memory.load(Ordering::Relaxed)
    }

    /// Reserves space in the log for a record of `bytes` bytes, before anything changes.
    #[inline]
    pub(crate) fn make_room<'e>(&'e self, bytes: usize, room: &mut Room<'e>) -> Result<(), CommandError> {
        match self.log.make_room(bytes) {
            Ok(made) => *room = made,
            Err(error) => return Err(CommandError::LogFailed(error.to_string())),
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn keys<'e>(&'e self, locked: Locked<'e>, db: u8, now_us: u64) -> Keys<'e> {
        Keys::new(&self.keyspace, locked, db, now_us, &self.chance, self.events.gather())
    }
}
