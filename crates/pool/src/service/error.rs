//! Why a call to a service has no answer.

use crate::journal::JournalError;
use crate::refusal::Refusal;

/// Why a call to a service has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The pool does not do it; nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// So many changes are not made at once.
    #[error("{count} changes at once are wanted, at most {max} are possible: ask several times")]
    TooManyChanges {
        /// How many were asked for.
        count: usize,
        /// How many are possible.
        max: usize,
    },
    /// The log has failed. Nobody has got anything that is not in it, and nothing is given out any more.
    #[error("{0}; nothing is given out until that is mended and the pool is opened again")]
    Failed(#[from] JournalError),
    /// The service was stopped before.
    #[error("the pool's service was stopped: start it again")]
    Stopped,
    /// The queue is full and the call may not wait: it comes from a callback, for which the queue waits in turn.
    #[error(
        "the queue is full, and a callback may not wait for room: draw from another thread, or give the queue more room"
    )]
    Full,
    /// A callback would wait for an answer that comes only once it has returned.
    #[error("a callback may not wait for the service that runs it: use `draw_with` or `call_with` there")]
    InCallback,
    /// The service's thread has ended by a panic.
    #[error("the thread of the pool's service has panicked: open the pool again")]
    Panicked,
}
