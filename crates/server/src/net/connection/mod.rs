//! One client's connection as a state machine, without a socket: bytes in, commands run, bytes out.
//!
//! ```text
//! receive(bytes) ──► parser ──► dispatch ──► session.outbox ──► sendable()
//!       └─ incomplete commands, and those that may not run yet, wait in `input`
//! ```

mod running;

use crate::config::{Config, OutputLimit};
use crate::context::Context;
use crate::dice::{self, Conversation, Notice};
use crate::events::change_stream;
use crate::events::invalidation;
use crate::events::invalidation_source::Source;
use crate::events::publication::Publication;
use crate::net::client::Client;
use crate::net::inbox::Unblock;
use crate::net::offload;
use crate::net::offload_queue::OffloadResult;
use crate::net::outbox::Reached;
use crate::resp::request::RequestParser;
use crate::session::{Copies, Session, Transaction, WaitFor};
use crate::subscription::channel_flow::PendingTurns;
use crate::subscription::lifecycle;
use crate::subscription::ownership::FencingToken;
use crate::subscription::resumption;
use crate::wait;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidemark_engine::{Delivery, MemoryBudget, MemoryCharge, Protocol};
use tidemark_log::Lsn;

/// Back-pressure: above this much pending output no command runs and nothing is read. Bytes.
const OUTPUT_PAUSE_BYTES: usize = 1024 * 1024;
/// The same for an unauthenticated client. Bytes.
const STRANGER_OUTPUT_PAUSE_BYTES: usize = 16 * 1024;
/// Most unparsed input of an unauthenticated client: enough for any command that it may use. Bytes.
const STRANGER_INPUT_BYTES: usize = 64 * 1024;
/// Most pending output of a client without a hard limit, because a single command could request
/// more than the memory. Enough for the longest value that can be configured. Bytes.
const OUTPUT_CEILING_BYTES: usize = 2 * 1024 * 1024 * 1024;
/// Most input that is read from a blocked client; more stays in the kernel. Bytes.
const INPUT_AHEAD_BYTES: usize = 64 * 1024;
/// An empty input buffer larger than this is freed. Bytes.
const KEPT_INPUT_BYTES: usize = 4 * 1024;

/// Idle time after which a client in a reserved place is disconnected. Otherwise a connection pool
/// that fills the ordinary places would fill the reserved ones too.
const RESERVED_PATIENCE: Duration = Duration::from_secs(10);

/// Why the server closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The client has not read its replies.
    SlowReader,
    /// All clients together use too much memory, and this one most of it; or a message to it did
    /// not fit.
    Memory,
    /// The client has sent too much without completing a command.
    QueryBuffer,
    /// The client was idle for too long.
    Idle,
    /// The client was idle for too long in the middle of a request.
    Unfinished,
    /// The client has not authenticated in time.
    Unauthenticated,
}

/// A client's protocol, detected from its first byte.
enum Language {
    /// No byte has been received.
    Unknown,
    Resp,
    Dice(Box<Conversation>),
}

/// A client's connection without its socket.
pub(crate) struct Connection {
    language: Language,
    parser: RequestParser,
    /// Received and not yet run.
    input: Vec<u8>,
    /// Whether `input` may contain a whole command. It cannot after the parser has requested more.
    has_command: bool,
    /// The client will send nothing more.
    input_ended: bool,
    /// The server stops: only received commands are answered.
    draining: bool,
    pub(crate) session: Session,
    /// Memory of the input and a transaction. The output has its own charge.
    charge: MemoryCharge,
    last_active: Instant,
    /// Since when the rest of a request in `input` is awaited.
    listening_since: Instant,
    /// A message did not fit into the output.
    overflowed: bool,
    /// Since when the output exceeds its soft limit.
    over_soft_limit: Option<Instant>,
    /// Turns of channel watches that wait for the client to read.
    kept_turns: PendingTurns,
}

impl Connection {
    pub(crate) fn new(client: Arc<Client>, config: &Config, budget: &Arc<MemoryBudget>) -> Connection {
        let last_active = client.connected;
        Connection {
            language: Language::Unknown,
            parser: RequestParser::default(),
            input: Vec::new(),
            has_command: false,
            input_ended: false,
            draining: false,
            session: Session::new(client, config.requirepass.is_empty(), budget),
            charge: budget.charge(),
            last_active,
            listening_since: last_active,
            overflowed: false,
            over_soft_limit: None,
            kept_turns: PendingTurns::default(),
        }
    }

