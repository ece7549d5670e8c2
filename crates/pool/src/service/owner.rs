//! The thread that owns the pool and its journal.
//!
//! ```text
//! queue ─► staged ─► a frame in the journal ─► settled ─► committed and answered, in order
//!        └─ failed: reverted and refused; the pool makes no more draws
//! ```

use super::doing::do_request;
use super::inbox::{Asked, Call, News};
use super::reply::Reply;
use super::request::{Answer, Outcome, Request, STATE_ITEMS_MAX};
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::state::State;
use crate::draw::selector::Selector;
use crate::journal::{Journal, JournalError, Position};
use crate::pool::Pool;
use crate::record::chained::ChainedPool;
use crate::record::frame::{Chain, Frame};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Size of events at which a frame is written although more calls are queued.
const FRAME_BYTES: usize = 1 << 20;
/// Number of draws that expired reservations return before a frame may be written.
const BACK_AT_ONCE: usize = 1 << 16;
/// Longest sleep while a deadline is pending: bounds how late a change of the clock is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Frames up to this size are read back before they are logged. Longer frames come from calls with
/// many draws, where a second hash would cost a noticeable part of the draws.
const READ_BACK_BYTES_MAX: usize = 4096;
/// How long a snapshot waits for a busy sink.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Owner<S, J, C> {
    chained: ChainedPool<S>,
    journal: J,
    clock: C,
    shared: Arc<Shared>,
    frame: Vec<u8>,
    /// Answers waiting for their frames to settle, in order.
    answers: VecDeque<(Reply, Outcome)>,
    /// Frames that have not settled, in order, with the number of their answers.
    flights: VecDeque<Flight>,
    /// Number of answers that belong to flights.
    flying: usize,
    /// Position of the last frame.
    last: Position,
    /// End of the last frame, where the next one continues.
    log_end: LogEnd,
    /// Whether the staged steps end an epoch, whose answer reveals a secret.
    reveals_secret: bool,
    /// Chain value after the last settled frame.
    settled_chain: Chain,
    failure: Option<JournalError>,
    snapshot: Option<Snapshot>,
    /// Size of the frames written since the last step of the snapshot.
    frame_bytes: usize,
}

/// End of what was given to the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogEnd {
    chain: Chain,
    /// Number of the first draw that is in no frame.
    next_draw: u64,
}

/// A batch of calls whose frame has not settled.
struct Flight {
    position: Position,
    steps: usize,
    answers: usize,
    /// Chain value after it.
    chain: Chain,
}

impl<S: Selector, J: Journal, C: FnMut() -> u64> Owner<S, J, C> {
    pub(super) fn new(chained: ChainedPool<S>, journal: J, clock: C, shared: Arc<Shared>) -> Self {
        Self {
            settled_chain: chained.chain,
            log_end: LogEnd { chain: chained.chain, next_draw: chained.pool.next_draw() },
            chained,
            journal,
            clock,
            shared,
            frame: Vec::new(),
            answers: VecDeque::new(),
            flights: VecDeque::new(),
            flying: 0,
            last: 0,
            reveals_secret: false,
            failure: None,
            snapshot: None,
            frame_bytes: 0,
        }
    }

    /// Runs until the queue is closed and empty.
    pub(super) fn run(mut self) -> Result<(), JournalError> {
        let _end = EndOnPanic(Arc::clone(&self.shared));
        self.shared.inbox.own();
        let shared = Arc::clone(&self.shared);
        self.journal.listen(Arc::new(move || shared.inbox.notify()));
        self.chained.pool.commit();
        self.chained.pool.stage();
        let mut calls = Vec::new();
        loop {
            let at_most = self.at_most();
            match self.shared.inbox.take(&mut calls, at_most) {
                News::End => break,
                News::Other => self.work(&mut calls),
                News::Calls => {
                    self.work(&mut calls);
                    self.shared.inbox.gather();
                }
            }
            self.go_on_with_snapshot();
        }
        // Frames without an answer may not have settled yet: closing the journal settles them.
        assert!(self.answers.is_empty(), "{} calls were not answered", self.answers.len());
        // Drops an incomplete snapshot, so the journal does not wait for it.
        self.snapshot = None;
        let closed = self.journal.close();
        self.failure.map_or(closed, Err)
    }

