//! The commit thread, which also loads and evicts: between the inbox, the committer and the store.

use super::inbox::{Loaded, Request};
use super::key::KeyRef;
use super::metrics::Exposure;
use super::readers;
use super::shared::Shared;
use crate::committer::{Backoff, Committer, Error, Limits, Step, Ticket};
use crate::store::{self, Claim, Store};
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Number of sweeps after which an unused key is evicted.
const SWEEPS: u32 = 4;

/// Shortest time between two sweeps.
const SHORTEST: Duration = Duration::from_millis(1);

/// At the limit, one of this many of a shard's keys is evicted at a time.
const PART: usize = 16;

type Answer = Arc<Ticket<Result<(), Error>>>;

pub(crate) struct Worker<S> {
    shared: Arc<Shared>,
    store: S,
    committer: Committer<Shared>,
    began: Instant,
    loads: VecDeque<Load>,
    /// Time of the next load request to the store.
    load_at: Duration,
    load_backoff: Backoff,
    /// Callers that wait for places for new keys, and for how many.
    crowd: Vec<(usize, Answer)>,
    /// A flush in progress that makes keys evictable.
    cleaning: Option<Answer>,
    /// Time of the next sweep; `sweep_shard` is its shard.
    sweep_at: Duration,
    sweep_shard: usize,
    closing: Option<Closing>,
    dirty: Vec<KeyRef>,
    requests: Vec<Request>,
}

struct Load {
    name: Box<[u8]>,
    loaded: Loaded,
}

struct Closing {
    until: Duration,
    flushed: Answer,
    closed: Vec<Answer>,
}