    /// Takes received bytes and runs the commands in them.
    pub(crate) fn receive(&mut self, bytes: &[u8], cx: &Context<'_>) {
        assert!(!bytes.is_empty(), "a read of no bytes is the end of the input");
        let shown = &self.session.client.shown;
        shown.received_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.last_active = cx.shared.clock.now();
        self.listening_since = self.last_active;
        if matches!(self.language, Language::Unknown) {
            self.choose_language(bytes);
        }
        if self.input.is_empty() && self.may_run() {
            let consumed = self.run_commands(bytes, cx);
            self.input.extend_from_slice(&bytes[consumed..]);
        } else {
            self.input.extend_from_slice(bytes);
            self.has_command |= self.input.len() >= self.needed();
            self.resume(cx);
        }
        self.session.show(self.input.len());
    }

    #[cold]
    fn choose_language(&mut self, bytes: &[u8]) {
        let is_dice = bytes.first().is_some_and(|first| dice::begins_frame(*first));
        self.language = if is_dice {
            // RESP3 replies identify their types, which the conversion needs.
            self.session.outbox.reply.set_protocol(Protocol::Resp3);
            self.session.show_state();
            Language::Dice(Box::new(Conversation::new()))
        } else {
            Language::Resp
        };
    }

    /// Bytes of input below which there is no whole command.
    fn needed(&self) -> usize {
        match &self.language {
            Language::Dice(conversation) => conversation.needed(),
            Language::Unknown | Language::Resp => self.parser.needed(),
        }
    }

    /// Writes output that had to wait and runs commands that had to wait, if they may now.
    pub(crate) fn resume(&mut self, cx: &Context<'_>) {
        if self.may_catch_up() {
            self.limit_output(cx.config);
            lifecycle::catch_up(&mut self.session, cx);
            change_stream::write_changes(&mut self.session, cx);
        }
        if self.may_take() {
            self.limit_output(cx.config);
            invalidation::catch_up(&mut self.session, cx);
        }
        if self.has_command && self.may_run() {
            let mut input = std::mem::take(&mut self.input);
            let consumed = self.run_commands(&input, cx);
            if consumed == input.len() {
                input.clear();
            } else {
                input.drain(..consumed);
            }
            if input.is_empty() && input.capacity() > KEPT_INPUT_BYTES {
                input = Vec::new();
            }
            self.input = input;
            self.session.show(self.input.len());
        }
        if self.input_ended && !self.has_command {
            self.session.closing = true;
        }
        if !self.input.is_empty() {
            // The timeout begins now: nothing was read or awaited before.
            self.listening_since = cx.shared.clock.now();
        }
    }

    /// Notes that the client sends nothing more. Received commands are still answered.
    pub(crate) fn end_input(&mut self, cx: &Context<'_>) {
        self.input_ended = true;
        if self.session.wait.is_some() || self.session.subscriptions.any() {
            self.session.closing = true;
        }
        self.resume(cx);
    }

    /// Stops reading, and ends the connection once the received commands are answered.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether to read from the client now.
    pub(crate) fn wants_input(&self) -> bool {
        !self.session.closing
            && !self.draining
            && !self.input_ended
            && !self.has_overflowed()
            && !self.must_read_first()
            && (self.session.wait.is_none() || self.input.len() < INPUT_AHEAD_BYTES)
    }

    /// Whether received commands may run now, or emissions or invalidations that had to wait may be
    /// written.
    pub(crate) fn can_resume(&self) -> bool {
        self.may_catch_up() || self.may_take() || (self.has_command && self.may_run())
    }

    /// Whether invalidations that had to wait fit now.
    fn may_take(&self) -> bool {
        !self.session.closing
            && self.session.untaken.may_catch_up(&self.session.outbox)
            && !self.session.awaits_delivery()
    }

    /// Whether the client's protocol can express invalidations.
    pub(crate) fn takes_invalidations(&self) -> bool {
        !self.session.closing && !matches!(self.language, Language::Dice(_))
    }