    /// Returns how long the thread may sleep until the next deadline.
    fn at_most(&mut self) -> Option<Duration> {
        if let Some(snapshot) = &self.snapshot {
            // The sink does not notify when it has room again.
            return Some(if snapshot.is_busy() { SNAPSHOT_PAUSE } else { Duration::ZERO });
        }
        let until_us = self.chained.pool.next_due().filter(|_| self.failure.is_none())?;
        Some(Duration::from_micros(until_us.saturating_sub((self.clock)())).min(SLEEP_MAX))
    }

    /// Executes calls, writes frames, and answers what has settled.
    fn work(&mut self, calls: &mut Vec<Call>) {
        let now_us = (self.clock)();
        self.let_time_pass(now_us);
        for Call { asked, reply } in calls.drain(..) {
            // A read must not wait for the steps after it.
            let is_read =
                matches!(&asked, Asked::Other(request) if matches!(**request, Request::State { .. }));
            let outcome = self.outcome(asked, now_us);
            self.answers.push_back((reply, outcome));
            if is_read || self.chained.pool.staged().len() >= FRAME_BYTES {
                self.write(now_us);
            }
        }
        self.write(now_us);
        if self.failure.is_none() && !self.flights.is_empty() {
            self.journal.request(self.last);
        }
        self.land();
    }

    fn let_time_pass(&mut self, now_us: u64) {
        while self.failure.is_none() && self.chained.pool.next_due().is_some_and(|due_us| due_us <= now_us) {
            self.seen(|pool| pool.catch_up_some(now_us, BACK_AT_ONCE));
            if self.chained.pool.staged().len() >= FRAME_BYTES {
                self.write(now_us);
            }
        }
    }

    #[inline]
    fn outcome(&mut self, asked: Asked, now_us: u64) -> Outcome {
        match asked {
            Asked::Other(request) => self.rare_outcome(*request, now_us),
            Asked::Draw => match &self.failure {
                None => Ok(Answer::Draw(self.seen(Pool::draw_or_refuse)?)),
                Some(failure) => Err(failure.clone().into()),
            },
        }
    }

    fn rare_outcome(&mut self, request: Request, now_us: u64) -> Outcome {
        if let Request::State { from, count } = request {
            // The chain value in the answer must match the state of the pool.
            self.write(now_us);
            let ChainedPool { pool, chain } = &self.chained;
            return Ok(Answer::State(Box::new(State::of(pool, *chain, from, count.min(STATE_ITEMS_MAX)))));
        }
        match &self.failure {
            Some(failure) => Err(failure.clone().into()),
            None => {
                let outcome = self.seen(|pool| do_request(pool, &request, now_us));
                self.reveals_secret |= matches!(outcome, Ok(Answer::Revealed(_)));
                // A new reservation may already be overdue.
                self.let_time_pass(now_us);
                outcome
            }
        }
    }

    /// Changes the pool, after a running snapshot has copied what changes. `act` must be
    /// deterministic, as it may run twice.
    #[inline]
    fn seen<R>(&mut self, act: impl Fn(&mut Pool<S>) -> R) -> R {
        let pool = &mut self.chained.pool;
        match &mut self.snapshot {
            None => act(pool),
            Some(snapshot) => snapshot.see_before(pool, act),
        }
    }

    /// Begins a snapshot if the journal wants one, or continues a running one.
    #[inline]
    fn go_on_with_snapshot(&mut self) {
        if self.failure.is_some() {
            self.snapshot = None;
            return;
        }
        if self.snapshot.is_none() {
            let ChainedPool { pool, chain } = &self.chained;
            self.snapshot = self.journal.begin_snapshot().map(|sink| Snapshot::begin(pool, *chain, sink));
        }
        let frame_bytes = std::mem::take(&mut self.frame_bytes);
        self.snapshot =
            self.snapshot.take().and_then(|snapshot| snapshot.step(&self.chained.pool, frame_bytes));
    }

