//! Why a store has not done what it was asked for.

/// What went wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be asked, or did not answer. What was sent may have been applied: send the same again.
    #[error("the store does not answer: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Somebody else has claimed the writer's name. Nothing of this writer is ever applied again.
    #[error(
        "another process writes as {writer:?} since epoch {epoch}: this one must stop, or claim the name again"
    )]
    Fenced {
        /// The name.
        writer: String,
        /// The epoch of who has it.
        epoch: u64,
    },
    /// The batch is not the next one, nor the last.
    #[error(
        "batch {sent} came, {expected} was expected: batches are sent in order, each until it is acknowledged"
    )]
    Gap {
        /// The number that came.
        sent: u64,
        /// The number that is next.
        expected: u64,
    },
    /// Nothing of the batch was applied, because of some of its changes; without these it may be sent again under its number.
    #[error("{} of the batch's changes cannot be stored; the first: {}", .0.len(), .0.first().map_or("", |first| &first.reason))]
    Rejected(Vec<Rejected>),
}

/// A change that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its place in the batch.
    pub index: usize,
    /// What is wrong with it, as the user should read it.
    pub reason: String,
}
