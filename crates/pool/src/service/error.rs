//! Errors of calls to a service.

use crate::journal::JournalError;
use crate::refusal::Refusal;

/// Error of a call to a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The pool refuses the call; nothing has changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The call has too many changes.
    #[error("{count} changes at once are wanted, at most {max} are possible: ask several times")]
    TooManyChanges {
        /// Number of changes.
        count: usize,
        /// Maximum per call.
        max: usize,
    },
    /// The log has failed. Only draws in the log have been answered, and no more are made.
    #[error("{0}; nothing is given out until that is mended and the pool is opened again")]
    Failed(#[from] JournalError),
    /// The service has been stopped.
    #[error("the pool's service was stopped: start it again")]
    Stopped,
    /// The queue is full and the call comes from a callback, which must not wait: the queue waits
    /// for it.
    #[error(
        "the queue is full, and a callback may not wait for room: draw from another thread, or give the queue more room"
    )]
    Full,
    /// A callback would wait for an answer that arrives only after it returns.
    #[error("a callback may not wait for the service that runs it: use `draw_with` or `call_with` there")]
    InCallback,
    /// The service's thread has panicked.
    #[error("the thread of the pool's service has panicked: open the pool again")]
    Panicked,
}
