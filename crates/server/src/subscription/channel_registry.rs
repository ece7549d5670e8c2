//! The watches of channels: which queries are published on which channel, and from where.
//!
//! A watch belongs to its channel, not to the connection that requested it, and ends with the
//! channel's last subscriber. Its numbers are the query's, so they are the same on every channel
//! and after every resumption.

use crate::subscription::channel_flow::{Mailbox, Turn};
use crate::subscription::cursor::{Cursor, Older};
use crate::subscription::replay_buffer::Notifier;
use crate::subscription::replay_queue::ReplayQueue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tidemark_engine::CommandError;
use tidemark_engine::watch::{Emission, Gone, SharedQuery};
use tidemark_log::Lsn;

/// Most emissions of one watch in one step of a turn.
const BATCH: usize = 64;
/// A turn ends with the message that reaches this size. Bytes of answers.
const TURN_BYTES: usize = 64 << 10;

/// The watches of all channels.
pub(crate) struct ChannelRegistry {
    /// The engine's listener number of all channel watches together.
    pub(super) listener: usize,
    /// Most channel watches.
    limit: usize,
    pub(super) mailbox: Arc<Mailbox>,
    watches: Mutex<ChannelWatches>,
    /// Number of channel watches. While 0, a channel that loses its last subscriber needs no lock.
    pub(super) count: AtomicUsize,
}

/// Lock order: before the locks of the engine and of [`crate::events::pubsub`].
#[derive(Default)]
pub(super) struct ChannelWatches {
    pub(super) channels: BTreeMap<Arc<[u8]>, Channel>,
    /// Channels that a query is published on.
    pub(super) by_query: HashMap<Lsn, BTreeSet<Arc<[u8]>>>,
}

/// The watches of one channel.
#[derive(Default)]
pub(super) struct Channel {
    pub(super) cursors: BTreeMap<Lsn, Cursor>,
    /// Queries that may have emissions.
    behind: BTreeSet<Lsn>,
    /// Query served last: round robin continues after it.
    last: Lsn,
    /// The last turn, alive until all subscribers have room for more.
    pub(super) turn: Weak<Turn>,
}

/// What one turn of a channel publishes.
#[derive(Default)]
pub(super) struct Due {
    /// Emissions, each with the cursor after it.
    pub(super) emissions: Vec<(Cursor, Emission)>,
    /// Queries whose next emissions cannot be replayed.
    pub(super) gone: Vec<(SharedQuery, Gone)>,
}

impl ChannelRegistry {
    /// Creates a registry for at most `limit` watches. `listener` is their number at the engine.
    pub(crate) fn new(listener: usize, limit: usize) -> ChannelRegistry {
        ChannelRegistry {
            listener,
            limit,
            mailbox: Arc::default(),
            watches: Mutex::default(),
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

    /// Fails if the limit is reached.
    pub(super) fn check_room(
        &self,
        watches: &ChannelWatches,
        channel: &[u8],
        query: Option<Lsn>,
    ) -> Result<(), CommandError> {
        let is_known = query.is_some_and(|query| watches.contains(channel, query));
        let present = self.len();
        if !is_known && present >= self.limit {
            let error = format!(
                "ERR {present} watched reads are published on channels, as many as watch-max-channels allows"
            );
            return Err(CommandError::Text(error.into()));
        }
        Ok(())
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

    /// Marks a query as ready on all its channels, and returns them.
    pub(super) fn look(&self, query: Lsn) -> Vec<Arc<[u8]>> {
        let mut registry = self.lock();
        let ChannelWatches { channels, by_query } = &mut *registry;
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

    pub(super) fn lock(&self) -> MutexGuard<'_, ChannelWatches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChannelWatches {
    pub(super) fn contains(&self, channel: &[u8], query: Lsn) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.cursors.contains_key(&query))
    }

    pub(super) fn queries_of(&self, channel: &[u8]) -> Vec<Lsn> {
        self.channels.get(channel).into_iter().flat_map(|channel| channel.cursors.keys().copied()).collect()
    }

    /// Adds a watch. A present watch of the query moves back to `cursor` if that is earlier.
    pub(super) fn insert(&mut self, channel: &[u8], cursor: Cursor) {
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

    pub(super) fn remove(&mut self, name: &[u8], query: Lsn) -> Option<Cursor> {
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
    pub(super) fn take(&mut self, replays: &ReplayQueue, mailbox: &Arc<Mailbox>) -> Due {
        let notifier = |query| -> Notifier {
            let mailbox = Arc::clone(mailbox);
            Box::new(move || mailbox.look_at(query))
        };
        let older = Older { replays, notifier: &notifier };
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
