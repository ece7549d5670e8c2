//! A worker: a thread with an event loop and the connections that it has accepted.
//!
//! Each turn of the loop takes all pending work before it writes: it reads and runs commands, takes
//! messages from other threads, handles deadlines, requests log progress, and then sends the
//! replies. So one write carries all replies to a client, and one sync covers all changes of a
//! turn.

use crate::clock::now_us;
use crate::config::Config;
use crate::context::Context;
use crate::events::invalidation;
use crate::net::client::Origin;
use crate::net::client_eviction::choose_victims;
use crate::net::connection::{CloseReason, Connection};
use crate::net::connection_id::ConnectionId;
use crate::net::inbox::{Inbox, Message, Unblock};
use crate::net::listener::Listener;
use crate::net::outbox::Reached;
use crate::net::socket::Socket;
use crate::net::timers::Timers;
use crate::observe::counters::Counters;
use crate::shared::Shared;
use crate::subscription::registry::SubscriptionRegistry;
use crate::wait;
use mio::{Events, Poll, Token};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_engine::watch::Query;
use tidemark_fault::{Fault, is_planted};
use tidemark_log::{Health, Log, Lsn};

/// Most events taken in one turn.
const EVENTS: usize = 1024;
/// Most bytes per read. A client that has sent more is read again in the next turn, after the other
/// clients.
const READ_BYTES: usize = 64 * 1024;
/// Most reads from a connection that is about to be closed. Bounds the delay by a client that never
/// stops sending.
const DISCARD_READS: usize = 16;
/// Most rounds of messages in one turn. Bounds clients that wake each other in a cycle.
const MESSAGE_ROUNDS: usize = 16;
/// Pause of accepting when the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Token of the waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Listeners have the tokens below the waker's.
const FIRST_LISTENER: usize = usize::MAX - 1;

const TOO_MANY_CLIENTS: &[u8] = b"-ERR max number of clients reached\r\n";
const PROTECTED: &[u8] = b"-DENIED Tidemark runs in protected mode: no password is set, so it accepts clients of this \
machine only. To let other hosts in: 1) connect from this machine and run CONFIG SET requirepass, which lasts until \
the server stops; 2) start it with a password in the TIDEMARK_REQUIREPASS variable or in its configuration file; 3) if \
you only want to try something in a network that you trust, start it with --protected-mode no. Do not do the last \
where others can reach the port: they could read and delete everything.\r\n";

/// A worker's event loop.
pub(crate) struct EventLoop {
    environment: Environment,
    state: State,
    events: Events,
}

/// Log work between the two halves of a turn, which may take as long as the disk takes.
pub(crate) struct DiskTask {
    /// LSN to sync, unless the worker has requested that already.
    durable: Option<Lsn>,
    /// LSN to write.
    written: Lsn,
}

impl DiskTask {
    /// Writes and syncs on this thread where that is quick, and requests it from the commit thread
    /// otherwise.
    pub(crate) fn run(self, log: &Log) {
        if let Some(durable) = self.durable {
            log.sync_or_request(durable);
        }
        log.write_or_request(self.written);
    }
}

/// State that does not change within a turn.
struct Environment {
    shared: Arc<Shared>,
    index: usize,
    config: Arc<Config>,
    config_version: u64,
    registry: SubscriptionRegistry,
}

impl Environment {
    fn inbox(&self) -> &Inbox {
        &self.shared.inboxes[self.index]
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    fn context(&self) -> Context<'_> {
        Context {
            shared: &self.shared,
            config: &self.config,
            counters: self.counters(),
            registry: &self.registry,
            turn: crate::net::time_slice::TURN,
            now_us: now_us(),
        }
    }

    /// Loads changed settings. Returns whether there were any.
    fn refresh(&mut self) -> bool {
        let version = self.shared.settings.version();
        if version == self.config_version {
            return false;
        }
        self.config = self.shared.settings.current();
        self.config_version = version;
        true
    }

    fn is_outdated(&self) -> bool {
        self.shared.settings.version() != self.config_version
    }
}

