//! The load: threads that each drive a share of the connections through an event loop.
//!
//! Closed loop: a reply frees the slot for the next request, so a slow server gets fewer requests.
//! Open loop: requests are due at fixed times, and latency counts from those times. A stall then
//! shows in every request that it delays, not only in the one in flight.

use super::clock::{Clock, END_CHECK, nanos};
use super::connection::{Connection, InFlight};
use super::emission::Board;
use super::options::{EmitBy, KvOptions};
use super::reply::Reply;
use super::workload::{Operation, ReplyMeaning, Workload};
use crate::latency::Latencies;
use crate::random::Random;
use anyhow::Context;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// State shared by all threads of a run.
pub(super) struct Plan<'a> {
    pub(super) options: &'a KvOptions,
    pub(super) workload: &'a Workload,
    /// Set when emissions are measured: every operation is then a SET of a watched key.
    pub(super) board: Option<&'a Board>,
    pub(super) clock: Clock,
    /// Successes of all threads so far, warm-up included.
    pub(super) served: AtomicU64,
}

/// Counts of the measured window.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    /// GETs among the successes that found no key.
    pub(super) misses: u64,
    /// Requests of an open loop that were due and could not be sent; they count as failed.
    pub(super) unsent: u64,
    /// Successes over the whole run, warm-up included.
    pub(super) served: u64,
    pub(super) lost_connections: u64,
    pub(super) first_failure: Option<String>,
    pub(super) latencies: Latencies,
    /// Processor time over wall time of the busiest driving thread.
    pub(super) cpu_share: f64,
    pub(super) threads: usize,
}

const EVENTS_PER_TURN: usize = 1024;
const READ_BYTES: usize = 64 << 10;
const WAKE: Token = Token(usize::MAX);
/// Shortest interval between two wake-ups of the open loop; requests that are due within it go out
/// together.
const PACE_NANOS_MIN: u64 = 100_000;
const NANOS_PER_SECOND: f64 = 1e9;
/// Longest time after the window's end in which an open loop may still send what was due within it
/// ...
const CATCH_UP_NANOS_MAX: u64 = 100_000_000;
/// ... and the fraction of the window that limits it: a rate missed by a tenth is not kept, however
/// short the window.
const CATCH_UP_DIVISOR: u64 = 10;

/// Drives `streams` until the plan's end, then waits for the outstanding replies.
pub(super) fn run(plan: &Plan<'_>, streams: Vec<TcpStream>) -> anyhow::Result<Outcome> {
    let threads = plan.options.driving_threads();
    let mut shares: Vec<Vec<(usize, TcpStream)>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, stream) in streams.into_iter().enumerate() {
        shares[index % threads].push((index, stream));
    }
    let outcomes = std::thread::scope(|scope| {
        let drivers: Vec<_> = shares
            .into_iter()
            .enumerate()
            .map(|(thread, share)| scope.spawn(move || Driver::new(plan, thread, threads, share)?.drive()))
            .collect();
        drivers.into_iter().map(|driver| driver.join().expect("a driver does not panic")).collect::<Vec<_>>()
    });
    let mut total = Outcome::default();
    for outcome in outcomes {
        total.add(outcome?);
    }
    Ok(total)
}

impl Outcome {
    /// Adds what another thread has counted.
    pub(super) fn add(&mut self, other: Outcome) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.misses += other.misses;
        self.unsent += other.unsent;
        self.served += other.served;
        self.lost_connections += other.lost_connections;
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.latencies.add(&other.latencies);
        self.cpu_share = self.cpu_share.max(other.cpu_share);
        self.threads += 1;
    }

    /// Counts failures, and keeps the first reason.
    pub(super) fn fail(&mut self, count: u64, reason: impl FnOnce() -> String) {
        self.failed += count;
        if count > 0 && self.first_failure.is_none() {
            self.first_failure = Some(reason());
        }
    }
}

/// One thread's share of the load.
struct Driver<'a> {
    plan: &'a Plan<'a>,
    poll: Poll,
    connections: Vec<Connection>,
    random: Random,
    schedule: Option<Schedule>,
    outcome: Outcome,
}

