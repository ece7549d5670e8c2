//! The committer: what is dirty, what is in flight, and what is next.

use super::backoff::Backoff;
use super::demand::{Demand, Waiter};
use super::errand::Errand;
use super::error::Error;
use super::extent::Extent;
use super::flight::{Flight, Part};
use super::keys::Keys;
use super::schedule::{Dirty, Schedule};
use crate::account::Account;
use crate::counter::Counter;
use crate::store::{self, Batch, Claim, Delta, Receipt, Rejected};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Limits of a committer.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Interval between checks of the thresholds.
    pub(crate) interval: Duration,
    /// Most changes in a batch.
    pub(crate) max_batch: usize,
    /// Pauses before an unanswered batch is resent: the first, and the longest.
    pub(crate) backoff: (Duration, Duration),
    /// Seed of the random part of the pauses.
    pub(crate) seed: u64,
}

/// Number of counters that one interval checks.
const LOOKS: usize = 65_536;

/// What the caller is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this batch to the store, and pass the answer to [`Committer::answered`].
    Send(Batch),
    /// Nothing until this time, unless there is new input; without a limit if nothing is dirty.
    Wait(Option<Duration>),
    /// Nothing is committed any more. Once no counter can move either, [`Committer::refuse_all`]
    /// must be called.
    Stopped(Error),
}

/// Totals so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Batches that the store has acknowledged.
    pub(crate) batches: u64,
    /// Changes in these batches.
    pub(crate) changes: u64,
    /// Sum of the absolute amounts of these changes.
    pub(crate) units: u128,
    /// Batches that were resent.
    pub(crate) resends: u64,
    /// Changes that the store has rejected.
    pub(crate) rejections: u64,
    /// Dirty counters that had nothing to commit when they were due: their changes had cancelled.
    pub(crate) absorbed: u64,
}

/// The commit state of one writer. Times are relative to its start.
///
/// One batch is in flight at a time, and is resent unchanged until the store acknowledges it. The
/// next batch is sealed only then, so sequence numbers are dense.
pub(crate) struct Committer<S: Keys> {
    writer: String,
    claim: Claim,
    limits: Limits,
    schedule: Schedule<S::Key>,
    wanted: VecDeque<Wanted<S::Key>>,
    ripe: VecDeque<Ripe<S::Key>>,
    /// Waiters for all that is dirty, handled when nothing is in flight.
    flushes: Vec<Waiter>,
    /// Number of dirty counters, including those in flight.
    dirty: usize,
    flight: Option<Flight<S::Key>>,
    backoff: Backoff,
    stopped: Option<Error>,
    /// Error with which moves are refused from now on.
    refusing: Option<Error>,
    counts: Counts,
}

/// An entry of the queue of what is due.
enum Ripe<K> {
    Due(Dirty<K>),
    /// A flush: its waiter is answered when all entries before this are stored.
    Mark(Waiter),
}

/// A demand for one counter.
struct Wanted<K> {
    key: K,
    demand: Demand,
}