/// A connection and its socket.
struct Peer {
    socket: Socket,
    connection: Connection,
    /// The kernel may hold unread bytes.
    readable: bool,
    /// The client has closed its side; the end is still to be read.
    read_closed: bool,
    /// The slot is in `flush`.
    is_dirty: bool,
    /// The slot is in `again`.
    is_waiting_for_turn: bool,
    /// The slot is in `holding`.
    is_holding: bool,
    /// The earliest timer that is set for it.
    timer: Option<Instant>,
}

struct State {
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
    /// Highest LSN whose sync was requested; requests are not repeated.
    sync_requested: Lsn,
    timers: Timers,
    messages: Vec<Message>,
    buffer: Vec<u8>,
    /// No client could be evicted in this turn.
    is_relief_vain: bool,
    /// When a graceful stop stops waiting for clients.
    stop_at: Option<Instant>,
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
        let state = State {
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
            sync_requested: Lsn::default(),
            timers: Timers::default(),
            messages: Vec::new(),
            buffer: vec![0; READ_BYTES],
            is_relief_vain: false,
            stop_at: None,
        };
        let registry = SubscriptionRegistry::default();
        let environment = Environment { shared, index, config, config_version, registry };
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
        self.state.is_done()
    }

    pub(crate) fn index(&self) -> usize {
        self.environment.index
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.environment.shared)
    }
}

