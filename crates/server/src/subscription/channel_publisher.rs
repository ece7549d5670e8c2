//! Watched reads whose emissions are published on channels: one listener of the engine besides the
//! workers and HTTP, served by one thread.
//!
//! ```text
//! X.WATCH … | CHANNEL c ─► command/channel_command.rs ─► ChannelPublisher::insert: a cursor
//! Engine ─► Mailbox ─► the thread: emissions ─► a line of JSON each (channel_message.rs) ─► PubSub
//!              └◄─ the turn ends (channel_flow.rs) when all have room ◄─ connections ◄────────┘
//! ```

use crate::events::publication::Kind;
use crate::net::connection_id::ConnectionAddress;
use crate::net::outbox::Until;
use crate::shared::Shared;
use crate::subscription::channel_flow::{Notified, Turn};
use crate::subscription::channel_message;
use crate::subscription::channel_registry::{ChannelRegistry, ChannelWatches};
use crate::subscription::cursor::Cursor;
use crate::subscription::resume_error::ResumeError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use tidemark_engine::CommandError;
use tidemark_engine::watch::{Gone, Query, SharedQuery, Subscribed};
use tidemark_log::Lsn;

/// Starts the thread, which ends when the registry's mailbox is stopped.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let serve = move || {
        while let Some(notified) = shared.channel_registry.mailbox.wait() {
            ChannelPublisher::new(&shared).serve(notified);
        }
    };
    std::thread::Builder::new().name("tidemark-channels".to_owned()).spawn(serve)
}

/// A message to publish.
struct Message {
    line: Vec<u8>,
    after: Option<Until>,
}

/// Access to the watches of channels, with what publishing their emissions needs.
pub(crate) struct ChannelPublisher<'s> {
    registry: &'s ChannelRegistry,
    shared: &'s Shared,
}