impl<'a> Driver<'a> {
    fn new(
        plan: &'a Plan<'a>,
        thread: usize,
        threads: usize,
        share: Vec<(usize, TcpStream)>,
    ) -> anyhow::Result<Self> {
        let poll = Poll::new().context("cannot create an event loop")?;
        let mut connections = Vec::with_capacity(share.len());
        for (index, stream) in share {
            stream.set_nonblocking(true)?;
            let mut stream = mio::net::TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(connections.len()), interest)?;
            connections.push(Connection::new(stream, plan.options.slots(index)));
        }
        let seed = plan.options.seed.expect("a run without --seed is given one before it begins");
        let schedule =
            plan.options.rate.map(|rate| Schedule::new(rate / threads as f64, thread, threads, &connections));
        Ok(Driver {
            plan,
            poll,
            connections,
            random: Random::new(seed, thread as u64),
            schedule,
            outcome: Outcome::default(),
        })
    }

    fn drive(mut self) -> anyhow::Result<Outcome> {
        let cpu_before = thread_cpu();
        let began = self.plan.clock.now();
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            if let Some(schedule) = &self.schedule {
                let waker = Waker::new(self.poll.registry(), WAKE).context("cannot create a waker")?;
                let (offset, interval) = (schedule.offset, schedule.interval);
                let (clock, finished) = (&self.plan.clock, &finished);
                scope.spawn(move || pace(offset, interval, clock, finished, &waker));
            }
            let result = self.loop_until_end();
            finished.store(true, Ordering::Relaxed);
            result
        })?;
        let wall = self.plan.clock.now().saturating_sub(began).max(1);
        self.outcome.cpu_share = thread_cpu().saturating_sub(cpu_before).as_nanos() as f64 / wall as f64;
        self.drain()?;
        Ok(self.outcome)
    }

    fn loop_until_end(&mut self) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let mut scratch = vec![0; READ_BYTES];
        if self.schedule.is_none() {
            for index in 0..self.connections.len() {
                self.refill(index);
            }
        }
        loop {
            let now = self.plan.clock.now();
            let end = self.plan.clock.end();
            if now >= end {
                // The last requests may have become due while the loop slept.
                self.send_due(end - 1);
                return Ok(());
            }
            self.send_due(now);
            anyhow::ensure!(
                self.connections.iter().any(|connection| connection.open),
                "every connection was lost: {}",
                self.outcome.first_failure.as_deref().unwrap_or("the server closed them")
            );
            self.wait(&mut events, (end - now).min(nanos(END_CHECK)))?;
            for event in &events {
                self.turn(event.token(), &mut scratch);
            }
        }
    }

    fn wait(&mut self, events: &mut Events, nanos: u64) -> anyhow::Result<()> {
        match self.poll.poll(events, Some(Duration::from_nanos(nanos))) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            result => result.context("the event loop failed"),
        }
    }

    /// Processes a connection's replies and, in a closed loop, sends as many requests.
    fn turn(&mut self, token: Token, scratch: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(token.0).filter(|connection| connection.open) else {
            return;
        };
        let (plan, outcome, schedule) = (self.plan, &mut self.outcome, &mut self.schedule);
        let served_before = outcome.served;
        let mut arrived = None;
        let received = connection.receive(scratch, |flight, reply| {
            // One clock reading serves all replies of a read: they arrived together.
            let now = *arrived.get_or_insert_with(|| plan.clock.now());
            count(outcome, plan, flight, reply, now);
            if let Some(schedule) = schedule
                && flight.operation.ends_turn()
            {
                schedule.free.push_back(token.0);
            }
        });
        plan.served.fetch_add(outcome.served - served_before, Ordering::Relaxed);
        let sent = received.and_then(|()| {
            if self.schedule.is_none() {
                self.refill(token.0);
            } else if let Some(connection) = self.connections.get_mut(token.0) {
                connection.flush()?;
            }
            Ok(())
        });
        if let Err(error) = sent {
            self.lose(token.0, &error);
        }
    }

    /// Closed loop: fills a connection's free slots and writes once.
    fn refill(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let now = self.plan.clock.now();
        if now < self.plan.clock.end() {
            for _ in 0..connection.free_slots() {
                enqueue(connection, self.plan, &mut self.random, now, now);
            }
        }
        if let Err(error) = connection.flush() {
            self.lose(index, &error);
        }
    }

    /// Open loop: sends every due request while connections have free slots.
    fn send_due(&mut self, now: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        let mut touched = Vec::new();
        while let Some(due) = schedule.due(now) {
            let Some(index) = schedule.free.pop_front() else { break };
            let Some(connection) = self.connections.get_mut(index) else { continue };
            if connection.free_slots() == 0 {
                continue;
            }
            enqueue(connection, self.plan, &mut self.random, due, now);
            schedule.next += 1;
            touched.push(index);
        }
        for index in touched {
            if let Some(Err(error)) = self.connections.get_mut(index).map(Connection::flush) {
                self.lose(index, &error);
            }
        }
    }

    fn lose(&mut self, index: usize, error: &std::io::Error) {
        let Some(connection) = self.connections.get_mut(index).filter(|connection| connection.open) else {
            return;
        };
        let in_flight = connection.close();
        let lost = in_flight.len() as u64;
        record_unanswered(&mut self.outcome, self.plan, &in_flight);
        self.outcome.lost_connections += 1;
        self.outcome.fail(lost.max(1), || format!("a connection was lost: {error}"));
    }

    /// Open loop: for a short time after the window, sends due requests that had found no free
    /// connection. A request that is still unsent has failed: the rate was not kept.
    fn catch_up(&mut self, events: &mut Events, scratch: &mut [u8]) -> anyhow::Result<()> {
        let clock = &self.plan.clock;
        let catch_up = CATCH_UP_NANOS_MAX.min(nanos(clock.measured()) / CATCH_UP_DIVISOR);
        let (last_due, until) = (clock.end() - 1, clock.end() + catch_up);
        loop {
            self.send_due(last_due);
            let Some(schedule) = &self.schedule else { return Ok(()) };
            let now = clock.now();
            if schedule.due(last_due).is_none() || now >= until {
                let unsent = schedule.unsent(clock, now, &mut self.outcome.latencies);
                self.outcome.unsent = unsent;
                self.outcome.fail(unsent, || "requests were due and could not be sent".to_owned());
                return Ok(());
            }
            self.wait(events, until - now)?;
            for event in &*events {
                self.turn(event.token(), scratch);
            }
        }
    }

    /// Waits for the requests in flight; requests without a reply in time have failed.
    fn drain(&mut self) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let mut scratch = vec![0; READ_BYTES];
        self.catch_up(&mut events, &mut scratch)?;
        let deadline = self.plan.clock.end().saturating_add(nanos(self.plan.options.op_timeout));
        loop {
            let awaited: usize = self.connections.iter().map(Connection::awaited).sum();
            let now = self.plan.clock.now();
            if awaited == 0 {
                return Ok(());
            }
            if now >= deadline {
                let timeout = self.plan.options.op_timeout;
                for connection in &mut self.connections {
                    record_unanswered(&mut self.outcome, self.plan, &connection.close());
                }
                self.outcome.fail(awaited as u64, || format!("no reply within {timeout:?}"));
                return Ok(());
            }
            self.wait(&mut events, deadline - now)?;
            for event in &events {
                self.turn(event.token(), &mut scratch);
            }
        }
    }
}

