//! A move that needs a commit. The committer makes it, before other callers use the room up.

use super::error::Error;
use super::extent::Extent;
use super::ticket::Ticket;
use crate::account::{Account, Refusal};
use crate::counter::Counter;
use crate::ledger::Move;
use crate::promise::Promise;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A move that a caller waits for. It is made once, or not at all if the caller has received an
/// error or has gone.
///
/// Some moves go beyond the promise: a move down by more than an exact counter's block, and one
/// that found no room after a commit either. Such a move is made in its turn, and acknowledged when
/// it is stored. A commit might never make room for it, because no less than the position may be
/// reserved. This admits nothing that the store does not cover: it still has the units reserved.
#[derive(Debug)]
pub(crate) struct Errand {
    how: Move,
    /// Set when the move has found no room once.
    has_waited: AtomicBool,
    /// Units that were moved and are not known to be stored. Locked to decide the outcome.
    moved: Mutex<Option<u64>>,
    outcome: Ticket<Result<u64, Error>>,
}

impl Errand {
    /// Creates a move to be made; with `moved`, one that was made already and must be stored before
    /// it is acknowledged.
    pub(crate) fn new(how: Move, moved: Option<u64>) -> Self {
        Self { how, has_waited: AtomicBool::new(false), moved: Mutex::new(moved), outcome: Ticket::default() }
    }

    fn moved(&self) -> MutexGuard<'_, Option<u64>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the move is made and not known to be stored.
    pub(crate) fn is_moved(&self) -> bool {
        self.moved().is_some()
    }

    /// Whether the outcome is decided.
    #[cfg(test)]
    pub(super) fn is_decided(&self) -> bool {
        self.outcome.peek().is_some()
    }

    /// Makes the move, if there is room. Otherwise calls `otherwise` with the extent to commit
    /// before a retry or the acknowledgement; returns `None` if the move is over. Calls `first`
    /// before, in every case. All of this is atomic.
    pub(crate) fn attempt<R>(
        &self,
        counter: &Counter,
        first: impl FnOnce(&mut Account),
        otherwise: impl FnOnce(&mut Account, Extent) -> R,
    ) -> Option<R> {
        let mut moved = self.moved();
        // A move that was made is stored even if its caller has gone.
        let is_over = self.outcome.peek().is_some() && moved.is_none();
        let (tried, rest) = counter.with_books(|books| {
            first(books);
            if is_over {
                return (None, None);
            }
            let tried = if moved.is_some() { Ok(Tried::Before) } else { self.try_move(books) };
            let extent = match tried {
                Ok(Tried::Before | Tried::Ahead(_)) => Some(Extent::Net),
                Ok(Tried::NoRoom(delta)) => Some(Extent::RoomFor(delta)),
                Ok(Tried::Moved(_)) | Err(_) => None,
            };
            (Some(tried), extent.map(|extent| otherwise(books, extent)))
        });
        match tried {
            Some(Ok(Tried::Moved(units))) => self.outcome.answer(Ok(units)),
            Some(Ok(Tried::Ahead(units))) => *moved = Some(units),
            Some(Err(refusal)) => self.outcome.answer(Err(refusal.into())),
            Some(Ok(Tried::Before | Tried::NoRoom(_))) | None => {}
        }
        rest
    }

    fn try_move(&self, books: &mut Account) -> Result<Tried, Refusal> {
        let block = match books.promise() {
            Promise::Exact { block } if self.how.is_down() => Some(block),
            _ => None,
        };
        match self.how.carry_out(books) {
            Ok(units) if block.is_some() && !books.is_settled() => Ok(Tried::Ahead(units)),
            Ok(units) => Ok(Tried::Moved(units)),
            Err(Refusal::Unsettled) => {
                let net = self.how.net(books);
                let has_waited = self.has_waited.swap(true, Ordering::Relaxed);
                if block.is_some_and(|block| has_waited || net.unsigned_abs() > block) {
                    return self.how.carry_out_ahead(books).map(Tried::Ahead);
                }
                Ok(Tried::NoRoom(net))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Acknowledges the move: the store has what was sealed since it was made.
    pub(crate) fn stored(&self) {
        let moved = self.moved();
        let units = moved.unwrap_or_else(|| panic!("{:?} is stored, and has not been made", self.how));
        self.outcome.answer(Ok(units));
    }

    /// Ends the move with `error`; if it is already made, with [`Error::Unstored`].
    pub(crate) fn fail(&self, error: Error) {
        let moved = self.moved();
        let is_moved = moved.is_some();
        self.outcome.answer(Err(if is_moved {
            Error::Unstored { reason: error.to_string() }
        } else {
            error
        }));
    }

    /// Waits for the outcome and returns the units moved. At `deadline` the move ends with the
    /// error that `late` returns.
    pub(crate) fn wait(&self, deadline: Instant, late: impl FnOnce() -> Error) -> Result<u64, Error> {
        self.outcome.wait(deadline).unwrap_or_else(|| {
            self.fail(late());
            // An outcome that was decided in between prevails.
            self.outcome.peek().expect("the outcome is set")
        })
    }
}

/// Result of an attempt to move.
#[derive(Clone, Copy)]
enum Tried {
    /// The move was made before.
    Before,
    Moved(u64),
    /// The move is made, and is acknowledged when the store has it.
    Ahead(u64),
    /// The net that finds no room.
    NoRoom(i64),
}
