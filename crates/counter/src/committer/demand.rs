//! Demands of callers for one counter.

use super::errand::Errand;
use super::error::Error;
use super::extent::Extent;
use super::ticket::Ticket;
use std::sync::Arc;

/// A caller that waits for a commit.
pub(crate) type Waiter = Arc<Ticket<Result<(), Error>>>;

#[derive(Debug)]
pub(crate) enum Demand {
    /// Commit this extent.
    Commit(Extent, Option<Waiter>),
    /// Make this move, by a commit if necessary.
    Move(Arc<Errand>),
}

impl Demand {
    /// Whether the waiter awaits that everything moved before is stored, up to what the promise
    /// allows.
    pub(crate) fn is_behind_a_move(&self) -> bool {
        match self {
            Self::Commit(extent, waiter) => *extent == Extent::Net && waiter.is_some(),
            Self::Move(errand) => errand.is_moved(),
        }
    }

    /// Meets the demand: there is nothing to commit for it.
    pub(crate) fn meet(self) {
        match self {
            Self::Commit(_, waiter) => waiter.iter().for_each(|waiter| waiter.answer(Ok(()))),
            Self::Move(errand) => errand.stored(),
        }
    }

    pub(crate) fn fail(self, error: &Error) {
        match self {
            Self::Commit(_, waiter) => waiter.iter().for_each(|waiter| waiter.answer(Err(error.clone()))),
            Self::Move(errand) => errand.fail(error.clone()),
        }
    }
}