/// Appends a worker's turn to a connection: the next request or the next two.
fn enqueue(connection: &mut Connection, plan: &Plan<'_>, random: &mut Random, started: u64, now: u64) {
    let Some(board) = plan.board else {
        let operation = plan.workload.encode_next(&mut connection.outgoing, random);
        connection.sent(InFlight { operation, started });
        return;
    };
    let key = plan.workload.any_watched_key(random);
    let announced = plan.options.emit_by == EmitBy::Publish;
    let token = board.issue(key, now);
    plan.workload.encode_watched_set(&mut connection.outgoing, key, token, announced);
    let operation = if announced { Operation::AnnouncedSet } else { Operation::Set };
    connection.sent(InFlight { operation, started });
    if announced {
        connection.sent(InFlight { operation: Operation::Publish, started });
    }
}

/// Counts one reply if its request belongs to the measured window.
fn count(outcome: &mut Outcome, plan: &Plan<'_>, flight: InFlight, reply: &Reply<'_>, now: u64) {
    let meaning = plan.workload.judge(flight.operation, reply);
    // The PUBLISH that announces a SET is part of it, unless it fails.
    if flight.operation == Operation::Publish && meaning == ReplyMeaning::Success {
        return;
    }
    outcome.served += u64::from(!matches!(meaning, ReplyMeaning::Failure(_)));
    if flight.started < plan.clock.measured_from {
        return;
    }
    if let ReplyMeaning::Failure(reason) = meaning {
        outcome.fail(1, || reason);
        return;
    }
    // A closed loop's throughput counts replies within the window. An open loop follows each
    // request of the window to its reply.
    if now > plan.clock.end() && plan.options.rate.is_none() {
        return;
    }
    outcome.succeeded += 1;
    outcome.misses += u64::from(meaning == ReplyMeaning::Miss);
    outcome.latencies.record_nanos(now.saturating_sub(flight.started));
}

