//! Watched reads whose emissions are published on channels: one listener of the engine besides the
//! workers and HTTP, served by one thread.
//!
//! ```text
//! X.WATCH … | CHANNEL c ─► command/channel_command.rs ─► ChannelPublisher::insert: a cursor
//! Engine ─► Mailbox ─► the thread: emissions ─► a line of JSON each (channel_message.rs) ─► PubSub
//!              └◄─ the turn ends (channel_flow.rs) when all have room ◄─ connections ◄────────┘
//! ```
//!
//! A watch belongs to its channel, not to the connection that requested it, and ends with the
//! channel's last subscriber. Its numbers are the query's, so they are the same on every channel
//! and after every resumption.

use crate::clock::now_us;
use crate::events::publication::Kind;
use crate::net::outbox::Until;
use crate::shared::Shared;
use crate::subscription::channel_flow::{Mailbox, Told, Turn};
use crate::subscription::channel_message;
use crate::subscription::cursor::{Cursor, Older};
use crate::subscription::replay_buffer::Tell;
use crate::subscription::resume_error::ResumeError;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use tidemark_engine::CommandError;
use tidemark_engine::watch::{Emission, Gone, Query, SharedQuery, Subscribed};
use tidemark_log::Lsn;

/// Most emissions of one watch in one step of a turn.
const BATCH: usize = 64;
/// A turn ends with the message that reaches this size. Bytes of answers.
const TURN_BYTES: usize = 64 << 10;

/// Starts the thread, which ends with [`Mailbox::stop`].
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let serve = move || {
        while let Some(told) = shared.channel_publisher.mailbox.wait() {
            shared.channel_publisher.serve(told, &shared);
        }
    };
    std::thread::Builder::new().name("tidemark-channels".to_owned()).spawn(serve)
}

/// See the module's documentation.
pub(crate) struct ChannelPublisher {
    /// The engine's listener number of all channel watches together.
    listener: usize,
    /// Most channel watches.
    limit: usize,
    mailbox: Arc<Mailbox>,
    registry: Mutex<Registry>,
    /// Number of channel watches. While 0, a channel that loses its last subscriber needs no lock.
    count: AtomicUsize,
}

/// Lock order: before the locks of the engine and of [`crate::events::pubsub`].
#[derive(Default)]
struct Registry {
    channels: BTreeMap<Arc<[u8]>, Channel>,
    /// Channels that a query is published on.
    by_query: HashMap<Lsn, BTreeSet<Arc<[u8]>>>,
}

/// The watches of one channel.
#[derive(Default)]
struct Channel {
    cursors: BTreeMap<Lsn, Cursor>,
    /// Queries that may have emissions.
    behind: BTreeSet<Lsn>,
    /// Query served last: round robin continues after it.
    last: Lsn,
    /// The last turn, alive until all subscribers have room for more.
    turn: Weak<Turn>,
}

/// A message to publish.
struct Message {
    line: Vec<u8>,
    after: Option<Until>,
}

/// What one turn of a channel publishes.
#[derive(Default)]
struct Due {
    /// Emissions, each with the cursor after it.
    emissions: Vec<(Cursor, Emission)>,
    /// Queries whose next emissions cannot be replayed.
    gone: Vec<(SharedQuery, Gone)>,
}