    /// Writes invalidations until the output is full.
    pub(crate) fn invalidate(&mut self, source: Source, cx: &Context<'_>) {
        self.limit_output(cx.config);
        invalidation::invalidate(&mut self.session, source, cx);
    }

    fn may_catch_up(&self) -> bool {
        let session = &self.session;
        !session.closing
            && session.subscriptions.may_catch_up(&session.outbox)
            && self.emission_deadline().is_none()
            && !session.awaits_delivery()
    }

    /// Handles a notice from another connection of the same client.
    pub(crate) fn heed(&mut self, notice: Notice, cx: &Context<'_>) {
        if matches!(self.language, Language::Dice(_)) {
            Conversation::heed(&mut self.session, notice, cx);
        }
    }

    /// Writes due emissions and progress frames.
    pub(crate) fn watching_time(&mut self, now: Instant, cx: &Context<'_>) {
        if !self.session.closing {
            self.limit_output(cx.config);
            lifecycle::time_has_come(&mut self.session, now, cx);
            change_stream::time_has_come(&mut self.session, now, cx);
        }
    }

    /// Writes changes to a client that follows the log.
    pub(crate) fn write_changes(&mut self, cx: &Context<'_>) {
        if !self.session.closing {
            self.limit_output(cx.config);
            change_stream::write_changes(&mut self.session, cx);
        }
    }

    /// Writes a query's emissions until the output is full.
    pub(crate) fn emit(&mut self, query: Lsn, cx: &Context<'_>) {
        if self.emission_deadline().is_some() {
            lifecycle::catch_up_soon(&mut self.session, query);
        } else if !self.session.closing {
            self.limit_output(cx.config);
            lifecycle::emit(&mut self.session, query, cx);
        }
    }

    /// Notifies the client that its named subscription to a query has ended.
    pub(crate) fn lose_name(&mut self, query: Lsn, fencing_token: FencingToken, cx: &Context<'_>) {
        if !self.session.closing {
            self.limit_output(cx.config);
            lifecycle::lose_name(&mut self.session, query, fencing_token, cx);
        }
    }

    /// Whether nothing is left but to close.
    pub(crate) fn is_finished(&self) -> bool {
        let is_ending = self.session.closing || (self.draining && !self.will_answer_more());
        is_ending && self.session.outbox.pending() == 0
    }

    /// Whether received commands will still be answered. While the server stops, only waits for the
    /// log still end.
    fn will_answer_more(&self) -> bool {
        match &self.session.wait {
            None => self.has_command,
            Some(wait) => matches!(wait.what, WaitFor::Sync(_) | WaitFor::Room(_)),
        }
    }

    /// Answers a blocked client with its delivery.
    pub(crate) fn deliver(&mut self, delivery: &Delivery, cx: &Context<'_>) {
        self.limit_output(cx.config);
        wait::deliver(&mut self.session, delivery, cx);
        self.resume(cx);
    }

    /// Answers a client with the reply to its long command.
    pub(crate) fn finish_long(&mut self, done: &OffloadResult, cx: &Context<'_>) {
        self.limit_output(cx.config);
        cx.note_shown();
        offload::finish(&mut self.session, done, cx);
        self.resume(cx);
    }

    /// Continues a subscription that waits for a replay.
    pub(crate) fn older(&mut self, query: Lsn, cx: &Context<'_>) {
        if resumption::waits(&self.session, query) {
            self.limit_output(cx.config);
            let mark = self.session.outbox.reply.len();
            if resumption::look(&mut self.session, cx) {
                if let Language::Dice(conversation) = &mut self.language {
                    conversation.resumed(&mut self.session, mark, cx);
                }
                self.resume(cx);
            }
        }
        // The emissions may be for an earlier subscription to the same query.
        self.emit(query, cx);
    }

    /// Ends the client's wait.
    pub(crate) fn unblock(&mut self, how: Unblock, cx: &Context<'_>) {
        if wait::end(&mut self.session, how, cx) {
            self.resume(cx);
        }
    }