/// Open loop: records the time waited so far by each unanswered request. Without it the worst
/// latencies would be missing.
fn record_unanswered(outcome: &mut Outcome, plan: &Plan<'_>, in_flight: &[InFlight]) {
    if plan.options.rate.is_none() {
        return;
    }
    let now = plan.clock.now();
    for flight in in_flight.iter().filter(|flight| flight.started >= plan.clock.measured_from) {
        outcome.latencies.record_nanos(now.saturating_sub(flight.started));
    }
}

/// Due times of an open loop: request `n` of a thread is due at `offset + n * interval`.
struct Schedule {
    /// Nanoseconds between two requests of this thread.
    interval: f64,
    /// Phase of this thread, which spreads the threads over the interval.
    offset: f64,
    /// Number of the first unsent request.
    next: u64,
    /// Index of a connection, once for every free slot.
    free: VecDeque<usize>,
}

impl Schedule {
    fn new(rate: f64, thread: usize, threads: usize, connections: &[Connection]) -> Self {
        assert!(rate > 0.0, "{rate} requests a second are never due");
        let interval = NANOS_PER_SECOND / rate;
        let most = connections.iter().map(|connection| connection.slots).max().unwrap_or_default();
        // One slot of every connection first, so that a low rate uses all of them.
        let free = (0..most)
            .flat_map(|slot| {
                connections.iter().enumerate().filter(move |(_, c)| slot < c.slots).map(|(i, _)| i)
            })
            .collect();
        Schedule { interval, offset: interval * thread as f64 / threads as f64, next: 0, free }
    }

    fn due_at(&self, request: u64) -> u64 {
        (self.offset + request as f64 * self.interval) as u64
    }

    /// Returns the due time of the next request if it has passed.
    fn due(&self, now: u64) -> Option<u64> {
        Some(self.due_at(self.next)).filter(|due| *due <= now)
    }

    /// Counts the requests of the measured window that were due and never sent. Records the time
    /// that they have waited so far: without it the worst latencies would be missing.
    fn unsent(&self, clock: &Clock, now: u64, latencies: &mut Latencies) -> u64 {
        let mut unsent = 0;
        let mut request = self.next;
        while self.due_at(request) < clock.end() {
            if self.due_at(request) >= clock.measured_from {
                latencies.record_nanos(now.saturating_sub(self.due_at(request)));
                unsent += 1;
            }
            request += 1;
        }
        unsent
    }
}

/// Wakes a driver whenever requests become due. A poll's timeout in milliseconds is too coarse.
fn pace(offset: f64, interval: f64, clock: &Clock, finished: &AtomicBool, waker: &Waker) {
    let step = interval.max(PACE_NANOS_MIN as f64);
    let mut tick = 0_u64;
    while !finished.load(Ordering::Relaxed) {
        // Late ticks are skipped: one wake-up sends everything that is due.
        tick = (tick + 1).max(((clock.now() as f64 - offset) / step) as u64);
        clock.sleep_until((offset + tick as f64 * step) as u64);
        if waker.wake().is_err() {
            return;
        }
    }
}

/// Returns the processor time of the calling thread.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