impl<'s> ChannelPublisher<'s> {
    pub(crate) fn new(shared: &'s Shared) -> ChannelPublisher<'s> {
        ChannelPublisher { registry: &shared.channel_registry, shared }
    }

    /// Fails if the limit is reached or the channel has no subscriber: such a watch would never
    /// end.
    pub(crate) fn check(&self, channel: &[u8], query: Option<Lsn>) -> Result<(), CommandError> {
        self.registry.check_room(&self.registry.lock(), channel, query)?;
        check_subscribed(channel, self.shared)
    }

    /// Publishes a query's emissions on a channel from `cursor` on, or from the present cursor if
    /// that is earlier. The caller may have registered the listener; it is unregistered if the
    /// watch is refused.
    pub(crate) fn insert(&self, channel: &[u8], cursor: Cursor) -> Result<(), CommandError> {
        let mut watches = self.registry.lock();
        let query = cursor.query().clone();
        let inserted = self.admit(&mut watches, channel, cursor);
        if inserted.is_err() {
            self.leave_if_unused(&watches, &query);
        }
        inserted
    }

    fn admit(
        &self,
        watches: &mut ChannelWatches,
        channel: &[u8],
        cursor: Cursor,
    ) -> Result<(), CommandError> {
        let id = cursor.query().id();
        self.registry.check_room(watches, channel, Some(id))?;
        // Registered under the lock: the query's last other watch may just have ended, and
        // unregistered the listener.
        if self.shared.engine.listen(id, self.registry.listener).is_none() {
            return Err(CommandError::text("TRYAGAIN the read has ended; watch it again"));
        }
        let is_new = !watches.contains(channel, id);
        // Counted before the subscribers are checked: a subscriber that leaves later sees that
        // there is a watch to end.
        self.registry.count.fetch_add(usize::from(is_new), Ordering::SeqCst);
        if let Err(error) = check_subscribed(channel, self.shared) {
            self.registry.count.fetch_sub(usize::from(is_new), Ordering::SeqCst);
            return Err(error);
        }
        watches.insert(channel, cursor);
        self.registry.mailbox.look_at(id);
        Ok(())
    }

    /// Ends the watches of a channel without subscribers.
    pub(crate) fn subscribers_left(&self, channel: &[u8]) {
        if self.registry.len() == 0 {
            return;
        }
        let mut watches = self.registry.lock();
        // A client may have subscribed since.
        if self.shared.pubsub.subscribers(Kind::Channel, channel) == 0 {
            for query in watches.queries_of(channel) {
                self.remove(&mut watches, channel, query);
            }
        }
    }

    /// Ends the named watches of a channel, or all if no name is given. Notifies the subscribers.
    /// Returns how many ended.
    pub(crate) fn unwatch(&self, channel: &[u8], names: &[&[u8]]) -> usize {
        let mut ended = Vec::new();
        {
            let mut watches = self.registry.lock();
            for query in watches.queries_of(channel) {
                let name = watches.channels[channel].cursors[&query].name();
                if names.is_empty() || names.contains(&name.as_bytes()) {
                    ended.extend(self.remove(&mut watches, channel, query));
                }
            }
        }
        for cursor in &ended {
            publish(channel, &ended_by(cursor, "ERR UNWATCH CHANNEL has ended the watch"), None, self.shared);
        }
        ended.len()
    }

    fn leave_if_unused(&self, watches: &ChannelWatches, query: &Query) {
        if !watches.by_query.contains_key(&query.id()) {
            self.shared.engine.leave(query, self.registry.listener, self.shared.clock.now_us());
        }
    }

    fn remove(&self, watches: &mut ChannelWatches, channel: &[u8], query: Lsn) -> Option<Cursor> {
        let cursor = watches.remove(channel, query)?;
        self.registry.count.fetch_sub(1, Ordering::SeqCst);
        self.leave_if_unused(watches, cursor.query());
        Some(cursor)
    }

    /// Publishes the pending emissions of the notified queries and channels.
    pub(crate) fn serve(&self, notified: Notified) {
        let mut channels = notified.channels;
        notified.queries.into_iter().for_each(|query| channels.extend(self.registry.look(query)));
        channels.iter().for_each(|channel| self.take_turn(channel));
    }

    /// Publishes one turn of a channel, unless its last turn has not ended.
    fn take_turn(&self, name: &Arc<[u8]>) {
        let (due, turn) = {
            let mut watches = self.registry.lock();
            let Some(channel) = watches.channels.get_mut(name) else { return };
            if channel.turn.strong_count() > 0 {
                return;
            }
            let due = channel.take(&self.shared.replays, &self.registry.mailbox);
            if due.emissions.is_empty() && due.gone.is_empty() {
                return;
            }
            let turn = Turn::new(name, &self.registry.mailbox);
            channel.turn = Arc::downgrade(&turn);
            (due, turn)
        };
        let mut sent = 0;
        for (cursor, emission) in &due.emissions {
            let json = self.shared.http_registry.json.of(&emission.answer);
            let line = channel_message::emission(cursor, &json, emission.is_change);
            let message = Message { line, after: self.shared.holds_back(emission) };
            sent += publish(name, &message, Some(&turn), self.shared);
        }
        self.shared.channel_counters().emissions.add(sent as u64);
        for (query, gone) in due.gone {
            let message = self.begin_anew(name, &query, gone);
            message.inspect(|message| _ = publish(name, message, Some(&turn), self.shared));
        }
    }

    /// Restarts a watch whose next emissions are lost, from the current answer. Returns the message
    /// for its subscribers.
    fn begin_anew(&self, name: &[u8], query: &SharedQuery, gone: Gone) -> Option<Message> {
        let begun = if query.has_ended() {
            Err("ERR the watched read has ended".to_owned())
        } else {
            let read = query.read().clone();
            self.shared
                .engine
                .subscribe(read, self.registry.listener, self.shared.clock.now_us())
                .map_err(|error| error.to_string())
        };
        let mut watches = self.registry.lock();
        let ended = self.remove(&mut watches, name, query.id());
        let (ended, subscribed) = match (ended, begun) {
            (Some(ended), Ok(subscribed)) => (ended, subscribed),
            (Some(ended), Err(error)) => return Some(ended_by(&ended, &error)),
            (None, begun) => {
                // It has ended for another reason in the meantime.
                begun.iter().for_each(|subscribed| self.leave_if_unused(&watches, &subscribed.query));
                return None;
            }
        };
        let cursor = beginning(&subscribed);
        let json = self.shared.http_registry.json.of(&subscribed.answer);
        let line = channel_message::position(&cursor, Some(&json), Some(ResumeError::Stale(gone.floor)));
        let after = self.shared.holds_back_position(subscribed.lsn, false);
        match self.admit(&mut watches, name, cursor) {
            Ok(()) => Some(Message { line, after }),
            Err(error) => {
                self.leave_if_unused(&watches, &subscribed.query);
                Some(ended_by(&ended, &error.to_string()))
            }
        }
    }
}

/// Ends a client's subscription to a channel, a pattern or a shard channel, and the watches of a
/// channel that has lost its last subscriber.
pub(crate) fn unsubscribe(shared: &Shared, kind: Kind, name: &[u8], subscriber: ConnectionAddress) {
    if shared.pubsub.unsubscribe(kind, name, subscriber) && kind == Kind::Channel {
        ChannelPublisher::new(shared).subscribers_left(name);
    }
}

/// Cursor of a watch whose subscribers get the current answer. Its numbers are the query's.
pub(crate) fn beginning(subscribed: &Subscribed) -> Cursor {
    Cursor::behind(subscribed.query.clone(), 0, subscribed.number, subscribed.lsn)
}

fn check_subscribed(channel: &[u8], shared: &Shared) -> Result<(), CommandError> {
    if shared.pubsub.subscribers(Kind::Channel, channel) > 0 {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&channel[..channel.len().min(64)]).into_owned();
    let error = format!("ERR the channel '{shown}' has no subscriber; SUBSCRIBE to it first, and then watch");
    Err(CommandError::Text(error.into()))
}

fn ended_by(cursor: &Cursor, error: &str) -> Message {
    Message { line: channel_message::ended(cursor, error), after: None }
}

fn publish(channel: &[u8], message: &Message, turn: Option<&Arc<Turn>>, shared: &Shared) -> usize {
    let Message { line, after } = message;
    shared.pubsub.publish(Kind::Channel, channel, line, *after, turn, &shared.inboxes)
}
