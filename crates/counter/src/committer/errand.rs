//! A move that takes a commit, left to the committer: whoever made room for it makes it, before others use the room up.

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

/// A move that somebody waits for. It is made once, or not at all if whoever wants it has been told why not, or has gone.
///
/// A move down by more than an exact counter's block, or one that has found no room behind a commit either, goes further than the promise: it is made
/// as soon as it is its turn, and told when it is stored. There may never come a commit that makes room for it, because nothing less than the
/// position may be reserved; and nobody is admitted to what the store does not know of, only to what it holds reserved already.
#[derive(Debug)]
pub(crate) struct Errand {
    how: Move,
    /// It has found no room before.
    has_waited: AtomicBool,
    /// Units that were moved and are not known to be stored. Whoever tells how it ends has this.
    moved: Mutex<Option<u64>>,
    told: Ticket<Result<u64, Error>>,
}

impl Errand {
    /// A move that is to be made, or of which so many units have been and are to be stored before that is told.
    pub(crate) fn new(how: Move, moved: Option<u64>) -> Self {
        Self { how, has_waited: AtomicBool::new(false), moved: Mutex::new(moved), told: Ticket::default() }
    }

    fn moved(&self) -> MutexGuard<'_, Option<u64>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is made, and not known to be stored.
    pub(crate) fn is_moved(&self) -> bool {
        self.moved().is_some()
    }

    /// Whether whoever wants it knows what has come of it.
    #[cfg(test)]
    pub(super) fn is_told(&self) -> bool {
        self.told.peek().is_some()
    }

    /// Makes the move, if there is room for it. Otherwise does `otherwise` with what is to be committed before it is tried again, or told:
    /// `None` if it is over. `first` is done before, whatever becomes of the move. All of that at one moment.
    pub(crate) fn attempt<R>(
        &self,
        counter: &Counter,
        first: impl FnOnce(&mut Account),
        otherwise: impl FnOnce(&mut Account, Extent) -> R,
    ) -> Option<R> {
        let mut moved = self.moved();
        // What is made is stored, also if whoever wanted it has gone.
        let is_over = self.told.peek().is_some() && moved.is_none();
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
            Some(Ok(Tried::Moved(units))) => self.told.answer(Ok(units)),
            Some(Ok(Tried::Ahead(units))) => *moved = Some(units),
            Some(Err(refusal)) => self.told.answer(Err(refusal.into())),
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

    /// The store has what was sealed since the move was made.
    pub(crate) fn stored(&self) {
        let moved = self.moved();
        let units = moved.unwrap_or_else(|| panic!("{:?} is stored, and has not been made", self.how));
        self.told.answer(Ok(units));
    }

    /// Nothing comes of it any more, except what it has moved.
    pub(crate) fn fail(&self, error: Error) {
        let moved = self.moved();
        let is_moved = moved.is_some();
        self.told.answer(Err(if is_moved { Error::Unstored { reason: error.to_string() } } else { error }));
    }

    /// The units that were moved. If it is not over at `deadline`, it is from then on: with this error.
    pub(crate) fn wait(&self, deadline: Instant, late: impl FnOnce() -> Error) -> Result<u64, Error> {
        self.told.wait(deadline).unwrap_or_else(|| {
            self.fail(late());
            // What was told in between is what has happened.
            self.told.peek().expect("it was told just now, if not before")
        })
    }
}

/// What came of trying to move.
#[derive(Clone, Copy)]
enum Tried {
    /// It is made already.
    Before,
    Moved(u64),
    /// It is made, and is to be told when the store has it.
    Ahead(u64),
    /// It would move by so much.
    NoRoom(i64),
}
