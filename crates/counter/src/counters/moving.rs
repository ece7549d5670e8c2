//! How a counter is found and moved: without a lock if nothing is in the way, and behind a commit or a load otherwise.

use super::inbox::Request;
use super::key::{Found, KeyRef};
use super::readers;
use super::shard::Absent;
use super::shared::Shared;
use crate::account::{Kind, Refusal};
use crate::committer::{Error, Ticket};
use crate::counter::Counter;
use crate::ledger::Move;
use crate::promise::Promise;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidemark_barrier as barrier;

impl Shared {
    /// Reads a counter, which is loaded if it is not in memory.
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

    /// Moves a counter, which is loaded if it is not in memory. The units that were moved.
    #[inline]
    pub(crate) fn apply(&self, name: &[u8], how: Move) -> Result<u64, Error> {
        let hash = self.hash(name);
        let mut held = None;
        if let Some(inside) = readers::enter()
            && let Some(found) = self.shard(hash).find(hash, name, &inside)
        {
            match found.counter().carry_out(how) {
                Ok(units) => {
                    self.has_moved(found);
                    if !is_beyond_block(found.counter(), how, units) {
                        return Ok(units);
                    }
                    held = Some((found.hold(), Ok(units)));
                }
                Err(Refusal::Unsettled) => held = Some((found.hold(), Err(()))),
                Err(refusal) => return Err(refused(found, refusal)),
            }
        }
        // Nobody waits while inside.
        match held {
            Some((held, Ok(units))) => self.settle(&held).map(|()| units),
            Some((held, Err(()))) => self.settle_and_apply(&held, how),
            None => self.apply_to(&self.locate(hash, name)?, how),
        }
    }

    /// Moves a counter. The units that were moved.
    #[inline]
    pub(crate) fn apply_to(&self, key: &KeyRef, how: Move) -> Result<u64, Error> {
        match key.counter().carry_out(how) {
            Ok(units) => {
                self.has_moved(key.found());
                if is_beyond_block(key.counter(), how, units) {
                    self.settle(key)?;
                }
                Ok(units)
            }
            Err(Refusal::Unsettled) => self.settle_and_apply(key, how),
            Err(refusal) => Err(refused(key.found(), refusal)),
        }
    }

    #[inline]
    fn has_moved(&self, found: Found<'_>) {
        // Either whoever lets the counter rest sees that it has moved, or this sees that it rests.
        barrier::light();
        if !found.is_known_as_dirty_and_used() || found.counter().is_due() {
            self.note(found);
        }
    }

    /// Moves a counter, by a commit if it cannot be moved without one.
    #[cold]
    fn settle_and_apply(&self, key: &KeyRef, how: Move) -> Result<u64, Error> {
        let began = Instant::now();
        loop {
            match key.counter().carry_out(how) {
                Ok(units) => {
                    self.has_moved(key.found());
                    if is_beyond_block(key.counter(), how, units) {
                        self.settle(key)?;
                    }
                    return Ok(units);
                }
                Err(Refusal::Unsettled) => {}
                Err(refusal) => return Err(refused(key.found(), refusal)),
            }
            self.commit(key, Some(would_move_by(how, key.counter())), began)?;
        }
    }

    /// Commits until a counter that has moved further than its promise allows is where it should be.
    #[cold]
    pub(crate) fn settle(&self, key: &KeyRef) -> Result<(), Error> {
        let began = Instant::now();
        while !key.counter().books().is_settled() {
            self.commit(key, None, began).map_err(|error| match error {
                Error::Unavailable { waited, .. } => Error::Unstored { waited },
                error => error,
            })?;
        }
        Ok(())
    }

    /// Commits what makes a move by `delta` possible, or the net, and waits until the store has it.
    pub(crate) fn commit(&self, key: &KeyRef, delta: Option<i64>, began: Instant) -> Result<(), Error> {
        let waiter = Arc::new(Ticket::default());
        self.request(Request::Commit { key: key.clone(), delta, waiter: Some(waiter.clone()) })?;
        self.answer(&waiter, began)?
    }

