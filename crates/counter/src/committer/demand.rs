//! What somebody wants of the committer for one counter.

use super::errand::Errand;
use super::error::Error;
use super::extent::Extent;
use super::ticket::Ticket;
use std::sync::Arc;

/// Who waits for a commit.
pub(crate) type Waiter = Arc<Ticket<Result<(), Error>>>;

#[derive(Debug)]
pub(crate) enum Demand {
    /// So much of it is to be committed.
    Commit(Extent, Option<Waiter>),
    /// It is to be moved, by a commit if that takes one.
    Move(Arc<Errand>),
}

impl Demand {
    /// Whether somebody is to be told that the store has what was moved before, up to what the promise allows.
    pub(crate) fn is_behind_a_move(&self) -> bool {
        match self {
            Self::Commit(extent, waiter) => *extent == Extent::Net && waiter.is_some(),
            Self::Move(errand) => errand.is_moved(),
        }
    }

    /// There is nothing to commit for it.
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
