//! Leading and following: how far memory is in the log.
//!
//! Memory that leads is at the log's end: a command changes it and appends its record under the same
//! locks. Memory that follows is behind: a thread applies records that another node has executed.
//!
//! ```text
//!                 Engine::follow: no record can be appended any more
//!   leads   ─────────────────────────────────────────────────────────►  follows
//!   applied = the end of the log                                        applied = the last record applied
//!           ◄─────────────────────────────────────────────────────────
//!                 Engine::lead: everything in the log is applied
//! ```

use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::{Database, Shard};
use std::sync::{RwLockReadGuard, RwLockWriteGuard};
use tidemark_log::Lsn;

impl Engine {
    /// Returns the last record that memory has: the end of the log if this node executes commands, and
    /// the last record that was applied if it follows. Two atomic loads.
    ///
    /// With the locks of some shards held, every change of their keys up to there is in memory, and of
    /// memory that leads no later one.
    #[inline]
    pub fn applied(&self) -> Lsn {
        if self.is_following() { self.applied_state().last() } else { self.log().appended() }
    }

    /// Returns whether the log is that of a group's member. One load.
    ///
    /// Then a key is there until a record removes it, because the next leader may have another clock. A
    /// command that would meet a key whose time has come has it removed first.
    #[inline]
    pub fn is_in_group(&self) -> bool {
        self.applied_state().is_in_group()
    }

    /// Returns whether the log may have records that memory lacks. An engine over the log of a group's
    /// member follows until [`Engine::lead`].
    ///
    /// Nothing becomes due then: keys expire, and counters are committed, by records that are applied.
    #[inline]
    pub fn is_following(&self) -> bool {
        self.applied_state().follows()
    }

    /// Begins to follow the log behind record `end`, the last one that the log got before it refused
    /// records and another node could write any.
    ///
    /// Waits until the commands that run have ended.
    ///
    /// # Errors
    /// Memory is ahead of the log, and must be dropped: it has a change that the log has refused, or moves
    /// of counters that are in no record. [`Engine::pause_changes`] before the log refuses records avoids
    /// both.
    pub fn follow(&self, end: Lsn) -> Result<(), CommandError> {
        let _alone = self.applied_state().alone();
        // With all locks held, what was executed is either in the log or refused by it.
        let shards = self.keyspace().lock_all();
        let names = self.registry().names.lock();
        if self.is_ahead_of_log() {
            return Err(Self::ahead_of_log());
        }
        let moved = |shard: &Shard| shard.databases().iter().any(Database::has_uncommitted);
        if shards.iter().any(|shard| moved(shard)) {
            return Err(CommandError::LogFailed("moves of counters are in no record".into()));
        }
        self.applied_state().set_last(end);
        self.applied_state().set_follows(true);
        drop((names, shards));
        Ok(())
    }

    /// Ends following at a time in microseconds since 1970: this node executes commands. Call it before
    /// the log accepts records. O(counters and watched reads).
    ///
    /// What is due from now on is this node's work, and subscribers have had no chance to resume here.
    ///
    /// # Panics
    /// The log has records that are not applied.
    pub fn lead(&self, now_us: u64) {
        let _alone = self.applied_state().alone();
        let (applied, end) = (self.applied(), self.log().appended());
        assert!(applied == end, "memory leads at record {applied}, and the log ends with {end}");
        self.begin_counting();
        self.keep_queries(now_us);
        self.applied_state().set_follows(false);
    }

    /// Waits until no record is applied in part, and keeps the next from being begun. The caller holds
    /// no lock of the keyspace.
    pub(crate) fn between_records(&self) -> RwLockReadGuard<'_, ()> {
        self.applied_state().between_records()
    }

    /// Begins to apply a record, which must be the next one. At a start no other thread looks.
    pub(crate) fn begin_record(&self, lsn: Lsn) -> Option<RwLockWriteGuard<'_, ()>> {
        let alone = self.is_following().then(|| self.applied_state().alone());
        let before = self.applied_state().last();
        assert!(
            lsn == before.next() || (lsn > before && self.log().records_between(before, lsn.previous()) == 0),
            "record {lsn} is applied behind record {before}, and is not the next one"
        );
        alone
    }

    /// Notes that a record is applied. One thread at a time applies records.
    pub(crate) fn end_record(&self, lsn: Lsn) {
        self.applied_state().set_last(lsn);
    }

    /// Declares that the state is that of record `lsn`, because a snapshot was loaded or because
    /// records up to there are skipped. The next record to apply is the one after it.
    ///
    /// # Panics
    /// A record after `lsn` has been applied already.
    pub fn continue_behind(&self, lsn: Lsn) {
        let before = self.applied_state().last();
        assert!(before <= lsn, "record {before} is applied: the state cannot be that behind record {lsn}");
        self.end_record(lsn);
    }
}
