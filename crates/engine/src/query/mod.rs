//! Watched reads: what subscribers get is the log's doing, and nothing is kept for each of them.
//!
//! A [`Query`] is a read that somebody watches, with all that its answer depends on beside the keys. Equal subscriptions
//! share one query. Whenever a record of the log changes the answer, the query emits it, once, numbered, and stamped with
//! the record's LSN; the latest emissions are retained. A subscription is no more than a number: that of the last emission
//! it was given.
//!
//! ```text
//! X.WATCH ─► Engine::subscribe ─► record `watch` in the log ─► Registry, and the Index of every shard that it reads
//!                                                                     │
//! command ─► Keys::changed ─► Index::note ─► append ─► Engine::emit ──┤ under the locks of all that the query reads
//!                                                                     ▼
//!                                             Query: emissions 41, 42, 43 ─► Audience::tell ─► whoever serves subscribers
//!                                                        └─ Retention drops the oldest of all queries
//! ```
//!
//! # Why emissions are a function of the log
//!
//! A query begins with a record of its own, and that record's LSN is its id. Its answer is computed under the locks of all
//! shards that it reads, right behind the record that may have changed it, and from the state as the log has it: a key whose
//! time has come is there until a record removes it. `apply` does the same with the same records. So the number of an emission, its LSN and its bytes are equal on every machine that has the
//! log, and a server that comes back from a crash has the emissions of the records behind its snapshot again. Answers whose
//! order is that of a hash table are brought into the order of their bytes first.
//!
//! # Locks
//!
//! Shards first, in order; then the registry; then the names; then the retention; then one query. A query whose reads lie in several
//! shards makes whoever changes one of its keys lock them all: see `serving`.

mod answer;
mod emission;
mod evaluation;
mod filter;
mod guarantee;
mod index;
mod listing;
mod named;
mod past;
mod read;
mod registry;
mod retention;
mod saving;
mod scope;
mod subscribing;
mod watched;

pub use emission::{Emission, Gone};
pub use filter::Filter;
pub use guarantee::Guarantee;
pub use named::{Acknowledged, Acknowledgement, Named, check_name};
pub use past::{Past, PastError, Widening};
pub use read::{Read, Watchable, watchable};
pub use registry::QueryLimits;
pub use retention::RetentionLimits;
pub use subscribing::{Resumed, Subscribed, count_in_frame};

pub(crate) use evaluation::Moment;
pub(crate) use index::Index;
pub(crate) use named::{Acknowledging, NotAcknowledged, encode as encode_named};
pub(crate) use registry::Registry;
pub(crate) use scope::Scope;

use crate::interest::Noted;
use crate::keyspace::Keyspace;
use crate::part::Part;
use crate::reply::Reply;
use crate::tracking::Broadcast;
use emission::Emissions;
use filter::Filtering;
use listing::Listing;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::{Log, Lsn};

/// Whoever passes emissions on to subscribers.
pub trait Audience: Send + Sync {
    /// Tells a listener that a query has emitted something since the listener last looked. Called with shards locked: it
    /// must neither wait nor use the engine.
    fn tell(&self, listener: usize, query: &Arc<Query>);

    /// Tells somebody that keys which begin as some clients have asked for have changed since it was last passed on: it
    /// is to be passed on, once, by [`Broadcast::pass_on`]. Called as [`Audience::tell`] is.
    fn broadcast(&self, broadcast: &Arc<Broadcast>);
}

/// Which shards a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    One(usize),
    /// Ascending.
    Several(Box<[usize]>),
    All,
}

/// A watched read. See the module's documentation.
pub struct Query {
    id: Lsn,
    read: Read,
    reach: Reach,
    /// What it looks at of what the keys hold: what changes of the rest do not concern it.
    part: Part,
    /// It is on the list of those that a command may have changed. Changes under the locks of what it reads.
    noted: AtomicBool,
    state: Mutex<State>,
}

/// What changes: under the locks of all shards that the query reads, emissions are added; listeners come and go.
struct State {
    /// The read's latest answer.
    answer: Arc<[u8]>,
    /// What answers go through, if anything, and what came of them last.
    filtered: Option<Box<Filtered>>,
    /// The keys that are answered, if that is what the read does.
    listing: Option<Box<Listing>>,
    emissions: Emissions,
    listeners: SmallVec<[Listener; 2]>,
    /// How many named subscriptions there are to it.
    names: usize,
    /// When the last listener left, in microseconds since 1970; of no meaning while there is one.
    abandoned_us: u64,
    /// It is in the registry no more: nobody may join it.
    is_removed: bool,
    /// The number of the latest snapshot that has it.
    saved: u64,
    /// What the registry has been told that it takes.
    counted: usize,
}

#[derive(Clone)]
struct Filtered {
    filtering: Filtering,
    shown: Arc<[u8]>,
}

impl State {
    /// What subscribers see at first: that of the last emission, or what the query began with.
    fn shown(&self) -> &Arc<[u8]> {
        self.filtered.as_ref().map_or(&self.answer, |filtered| &filtered.shown)
    }