impl State {
    /// Waits for events, messages or the next deadline.
    fn sleep(&mut self, environment: &Environment, events: &mut Events) -> io::Result<()> {
        let inbox = environment.inbox();
        let waits_for_log = !self.holding.is_empty();
        inbox.set_waits_for_log(waits_for_log);
        let must_not_sleep = !self.again.is_empty()
            || !inbox.fall_asleep()
            || environment.is_outdated()
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

    /// Whether the log has reached what a connection waits for, or has failed.
    fn log_has_moved(&self, environment: &Environment) -> bool {
        let log = environment.shared.engine.log();
        let reached = Reached::by(log);
        environment.shared.log_has_failed()
            || (self.holding.iter().filter_map(|slot| self.peer(*slot))).any(|peer| {
                peer.connection.has_waited_for(reached)
                    || peer.connection.awaited_room().is_some_and(|bytes| log.has_room_for(bytes))
            })
    }

    /// Time until the next deadline; `None` without one, so an idle server uses no CPU.
    fn time_to_sleep(&self, environment: &Environment) -> Option<Duration> {
        let earliest = [self.timers.next(), self.accept_at, self.stop_at].into_iter().flatten().min();
        let until_timer = earliest.map(|at| at.saturating_duration_since(Instant::now()));
        let shared = &environment.shared;
        let until_due = [shared.next_expiry(), shared.next_commit(), shared.next_forgetting()]
            .into_iter()
            .flatten()
            .min()
            .map(|at_ms| {
                let now_ms = now_us() / 1000;
                Duration::from_millis(at_ms.saturating_sub(now_ms))
            });
        // The kernel counts whole milliseconds and mio rounds up: a wake-up is never early.
        [until_timer, until_due].into_iter().flatten().min()
    }

    fn begin_turn(&mut self, environment: &Environment, events: &Events) {
        environment.counters().turns.add(1);
        environment.shared.engine.log().look_for_stall();
        let cx = environment.context();
        self.is_relief_vain = false;
        self.run_waiting(&cx);
        for event in events {
            match event.token() {
                WAKER => {}
                Token(token) if token > FIRST_LISTENER - self.listeners.len() => {
                    self.accept(FIRST_LISTENER - token, environment);
                }
                Token(slot) => {
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        self.note_readable(slot, event.is_read_closed() || event.is_error());
                        self.read(slot, &cx);
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
        self.send(environment, &cx);
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

    // ---- accepting ----

    fn accept(&mut self, number: usize, environment: &Environment) {
        loop {
            let listener = &self.listeners[number];
            match listener.accept() {
                Ok(socket) => {
                    let path = listener.path().to_owned();
                    self.admit(socket, &path, environment);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => {
                    // Out of descriptors or memory. The kernel does not report the waiting clients
                    // again.
                    self.accept_at = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut socket: Socket, path: &str, environment: &Environment) {
        let (shared, config, counters) = (&environment.shared, &environment.config, environment.counters());
        counters.connections.add(1);
        let origin = socket.origin(path);
        if is_kept_out(config, &origin) {
            counters.refused_connections.add(1);
            // Best effort: the socket's buffer is empty, so it fits.
            let _ = socket.write(PROTECTED);
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() - 1
        });
        let client =
            shared.clients.admit(config.maxclients, config.reserved_clients, environment.index, slot, origin);
        let registered = socket.configure(config.tcp_keepalive);
        let registered = registered.and_then(|()| socket.register(self.poll.registry(), Token(slot)));
        match (client, registered) {
            (Some(client), Ok(())) => {
                let connection = Connection::new(client, config, &shared.client_memory.budget);
                self.peers[slot] = Some(Box::new(Peer::new(socket, connection)));
                self.set_timer(slot, config);
            }
            (None, _) => {
                counters.refused_connections.add(1);
                let _ = socket.write(TOO_MANY_CLIENTS);
                socket.deregister(self.poll.registry());
                self.closed.push(slot);
            }
            (Some(client), Err(_)) => {
                // The client has disconnected already.
                shared.clients.remove(client.id);
                self.closed.push(slot);
            }
        }
    }

    // ---- reading and running ----

    fn note_readable(&mut self, slot: usize, closed: bool) {
        if let Some(peer) = self.peer_mut(slot) {
            peer.readable = true;
            peer.read_closed |= closed;
        }
    }

    /// Reads once from a connection and runs the commands received.
    fn read(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        if peer.readable && peer.read_closed && peer.connection.session.wait.is_some() {
            // The client has disconnected, so its wait is pointless.
            self.close(slot, cx);
            return;
        }
        if peer.readable && peer.connection.wants_input() {
            match peer.socket.read(&mut self.buffer) {
                Ok(0) => {
                    peer.readable = false;
                    peer.connection.end_input(cx);
                }
                Ok(count) => {
                    cx.counters.received_bytes.add(count as u64);
                    // A short read emptied the kernel's buffer. The kernel reports when there is
                    // more.
                    peer.readable = count == self.buffer.len() || peer.read_closed;
                    peer.connection.receive(&self.buffer[..count], cx);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => peer.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.close(slot, cx);
                    return;
                }
            }
        }
        self.after_running(slot, cx);
        self.free_memory(cx);
    }

    /// Disconnects the clients that use most memory while all together use too much.
    #[inline]
    fn free_memory(&mut self, cx: &Context<'_>) {
        if cx.shared.client_memory.budget.needs_relief() && !self.is_relief_vain {
            self.evict_clients(cx);
        }
    }

    #[cold]
    fn evict_clients(&mut self, cx: &Context<'_>) {
        let victims = choose_victims(&cx.shared.client_memory, &cx.shared.clients);
        self.is_relief_vain = victims.is_empty();
        for client in victims {
            if client.worker != self.index {
                cx.shared.inboxes[client.worker].send(Message::Evict(client.connection_id));
            } else if self.peer_of(client.connection_id).is_some() {
                self.disconnect(client.connection_id.slot, CloseReason::Memory, cx);
            }
        }
    }

    /// Puts a connection that has run commands, or may run some, on its lists.
    fn after_running(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        peer.connection.settle();
        if !peer.is_dirty {
            peer.is_dirty = true;
            self.flush.push(slot);
        }
        self.log_wanted = self.log_wanted.max(peer.connection.session.outbox.wanted());
        if !peer.is_holding && peer.connection.waits_for_log() {
            peer.is_holding = true;
            self.holding.push(slot);
        }
        let has_more = peer.connection.can_resume() || (peer.readable && peer.connection.wants_input());
        if has_more && !peer.is_waiting_for_turn {
            peer.is_waiting_for_turn = true;
            self.again.push(slot);
        }
        self.set_timer(slot, cx.config);
    }

    fn mark_dirty(&mut self, slot: usize) {
        if let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut)
            && !peer.is_dirty
        {
            peer.is_dirty = true;
            self.flush.push(slot);
        }
    }

    /// Continues connections that had more work than fitted into the last turn.
    fn run_waiting(&mut self, cx: &Context<'_>) {
        for slot in std::mem::take(&mut self.again) {
            let Some(peer) = self.peer_mut(slot) else { continue };
            peer.is_waiting_for_turn = false;
            if peer.connection.can_resume() {
                peer.connection.resume(cx);
                self.after_running(slot, cx);
                self.free_memory(cx);
            } else {
                self.read(slot, cx);
            }
        }
    }

    // ---- messages ----

    fn take_messages(&mut self, environment: &Environment, cx: &Context<'_>) {
        for _ in 0..MESSAGE_ROUNDS {
            let mut messages = std::mem::take(&mut self.messages);
            environment.inbox().take(&mut messages);
            if messages.is_empty() {
                self.messages = messages;
                return;
            }
            for message in messages.drain(..) {
                self.handle(message, cx);
            }
            self.messages = messages;
        }
    }

    fn handle(&mut self, message: Message, cx: &Context<'_>) {
        let connection_id = match message {
            Message::Stop => return self.begin_stop(cx),
            Message::PauseChanged => return self.look_after_pause(cx),
            Message::Emitted(query) => return self.emit(&query, cx),
            Message::Broadcast(broadcast) => return broadcast.pass_on(),
            Message::Invalidated(connection_id, source) => {
                match self.peer_of(connection_id).filter(|peer| peer.connection.may_be_told()) {
                    Some(peer) => peer.connection.invalidate(source, cx),
                    None => return invalidation::return_to_owner(&source, connection_id, &cx.shared.inboxes),
                }
                connection_id
            }
            Message::RedirectBroken(connection_id, taker) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    invalidation::break_redirect(&mut peer.connection.session, taker);
                }
                connection_id
            }
            Message::Kill(connection_id) => {
                if self.peer_of(connection_id).is_some() {
                    self.close(connection_id.slot, cx);
                }
                return;
            }
            Message::CutOff(connection_id) => {
                if self.peer_of(connection_id).is_some() {
                    self.disconnect(connection_id.slot, CloseReason::SlowReader, cx);
                }
                return;
            }
            Message::Evict(connection_id) => {
                if self.peer_of(connection_id).is_some() {
                    self.disconnect(connection_id.slot, CloseReason::Memory, cx);
                }
                return;
            }
            Message::Deliver(connection_id, delivery) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.deliver(&delivery, cx);
                }
                connection_id
            }
            Message::Publish(connection_id, publication) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.publish(&publication, cx.config);
                }
                connection_id
            }
            Message::Taken(connection_id, query, fencing_token) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.lose_name(query, fencing_token, cx);
                }
                connection_id
            }
            Message::Older(connection_id, query) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.older(query, cx);
                }
                connection_id
            }
            Message::Done(connection_id, done) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.finish_long(&done, cx);
                }
                connection_id
            }
            Message::Changed(connection_id) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.tell_changes(cx);
                }
                connection_id
            }
            Message::Dice(connection_id, notice) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.heed(notice, cx);
                }
                connection_id
            }
            Message::Unblock(connection_id, how, waiter) => {
                if let Some(peer) = self.peer_of(connection_id)
                    && wait::is_waiting(&peer.connection.session, waiter.as_ref())
                {
                    peer.connection.unblock(how, cx);
                }
                connection_id
            }
        };
        if self.peer_of(connection_id).is_some() {
            self.after_running(connection_id.slot, cx);
        }
    }

    /// Delivers a query's emissions to its subscribers.
    fn emit(&mut self, query: &Query, cx: &Context<'_>) {
        // Re-armed before the emissions are read: later emissions notify again.
        query.look(self.index);
        for slot in cx.registry.of(query.id()) {
            if let Some(peer) = self.peer_mut(slot) {
                peer.connection.emit(query.id(), cx);
                self.after_running(slot, cx);
            }
        }
    }

    /// Continues clients that `CLIENT PAUSE` no longer blocks.
    fn look_after_pause(&mut self, cx: &Context<'_>) {
        for slot in 0..self.peers.len() {
            if self.peer_mut(slot).is_some_and(|peer| peer.connection.end_pause(cx)) {
                self.after_running(slot, cx);
            }
        }
    }

    // ---- time ----

    fn set_timer(&mut self, slot: usize, config: &Config) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        let Some(at) = peer.connection.next_deadline(config) else { return };
        // An earlier timer recomputes the deadline when it fires.
        if peer.timer.is_none_or(|set| at < set) {
            peer.timer = Some(at);
            let connection_id = peer.connection.session.connection_id();
            let live = self.peers.len() - self.free.len() - self.closed.len();
            let peers = &self.peers;
            self.timers.set(at, connection_id, live, |at, connection_id| {
                let peer = peers.get(connection_id.slot).and_then(Option::as_deref);
                peer.is_some_and(|peer| {
                    peer.timer == Some(at) && peer.connection.session.connection_id() == connection_id
                })
            });
        }
    }

    /// Applies changed settings to the deadlines of silent clients.
    fn set_all_timers(&mut self, config: &Config) {
        (0..self.peers.len()).for_each(|slot| self.set_timer(slot, config));
    }

    fn look_after_time(&mut self, environment: &Environment, cx: &Context<'_>) {
        environment.shared.expire(cx.now_us);
        environment.shared.commit_counters(cx.now_us);
        environment.shared.forget_watched(cx.now_us);
        if self.timers.next().is_none() && self.accept_at.is_none() {
            return;
        }
        let now = Instant::now();
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept_at = None;
            (0..self.listeners.len()).for_each(|number| self.accept(number, environment));
        }
        // Collected first: timers set meanwhile wait for the next turn.
        let due: Vec<ConnectionId> = std::iter::from_fn(|| self.timers.take_due(now)).collect();
        for connection_id in due {
            if let Some(peer) = self.peer_of(connection_id) {
                peer.timer = None;
                self.time_has_come(connection_id.slot, now, cx);
            }
        }
    }

    fn time_has_come(&mut self, slot: usize, now: Instant, cx: &Context<'_>) {
        let Some(peer) = self.peer_mut(slot) else { return };
        if peer.connection.wait_is_over(now) {
            peer.connection.unblock(Unblock::Timeout, cx);
        }
        peer.connection.watching_time(now, cx);
        let reason =
            peer.connection.overdue(cx.config, now).or_else(|| peer.connection.exceeded(cx.config, now));
        match reason {
            Some(reason) => self.disconnect(slot, reason, cx),
            None => self.after_running(slot, cx),
        }
    }

    // ---- the log ----

    /// Log work that this turn's replies need.
    fn disk_task(&mut self, environment: &Environment) -> Option<DiskTask> {
        if self.holding.is_empty() {
            return None;
        }
        let log = environment.shared.engine.log();
        let wanted = self.log_wanted;
        let asks = wanted.durable > self.sync_requested && !is_planted(Fault::HeldAnswer);
        self.sync_requested = if asks { wanted.durable } else { self.sync_requested };
        let durable = Some(wanted.durable).filter(|lsn| asks && *lsn > log.durable());
        (durable.is_some() || wanted.written > log.written())
            .then_some(DiskTask { durable, written: wanted.written })
    }

    /// Releases replies that the log's progress allows.
    fn look_after_log(&mut self, environment: &Environment, cx: &Context<'_>) {
        if self.holding.is_empty() {
            return;
        }
        let log = environment.shared.engine.log();
        let reached = if is_planted(Fault::HeldAnswer) { self.log_wanted } else { Reached::by(log) };
        let failure = match log.check_writable() {
            Ok(()) => None,
            Err(_) => match log.health() {
                Health::Failed(failure) => Some(failure.to_string()),
                _ => None,
            },
        };
        for slot in std::mem::take(&mut self.holding) {
            let Some(peer) = self.peer_mut(slot) else { continue };
            peer.is_holding = false;
            peer.connection.log_moved(reached, cx);
            if let Some(failure) = &failure {
                let text = format!("MISCONF the log has failed and this change may be lost: {failure}");
                peer.connection.log_failed(&text, cx);
            }
            self.after_running(slot, cx);
        }
    }

    // ---- sending and closing ----

    fn send(&mut self, environment: &Environment, cx: &Context<'_>) {
        let mut flush = std::mem::take(&mut self.flush);
        // Flush in reverse order: emissions, which result from commands, before acknowledgements.
        // Their latency is longer already.
        for slot in flush.drain(..).rev() {
            let Some(peer) = self.peer_mut(slot) else { continue };
            peer.is_dirty = false;
            match peer.send(environment.counters()) {
                Err(_) => self.close(slot, cx),
                Ok(()) if peer.connection.is_finished() => self.finish(slot, cx),
                Ok(()) => self.after_sending(slot, cx),
            }
        }
        if self.flush.is_empty() {
            // Keep the allocation; sending adds nothing to the list.
            self.flush = flush;
        }
    }

    /// Closes a connection that has been sent everything.
    fn finish(&mut self, slot: usize, cx: &Context<'_>) {
        if self.stop_at.is_some()
            && let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut)
        {
            peer.discard_input(&mut self.buffer);
        }
        self.close(slot, cx);
    }

    fn after_sending(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        if peer.connection.session.outbox.pending() > 0 {
            // A client that has not read everything may be slow.
            peer.connection.session.outbox.reply.trim();
        }
        peer.connection.settle();
        if peer.connection.holds_bytes() {
            if let Some(reason) = peer.connection.exceeded(cx.config, Instant::now()) {
                self.disconnect(slot, reason, cx);
                return;
            }
            self.set_timer(slot, cx.config);
        }
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        let has_more = peer.connection.can_resume() || (peer.readable && peer.connection.wants_input());
        if has_more && !peer.is_waiting_for_turn {
            peer.is_waiting_for_turn = true;
            self.again.push(slot);
        }
    }

    fn disconnect(&mut self, slot: usize, reason: CloseReason, cx: &Context<'_>) {
        match reason {
            CloseReason::SlowReader => cx.counters.slow_readers.add(1),
            CloseReason::Memory => cx.counters.evicted_clients.add(1),
            CloseReason::QueryBuffer | CloseReason::Unfinished => cx.counters.protocol_errors.add(1),
            CloseReason::Idle | CloseReason::Unauthenticated => {}
        }
        self.close(slot, cx);
    }

    fn close(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(mut peer) = self.peers.get_mut(slot).and_then(Option::take) else { return };
        peer.connection.close(cx);
        peer.socket.deregister(self.poll.registry());
        self.closed.push(slot);
    }

    // ---- stopping ----

    /// Stops accepting, reads each client once more, and closes it when the received commands are
    /// answered.
    fn begin_stop(&mut self, cx: &Context<'_>) {
        self.listeners.clear();
        self.accept_at = None;
        self.stop_at = Some(Instant::now() + cx.config.shutdown_timeout);
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

    fn is_done(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        self.peers.iter().all(Option::is_none) || stop_at <= Instant::now()
    }
}

