//! A worker: a thread with an event loop and the connections that it has accepted.
//!
//! Each turn of the loop takes all pending work before it writes: it reads and runs commands, takes
//! messages from other threads, handles deadlines, requests log progress, and then sends the
//! replies. So one write carries all replies to a client, and one sync covers all changes of a
//! turn.

mod accepting;
mod environment;
mod log_progress;
mod messages;
mod peer;
mod reading;
mod sending;
mod timing;

pub(crate) use log_progress::DiskTask;

use crate::context::Context;
use crate::net::connection_id::ConnectionId;
use crate::net::inbox::Message;
use crate::net::listener::Listener;
use crate::net::outbox::Reached;
use crate::net::timers::Timers;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use environment::Environment;
use log_progress::Confirmation;
use mio::{Events, Poll, Token};
use peer::Peer;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_log::{Clock, Lsn};

/// Most events taken in one turn.
const EVENTS: usize = 1024;
/// Most bytes per read. A client that has sent more is read again in the next turn, after the other
/// clients.
const READ_BYTES: usize = 64 * 1024;

/// Token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Listeners have the tokens below the waker's.
const FIRST_LISTENER: usize = usize::MAX - 1;

/// A worker's event loop.
pub(crate) struct EventLoop {
    environment: Environment,
    state: WorkerState,
    events: Events,
}

/// The connections of a worker, and what of them is to be done.
struct WorkerState {
    /// The worker's index.
    index: usize,
    poll: Poll,
    listeners: Vec<Listener>,
    /// When accepting resumes after the process was out of descriptors.
    accept_at: Option<Instant>,
    peers: Vec<Option<Box<Peer>>>,
    free: Vec<usize>,
    /// Slots closed in this turn. Reused from the next turn on, when no pending event can refer to
    /// them.
    closed: Vec<usize>,
    /// Connections with something to send.
    flush: Vec<usize>,
    /// Connections that have more to read or to run.
    again: Vec<usize>,
    /// Connections that wait for the log.
    holding: Vec<usize>,
    /// Log progress that all of them together need.
    log_wanted: Reached,
    /// Highest LSN whose commit was requested; requests are not repeated.
    commit_requested: Lsn,
    timers: Timers,
    messages: Vec<Message>,
    buffer: Vec<u8>,
    /// No client could be evicted in this turn.
    is_relief_vain: bool,
    /// When a graceful stop stops waiting for clients.
    stop_at: Option<Instant>,
    /// Terms of this member of a group whose end the worker has heeded.
    ended_terms: u64,
    /// Whether the members have confirmed the lead.
    confirmation: Arc<Confirmation>,
    /// Replies wait for the members' answer to a question, and no commands are read meanwhile. Only where
    /// a lease does not do for reads.
    is_confirming: bool,
}

impl EventLoop {
    /// Creates a worker over listening sockets. The waker of its inbox is already registered with
    /// `poll`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: usize,
        poll: Poll,
        mut listeners: Vec<Listener>,
    ) -> io::Result<EventLoop> {
        for (number, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Token(FIRST_LISTENER - number))?;
        }
        let config = shared.settings.current();
        let config_version = shared.settings.version();
        let state = WorkerState {
            index,
            poll,
            listeners,
            accept_at: None,
            peers: Vec::new(),
            free: Vec::new(),
            closed: Vec::new(),
            flush: Vec::new(),
            again: Vec::new(),
            holding: Vec::new(),
            log_wanted: Reached::default(),
            commit_requested: Lsn::default(),
            timers: Timers::default(),
            messages: Vec::new(),
            buffer: vec![0; READ_BYTES],
            is_relief_vain: false,
            stop_at: None,
            ended_terms: shared.ended_terms(),
            confirmation: Arc::default(),
            is_confirming: false,
        };
        let registry = SubscriptionRegistry::default();
        let shows_lead = Cell::new(false);
        let environment = Environment { shared, index, config, config_version, registry, shows_lead };
        Ok(EventLoop { environment, state, events: Events::with_capacity(EVENTS) })
    }

    /// First half of a turn: waits for work and does it, up to where replies may wait for the log.
    /// The caller runs the returned task, if any, and ends the turn, possibly on another thread.
    pub(crate) fn begin_turn(&mut self) -> io::Result<Option<DiskTask>> {
        self.state.sleep(&self.environment, &mut self.events)?;
        if self.environment.refresh() {
            self.state.set_all_timers(&self.environment.config);
        }
        self.state.begin_turn(&self.environment, &self.events);
        Ok(self.state.disk_task(&self.environment))
    }

    /// Second half of a turn: releases replies that waited for the log, and sends.
    pub(crate) fn end_turn(&mut self) {
        self.state.end_turn(&self.environment);
    }

    /// Whether the server stops and all clients have their replies.
    pub(crate) fn is_done(&self) -> bool {
        self.state.is_done(&self.environment.shared.clock)
    }

    pub(crate) fn index(&self) -> usize {
        self.environment.index
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.environment.shared)
    }
}