impl<S: Keys> Committer<S> {
    pub(crate) fn new(writer: String, claim: Claim, limits: Limits) -> Self {
        let (first, longest) = limits.backoff;
        Self {
            writer,
            claim,
            schedule: Schedule::new(limits.interval, LOOKS),
            backoff: Backoff::new(first, longest, limits.seed),
            limits,
            wanted: VecDeque::new(),
            ripe: VecDeque::new(),
            flushes: Vec::new(),
            dirty: 0,
            flight: None,
            stopped: None,
            refusing: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the number of dirty counters, including those in flight.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    /// Returns a lower bound of the time of the oldest change that the store does not have.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let ripe = self.ripe.iter().filter_map(|ripe| match ripe {
            Ripe::Due(dirty) => Some(dirty.since),
            Ripe::Mark(_) => None,
        });
        let flying = self.flight.iter().flat_map(|flight| &flight.parts);
        let flying = flying.filter_map(|part| part.dirty.as_ref().map(|dirty| dirty.since));
        ripe.chain(flying).chain(self.schedule.oldest()).min()
    }

    /// Returns the sum of the uncommitted units of all dirty counters.
    pub(crate) fn uncommitted(&self, keys: &S) -> u128 {
        let ripe = self.ripe.iter().filter_map(|ripe| match ripe {
            Ripe::Due(dirty) => Some(&dirty.key),
            Ripe::Mark(_) => None,
        });
        let flying = self.flight.iter().flat_map(|flight| &flight.parts);
        let flying = flying.filter(|part| part.dirty.is_some()).map(|part| &part.key);
        let all = self.schedule.waiting().chain(ripe).chain(flying);
        all.map(|key| u128::from(keys.counter(key).books().uncommitted())).sum()
    }

    /// Adds a counter that has become dirty.
    pub(crate) fn note(&mut self, keys: &S, key: S::Key, now: Duration) {
        let timing = keys.timing(&key);
        self.dirty += 1;
        self.schedule.push(Dirty::new(key, timing, now));
    }

    /// Requests a commit of `extent` of a counter.
    pub(crate) fn want(&mut self, key: S::Key, extent: Extent, waiter: Option<Waiter>) {
        self.wanted.push_back(Wanted { key, demand: Demand::Commit(extent, waiter) });
    }

    /// Requests a move, by a commit if necessary. Moves of one counter are made in their order.
    pub(crate) fn run(&mut self, key: S::Key, errand: Arc<Errand>) {
        self.wanted.push_back(Wanted { key, demand: Demand::Move(errand) });
    }

    /// Requests a commit of all that is dirty now.
    pub(crate) fn flush(&mut self, waiter: Waiter) {
        self.flushes.push(waiter);
    }

    /// Returns what to do at this time.
    pub(crate) fn step(&mut self, keys: &S, now: Duration) -> Step {
        if let Some(error) = &self.stopped {
            return Step::Stopped(error.clone());
        }
        if self.flight.is_none() {
            let mut due = Vec::new();
            if self.flushes.is_empty() {
                self.schedule.take_due(now, self.limits.max_batch, &mut due, keys);
            } else {
                due = self.schedule.take_all();
            }
            self.ripe.extend(due.into_iter().map(Ripe::Due));
            self.ripe.extend(self.flushes.drain(..).map(Ripe::Mark));
            self.seal(keys, now);
        }
        match &mut self.flight {
            Some(flight) if flight.send_at <= now => {
                flight.attempts += 1;
                Step::Send(flight.batch.clone())
            }
            Some(flight) => Step::Wait(Some(flight.send_at)),
            None => Step::Wait(self.schedule.next()),
        }
    }

    /// Seals the next batch, if there is something to commit.
    fn seal(&mut self, keys: &S, now: Duration) {
        assert!(self.flight.is_none(), "a batch is sealed while another one is on its way");
        let (mut deltas, mut parts, mut waiters) = (Vec::new(), Vec::<Part<S::Key>>::new(), Vec::new());
        // Indices of the parts, by their counters' places.
        let mut numbers = HashMap::new();
        let (mut clean, mut is_wanted) = (Vec::new(), false);
        while deltas.len() < self.limits.max_batch {
            // Alternates, so that neither a flush nor demands that make no progress starve the
            // other queue.
            is_wanted = !is_wanted && !self.wanted.is_empty() || self.ripe.is_empty();
            let (key, sealed, dirty, demand) = if is_wanted {
                let Some(Wanted { key, demand }) = self.wanted.pop_front() else { break };
                // The requester may be gone, so a counter that is sealed ahead is dirty until it is
                // checked again.
                if keys.rouse(&key) {
                    self.note(keys, key.clone(), now);
                }
                let counter = keys.counter(&key);
                let sealed = match &demand {
                    Demand::Commit(extent, _) => counter.with_books(|books| extent.seal(books)),
                    // Not before moves that wait already.
                    Demand::Move(_)
                        if numbers
                            .get(&keys.place(&key))
                            .is_some_and(|number: &usize| !parts[*number].errands.is_empty()) =>
                    {
                        None
                    }
                    Demand::Move(errand) => {
                        match errand.attempt(counter, |_| {}, |books, extent| extent.seal(books)) {
                            Some(sealed) => sealed,
                            None => continue,
                        }
                    }
                };
                (key, sealed, None, Some(demand))
            } else {
                match self.ripe.pop_front() {
                    Some(Ripe::Due(dirty)) => {
                        (dirty.key.clone(), keys.counter(&dirty.key).seal(), Some(dirty), None)
                    }
                    Some(Ripe::Mark(waiter)) => {
                        waiters.push(waiter);
                        continue;
                    }
                    None => break,
                }
            };
            match sealed {
                Some(amount) => {
                    assert_ne!(amount, 0, "a change of nothing is sealed");
                    deltas.push(Delta { key: keys.name(&key).into(), amount });
                    let mut part = Part::new(key);
                    part.join(dirty, demand);
                    numbers.insert(keys.place(&part.key), parts.len());
                    parts.push(part);
                }
                // The counter is in this batch already, for another reason.
                None if keys.counter(&key).books().sealed() != 0 => {
                    let is_enough = keys.counter(&key).with_books(|books| books.settles());
                    let number = numbers.get(&keys.place(&key));
                    let part =
                        &mut parts[*number.expect("what is sealed is in this batch: no other is sealed")];
                    match demand {
                        // Less was sealed than this demand needs.
                        Some(demand) if demand.is_behind_a_move() && !is_enough => part.behind.push(demand),
                        demand => part.join(dirty, demand),
                    }
                }
                None => {
                    if keys.committed(&key) {
                        self.want(key.clone(), Extent::Net, None);
                    }
                    if let Some(demand) = demand {
                        demand.meet();
                    }
                    if let Some(dirty) = dirty {
                        self.counts.absorbed += 1;
                        clean.push(dirty);
                    }
                }
            }
        }
        self.rest(keys, clean, now);
        if deltas.is_empty() {
            waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
            return;
        }
        let (writer, epoch, sequence) = (self.writer.clone(), self.claim.epoch, self.claim.last_sequence + 1);
        let batch = Batch { writer, epoch, sequence, deltas };
        self.flight = Some(Flight { batch, parts, waiters, sealed_at: now, send_at: now, attempts: 0 });
    }

    /// Applies the store's answer to the batch in flight.
    pub(crate) fn answered(&mut self, keys: &S, now: Duration, answer: Result<Receipt, store::Error>) {
        match answer {
            Ok(Receipt::Applied | Receipt::Duplicate) => self.acknowledged(keys, now),
            // The cause of a refusal may be repaired meanwhile.
            Err(store::Error::Unavailable(_) | store::Error::Refused(_)) => {
                self.counts.resends += 1;
                let pause = self.backoff.fail();
                let flight = self.flight.as_mut().expect("the store answers a batch that is on its way");
                flight.send_at = now + pause;
            }
            Err(store::Error::Rejected(rejected)) => self.rejected(keys, now, &rejected),
            Err(
                error @ (store::Error::Fenced { .. }
                | store::Error::Forgotten { .. }
                | store::Error::Gap { .. }
                | store::Error::TooLarge { .. }),
            ) => self.stop(error.into()),
        }
    }

    /// Refuses all waiting moves and demands; uncommitted changes stay uncommitted.
    pub(crate) fn refuse_moves(&mut self, error: &Error) {
        self.refusing = Some(error.clone());
        for wanted in self.wanted.drain(..) {
            wanted.demand.fail(error);
        }
    }

    /// Stops committing. Waiters are answered only by [`refuse_all`](Self::refuse_all), once no
    /// counter can move.
    fn stop(&mut self, error: Error) {
        self.stopped = Some(error);
    }

    /// Answers all waiters with `error`: nothing is committed any more.
    pub(crate) fn refuse_all(&mut self, error: &Error) {
        if let Some(flight) = &mut self.flight {
            flight.parts.iter_mut().for_each(|part| part.fail(error));
            flight.waiters.drain(..).for_each(|waiter| waiter.answer(Err(error.clone())));
        }
        self.refuse_moves(error);
        self.flushes.drain(..).for_each(|waiter| waiter.answer(Err(error.clone())));
        for ripe in self.ripe.drain(..) {
            match ripe {
                Ripe::Due(dirty) => self.schedule.push(dirty),
                Ripe::Mark(waiter) => waiter.answer(Err(error.clone())),
            }
        }
    }

    fn acknowledged(&mut self, keys: &S, now: Duration) {
        let flight = self.flight.take().expect("the store answers a batch that is on its way");
        self.backoff.succeed();
        let (stored, sequence) = (self.claim.last_sequence, flight.batch.sequence);
        assert_eq!(Some(sequence), stored.checked_add(1), "batch {sequence} is stored behind batch {stored}");
        let (changes, counters) = (flight.batch.deltas.len(), flight.parts.len());
        assert_eq!(changes, counters, "each change of a batch is one counter's");
        self.claim.last_sequence = flight.batch.sequence;
        self.counts.batches += 1;
        self.counts.changes += flight.batch.deltas.len() as u64;
        self.counts.units +=
            flight.batch.deltas.iter().map(|delta| u128::from(delta.amount.unsigned_abs())).sum::<u128>();
        let mut clean = Vec::new();
        let mut again = Vec::new();
        for (delta, part) in flight.batch.deltas.iter().zip(flight.parts) {
            let counter = keys.counter(&part.key);
            // First the demands for which one commit suffices; those that need one each would delay
            // them.
            again.extend(part.behind.into_iter().map(|demand| Wanted { key: part.key.clone(), demand }));
            let (before, has_errands) = (again.len(), !part.errands.is_empty());
            acknowledge(counter, delta.amount, part.errands, |errand| match &self.refusing {
                Some(error) if !errand.is_moved() => errand.fail(error.clone()),
                _ => again.push(Wanted { key: part.key.clone(), demand: Demand::Move(errand) }),
            });
            // Gives back what was committed for a caller that has gone or was refused.
            let is_unused = has_errands && part.waiters.is_empty() && again.len() == before;
            if is_unused && !counter.books().is_settled() {
                self.want(part.key.clone(), Extent::Net, None);
            }
            if keys.committed(&part.key) {
                self.want(part.key.clone(), Extent::Net, None);
            }
            part.waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
            if let Some(dirty) = part.dirty {
                // What is open was moved after the sealing.
                clean.push(dirty.since(flight.sealed_at));
            }
        }
        // Before demands that arrived later.
        again.into_iter().rev().for_each(|wanted| self.wanted.push_front(wanted));
        self.rest(keys, clean, now);
        flight.waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
    }

    /// Removes the rejected changes from the batch: they are open again, and wait for their age
    /// before the next attempt.
    fn rejected(&mut self, keys: &S, now: Duration, rejected: &[Rejected]) {
        let mut flight = self.flight.take().expect("the store answers a batch that is on its way");
        let (mut deltas, mut parts) = (Vec::new(), Vec::new());
        let count = flight.parts.len();
        for (index, (delta, mut part)) in
            flight.batch.deltas.drain(..).zip(flight.parts.drain(..)).enumerate()
        {
            let Some(rejected) = rejected.iter().find(|rejected| rejected.index == index) else {
                deltas.push(delta);
                parts.push(part);
                continue;
            };
            self.counts.rejections += 1;
            keys.counter(&part.key).with_books(|books| {
                check_sealed(books, delta.amount);
                books.reject();
            });
            let error = Error::Rejected { reason: rejected.reason.clone() };
            part.fail(&error);
            flight.waiters.iter().for_each(|waiter| waiter.answer(Err(error.clone())));
            if let Some(dirty) = part.dirty {
                self.schedule.push(dirty.since(now));
            }
        }
        (flight.batch.deltas, flight.parts) = (deltas, parts);
        if flight.parts.len() == count {
            // No known change is rejected, so there is no way to go on.
            self.flight = Some(flight);
            self.stop(Error::Broken { reason: "it refuses a batch, and no change of it".into() });
        } else if flight.parts.is_empty() {
            flight.waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
        } else {
            flight.send_at = now;
            self.flight = Some(flight);
        }
    }

    /// Marks the clean counters as rested; reschedules the others.
    fn rest(&mut self, keys: &S, dirty: Vec<Dirty<S::Key>>, now: Duration) {
        let (clean, moved): (Vec<_>, Vec<_>) =
            dirty.into_iter().partition(|dirty| is_clean::<S>(keys, &dirty.key));
        moved.into_iter().for_each(|dirty| self.schedule.push(dirty));
        if clean.is_empty() {
            return;
        }
        clean.iter().for_each(|dirty| keys.rest(&dirty.key));
        keys.barrier();
        for dirty in clean {
            if !is_clean::<S>(keys, &dirty.key) && keys.rouse(&dirty.key) {
                self.schedule.push(dirty.since(now));
            } else {
                self.dirty = self.dirty.checked_sub(1).expect("a counter rests that was dirty");
            }
        }
    }
}

