//! Moves and reads by name: lock-free on the fast path, otherwise after a commit or a load.

use super::inbox::Request;
use super::key::{Found, KeyRef};
use super::readers;
use super::shared::Shared;
use crate::account::Refusal;
use crate::committer::{Errand, Error, Extent, Ticket};
use crate::counter::Counter;
use crate::ledger::Move;
use crate::promise::Promise;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_barrier as barrier;

/// Longer than any caller waits, and within the range of the clock.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 100);

impl Shared {
    /// Reads a counter, and loads it if it is not in memory.
    #[inline]
    pub(crate) fn read<T>(&self, name: &[u8], read: impl Fn(&Counter) -> T) -> Result<T, Error> {
        let hash = self.hash(name);
        if let Some(inside) = readers::enter()
            && let Some(found) = self.shard(hash).find(hash, name, &inside)
        {
            found.touch();
            return Ok(read(found.counter()));
        }
        Ok(read(self.locate(hash, name)?.counter()))
    }

    /// Moves a counter, and loads it if it is not in memory. Returns the units moved.
    #[inline]
    pub(crate) fn apply(&self, name: &[u8], how: Move) -> Result<u64, Error> {
        let hash = self.hash(name);
        if let Some(inside) = readers::enter()
            && let Some(found) = self.shard(hash).find(hash, name, &inside)
        {
            let tried = found.counter().carry_out(how);
            match tried {
                Ok(units) => {
                    self.has_moved(found);
                    if !is_beyond_block(found.counter(), how, units) {
                        return Ok(units);
                    }
                }
                Err(Refusal::Unsettled) => {}
                Err(refusal) => return Err(refused(found, refusal)),
            }
            let held = found.hold();
            // A reader must not block.
            drop(inside);
            return self.settle_and_apply(&held, how, tried.ok());
        }
        self.apply_to(&self.locate(hash, name)?, how)
    }

    /// Moves a counter. Returns the units moved.
    #[inline]
    pub(crate) fn apply_to(&self, key: &KeyRef, how: Move) -> Result<u64, Error> {
        match key.counter().carry_out(how) {
            Ok(units) => self.moved(key, how, units),
            Err(Refusal::Unsettled) => self.settle_and_apply(key, how, None),
            Err(refusal) => Err(refused(key.found(), refusal)),
        }
    }

    /// Completes a move that was made: a move beyond the block is acknowledged only when it is
    /// stored.
    #[inline]
    fn moved(&self, key: &KeyRef, how: Move, units: u64) -> Result<u64, Error> {
        self.has_moved(key.found());
        if is_beyond_block(key.counter(), how, units) {
            return self.settle_and_apply(key, how, Some(units));
        }
        Ok(units)
    }

    #[inline]
    pub(crate) fn has_moved(&self, found: Found<'_>) {
        // Pairs with `Keys::barrier`: either the committer sees the move, or this thread sees that
        // the counter is clean.
        barrier::light();
        if !found.is_known_as_dirty_and_used() || found.counter().is_due() {
            self.note(found);
        }
    }

    /// Leaves a move to the committer; with `moved`, the storing of a move that was made.
    #[cold]
    fn settle_and_apply(&self, key: &KeyRef, how: Move, moved: Option<u64>) -> Result<u64, Error> {
        let (errand, began) = (Arc::new(Errand::new(how, moved)), Instant::now());
        self.finish_all([(key, errand)], began).remove(0)
    }

    /// Leaves moves to the committer, and waits for their results.
    pub(crate) fn finish_all<'key>(
        &self,
        errands: impl IntoIterator<Item = (&'key KeyRef, Arc<Errand>)>,
        began: Instant,
    ) -> Vec<Result<u64, Error>> {
        let errands: Vec<_> = errands.into_iter().collect();
        if errands.is_empty() {
            return Vec::new();
        }
        let requests = errands
            .iter()
            .map(|(key, errand)| Request::Move { key: KeyRef::clone(key), errand: errand.clone() });
        if let Err(error) = self.request_all(requests) {
            errands.iter().for_each(|(_, errand)| errand.fail(error.clone()));
        }
        errands.iter().map(|(key, errand)| self.finish(key, errand, began)).collect()
    }

    /// Waits for a move that was left to the committer.
    fn finish(&self, key: &KeyRef, errand: &Errand, began: Instant) -> Result<u64, Error> {
        let moved = errand.wait(self.deadline(began), || unavailable(began));
        if let Ok(_) | Err(Error::Unstored { .. }) = moved {
            self.has_moved(key.found());
        }
        moved
    }

    /// Commits a counter if its promise does not hold. One commit suffices: later moves wait for
    /// their own.
    #[cold]
    pub(crate) fn settle(&self, key: &KeyRef) -> Result<(), Error> {
        if key.counter().books().is_settled() {
            return Ok(());
        }
        self.commit(key, Extent::Net, Instant::now())
    }

    /// Commits an extent of a counter, and waits until the store has it.
    pub(crate) fn commit(&self, key: &KeyRef, extent: Extent, began: Instant) -> Result<(), Error> {
        let waiter = Arc::new(Ticket::default());
        self.request(Request::Commit { key: key.clone(), extent, waiter: Some(waiter.clone()) })?;
        self.answer(&waiter, began)?
    }

    /// Sends a request, unless the commit thread has stopped.
    pub(crate) fn request(&self, request: Request) -> Result<(), Error> {
        self.request_all([request])
    }

    /// Sends requests that are received together.
    pub(crate) fn request_all(&self, requests: impl IntoIterator<Item = Request>) -> Result<(), Error> {
        if let Some(error) = self.stopped() {
            return Err(error);
        }
        self.inbox.request_all(requests)
    }

    /// Waits for an answer within the patience.
    pub(crate) fn answer<T: Clone>(&self, ticket: &Ticket<T>, began: Instant) -> Result<T, Error> {
        ticket.wait(self.deadline(began)).ok_or_else(|| unavailable(began))
    }

    /// Returns when the patience of a call ends.
    fn deadline(&self, began: Instant) -> Instant {
        began.checked_add(self.options.patience).unwrap_or(began + FOREVER)
    }
}

/// Whether a move went down by more than an exact counter's block, so that the store may have more
/// than the promise allows.
#[inline]
pub(crate) fn is_beyond_block(counter: &Counter, how: Move, units: u64) -> bool {
    how.is_down() && matches!(counter.promise(), Promise::Exact { block } if units > block)
}

#[cold]
pub(crate) fn refused(found: Found<'_>, refusal: Refusal) -> Error {
    found.touch();
    refusal.into()
}

/// The store has not answered in time.
fn unavailable(began: Instant) -> Error {
    let waited = Duration::from_millis(began.elapsed().as_millis() as u64);
    Error::Unavailable { waited, reason: "what is to be stored is sent until it answers".into() }
}