    /// Ends waits of the client and its emissions for the end of `CLIENT PAUSE`; they begin again
    /// if another pause is in force. Returns whether there were any.
    pub(crate) fn end_pause(&mut self, cx: &Context<'_>) -> bool {
        let pending = self.session.outbox.pending();
        if !self.session.closing {
            self.limit_output(cx.config);
            lifecycle::pause_ended(&mut self.session, cx);
        }
        let waits = matches!(self.session.wait.as_ref().map(|wait| &wait.what), Some(WaitFor::Unpaused));
        if waits {
            self.unblock(Unblock::Timeout, cx);
        }
        waits || self.session.outbox.pending() > pending
    }

    /// Releases what waited for the log. Returns whether there was anything.
    pub(crate) fn log_moved(&mut self, reached: Reached, cx: &Context<'_>) -> bool {
        let released = self.session.outbox.release(reached);
        if let Some(needed) = released {
            assert_reached(needed, Reached::by(cx.shared.engine.log()));
        }
        let log = cx.shared.engine.log();
        let has_room = self.awaited_room().is_some_and(|bytes| log.has_room_for(bytes))
            && wait::end(&mut self.session, Unblock::Timeout, cx);
        let synced = wait::synced(&mut self.session, log.durable());
        let copied = wait::copied(&mut self.session, cx);
        if synced || has_room || copied {
            self.resume(cx);
        }
        released.is_some() || synced || has_room || copied
    }

    /// Ends the connection if replies wait for what will not be committed, and sends none of them.
    /// Which changes are on disk is unknown: an error would claim that they have failed, and a
    /// client that repeats them would make them twice.
    pub(crate) fn log_failed(&mut self, cx: &Context<'_>) {
        if self.session.outbox.drop_held() {
            self.session.closing = true;
        }
        let waits = self.session.wait.as_ref().map(|wait| &wait.what);
        if matches!(waits, Some(WaitFor::Sync(_) | WaitFor::Copies(_))) {
            wait::end(&mut self.session, Unblock::Timeout, cx);
        }
    }

    /// Whether the connection waits for the log.
    pub(crate) fn waits_for_log(&self) -> bool {
        self.session.outbox.waits_for().is_some()
            || self.awaited_sync().is_some()
            || self.awaited_room().is_some()
            || self.awaited_copies().is_some()
    }

    /// Copies on members of the group that `WAIT` or `WAITAOF` waits for, if one does.
    pub(crate) fn awaited_copies(&self) -> Option<&Copies> {
        match self.session.wait.as_ref().map(|wait| &wait.what) {
            Some(WaitFor::Copies(copies)) => Some(copies),
            _ => None,
        }
    }

    /// Bytes of room in the log that a command waits for, if one does.
    pub(crate) fn awaited_room(&self) -> Option<usize> {
        match self.session.wait.as_ref().map(|wait| &wait.what) {
            Some(WaitFor::Room(bytes)) => Some(*bytes),
            _ => None,
        }
    }

    /// Whether the log has reached something that the connection waits for.
    pub(crate) fn has_waited_for(&self, reached: Reached, durable: Lsn) -> bool {
        self.session.outbox.waits_for().is_some_and(|until| reached.has(until))
            || self.awaited_sync().is_some_and(|lsn| lsn <= durable)
    }

    /// Record that `WAITAOF` waits for until it is durable on this node, if it does.
    fn awaited_sync(&self) -> Option<Lsn> {
        match self.session.wait.as_ref().map(|wait| &wait.what) {
            Some(WaitFor::Sync(lsn)) => Some(*lsn),
            _ => None,
        }
    }

    /// Charges the allocated buffers to the memory budget. Call it after commands have run and
    /// bytes were sent.
    pub(crate) fn settle(&mut self) {
        let transaction = self.session.transaction.as_ref().map_or(0, Transaction::bytes);
        self.charge.set(self.input.capacity() + self.parser.capacity() + transaction);
        let reply = &mut self.session.outbox.reply;
        reply.settle();
        let bytes = self.charge.bytes() + reply.capacity();
        let shown = &self.session.client.shown.memory_bytes;
        if shown.load(Ordering::Relaxed) != bytes {
            shown.store(bytes, Ordering::Relaxed);
        }
    }

    /// Whether there is unsent output or unrun input that a limit may apply to.
    pub(crate) fn holds_bytes(&self) -> bool {
        !self.input.is_empty() || self.session.outbox.pending() > 0 || self.has_overflowed()
    }