/// Acknowledges what was sealed and makes the moves that waited for it, in their order. Passes the
/// first one that is not complete, and all after it, to `again`.
fn acknowledge(
    counter: &Counter,
    stored: i64,
    errands: Vec<Arc<Errand>>,
    mut again: impl FnMut(Arc<Errand>),
) {
    let (mut is_sealed, mut is_blocked) = (true, false);
    for errand in errands {
        // Atomically with the first move; otherwise other callers could use the room that was
        // committed for it.
        let acknowledge = |books: &mut Account| {
            if std::mem::take(&mut is_sealed) {
                check_sealed(books, stored);
                books.acknowledge();
            }
        };
        if errand.is_moved() {
            counter.with_books(acknowledge);
            errand.stored();
        } else if is_blocked {
            again(errand);
        } else if errand.attempt(counter, acknowledge, |_, _| ()).is_some() {
            is_blocked = !errand.is_moved();
            again(errand);
        }
    }
    if is_sealed {
        counter.with_books(|books| {
            check_sealed(books, stored);
            books.acknowledge();
        });
    }
}

/// Panics if a batch's amount differs from the sealed amount: only what was moved is committed.
fn check_sealed(books: &Account, amount: i64) {
    let sealed = books.sealed();
    assert!(sealed == amount, "a batch has {amount} units of a counter that has sealed {sealed}");
}

/// Whether the store has exactly the position.
fn is_clean<S: Keys>(keys: &S, key: &S::Key) -> bool {
    let books = keys.counter(key).books();
    books.sealed() == 0 && books.open() == 0
}
