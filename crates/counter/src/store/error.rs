//! Errors of stores.

/// What went wrong with a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was unreachable, or did not answer. What was sent may have been applied: resend it
    /// unchanged.
    #[error("the store does not answer: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It refuses the request: a wrong password, a missing right, a name that it cannot keep.
    /// Nothing was applied, and a repetition fails until the cause is removed.
    #[error("the store refuses: {0}")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another process has claimed the writer's name. Nothing of this writer is ever applied again.
    #[error(
        "another process writes as {writer:?} since epoch {epoch}: this one must stop, or claim the name again"
    )]
    Fenced {
        /// The writer's name.
        writer: String,
        /// The epoch of its present owner.
        epoch: u64,
    },
    /// The store has lost the claim: it was emptied, lost its memory, or was restored from an older
    /// copy. Acknowledged batches may be lost as well. Claim the name again, and load the
    /// positions.
    #[error(
        "the store knows {writer:?} up to epoch {known} only, and {claimed} was claimed: it has lost what it had, or was emptied"
    )]
    Forgotten {
        /// The writer's name.
        writer: String,
        /// The epoch that the batch carries.
        claimed: u64,
        /// The epoch that the store has, 0 if it has none.
        known: u64,
    },
    /// The batch is neither the next one nor the last. If an earlier one was expected, the store
    /// has lost batches that it had acknowledged.
    #[error(
        "batch {sent} came, {expected} was expected: batches are sent in order, each until it is acknowledged"
    )]
    Gap {
        /// The number that was sent.
        sent: u64,
        /// The number that is next.
        expected: u64,
    },
    /// The batch has more changes than the store accepts: see
    /// [`Store::max_deltas`](super::Store::max_deltas).
    #[error(
        "the batch has {deltas} changes, and the store takes at most {limit} at once: send several batches"
    )]
    TooLarge {
        /// The number of changes.
        deltas: usize,
        /// The limit.
        limit: usize,
    },
    /// Nothing of the batch was applied, because of these changes; without them it may be resent
    /// under its number.
    #[error("{} of the batch's changes cannot be stored; the first: {}", .0.len(), .0.first().map_or("", |first| &first.reason))]
    Rejected(Vec<Rejected>),
}

impl Rejected {
    /// The change at this index would overflow its counter's 64 bits.
    pub fn overflow(index: usize) -> Self {
        Self { index, reason: "its sum leaves the range of 64 bits".into() }
    }
}

/// A change that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its index in the batch.
    pub index: usize,
    /// The reason, for users to read.
    pub reason: String,
}
