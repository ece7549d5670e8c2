//! Per-client state that the server keeps between commands.
//!
//! The parts do not depend on the session as a whole. Code that changes several parts, or writes to
//! the client, is in `wait`, `subscription::lifecycle`, `subscription::resumption`, `events`, and
//! the commands.

mod change_stream;
mod copies;
mod subscriptions;
mod tracking;
mod transaction;
mod wait;

pub(crate) use change_stream::ChangeStream;
pub(crate) use copies::Copies;
pub(crate) use subscriptions::Subscriptions;
pub(crate) use tracking::{Mode, Tracking, Untaken, terms};
pub(crate) use transaction::Transaction;
pub(crate) use wait::{Wait, WaitFor};

use crate::events::publication::Kind;
use crate::net::client::{Client, flags};
use crate::net::connection_id::{ConnectionAddress, ConnectionId};
use crate::net::outbox::Outbox;
use crate::shared::Shared;
use crate::subscription::channel_publisher::unsubscribe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tidemark_engine::{MemoryBudget, Protocol, WatchedKeys};
use tidemark_log::Lsn;

/// Most channels and patterns that one client may subscribe to, and most keys that it may watch.
pub(crate) const NAMES_LIMIT: usize = 1 << 20;

/// Mode of `CLIENT REPLY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Replies {
    #[default]
    On,
    Off,
    /// `SKIP` has no reply, nor has the command after it.
    SkipThisAndNext,
    SkipThis,
}

/// One client's state. Dispatch changes it; the connection around it moves bytes.
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) outbox: Outbox,
    /// Selected database, below the number of databases.
    pub(crate) db: u8,
    pub(crate) authenticated: bool,
    /// The client may only administer: see [`Client::is_reserved`].
    pub(crate) is_reserved: bool,
    /// Since when the client has been unauthenticated, while it is.
    pub(crate) stranger_since: Instant,
    pub(crate) failed_logins: u32,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) watched: WatchedKeys,
    pub(crate) subscriptions: Subscriptions,
    /// State of `CLIENT TRACKING`, if it is on.
    pub(crate) tracking: Option<Box<Tracking>>,
    /// Invalidations to write to this connection, its own or redirected.
    pub(crate) untaken: Untaken,
    pub(crate) replies: Replies,
    /// Whether the client reads followers: `READONLY`.
    pub(crate) reads_followers: bool,
    /// When a command of the client was first sent to another member of the group.
    pub(crate) sent_away_since: Option<Instant>,
    /// Confirmations of subscriptions in the reply to `EXEC`, kept in case the reply is suppressed:
    /// they are messages.
    pub(crate) confirmations: Vec<u8>,
    /// What a blocked client waits for. No command runs until the wait ends.
    pub(crate) wait: Option<Wait>,
    /// The latest command has changed settings: the worker applies them before the next command.
    pub(crate) settings_changed: bool,
    /// Close when everything sendable has been sent.
    pub(crate) closing: bool,
    /// LSN of the client's latest change.
    pub(crate) last_write: Option<Lsn>,
    /// Row of the latest command, for `CLIENT LIST`.
    pub(crate) last_command: u16,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, authenticated: bool, budget: &Arc<MemoryBudget>) -> Session {
        let mut outbox = Outbox::new(Protocol::Resp2);
        // An administrator gets every reply, even when clients use too much memory.
        if !client.is_reserved {
            outbox.reply.set_budget(budget);
        }
        Session {
            is_reserved: client.is_reserved,
            stranger_since: client.connected,
            client,
            outbox,
            db: 0,
            authenticated,
            failed_logins: 0,
            transaction: None,
            watched: WatchedKeys::new(),
            subscriptions: Subscriptions::default(),
            tracking: None,
            untaken: Untaken::default(),
            replies: Replies::On,
            reads_followers: false,
            sent_away_since: None,
            confirmations: Vec::new(),
            wait: None,
            settings_changed: false,
            closing: false,
            last_write: None,
            last_command: 0,
        }
    }

    /// Whether the next command takes the fast path: no transaction, no refusal, no special
    /// handling of its reply.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.authenticated
            && !self.is_reserved
            && self.transaction.is_none()
            && self.replies == Replies::On
            && !(self.subscriptions.any() && self.outbox.reply.protocol() == Protocol::Resp2)
    }

    /// Whether a blocking command of the client has been served and its reply is on its way.
    /// Messages about changes made by serving it follow the reply.
    pub(crate) fn awaits_delivery(&self) -> bool {
        self.wait.as_ref().is_some_and(Wait::awaits_delivery)
    }

    /// Whether commands are being queued, or queued commands are being executed.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The connection's id within its worker.
    pub(crate) fn connection_id(&self) -> ConnectionId {
        self.client.connection_id
    }

    /// The connection's address across all workers.
    pub(crate) fn address(&self) -> ConnectionAddress {
        ConnectionAddress { worker: self.client.worker, connection_id: self.client.connection_id }
    }

    /// Updates what `CLIENT LIST` shows, after some commands.
    pub(crate) fn show(&self, input_bytes: usize) {
        let shown = &self.client.shown;
        shown.active_ms.store(self.client.age().as_millis() as u64, Ordering::Relaxed);
        shown.db.store(usize::from(self.db), Ordering::Relaxed);
        shown.command.store(self.last_command, Ordering::Relaxed);
        shown.input_bytes.store(input_bytes, Ordering::Relaxed);
        shown.reply_bytes.store(self.outbox.reply.capacity(), Ordering::Relaxed);
    }

    /// Updates what `CLIENT LIST` shows of rarely changed state. Called by the commands that change
    /// it.
    pub(crate) fn show_state(&self) {
        let client = &self.client;
        let subscriptions = &self.subscriptions;
        client.flag(flags::IN_TRANSACTION, self.transaction.is_some());
        client.flag(flags::SUBSCRIBED, subscriptions.any());
        // A client whose command was offloaded does not count as blocked.
        let is_blocked = self.wait.as_ref().is_some_and(|wait| !matches!(wait.what, WaitFor::Long));
        client.flag(flags::BLOCKED, is_blocked);
        let queued = self.transaction.as_ref().map_or(-1, |transaction| transaction.len() as i64);
        client.shown.queued.store(queued, Ordering::Relaxed);
        client.shown.channels.store(subscriptions.of(Kind::Channel).len(), Ordering::Relaxed);
        client.shown.patterns.store(subscriptions.of(Kind::Pattern).len(), Ordering::Relaxed);
        client.shown.shard_channels.store(subscriptions.of(Kind::Shard).len(), Ordering::Relaxed);
        let protocol = if self.outbox.reply.protocol() == Protocol::Resp3 { 3 } else { 2 };
        client.shown.protocol.store(protocol, Ordering::Relaxed);
    }

    /// Ends all channel and pattern subscriptions without notifying the client.
    pub(crate) fn unsubscribe_all(&mut self, shared: &Shared) {
        let subscriber = self.address();
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            for name in std::mem::take(self.subscriptions.of_mut(kind)) {
                unsubscribe(shared, kind, &name, subscriber);
            }
        }
    }
}