    /// Whether output for the client was lost because it exceeded its limit.
    fn has_overflowed(&self) -> bool {
        self.overflowed || self.session.outbox.reply.has_overflowed()
    }

    /// Writes a published message, if the client is still subscribed. A message above the output
    /// limit is not even copied: a large message to many slow clients stays cheap.
    pub(crate) fn publish(&mut self, publication: &Publication, config: &Config) {
        let limit = self.output_limit(config).hard_bytes;
        let session = &mut self.session;
        if session.closing || !session.subscriptions.of(publication.kind).contains(&*publication.name) {
            return;
        }
        if limit > 0 && session.outbox.pending().saturating_add(publication.len()) > limit {
            self.overflowed = true;
        } else {
            session.outbox.set_limit(ceiling(limit));
            let mark = session.outbox.reply.len();
            publication.write(&mut session.outbox.reply);
            if let Some(until) = publication.after {
                session.outbox.hold(mark, until);
            }
            if let Some(turn) = publication.turn.as_ref().filter(|_| !session.outbox.has_room()) {
                self.kept_turns.keep(turn, &session.client.clock);
            }
        }
    }

    /// Notes that `count` bytes were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        let was_deaf = !self.input.is_empty() && self.must_read_first();
        self.session.outbox.advance(count);
        self.kept_turns.note_progress(self.session.outbox.has_room(), &self.session.client.clock);
        if was_deaf && !self.must_read_first() {
            self.listening_since = self.session.client.clock.now();
        }
        if self.session.outbox.pending() == 0 {
            // A client that has read everything is not slow.
            self.over_soft_limit = None;
            self.session.client.shown.output_bytes.store(0, Ordering::Relaxed);
        }
        self.session.client.shown.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Which limit the connection exceeds, if any. Call it after sending.
    pub(crate) fn exceeded(&mut self, config: &Config, now: Instant) -> Option<CloseReason> {
        let pending = self.session.outbox.pending();
        self.session.client.shown.output_bytes.store(pending, Ordering::Relaxed);
        let limit = self.output_limit(config);
        if self.session.outbox.reply.was_refused() {
            return Some(CloseReason::Memory);
        }
        if self.has_overflowed() || (limit.hard_bytes > 0 && pending > limit.hard_bytes) {
            return Some(CloseReason::SlowReader);
        }
        if limit.soft_bytes > 0 && pending > limit.soft_bytes {
            let since = *self.over_soft_limit.get_or_insert(now);
            if now.duration_since(since) >= limit.soft_time {
                return Some(CloseReason::SlowReader);
            }
        } else {
            self.over_soft_limit = None;
        }
        if self.kept_turns.deadline().is_some_and(|at| at <= now) {
            if !self.session.outbox.sendable().is_empty() {
                return Some(CloseReason::SlowReader);
            }
            // The output waits for the disk, not for the client.
            self.kept_turns.note_progress(false, &self.session.client.clock);
        }
        let limit = if self.session.authenticated { config.query_buffer_limit } else { STRANGER_INPUT_BYTES };
        (self.input.len() > limit).then_some(CloseReason::QueryBuffer)
    }

    /// Which deadline has passed, if any.
    pub(crate) fn overdue(&self, config: &Config, now: Instant) -> Option<CloseReason> {
        if self.idle_deadline(config).is_some_and(|at| at <= now) {
            return Some(CloseReason::Idle);
        }
        if self.request_deadline(config).is_some_and(|at| at <= now) {
            return Some(CloseReason::Unfinished);
        }
        self.authentication_deadline(config).filter(|at| *at <= now).map(|_| CloseReason::Unauthenticated)
    }

    /// Whether the client's wait has timed out.
    pub(crate) fn wait_is_over(&self, now: Instant) -> bool {
        self.session.wait.as_ref().and_then(|wait| wait.deadline).is_some_and(|at| at <= now)
    }