impl ChannelPublisher {
    /// Creates a publisher for at most `limit` watches. `listener` is their number at the engine.
    pub(crate) fn new(listener: usize, limit: usize) -> ChannelPublisher {
        ChannelPublisher {
            listener,
            limit,
            mailbox: Arc::default(),
            registry: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    pub(crate) fn listener(&self) -> usize {
        self.listener
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Number of channel watches.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether a query is published on a channel.
    pub(crate) fn contains(&self, channel: &[u8], query: Lsn) -> bool {
        self.lock().channels.get(channel).is_some_and(|channel| channel.cursors.contains_key(&query))
    }

    /// Fails if the limit is reached or the channel has no subscriber: such a watch would never
    /// end.
    pub(crate) fn check(
        &self,
        channel: &[u8],
        query: Option<Lsn>,
        shared: &Shared,
    ) -> Result<(), CommandError> {
        self.check_room(&self.lock(), channel, query)?;
        check_subscribed(channel, shared)
    }

    fn check_room(
        &self,
        registry: &Registry,
        channel: &[u8],
        query: Option<Lsn>,
    ) -> Result<(), CommandError> {
        let is_known = query.is_some_and(|query| registry.contains(channel, query));
        let present = self.len();
        if !is_known && present >= self.limit {
            let error = format!(
                "ERR {present} watched reads are published on channels, as many as watch-max-channels allows"
            );
            return Err(CommandError::Text(error.into()));
        }
        Ok(())
    }

    /// Publishes a query's emissions on a channel from `cursor` on, or from the present cursor if
    /// that is earlier. The caller may have registered the listener; it is unregistered if the
    /// watch is refused.
    pub(crate) fn insert(&self, channel: &[u8], cursor: Cursor, shared: &Shared) -> Result<(), CommandError> {
        let mut registry = self.lock();
        let query = cursor.query().clone();
        let inserted = self.admit(&mut registry, channel, cursor, shared);
        if inserted.is_err() {
            self.leave_if_unused(&registry, &query, shared);
        }
        inserted
    }

    fn admit(
        &self,
        registry: &mut Registry,
        channel: &[u8],
        cursor: Cursor,
        shared: &Shared,
    ) -> Result<(), CommandError> {
        let id = cursor.query().id();
        self.check_room(registry, channel, Some(id))?;
        // Registered under the lock: the query's last other watch may just have ended, and
        // unregistered the listener.
        if shared.engine.listen(id, self.listener).is_none() {
            return Err(CommandError::text("TRYAGAIN the read has ended; watch it again"));
        }
        let is_new = !registry.contains(channel, id);
        // Counted before the subscribers are checked: a subscriber that leaves later sees that
        // there is a watch to end.
        self.count.fetch_add(usize::from(is_new), Ordering::SeqCst);
        if let Err(error) = check_subscribed(channel, shared) {
            self.count.fetch_sub(usize::from(is_new), Ordering::SeqCst);
            return Err(error);
        }
        registry.insert(channel, cursor);
        self.mailbox.look_at(id);
        Ok(())
    }

    /// Ends the watches of a channel without subscribers.
    pub(crate) fn subscribers_left(&self, channel: &[u8], shared: &Shared) {
        if self.len() == 0 {
            return;
        }
        let mut registry = self.lock();
        // A client may have subscribed since.
        if shared.pubsub.subscribers(Kind::Channel, channel) == 0 {
            for query in registry.queries_of(channel) {
                self.remove(&mut registry, channel, query, shared);
            }
        }
    }

    /// Ends the named watches of a channel, or all if no name is given. Notifies the subscribers.
    /// Returns how many ended.
    pub(crate) fn unwatch(&self, channel: &[u8], names: &[&[u8]], shared: &Shared) -> usize {
        let mut ended = Vec::new();
        {
            let mut registry = self.lock();
            for query in registry.queries_of(channel) {
                let name = registry.channels[channel].cursors[&query].name();
                if names.is_empty() || names.contains(&name.as_bytes()) {
                    ended.extend(self.remove(&mut registry, channel, query, shared));
                }
            }
        }
        for cursor in &ended {
            publish(channel, &ended_by(cursor, "ERR UNWATCH CHANNEL has ended the watch"), None, shared);
        }
        ended.len()
    }

    /// Returns the watches of all channels that `fits` accepts, with their cursors.
    pub(crate) fn all(&self, fits: impl Fn(&[u8]) -> bool) -> Vec<(Arc<[u8]>, Cursor)> {
        let registry = self.lock();
        let channels = registry.channels.iter().filter(|(name, _)| fits(name));
        channels
            .flat_map(|(name, channel)| {
                channel.cursors.values().map(|cursor| (Arc::clone(name), cursor.here()))
            })
            .collect()
    }

    fn leave_if_unused(&self, registry: &Registry, query: &Query, shared: &Shared) {
        if !registry.by_query.contains_key(&query.id()) {
            shared.engine.leave(query, self.listener, now_us());
        }
    }

    fn remove(&self, registry: &mut Registry, channel: &[u8], query: Lsn, shared: &Shared) -> Option<Cursor> {
        let cursor = registry.remove(channel, query)?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.leave_if_unused(registry, cursor.query(), shared);
        Some(cursor)
    }

    /// Publishes the pending emissions of the notified queries and channels.
    pub(crate) fn serve(&self, told: Told, shared: &Shared) {
        let mut channels = told.channels;
        told.queries.into_iter().for_each(|query| channels.extend(self.look(query)));
        channels.iter().for_each(|channel| self.take_turn(channel, shared));
    }

    /// Marks a query as ready on all its channels, and returns them.
    fn look(&self, query: Lsn) -> Vec<Arc<[u8]>> {
        let mut registry = self.lock();
        let Registry { channels, by_query } = &mut *registry;
        let names: Vec<Arc<[u8]>> = by_query.get(&query).into_iter().flatten().cloned().collect();
        for (number, name) in names.iter().enumerate() {
            let channel =
                channels.get_mut(name).expect("a channel is there while a query is published on it");
            if number == 0 {
                // Re-armed before the emissions are read: later emissions notify again.
                channel.cursors[&query].query().look(self.listener);
            }
            channel.behind.insert(query);
        }
        names
    }

    /// Publishes one turn of a channel, unless its last turn has not ended.
    fn take_turn(&self, name: &Arc<[u8]>, shared: &Shared) {
        let (due, turn) = {
            let mut registry = self.lock();
            let Some(channel) = registry.channels.get_mut(name) else { return };
            if channel.turn.strong_count() > 0 {
                return;
            }
            let due = channel.take(shared, &self.mailbox);
            if due.emissions.is_empty() && due.gone.is_empty() {
                return;
            }
            let turn = Turn::new(name, &self.mailbox);
            channel.turn = Arc::downgrade(&turn);
            (due, turn)
        };
        let mut sent = 0;
        for (cursor, emission) in &due.emissions {
            let json = shared.http_registry.json.of(&emission.answer);
            let line = channel_message::position(cursor, Some(&json), None);
            let message = Message { line, after: shared.holds_back(emission) };
            sent += publish(name, &message, Some(&turn), shared);
        }
        shared.channel_counters().emissions.add(sent as u64);
        for (query, gone) in due.gone {
            let message = self.begin_anew(name, &query, gone, shared);
            message.inspect(|message| _ = publish(name, message, Some(&turn), shared));
        }
    }

    /// Restarts a watch whose next emissions are lost, from the current answer. Returns the message
    /// for its subscribers.
    fn begin_anew(&self, name: &[u8], query: &SharedQuery, gone: Gone, shared: &Shared) -> Option<Message> {
        let begun = if query.has_ended() {
            Err("ERR the watched read has ended".to_owned())
        } else {
            let read = query.read().clone();
            shared.engine.subscribe(read, self.listener, now_us()).map_err(|error| error.to_string())
        };
        let mut registry = self.lock();
        let ended = self.remove(&mut registry, name, query.id(), shared);
        let (ended, subscribed) = match (ended, begun) {
            (Some(ended), Ok(subscribed)) => (ended, subscribed),
            (Some(ended), Err(error)) => return Some(ended_by(&ended, &error)),
            (None, begun) => {
                // It has ended for another reason in the meantime.
                begun
                    .iter()
                    .for_each(|subscribed| self.leave_if_unused(&registry, &subscribed.query, shared));
                return None;
            }
        };
        let cursor = beginning(&subscribed);
        let json = shared.http_registry.json.of(&subscribed.answer);
        let line = channel_message::position(&cursor, Some(&json), Some(ResumeError::Stale(gone.floor)));
        let after = shared.holds_back_position(subscribed.lsn, false);
        match self.admit(&mut registry, name, cursor, shared) {
            Ok(()) => Some(Message { line, after }),
            Err(error) => {
                self.leave_if_unused(&registry, &subscribed.query, shared);
                Some(ended_by(&ended, &error.to_string()))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn contains(&self, channel: &[u8], query: Lsn) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.cursors.contains_key(&query))
    }

    fn queries_of(&self, channel: &[u8]) -> Vec<Lsn> {
        self.channels.get(channel).into_iter().flat_map(|channel| channel.cursors.keys().copied()).collect()
    }

    /// Adds a watch. A present watch of the query moves back to `cursor` if that is earlier.
    fn insert(&mut self, channel: &[u8], cursor: Cursor) {
        let id = cursor.query().id();
        let name: Arc<[u8]> = match self.channels.get_key_value(channel) {
            Some((name, _)) => Arc::clone(name),
            None => channel.into(),
        };
        self.by_query.entry(id).or_default().insert(Arc::clone(&name));
        let cursors = &mut self.channels.entry(name).or_default().cursors;
        match cursors.get(&id) {
            Some(present) if present.sequence() <= cursor.sequence() => {}
            _ => _ = cursors.insert(id, cursor),
        }
    }

    fn remove(&mut self, name: &[u8], query: Lsn) -> Option<Cursor> {
        let channel = self.channels.get_mut(name)?;
        let cursor = channel.cursors.remove(&query)?;
        channel.behind.remove(&query);
        if channel.cursors.is_empty() {
            self.channels.remove(name);
        }
        let names = self.by_query.get_mut(&query).expect("a query is noted with its channels");
        names.remove(name);
        if names.is_empty() {
            self.by_query.remove(&query);
        }
        Some(cursor)
    }
}

impl Channel {
    /// Takes the emissions of the next turn, round robin over the watches, so none starves.
    fn take(&mut self, shared: &Shared, mailbox: &Arc<Mailbox>) -> Due {
        let tell = |query| -> Tell {
            let mailbox = Arc::clone(mailbox);
            Box::new(move || mailbox.look_at(query))
        };
        let older = Older { replays: &shared.replays, tell: &tell };
        let (mut due, mut bytes) = (Due::default(), 0);
        while bytes <= TURN_BYTES {
            let next = self.behind.range((Bound::Excluded(self.last), Bound::Unbounded)).next();
            let Some(id) = next.or_else(|| self.behind.first()).copied() else { break };
            self.last = id;
            let cursor = self.cursors.get_mut(&id).expect("a watch that is behind is there");
            let mut batch = Vec::new();
            if let Err(gone) = cursor.next(BATCH, &mut batch, &older) {
                self.behind.remove(&id);
                due.gone.push((cursor.query().clone(), gone));
                continue;
            }
            if batch.is_empty() {
                self.behind.remove(&id);
            }
            for emission in batch {
                if bytes > TURN_BYTES {
                    break;
                }
                bytes += emission.answer.len();
                cursor.pass(&emission);
                due.emissions.push((cursor.here(), emission));
            }
        }
        due
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
