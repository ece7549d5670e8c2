//! Errors of counters by name.

use crate::account::Refusal;
use crate::store;
use std::time::Duration;

/// What went wrong with a counter by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The quota has fewer units left.
    #[error("not enough is left of the quota")]
    Exhausted,
    /// The move has been made, but the store has not acknowledged it, as it must before the move is
    /// acknowledged. It counts here and is stored as soon as possible; do not repeat it.
    #[error("the move has been made, and is not known to be stored: {reason}")]
    Unstored {
        /// The reason.
        reason: String,
    },
    /// The store has not answered within [`Options::patience`](crate::counters::Options::patience).
    /// The request has not been carried out.
    #[error("the store has not answered for {waited:?}: {reason}")]
    Unavailable {
        /// How long the caller has waited.
        waited: Duration,
        /// The store's last answer.
        reason: String,
    },
    /// Another process has claimed the writer's name. Uncommitted changes will not be committed.
    #[error(
        "another process writes as {writer:?} since epoch {epoch}: these counters must not be used any more"
    )]
    Fenced {
        /// The writer's name.
        writer: String,
        /// The epoch of its present owner.
        epoch: u64,
    },
    /// The store cannot be used any more. Uncommitted changes will not be committed.
    #[error("the store cannot be used any more: {reason}")]
    Broken {
        /// The reason.
        reason: String,
    },
    /// The store rejects this counter's change.
    #[error("the store refuses the counter's change: {reason}")]
    Rejected {
        /// The reason.
        reason: String,
    },
    /// The amount is negative or too large, or the position would leave ±[`MAX`](crate::MAX).
    #[error("the amount is out of range")]
    OutOfRange,
    /// The limit on counters in memory is reached, and none can be evicted.
    #[error("{max_keys} counters are in memory, as many as there may be, and all are in use")]
    Full {
        /// The limit, from the options.
        max_keys: usize,
    },
    /// The name is too long.
    #[error("the name has {length} bytes, {max_name} are allowed")]
    NameTooLong {
        /// Its length in bytes.
        length: usize,
        /// The limit, from the options.
        max_name: usize,
    },
    /// Too many different settings are in use.
    #[error("more than {max} different settings are in use")]
    TooManySettings {
        /// The limit.
        max: usize,
    },
    /// Too many moves for one atomic batch.
    #[error("{moves} moves are to be made together, {max} can be")]
    TooManyMoves {
        /// The number of moves.
        moves: usize,
        /// The limit.
        max: usize,
    },
    /// The counters have been closed.
    #[error("the counters are closed")]
    Closed,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Exhausted => Self::Exhausted,
            Refusal::OutOfRange | Refusal::Unsettled => Self::OutOfRange,
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(reason) => {
                Self::Unavailable { waited: Duration::ZERO, reason: reason.to_string() }
            }
            store::Error::Fenced { writer, epoch } => Self::Fenced { writer, epoch },
            other => Self::Broken { reason: other.to_string() },
        }
    }
}
