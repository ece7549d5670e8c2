//! The committer: what is dirty, what is on its way, and what is next.

use super::backoff::Backoff;
use super::error::Error;
use super::flight::{Flight, Part, Waiter};
use super::keys::Keys;
use super::schedule::{Dirty, Schedule};
use crate::store::{self, Batch, Claim, Delta, Receipt, Rejected};
use std::collections::VecDeque;
use std::time::Duration;

/// What a committer is allowed.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// How often thresholds are looked at.
    pub(crate) interval: Duration,
    /// Changes in a batch.
    pub(crate) max_batch: usize,
    /// The pauses before a batch that was not answered is sent again: the first, and the longest.
    pub(crate) backoff: (Duration, Duration),
    /// What the pauses' chance begins with.
    pub(crate) seed: u64,
}

/// How many counters an interval looks at.
const LOOKS: usize = 65_536;

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this to the store, and tell [`Committer::answered`].
    Send(Batch),
    /// Nothing until then, unless something is said before; without an end if nothing is dirty.
    Wait(Option<Duration>),
    /// Nothing is committed any more. When no counter moves any more either, [`Committer::refuse_all`] is to be called.
    Stopped(Error),
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Batches that the store has.
    pub(crate) batches: u64,
    /// Their changes.
    pub(crate) changes: u64,
    /// The sum of the changes' amounts without their signs.
    pub(crate) units: u128,
    /// Batches that were sent again.
    pub(crate) resends: u64,
    /// Changes that the store has refused.
    pub(crate) rejections: u64,
    /// Dirty counters that had nothing to commit when they were due: all of it had cancelled.
    pub(crate) absorbed: u64,
}

/// Who commits, for one writer. Times are since it began.
///
/// One batch is on its way at a time, and it is sent again as it was until the store has answered that it has it. Sequence numbers are dense
/// because the next batch is sealed only then.
pub(crate) struct Committer<S: Keys> {
    writer: String,
    claim: Claim,
    limits: Limits,
    schedule: Schedule<S::Key>,
    wanted: VecDeque<Wanted<S::Key>>,
    ripe: VecDeque<Ripe<S::Key>>,
    /// Who waits for all that is dirty, as soon as nothing is on its way.
    flushes: Vec<Waiter>,
    /// How many counters are dirty, those that are on their way included.
    dirty: usize,
    flight: Option<Flight<S::Key>>,
    backoff: Backoff,
    stopped: Option<Error>,
    counts: Counts,
}

/// What is due, in its order.
enum Ripe<K> {
    Due(Dirty<K>),
    /// Somebody waits for all that is before this.
    Mark(Waiter),
}

