//! Whether changes are accepted, and the pause of a group's change.
//!
//! ```text
//! accepted ─► commits only ─► nothing ─► (the log refuses records) ─► accepted, or memory follows
//!          wait      commit all     wait
//! ```
//!
//! Each wait is for the commands that run: a command looks under its locks whether it is accepted, so all
//! that were accepted before have ended once each lock was free. So no command runs, and none has changed
//! memory, when the log begins to refuse records, and memory that led can follow.

use crate::command::Command;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::housekeeping::counter_commits::COMMIT;
use std::sync::atomic::Ordering;

/// Memory has a change that the log has refused. It stays ahead of the log.
const AHEAD: u8 = 1;
/// Only commits of counters are accepted.
const COMMITS_ONLY: u8 = 2;
/// No change is accepted for a while.
const PAUSED: u8 = 4;

/// The error during a pause, which clients of a cluster answer by repeating the command.
pub const PAUSE_ERROR: &str = "TRYAGAIN the lead or the members are being changed";

impl Engine {
    /// Checks that changes are accepted: there is no pause, the log takes records, and memory is not ahead
    /// of it. Two atomic loads if they are.
    #[inline]
    pub fn check_writable(&self) -> Result<(), CommandError> {
        // Acquire: a thread that sees the end of a pause sees also what the log was told before.
        if self.refusals().load(Ordering::Acquire) != 0 {
            return Err(self.refusal());
        }
        self.log().check_writable().map_err(|error| CommandError::LogFailed(error.to_string()))
    }

    /// As [`Engine::check_writable`], for what belongs to a change that was accepted: a pause waits for it.
    #[inline]
    pub(crate) fn check_log_writable(&self) -> Result<(), CommandError> {
        if self.is_ahead_of_log() {
            return Err(Self::ahead_of_log());
        }
        self.log().check_writable().map_err(|error| CommandError::LogFailed(error.to_string()))
    }

    /// As [`Engine::check_writable`], for a command that changes something. A pause begins with commits of
    /// counters.
    #[inline]
    pub(crate) fn check_writable_by(&self, command: &Command) -> Result<(), CommandError> {
        let refusals = self.refusals().load(Ordering::Acquire);
        if refusals != 0 && !is_commit_of_pause(refusals, command) {
            return Err(self.refusal());
        }
        self.log().check_writable().map_err(|error| CommandError::LogFailed(error.to_string()))
    }

    #[cold]
    fn refusal(&self) -> CommandError {
        if self.is_ahead_of_log() { Self::ahead_of_log() } else { CommandError::text(PAUSE_ERROR) }
    }

    #[cold]
    pub(crate) fn ahead_of_log() -> CommandError {
        CommandError::LogFailed("an earlier change could not be logged; restart the server".into())
    }

    /// Whether memory holds a change that the log has refused.
    pub(crate) fn is_ahead_of_log(&self) -> bool {
        self.refusals().load(Ordering::Relaxed) & AHEAD != 0
    }

    /// Notes that memory holds a change that the log has refused.
    pub(crate) fn set_ahead_of_log(&self) {
        self.refusals().fetch_or(AHEAD, Ordering::Relaxed);
    }

    /// Whether changes are refused for a while.
    pub(crate) fn is_paused(&self) -> bool {
        self.refusals().load(Ordering::Relaxed) & (COMMITS_ONLY | PAUSED) != 0
    }

    /// Refuses changes, waits until those that run have ended, and commits all counters, at a time in
    /// microseconds since 1970. Then nothing appends a record until [`Engine::resume_changes`], and memory
    /// can [follow](Engine::follow) once the log refuses records.
    ///
    /// The caller holds no lock of the keyspace. O(shards + counters that have moved).
    ///
    /// # Errors
    /// The log did not take the commit of a counter. Changes are accepted as before.
    pub fn pause_changes(&self, now_us: u64) -> Result<(), CommandError> {
        self.refusals().fetch_or(COMMITS_ONLY, Ordering::Release);
        self.wait_for_commands();
        let refused = self.commit_all(now_us);
        if refused > 0 {
            self.resume_changes();
            return Err(CommandError::LogFailed(format!("{refused} counters could not be committed")));
        }
        self.refusals().fetch_or(PAUSED, Ordering::Release);
        self.wait_for_commands();
        Ok(())
    }

    /// Ends [`Engine::pause_changes`].
    pub fn resume_changes(&self) {
        self.refusals().fetch_and(!(COMMITS_ONLY | PAUSED), Ordering::Release);
    }

    /// Waits until all commands that hold locks have ended. One that takes a lock later sees what was stored
    /// before.
    fn wait_for_commands(&self) {
        for index in 0..self.keyspace().shard_count() {
            drop(self.keyspace().lock(index));
        }
        drop(self.registry().names.lock());
    }
}

/// Whether a command is one of the commits with which a pause begins.
#[cold]
fn is_commit_of_pause(refusals: u8, command: &Command) -> bool {
    refusals == COMMITS_ONLY && command.name == COMMIT
}