impl WorkerState {
    /// Waits for events, messages or the next deadline.
    fn sleep(&mut self, environment: &Environment, events: &mut Events) -> io::Result<()> {
        let inbox = environment.inbox();
        let waits_for_log = !self.holding.is_empty();
        inbox.set_waits_for_log(waits_for_log);
        if environment.shared.group.is_some() {
            inbox.set_waits_for_copies(waits_for_log && self.waits_for_copies());
        }
        let must_not_sleep = (!self.again.is_empty() && !self.is_confirming)
            || !inbox.fall_asleep()
            || environment.is_outdated()
            || ((self.is_confirming || environment.shows_lead.get()) && self.is_answered())
            || (waits_for_log && self.log_has_moved(environment));
        let timeout = if must_not_sleep { Some(Duration::ZERO) } else { self.time_to_sleep(environment) };
        let result = self.poll.poll(events, timeout);
        inbox.wake_up();
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// Time until the next deadline; `None` without one, so an idle server uses no CPU.
    fn time_to_sleep(&self, environment: &Environment) -> Option<Duration> {
        let earliest = [self.timers.next(), self.accept_at, self.stop_at].into_iter().flatten().min();
        let shared = &environment.shared;
        let until_timer = earliest.map(|at| shared.clock.timeout(at));
        let until_due = [shared.next_due_work(), shared.next_forgetting()]
            .into_iter()
            .flatten()
            .min()
            .map(|at_ms| shared.clock.timeout_us(at_ms.saturating_mul(1000)));
        // The kernel counts whole milliseconds and mio rounds up: a wake-up is never early.
        [until_timer, until_due].into_iter().flatten().min()
    }

    fn begin_turn(&mut self, environment: &Environment, events: &Events) {
        environment.counters().turns.add(1);
        environment.shared.engine.log().look_for_stall();
        let cx = environment.context();
        self.is_relief_vain = false;
        if !self.is_confirming {
            self.run_waiting(&cx);
        }
        for event in events {
            match event.token() {
                WAKER => {}
                Token(token) if token > FIRST_LISTENER - self.listeners.len() => {
                    self.accept(FIRST_LISTENER - token, environment);
                }
                Token(slot) => {
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        self.note_readable(slot, event.is_read_closed() || event.is_error());
                        if self.is_confirming {
                            self.read_later(slot);
                        } else {
                            self.read(slot, &cx);
                        }
                    }
                    if event.is_writable() {
                        self.mark_dirty(slot);
                    }
                }
            }
        }
        self.take_messages(environment, &cx);
        self.look_after_time(environment, &cx);
    }

    fn end_turn(&mut self, environment: &Environment) {
        let cx = environment.context();
        self.look_after_log(environment, &cx);
        let may_tell = self.may_tell(environment, &cx);
        // Behind the last look at the log, whose progress may be that of another leader, and behind that at
        // the lease: a member that follows needs none.
        self.heed_end_of_term(environment, &cx);
        if may_tell {
            self.send(environment, &cx);
        }
        self.free_memory(&cx);
        self.free.append(&mut self.closed);
    }

    fn peer(&self, slot: usize) -> Option<&Peer> {
        self.peers.get(slot)?.as_deref()
    }

    fn peer_mut(&mut self, slot: usize) -> Option<&mut Peer> {
        self.peers.get_mut(slot)?.as_deref_mut()
    }

    /// Returns the connection with this id, if it still exists.
    fn peer_of(&mut self, connection_id: ConnectionId) -> Option<&mut Peer> {
        self.peer_mut(connection_id.slot)
            .filter(|peer| peer.connection.session.client.id == connection_id.client)
    }

    /// Stops accepting, reads each client once more, and closes it when the received commands are
    /// answered.
    fn begin_stop(&mut self, cx: &Context<'_>) {
        self.listeners.clear();
        self.accept_at = None;
        self.stop_at = Some(cx.shared.clock.now() + cx.config.shutdown_timeout);
        self.look_after_pause(cx);
        for slot in 0..self.peers.len() {
            self.note_readable(slot, false);
            self.read(slot, cx);
            if let Some(peer) = self.peer_mut(slot) {
                peer.connection.drain();
                self.mark_dirty(slot);
            }
        }
    }

    fn is_done(&self, clock: &Clock) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        self.peers.iter().all(Option::is_none) || stop_at <= clock.now()
    }
}