impl<S: Store> Worker<S> {
    pub(crate) fn new(shared: Arc<Shared>, store: S, claim: Claim, seed: u64) -> Self {
        let options = &shared.options;
        let (first, longest) = options.backoff;
        let limits = Limits {
            interval: options.interval,
            max_batch: options.max_batch.min(store.max_deltas()).max(1),
            backoff: options.backoff,
            seed,
        };
        Self {
            committer: Committer::new(options.writer.clone(), claim, limits),
            load_backoff: Backoff::new(first, longest, seed.rotate_left(32)),
            shared,
            store,
            began: Instant::now(),
            loads: VecDeque::new(),
            load_at: Duration::ZERO,
            crowd: Vec::new(),
            cleaning: None,
            sweep_at: Duration::ZERO,
            sweep_shard: 0,
            closing: None,
            dirty: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Runs until the counters are closed, or nothing can be committed any more.
    pub(crate) fn run(mut self) {
        let ended = panic::catch_unwind(AssertUnwindSafe(|| self.work()));
        let result = ended.unwrap_or_else(|_| {
            Err(Error::Broken { reason: "it has panicked, or the thread that commits has".into() })
        });
        self.end(result);
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn work(&mut self) -> Result<(), Error> {
        loop {
            self.receive();
            self.load();
            self.make_room();
            self.sweep();
            let step = self.committer.step(&self.shared, self.now());
            self.report();
            if let Some(result) = self.closed() {
                return result;
            }
            let until = match step {
                Step::Send(batch) => {
                    let answer = self.store.commit(&batch);
                    self.committer.answered(&self.shared, self.now(), answer);
                    Some(Duration::ZERO)
                }
                Step::Wait(until) => until,
                Step::Stopped(error) => return Err(error),
            };
            self.wait(until);
        }
    }

    /// Waits for messages, at most until `until`.
    fn wait(&mut self, until: Option<Duration>) {
        // Dirty counters are received whenever the committer runs. If it has nothing to do, the
        // first one must wake this thread.
        let wakes_for_dirty = until.is_none();
        let load = (!self.loads.is_empty()).then_some(self.load_at);
        let sweep = self.shared.options.idle.map(|_| self.sweep_at);
        let closing = self.closing.as_ref().map(|closing| closing.until);
        let has_cleaned = self.cleaning.as_ref().is_some_and(|cleaning| cleaning.peek().is_some());
        let room = has_cleaned.then_some(Duration::ZERO);
        let until = [until, load, sweep, closing, room].into_iter().flatten().min();
        let until = until.and_then(|until| self.began.checked_add(until));
        self.shared.inbox.take(until, wakes_for_dirty, &mut self.dirty, &mut self.requests);
    }

    fn receive(&mut self) {
        let now = self.now();
        for key in self.dirty.drain(..) {
            self.committer.note(&self.shared, key, now);
        }
        for request in std::mem::take(&mut self.requests) {
            self.fulfil(request);
        }
    }

    fn fulfil(&mut self, request: Request) {
        if self.closing.is_some() && !matches!(request, Request::Survey(_) | Request::Close(_)) {
            return request.refuse(&Error::Closed);
        }
        match request {
            Request::Commit { key, extent, waiter } => self.committer.want(key, extent, waiter),
            Request::Move { key, errand } => self.committer.run(key, errand),
            Request::Load { name, loaded } => self.loads.push_back(Load { name, loaded }),
            Request::Flush(waiter) => self.committer.flush(waiter),
            Request::MakeRoom { places, made } => self.crowd.push((places, made)),
            Request::Evict(evicted) => {
                let shards = 0..self.shared.shards().len();
                evicted.answer(shards.map(|shard| self.put_away(shard, usize::MAX, 0)).sum());
            }
            Request::Survey(survey) => survey.answer(Exposure {
                units: self.committer.uncommitted(&self.shared),
                oldest: self.committer.oldest().map(|since| self.now().saturating_sub(since)),
            }),
            Request::Close(closed) => self.close(closed),
        }
    }

    /// Stops all moves, and commits all that is dirty.
    fn close(&mut self, closed: Answer) {
        if let Some(closing) = &mut self.closing {
            closing.closed.push(closed);
            return;
        }
        let now = self.now();
        let committer = &mut self.committer;
        let shared = &self.shared;
        shared.freeze(Error::Closed, |key| {
            if key.set_dirty() {
                committer.note(shared, key.clone(), now);
            }
        });
        // Messages from before the freeze.
        let (mut dirty, mut requests) = (Vec::new(), Vec::new());
        shared.inbox.take(Some(self.began), false, &mut dirty, &mut requests);
        dirty.into_iter().for_each(|key| committer.note(shared, key, now));
        requests.into_iter().for_each(|request| request.refuse(&Error::Closed));
        committer.refuse_moves(&Error::Closed);
        let flushed = Answer::default();
        committer.flush(flushed.clone());
        let until = now.saturating_add(shared.options.patience);
        self.closing = Some(Closing { until, flushed, closed: vec![closed] });
    }

    /// Returns the result of closing if all is committed, or if it is too late.
    fn closed(&self) -> Option<Result<(), Error>> {
        let closing = self.closing.as_ref()?;
        let is_late = closing.until <= self.now();
        let (waited, reason) = (self.shared.options.patience, "what is uncommitted is lost".into());
        closing.flushed.peek().or(is_late.then_some(Err(Error::Unavailable { waited, reason })))
    }

    /// Closes the inbox, and answers all present and future requests.
    fn end(&mut self, result: Result<(), Error>) {
        let error = result.clone().err().unwrap_or(Error::Closed);
        self.shared.freeze(error.clone(), |_| {});
        for request in std::mem::take(&mut self.requests).into_iter().chain(self.shared.inbox.close()) {
            match request {
                Request::Close(closed) => closed.answer(result.clone()),
                request => request.refuse(&error),
            }
        }
        self.committer.refuse_all(&error);
        self.loads.drain(..).for_each(|load| load.loaded.answer(Err(error.clone())));
        self.crowd.drain(..).for_each(|(_, made)| made.answer(Err(error.clone())));
        let closing = self.closing.take();
        closing.into_iter().flat_map(|it| it.closed).for_each(|closed| closed.answer(result.clone()));
        self.report();
    }

    fn report(&self) {
        let mut committer = self.shared.figures.committer.lock().unwrap_or_else(PoisonError::into_inner);
        *committer = (self.committer.counts(), self.committer.dirty());
    }

    /// Requests from the store what is to be loaded.
    fn load(&mut self) {
        // Drops loads for which no caller waits any more.
        self.loads.retain(|load| Arc::strong_count(&load.loaded) > 1);
        if self.loads.is_empty() || self.load_at > self.now() {
            return;
        }
        let count = self.loads.len().min(self.shared.options.max_batch.max(1));
        let names: Vec<&[u8]> = self.loads.iter().take(count).map(|load| &*load.name).collect();
        match self.store.load(&names) {
            Ok(positions) if positions.len() == count => {
                self.load_backoff.succeed();
                for (load, position) in self.loads.drain(..count).zip(positions) {
                    load.loaded.answer(Ok(position.unwrap_or(0)));
                }
            }
            Ok(positions) => {
                let reason = format!("it gives {} positions for {count} names", positions.len());
                let error = Error::Broken { reason };
                self.loads.drain(..count).for_each(|load| load.loaded.answer(Err(error.clone())));
            }
            Err(store::Error::Unavailable(_)) => {
                self.load_at = self.now() + self.load_backoff.fail();
            }
            Err(error) => {
                let error = Error::from(error);
                self.loads.drain(..count).for_each(|load| load.loaded.answer(Err(error.clone())));
            }
        }
    }

    /// Evicts keys for callers that wait for places: first keys that are unused since the last
    /// sweep. If that frees no place, then any clean key, and then any after a flush.
    fn make_room(&mut self) {
        let has_cleaned = match self.cleaning.as_ref().map(|cleaning| cleaning.peek()) {
            Some(None) => return,
            Some(Some(_)) => true,
            None => false,
        };
        self.cleaning = None;
        // Drops requests for which no caller waits any more.
        self.crowd.retain(|(_, made)| Arc::strong_count(made) > 1);
        if self.crowd.is_empty() {
            return;
        }
        let shards = self.shared.shards().len();
        let wanted = self.crowd.iter().fold(0, |sum: usize, (places, _)| sum.saturating_add(*places));
        for visit in 0..2 * shards {
            let enough = if visit < shards { wanted } else { 1 };
            if self.shared.places() >= enough {
                break;
            }
            let most = (self.shared.options.max_keys / shards / PART).max(wanted);
            self.put_away(self.sweep_shard, most, u16::from(visit < shards));
            self.sweep_shard = (self.sweep_shard + 1) % shards;
        }
        let result = match (self.shared.places() == 0, has_cleaned) {
            (false, _) => Ok(()),
            (true, true) => Err(Error::Full { max_keys: self.shared.options.max_keys }),
            (true, false) => {
                let cleaning = Answer::default();
                self.committer.flush(cleaning.clone());
                self.cleaning = Some(cleaning);
                return;
            }
        };
        self.crowd.drain(..).for_each(|(_, made)| made.answer(result.clone()));
    }

    /// Sweeps one shard after another, each four times within the idle time after which a counter
    /// is evicted.
    fn sweep(&mut self) {
        let Some(idle) = self.shared.options.idle.filter(|_| self.sweep_at <= self.now()) else { return };
        let shards = self.shared.shards().len();
        self.put_away(self.sweep_shard, usize::MAX, SWEEPS as u16);
        self.sweep_shard = (self.sweep_shard + 1) % shards;
        self.sweep_at = self.now() + (idle / (SWEEPS * shards as u32)).max(SHORTEST);
    }

    /// Evicts up to `most` of a shard's keys that are clean, unreferenced, and unused for `sweeps`
    /// sweeps. Returns how many.
    ///
    /// They are removed from the table first, so that no new reader finds them. After all readers
    /// have left, keys that were not used meanwhile are freed, and the others are inserted again.
    fn put_away(&self, shard: usize, most: usize, sweeps: u16) -> usize {
        let shard = &self.shared.shards()[shard];
        let hash_of = |name: &[u8]| self.shared.hash(name);
        let mut count = 0;
        let out = shard.lock().take_out(hash_of, |key| {
            let is_out = count < most && key.sweep() >= sweeps && key.is_idle();
            count += usize::from(is_out);
            is_out
        });
        if out == 0 {
            return 0;
        }
        readers::wait();
        let freed = shard.lock().free(hash_of);
        self.shared.put_away(freed);
        freed
    }
}