/// Somebody wants to move a counter by `delta`, or wants it committed if that is `None`.
struct Wanted<K> {
    key: K,
    delta: Option<i64>,
    waiter: Option<Waiter>,
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
            counts: Counts::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// How many counters are dirty, those that are on their way included.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    /// Since when the oldest change that the store does not have may exist.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let ripe = self.ripe.iter().filter_map(|ripe| match ripe {
            Ripe::Due(dirty) => Some(dirty.since),
            Ripe::Mark(_) => None,
        });
        let flying = self.flight.iter().flat_map(|flight| &flight.parts);
        let flying = flying.filter_map(|part| part.dirty.as_ref().map(|dirty| dirty.since));
        ripe.chain(flying).chain(self.schedule.oldest()).min()
    }

    /// Units of all dirty counters that the store may not have, or may have too many of.
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

    /// A counter has become dirty.
    pub(crate) fn note(&mut self, keys: &S, key: S::Key, now: Duration) {
        let timing = keys.timing(&key);
        self.dirty += 1;
        self.schedule.push(Dirty::new(key, timing, now));
    }

    /// Commits what makes a move by `delta` possible, as soon as may be, or the net if that is `None`.
    pub(crate) fn want(&mut self, key: S::Key, delta: Option<i64>, waiter: Option<Waiter>) {
        self.wanted.push_back(Wanted { key, delta, waiter });
    }

    /// Commits all that is dirty by now, as soon as may be, and then answers.
    pub(crate) fn flush(&mut self, waiter: Waiter) {
        self.flushes.push(waiter);
    }

    /// What is to be done at this time.
    pub(crate) fn step(&mut self, keys: &S, now: Duration) -> Step {
        if let Some(error) = &self.stopped {
            return Step::Stopped(error.clone());
        }
        if self.flight.is_none() {
            let mut due = Vec::new();
            if self.flushes.is_empty() {
                self.schedule.take_due(now, &mut due, keys);
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
        debug_assert!(self.flight.is_none());
        let (mut deltas, mut parts, mut waiters) = (Vec::new(), Vec::<Part<S::Key>>::new(), Vec::new());
        let (mut clean, mut is_wanted) = (Vec::new(), false);
        while deltas.len() < self.limits.max_batch {
            // By turns, so that neither a flush nor those who cannot go on keep the others waiting.
            is_wanted = !is_wanted && !self.wanted.is_empty() || self.ripe.is_empty();
            let (key, sealed, dirty, waiter) = if is_wanted {
                let Some(Wanted { key, delta, waiter }) = self.wanted.pop_front() else { break };
                let counter = keys.counter(&key);
                let sealed = delta.map_or_else(|| counter.seal(), |delta| counter.seal_for(delta));
                // Nobody may ever come for what is sealed ahead: so it is dirty until it has been looked at again.
                if keys.rouse(&key) {
                    self.note(keys, key.clone(), now);
                }
                (key, sealed, None, waiter)
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
                    debug_assert_ne!(amount, 0);
                    deltas.push(Delta { key: keys.name(&key).into(), amount });
                    parts.push(Part { key, dirty, waiters: Vec::from_iter(waiter) });
                }
                // It is in this batch already, for another reason.
                None if keys.counter(&key).books().sealed() != 0 => {
                    let part = parts.iter_mut().find(|part| keys.name(&part.key) == keys.name(&key));
                    debug_assert!(part.is_some(), "sealed by nobody");
                    if let Some(part) = part {
                        part.dirty = part.dirty.take().or(dirty);
                        part.waiters.extend(waiter);
                    }
                }
                None => {
                    if keys.committed(&key) {
                        self.want(key.clone(), None, None);
                    }
                    waiter.iter().for_each(|waiter| waiter.answer(Ok(())));
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

    /// What the store has answered to what was to be sent.
    pub(crate) fn answered(&mut self, keys: &S, now: Duration, answer: Result<Receipt, store::Error>) {
        match answer {
            Ok(Receipt::Applied | Receipt::Duplicate) => self.acknowledged(keys, now),
            // Somebody may mend what it is refused for.
            Err(store::Error::Unavailable(_) | store::Error::Refused(_)) => {
                self.counts.resends += 1;
                let pause = self.backoff.fail();
                if let Some(flight) = &mut self.flight {
                    flight.send_at = now + pause;
                }
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

    /// Whoever waits to move a counter is told that this is over; what is uncommitted stays so.
    pub(crate) fn refuse_moves(&mut self, error: &Error) {
        let wanted = self.wanted.drain(..).filter_map(|wanted| wanted.waiter);
        wanted.for_each(|waiter| waiter.answer(Err(error.clone())));
    }

    /// Commits nothing any more. Whoever waits is not told before [`refuse_all`](Self::refuse_all): first no counter may move.
    fn stop(&mut self, error: Error) {
        self.stopped = Some(error);
    }

    /// Whoever waits is told that nothing is committed any more.
    pub(crate) fn refuse_all(&mut self, error: &Error) {
        if let Some(flight) = &mut self.flight {
            let waiters = flight.parts.iter_mut().flat_map(|part| part.waiters.drain(..));
            waiters.chain(flight.waiters.drain(..)).for_each(|waiter| waiter.answer(Err(error.clone())));
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
        let Some(flight) = self.flight.take() else { return };
        self.backoff.succeed();
        self.claim.last_sequence = flight.batch.sequence;
        self.counts.batches += 1;
        self.counts.changes += flight.batch.deltas.len() as u64;
        self.counts.units +=
            flight.batch.deltas.iter().map(|delta| u128::from(delta.amount.unsigned_abs())).sum::<u128>();
        let mut clean = Vec::new();
        for part in flight.parts {
            keys.counter(&part.key).acknowledge();
            if keys.committed(&part.key) {
                self.want(part.key.clone(), None, None);
            }
            part.waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
            if let Some(dirty) = part.dirty {
                // What is open has come since it was sealed.
                clean.push(dirty.since(flight.sealed_at));
            }
        }
        self.rest(keys, clean, now);
        flight.waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
    }

    /// Parts with what the store refuses: it is open again, and waits for its age before it is tried again.
    fn rejected(&mut self, keys: &S, now: Duration, rejected: &[Rejected]) {
        let Some(mut flight) = self.flight.take() else { return };
        let (mut deltas, mut parts) = (Vec::new(), Vec::new());
        let count = flight.parts.len();
        for (index, (delta, part)) in flight.batch.deltas.drain(..).zip(flight.parts.drain(..)).enumerate() {
            let Some(rejected) = rejected.iter().find(|rejected| rejected.index == index) else {
                deltas.push(delta);
                parts.push(part);
                continue;
            };
            self.counts.rejections += 1;
            keys.counter(&part.key).reject();
            let error = Error::Rejected { reason: rejected.reason.clone() };
            part.waiters.iter().chain(&flight.waiters).for_each(|waiter| waiter.answer(Err(error.clone())));
            if let Some(dirty) = part.dirty {
                self.schedule.push(dirty.since(now));
            }
        }
        (flight.batch.deltas, flight.parts) = (deltas, parts);
        if flight.parts.len() == count {
            // Nothing that we know of is refused: there is no way to go on.
            self.flight = Some(flight);
            self.stop(Error::Broken { reason: "it refuses a batch, and no change of it".into() });
        } else if flight.parts.is_empty() {
            flight.waiters.iter().for_each(|waiter| waiter.answer(Ok(())));
        } else {
            flight.send_at = now;
            self.flight = Some(flight);
        }
    }

    /// Lets those rest that are clean; the others wait for their time again.
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
                self.dirty -= 1;
            }
        }
    }
}

/// Whether the store has all of it, and nothing ahead of it.
fn is_clean<S: Keys>(keys: &S, key: &S::Key) -> bool {
    let books = keys.counter(key).books();
    books.sealed() == 0 && books.open() == 0
}