    /// What the state takes beside itself, without emissions.
    fn bytes(&self) -> usize {
        let filtered = self.filtered.as_ref().map_or(0, |it| it.shown.len() + it.filtering.bytes());
        let listing = self.listing.as_ref().map_or(0, |listing| listing.bytes());
        self.answer.len() + filtered + listing
    }
}

struct Listener {
    number: usize,
    /// It has been told, and has not looked since.
    is_told: bool,
}

impl Query {
    fn new(id: Lsn, (read, part): (Read, Part), keyspace: &Keyspace, answer: Arc<[u8]>, now_us: u64) -> Self {
        let filtered = Filtering::new(read.filter(), read.protocol()).map(|mut filtering| {
            let shown = filtering.apply(&answer, now_us).unwrap_or_else(|| {
                let mut reply = Reply::new(read.protocol());
                reply.null();
                reply.take()
            });
            Box::new(Filtered { filtering, shown: shown.into() })
        });
        Self::restored(id, (read, part), keyspace, (answer, filtered), (0, id), now_us)
    }

    /// A query that has emitted before: so many times, the last time at the LSN, which is its beginning if it never has.
    fn restored(
        id: Lsn,
        (read, part): (Read, Part),
        keyspace: &Keyspace,
        (answer, filtered): (Arc<[u8]>, Option<Box<Filtered>>),
        (count, floor): (u64, Lsn),
        now_us: u64,
    ) -> Self {
        let (reach, listing) = (read.reach(keyspace), Listing::new(&read));
        let state = State {
            answer,
            filtered,
            listing,
            emissions: Emissions::new(count, floor),
            listeners: SmallVec::new(),
            names: 0,
            abandoned_us: now_us,
            is_removed: false,
            saved: 0,
            counted: 0,
        };
        Self { id, read, reach, part, noted: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// The LSN of the record that began it: unique, and the same for ever.
    pub fn id(&self) -> Lsn {
        self.id
    }

    /// What is read.
    pub fn read(&self) -> &Read {
        &self.read
    }

    /// The number of the latest emission: how many there have been.
    pub fn count(&self) -> u64 {
        self.lock().emissions.count()
    }

    /// Notes that a listener looks: from the next emission on it is told again.
    pub fn look(&self, listener: usize) {
        let mut state = self.lock();
        if let Some(listener) = state.listeners.iter_mut().find(|other| other.number == listener) {
            listener.is_told = false;
        }
    }

    /// Up to `most` emissions behind number `after`, oldest first, into `into`. O(number of them).
    pub fn emissions_after(&self, after: u64, most: usize, into: &mut Vec<Emission>) -> Result<(), Gone> {
        self.lock().emissions.after(after, most, into)
    }

    /// The latest emission, if it is behind number `after`.
    pub fn latest_after(&self, after: u64) -> Result<Option<Emission>, Gone> {
        self.lock().emissions.latest_after(after)
    }

    /// What subscribers saw when there had been so many emissions; `None` if that is not retained.
    pub fn shown_at(&self, count: u64) -> Option<Arc<[u8]>> {
        let state = self.lock();
        if state.emissions.count() == count {
            return Some(Arc::clone(state.shown()));
        }
        let mut next = Vec::new();
        state.emissions.after(count, 1, &mut next).ok()?;
        next.pop().map(|next| next.before)
    }

    /// Puts the query on a list of those that a command may have changed, unless it is there.
    fn note(self: &Arc<Self>, noted: &mut Vec<Noted>) {
        // Ordering comes from the locks of the shards.
        if !self.noted.load(Ordering::Relaxed) {
            self.noted.store(true, Ordering::Relaxed);
            noted.push(Noted::Query(Arc::clone(self)));
        }
    }

    /// As [`Query::note`], because of a key that the read does not name.
    fn note_key(self: &Arc<Self>, key: &[u8], noted: &mut Vec<Noted>) {
        if let Some(listing) = &mut self.lock().listing {
            listing.note(key);
        }
        self.note(noted);
    }

    /// As [`Query::note`], because anything may have changed.
    fn note_everything(self: &Arc<Self>, noted: &mut Vec<Noted>) {
        if let Some(listing) = &mut self.lock().listing {
            listing.note_everything();
        }
        self.note(noted);
    }

    /// Whether an LSN may be one that a crash has taken back: the log does not reach back to it any more, so it does not know
    /// of gaps there, and no emission of the query, behind which one goes on wherever in between one was, is newer.
    fn may_be_lost(&self, lsn: Lsn, log: &Log) -> bool {
        lsn < log.floor() && lsn > self.lock().emissions.last()
    }

    /// What it takes whatever its state is.
    fn fixed_bytes(&self) -> usize {
        size_of::<Self>() + self.read.bytes() + watched::names(self).count() * watched::NAME_BYTES
    }

    fn join(state: &mut State, listener: usize) {
        if !state.listeners.iter().any(|other| other.number == listener) {
            state.listeners.push(Listener { number: listener, is_told: false });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("id", &self.id).field("read", &self.read).finish_non_exhaustive()
    }
}
