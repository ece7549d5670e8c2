//! Following: memory applies what the group commits, as it commits.
//!
//! ```text
//!  leader's entries ─► log of this member ─► committed ─► Follower ─► memory, under locks ─► emissions
//! ```
//!
//! Readers see each record whole. Watched reads emit what they emit at the leader, with the same
//! numbers, so that a subscriber can resume here as soon as this node leads.

use crate::engine::Engine;
use crate::persist::apply_error::ApplyError;
use crate::wire::reply::Reply;
use tidemark_log::{Lsn, ReplayError, Tail};

/// Applies the committed records of a log to an engine that follows it. One for each engine.
#[derive(Debug)]
pub struct Follower {
    tail: Tail,
    scratch: Reply,
}

/// Why a record was not applied. The memory must be dropped: it is that of no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReplayError),
    /// A record has a change that memory refuses.
    #[error("record {lsn} cannot be applied: {error}")]
    Apply {
        /// The record.
        lsn: Lsn,
        /// What is wrong with it.
        error: ApplyError,
    },
}

impl Follower {
    /// Begins behind the last record that an engine has.
    ///
    /// # Errors
    /// The log no longer has the next record: a newer snapshot is needed.
    pub fn of(engine: &Engine) -> Result<Self, ReplayError> {
        Ok(Self { tail: engine.log().tail(engine.applied().next())?, scratch: Reply::default() })
    }

    /// Applies the next committed records, some hundred kilobytes of them. Returns their number; 0 if
    /// there are none yet: the log's listener is called when there are. Does not wait.
    ///
    /// `fits` is asked when the records are read, and before they are applied: whether the log still has
    /// all records that memory has. If not, they are not applied, and there is `None`.
    ///
    /// # Errors
    /// A record cannot be read or applied.
    ///
    /// # Panics
    /// The engine leads, or another applied records to it.
    pub fn apply_next(
        &mut self,
        engine: &Engine,
        fits: impl FnOnce() -> bool,
    ) -> Result<Option<u64>, FollowError> {
        assert!(engine.is_following(), "records are applied to memory that leads");
        let Some(batch) = self.tail.next_committed_batch()? else { return Ok(Some(0)) };
        if !fits() {
            return Ok(None);
        }
        for record in batch {
            engine
                .apply(&record, &mut self.scratch)
                .map_err(|error| FollowError::Apply { lsn: record.lsn, error })?;
        }
        Ok(Some(batch.len()))
    }
}
