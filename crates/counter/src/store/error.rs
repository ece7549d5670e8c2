//! Why a store has not done what it was asked for.

/// What went wrong with a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It could not be asked, or did not answer. What was sent may have been applied: send the same again.
    #[error("the store does not answer: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It answered that it will not do this: a wrong password, a missing right, a name that it cannot keep. Nothing was applied, and the
    /// same will be refused again unless somebody changes what is wrong.
    #[error("the store refuses: {0}")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
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
    /// The store does not know of the claim any more: it was emptied, lost its memory, or was brought back from an older copy.
    /// What was acknowledged before may be lost as well. Claim the name again, and load what is there.
    #[error(
        "the store knows {writer:?} up to epoch {known} only, and {claimed} was claimed: it has lost what it had, or was emptied"
    )]
    Forgotten {
        /// The name.
        writer: String,
        /// The epoch that the batch carries.
        claimed: u64,
        /// The epoch that the store knows, 0 if it does not know the name.
        known: u64,
    },
    /// The batch is not the next one, nor the last. If an earlier one was expected, the store has lost batches that it had acknowledged.
    #[error(
        "batch {sent} came, {expected} was expected: batches are sent in order, each until it is acknowledged"
    )]
    Gap {
        /// The number that came.
        sent: u64,
        /// The number that is next.
        expected: u64,
    },
    /// The batch has more changes than the store takes at once: see [`Store::max_deltas`](super::Store::max_deltas).
    #[error(
        "the batch has {deltas} changes, and the store takes at most {limit} at once: send several batches"
    )]
    TooLarge {
        /// How many it has.
        deltas: usize,
        /// How many it may have.
        limit: usize,
    },
    /// Nothing of the batch was applied, because of some of its changes; without these it may be sent again under its number.
    #[error("{} of the batch's changes cannot be stored; the first: {}", .0.len(), .0.first().map_or("", |first| &first.reason))]
    Rejected(Vec<Rejected>),
}

impl Rejected {
    /// The change at this place would bring its counter out of what 64 bits hold.
    pub fn overflow(index: usize) -> Self {
        Self { index, reason: "its sum leaves the range of 64 bits".into() }
    }
}

/// A change that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its place in the batch.
    pub index: usize,
    /// What is wrong with it, as the user should read it.
    pub reason: String,
}