    /// The connection's next deadline.
    pub(crate) fn next_deadline(&self, config: &Config) -> Option<Instant> {
        let soft_time = self.output_limit(config).soft_time;
        [
            self.session.wait.as_ref().and_then(|wait| wait.deadline),
            self.session.subscriptions.next_time().filter(|_| !self.session.closing),
            self.over_soft_limit.and_then(|since| since.checked_add(soft_time)),
            self.idle_deadline(config),
            self.request_deadline(config),
            self.authentication_deadline(config),
            self.emission_deadline().filter(|_| !self.session.closing),
            self.kept_turns.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Releases everything that the server holds for this connection.
    pub(crate) fn close(&mut self, cx: &Context<'_>) {
        let shared = cx.shared;
        wait::abandon(&mut self.session, cx);
        if !self.session.watched.is_empty() {
            shared.engine.unwatch(&std::mem::take(&mut self.session.watched));
        }
        self.session.unsubscribe_all(shared);
        lifecycle::end_all(&mut self.session, cx);
        self.session.subscriptions.following = None;
        invalidation::close(&mut self.session, cx);
        if matches!(self.language, Language::Dice(_)) {
            shared.dice.leave(self.session.client.id);
        }
        shared.clients.remove(self.session.client.id);
    }

    fn idle_deadline(&self, config: &Config) -> Option<Instant> {
        if self.session.is_reserved && self.session.wait.is_none() {
            return self.last_active.checked_add(RESERVED_PATIENCE);
        }
        let exempt =
            config.timeout.is_zero() || self.session.wait.is_some() || self.session.subscriptions.any();
        if exempt { None } else { self.last_active.checked_add(config.timeout) }
    }

    /// When the rest of a request must have begun to arrive. `None` while nothing is read from the
    /// client.
    fn request_deadline(&self, config: &Config) -> Option<Instant> {
        let is_awaited =
            !self.input.is_empty() && !self.has_command && self.session.wait.is_none() && self.wants_input();
        let exempt = !is_awaited || config.request_timeout.is_zero();
        if exempt { None } else { self.listening_since.checked_add(config.request_timeout) }
    }

    fn authentication_deadline(&self, config: &Config) -> Option<Instant> {
        let exempt = self.session.authenticated || config.authentication_timeout.is_zero();
        if exempt { None } else { self.session.stranger_since.checked_add(config.authentication_timeout) }
    }

    /// When waiting emissions may be written; `None` if only room decides.
    fn emission_deadline(&self) -> Option<Instant> {
        match &self.language {
            Language::Dice(conversation) => conversation.pause_until(&self.session.client.clock),
            Language::Unknown | Language::Resp => None,
        }
    }

    fn output_limit(&self, config: &Config) -> OutputLimit {
        let is_subscribed = self.session.subscriptions.any();
        if is_subscribed { config.output_limits.pubsub } else { config.output_limits.normal }
    }

    /// Sets the hard limit, so that a reply overflows while it is encoded and not only afterwards.
    fn limit_output(&mut self, config: &Config) {
        let limit = ceiling(self.output_limit(config).hard_bytes);
        self.session.outbox.set_limit(limit);
    }

    /// Whether the client must read before anything else happens.
    fn must_read_first(&self) -> bool {
        let is_known = self.session.authenticated;
        let outbox = &self.session.outbox;
        // Earlier with a low limit, so a pipeline of small replies pauses before the limit
        // disconnects the client.
        let limit = if is_known { OUTPUT_PAUSE_BYTES } else { STRANGER_OUTPUT_PAUSE_BYTES };
        outbox.pending() >= limit.min(outbox.limit() / 2 + 1)
    }

    fn may_run(&self) -> bool {
        let session = &self.session;
        session.wait.is_none() && !session.closing && !self.must_read_first() && !self.has_overflowed()
    }
}

/// Asserts that released replies may be sent: reads the log again and compares.
fn assert_reached(needed: Reached, log: Reached) {
    assert!(
        log.committed >= needed.committed,
        "an answer that waits until LSN {} is committed was released, and the log is committed to LSN {}",
        needed.committed,
        log.committed
    );
    assert!(
        log.written >= needed.written,
        "an answer that waits until LSN {} is written was released, and the log is written to LSN {}",
        needed.written,
        log.written
    );
}

/// Most pending bytes for a client with this hard limit; 0 means the ceiling.
fn ceiling(hard_bytes: usize) -> usize {
    if hard_bytes == 0 { OUTPUT_CEILING_BYTES } else { hard_bytes }
}

#[cfg(test)]
mod tests;
