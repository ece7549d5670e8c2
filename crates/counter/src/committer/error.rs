//! Why a counter by name cannot be used.

use crate::account::Refusal;
use crate::store;
use std::time::Duration;

/// What went wrong with a counter by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The quota has not that much left.
    #[error("not enough is left of the quota")]
    Exhausted,
    /// The move has been made, and the store, which should have it before anybody is told, has not been heard to have it. It counts
    /// here, and is stored as soon as that is possible; it is not to be made again.
    #[error("the move has been made, and is not known to be stored: {reason}")]
    Unstored {
        /// Why not.
        reason: String,
    },
    /// The store has not answered for as long as the options allow. What was asked for has not been done.
    #[error("the store has not answered for {waited:?}: {reason}")]
    Unavailable {
        /// How long the caller has waited.
        waited: Duration,
        /// What the store's last answer was.
        reason: String,
    },
    /// Another process has claimed the writer's name. Nothing that is not committed by now will be.
    #[error(
        "another process writes as {writer:?} since epoch {epoch}: these counters must not be used any more"
    )]
    Fenced {
        /// The name.
        writer: String,
        /// The epoch of who has it.
        epoch: u64,
    },
    /// The store has answered what no working store answers. Nothing that is not committed by now will be.
    #[error("the store cannot be used any more: {reason}")]
    Broken {
        /// Its answer.
        reason: String,
    },
    /// The store refuses this counter's change.
    #[error("the store refuses the counter's change: {reason}")]
    Rejected {
        /// Why.
        reason: String,
    },
    /// The amount is negative or too large, or the position would leave ±[`MAX`](crate::MAX).
    #[error("the amount is out of range")]
    OutOfRange,
    /// There are as many counters in memory as there may be, and none that could be put away.
    #[error("{max_keys} counters are in memory, as many as there may be, and all are in use")]
    Full {
        /// The limit of the options.
        max_keys: usize,
    },
    /// The name is too long.
    #[error("the name has {length} bytes, {max_name} are allowed")]
    NameTooLong {
        /// Its bytes.
        length: usize,
        /// The limit of the options.
        max_name: usize,
    },
    /// More different settings are in use than can be told apart.
    #[error("more than {max} different settings are in use")]
    TooManySettings {
        /// How many there may be.
        max: usize,
    },
    /// More moves are to be made together than can be.
    #[error("{moves} moves are to be made together, {max} can be")]
    TooManyMoves {
        /// How many there are.
        moves: usize,
        /// How many there may be.
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