/// Whether protected mode refuses a client: without a password, any client of another machine.
fn is_kept_out(config: &Config, origin: &Origin) -> bool {
    config.protected_mode && config.requirepass.is_empty() && !origin.is_local
}

impl Peer {
    fn new(socket: Socket, connection: Connection) -> Peer {
        Peer {
            socket,
            connection,
            readable: false,
            read_closed: false,
            is_dirty: false,
            is_waiting_for_turn: false,
            is_holding: false,
            timer: None,
        }
    }

    /// Reads and discards input that will not be run. The kernel resets a connection that is closed
    /// with unread bytes, which may cost the client replies in flight.
    fn discard_input(&mut self, buffer: &mut [u8]) {
        for _ in 0..DISCARD_READS {
            match self.socket.read(buffer) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
        }
    }

    /// Sends what may be sent, until the kernel's buffer is full.
    fn send(&mut self, counters: &Counters) -> io::Result<()> {
        loop {
            let bytes = self.connection.session.outbox.sendable();
            if bytes.is_empty() {
                return Ok(());
            }
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    let was_all = count == bytes.len();
                    counters.sent_bytes.add(count as u64);
                    self.connection.sent(count);
                    if was_all {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_mode_keeps_out_strangers_while_there_is_no_password() {
        let origin = |is_local| Origin {
            address: String::new(),
            local_address: String::new(),
            descriptor: 0,
            is_local,
            is_unix: false,
        };
        for (protected_mode, password, is_local, refused) in [
            (true, "", false, true),
            (true, "", true, false),
            (true, "secret", false, false),
            (false, "", false, false),
        ] {
            let config = Config { protected_mode, requirepass: password.to_owned(), ..Config::default() };
            assert_eq!(is_kept_out(&config, &origin(is_local)), refused);
        }
    }
}