    /// Leaves a request, if there is somebody to fulfil it.
    pub(crate) fn request(&self, request: Request) -> Result<(), Error> {
        if let Some(error) = self.stopped() {
            return Err(error);
        }
        self.inbox.request(request)
    }

    /// What was answered, if it was in time.
    pub(crate) fn answer<T: Clone>(&self, ticket: &Ticket<T>, began: Instant) -> Result<T, Error> {
        ticket.wait(began + self.options.patience).ok_or_else(|| unavailable(began))
    }

    /// The key with this name, which is loaded if it is not in memory.
    #[cold]
    pub(crate) fn locate(&self, hash: u64, name: &[u8]) -> Result<KeyRef, Error> {
        let hash_of = |name: &[u8]| self.hash(name);
        if let Some(key) = self.shard(hash).lock().hold(hash, name, hash_of) {
            return Ok(key);
        }
        let (length, max_name) = (name.len(), self.options.max_name);
        if length > max_name {
            return Err(Error::NameTooLong { length, max_name });
        }
        let began = Instant::now();
        // Code of users: it runs without a lock.
        let settings = (self.options.settings)(name).bounded();
        let number = self.settings.number(&settings)?;
        loop {
            let mut alone = self.shard(hash).lock();
            if let Some(key) = alone.hold(hash, name, hash_of) {
                return Ok(key);
            }
            if let Some(error) = self.stopped() {
                return Err(error);
            }
            let loaded = match alone.absent(name) {
                Absent::Loaded(Ok(position)) => {
                    let key = KeyRef::new(name, settings.counter(position), number);
                    alone.insert(hash, key.clone(), hash_of);
                    return Ok(key);
                }
                Absent::Loaded(Err(error)) => {
                    self.release(1);
                    return Err(error);
                }
                Absent::Loading(loaded) => loaded,
                Absent::Unknown if self.reserve() => {
                    let loaded = alone.load(name);
                    let request = Request::Load { name: name.into(), loaded: loaded.clone() };
                    if let Err(error) = self.inbox.request(request) {
                        alone.give_up(&loaded);
                        self.release(1);
                        return Err(error);
                    }
                    self.figures.loads.fetch_add(1, Ordering::Relaxed);
                    loaded
                }
                Absent::Unknown => {
                    drop(alone);
                    self.make_room(began)?;
                    continue;
                }
            };
            drop(alone);
            if loaded.wait(began + self.options.patience).is_none() {
                if self.shard(hash).lock().give_up(&loaded) {
                    self.release(1);
                }
                return Err(unavailable(began));
            }
        }
    }

    fn make_room(&self, began: Instant) -> Result<(), Error> {
        let made = Arc::new(Ticket::default());
        self.request(Request::MakeRoom(made.clone()))?;
        self.answer(&made, began)?
    }
}

/// Whether an exact counter has gone down by so much at once that the store may have more than it promises.
#[inline]
fn is_beyond_block(counter: &Counter, how: Move, units: u64) -> bool {
    let is_down = match how {
        Move::Take(_) => false,
        Move::Refund(_) => true,
        Move::Add(delta) => delta < 0,
    };
    is_down && matches!(counter.promise(), Promise::Exact { block } if units > block)
}

/// By how much it would move.
fn would_move_by(how: Move, counter: &Counter) -> i64 {
    let delta = how.delta().unwrap_or_default();
    match (how, counter.books().kind()) {
        // No more is given back than was taken.
        (Move::Refund(_), Kind::Quota { .. }) => delta.max(-counter.position().max(0)),
        _ => delta,
    }
}

#[cold]
fn refused(found: Found<'_>, refusal: Refusal) -> Error {
    found.touch();
    match refusal {
        Refusal::Exhausted => Error::Exhausted,
        Refusal::OutOfRange | Refusal::Unsettled => Error::OutOfRange,
    }
}

/// The store has not answered in time.
fn unavailable(began: Instant) -> Error {
    let waited = Duration::from_millis(began.elapsed().as_millis() as u64);
    Error::Unavailable { waited, reason: "what is to be stored is sent until it answers".into() }
}