    /// Writes the staged steps as a frame. The answers added since wait until it has settled.
    fn write(&mut self, time_us: u64) {
        if self.failure.is_some() {
            return;
        }
        let (all, flying) = (self.answers.len(), self.flying);
        let answers = all.checked_sub(flying);
        let answers = answers.unwrap_or_else(|| panic!("{flying} of {all} answers wait for their frames"));
        if self.chained.pool.staged().is_empty() {
            if answers == 0 {
                return;
            }
        } else {
            self.frame.clear();
            self.chained.write_staged(time_us, &mut self.frame);
            self.continue_log();
            self.frame_bytes += self.frame.len();
            match self.journal.append(time_us, &self.frame) {
                Ok(position) => {
                    let last = self.last;
                    assert!(position > last, "the journal takes a frame at {position}, behind one at {last}");
                    self.last = position;
                }
                Err(failure) => return self.fail(failure),
            }
            if std::mem::take(&mut self.reveals_secret) {
                self.journal.settle_when_durable(self.last);
            }
        }
        let steps = self.chained.pool.hand_over();
        self.flights.push_back(Flight { position: self.last, steps, answers, chain: self.chained.chain });
        self.flying += answers;
    }

    /// Panics if the frame does not continue the one before it: a replay would refuse the log.
    fn continue_log(&mut self) {
        let before = self.log_end;
        let read = if self.frame.len() <= READ_BACK_BYTES_MAX {
            Frame::read(&self.frame, before.chain)
        } else {
            Frame::read_stated(&self.frame)
        };
        let (frame, chain) = read.unwrap_or_else(|error| panic!("a frame is not as it was to be: {error}"));
        let (first_draw, next_draw) = (frame.first_draw, self.chained.pool.next_draw());
        assert!(
            first_draw == before.next_draw && chain == self.chained.chain,
            "a frame from draw {first_draw} on with {chain} would follow {before:?}, and the chain is {}",
            self.chained.chain
        );
        self.log_end = LogEnd { chain, next_draw };
    }

    /// Commits and answers what has settled.
    fn land(&mut self) {
        if self.failure.is_some() {
            return self.answer(self.answers.len());
        }
        let settled = match self.journal.settled() {
            Ok(settled) => settled,
            Err(failure) => return self.fail(failure),
        };
        let (mut steps, mut answers) = (0, 0);
        while let Some(flight) = self.flights.pop_front_if(|flight| flight.position <= settled) {
            steps += flight.steps;
            answers += flight.answers;
            self.settled_chain = flight.chain;
        }
        self.chained.pool.commit_first(steps);
        let flying = self.flying;
        let left = flying.checked_sub(answers);
        self.flying = left.unwrap_or_else(|| panic!("{answers} answers have settled, and {flying} were to"));
        self.answer(answers);
    }

    fn answer(&mut self, answers: usize) {
        if answers == 0 {
            return;
        }
        for (reply, outcome) in self.answers.drain(..answers) {
            reply.answer(outcome);
        }
        self.shared.inbox.answered(answers);
    }

    /// Reverts everything that has not settled. No more calls are executed.
    #[cold]
    fn fail(&mut self, failure: JournalError) {
        self.chained.pool.revert();
        self.chained.chain = self.settled_chain;
        self.flights.clear();
        self.flying = 0;
        for (reply, _) in self.answers.drain(..) {
            reply.answer(Err(failure.clone().into()));
            self.shared.inbox.answered(1);
        }
        self.failure = Some(failure);
    }
}

/// Ends all waits if the thread panics.
struct EndOnPanic(Arc<Shared>);

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.inbox.abandon();
        }
    }
}
