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
mod by_id;
mod emission;
mod evaluation;
mod filter;
mod guarantee;
mod index;
mod listeners;
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

pub use by_id::{ById, OfQuery};
pub use emission::{Emission, Gone};
pub use filter::Filter;
pub use guarantee::Guarantee;
pub use named::{Acknowledged, Acknowledgement, Named, check_name};
pub use past::{Past, PastError, Widening};
pub use read::{Read, Watchable, watchable};
pub use registry::QueryLimits;
pub use retention::RetentionLimits;
pub use subscribing::{Resumed, Subscribed, count_in_frame};

pub(crate) use index::Index;
pub(crate) use named::{Acknowledging, NotAcknowledged, encode as encode_named};
pub(crate) use registry::Registry;
pub(crate) use scope::Scope;

use crate::keyspace::{Entry, Keyspace};
use crate::noted::Noted;
use crate::part::Part;
use crate::reply::Reply;
use crate::shared_bytes::SharedBytes;
use crate::touched::Touched;
use crate::tracking::Broadcast;
use emission::Emissions;
use filter::Filtering;
use listeners::Listeners;
use listing::Listing;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::{Log, Lsn};

/// Whoever passes emissions on to subscribers.
pub trait Audience: Send + Sync {
    /// Tells a listener that a query has emitted something since the listener last looked. Called with shards locked: it
    /// must neither wait nor use the engine.
    fn tell(&self, listener: usize, query: &SharedQuery);

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

/// What a query takes in the registry and in the index of its key's shard, about: a count of references, and a place in each of three
/// tables that are part empty.
const PLACES_BYTES: usize = 48;

/// A query as all have it who are concerned with it. Nobody refers to one weakly, so there is one count only.
pub type SharedQuery = triomphe::Arc<Query>;

/// A watched read. See the module's documentation.
pub struct Query {
    id: Lsn,
    read: Read,
    /// What most reads have nothing of.
    special: Option<Box<Special>>,
    /// The number of the latest snapshot that has it. Changes under the lock of the state.
    saved: AtomicU32,
    /// It is on the list of those that a command may have changed. Changes under the locks of what it reads.
    noted: AtomicBool,
    /// It is in the registry no more: nobody may join it. Changes under the lock of the state.
    is_removed: AtomicBool,
    state: Mutex<State>,
}

// With the counts in front of it, what one of a million plain reads takes of the allocator.
const _: () = assert!(size_of::<Query>() <= 120, "a query keeps what every read needs, and no more");

/// What a query keeps whose read concerns several shards, or only a part of what its key holds.
struct Special {
    /// Which shards it reads, if that is more than its key's.
    wide: Option<Reach>,
    /// What it looks at of what the keys hold: what changes of the rest does not concern it.
    part: Part,
}

/// What changes: under the locks of all shards that the query reads, emissions are added; listeners come and go.
struct State {
    /// The read's latest answer.
    answer: SharedBytes,
    emissions: Emissions,
    /// Those who are told of them. Since when there is none means nothing while there are names.
    listeners: Listeners,
    /// What most queries have nothing of.
    more: Option<Box<More>>,
}

/// What a query needs beside, if its read or its subscribers ask for it.
#[derive(Default)]
struct More {
    /// What answers go through, if anything, and what came of them last.
    filtered: Option<Box<Filtered>>,
    /// The keys that are answered, if that is what the read does.
    listing: Option<Box<Listing>>,
    /// How many named subscriptions there are to it.
    names: usize,
    /// What the registry has been told that this takes.
    counted: usize,
}

#[derive(Clone)]
struct Filtered {
    filtering: Filtering,
    shown: SharedBytes,
}

impl State {
    /// What subscribers see at first: that of the last emission, or what the query began with.
    fn shown(&self) -> &SharedBytes {
        let filtered = self.more.as_ref().and_then(|more| more.filtered.as_ref());
        filtered.map_or(&self.answer, |filtered| &filtered.shown)
    }

    fn listing(&mut self) -> Option<&mut Listing> {
        self.more.as_mut()?.listing.as_deref_mut()
    }

    /// How many named subscriptions there are.
    fn names(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.names)
    }
}

impl More {
    /// What it takes.
    fn bytes(&self) -> usize {
        let filtered = self
            .filtered
            .as_ref()
            .map_or(0, |it| size_of::<Filtered>() + it.shown.heap_bytes() + it.filtering.bytes());
        let listing = self.listing.as_ref().map_or(0, |listing| size_of::<Listing>() + listing.bytes());
        size_of::<Self>() + filtered + listing
    }
}

impl Query {
    fn new(
        id: Lsn,
        (read, part): (Read, Part),
        keyspace: &Keyspace,
        answer: SharedBytes,
        now_us: u64,
    ) -> Self {
        let filtered = Filtering::new(&read.filter(), read.protocol()).map(|mut filtering| {
            let shown = filtering.apply(&answer, now_us).unwrap_or_else(|| {
                let mut reply = Reply::new(read.protocol());
                reply.null();
                reply.take()
            });
            Box::new(Filtered { filtering, shown: SharedBytes::from(&shown[..]) })
        });
        Self::restored(id, (read, part), keyspace, (answer, filtered), (0, id), now_us)
    }

    /// A query that has emitted before: so many times, the last time at the LSN, which is its beginning if it never has.
    fn restored(
        id: Lsn,
        (read, part): (Read, Part),
        keyspace: &Keyspace,
        (answer, filtered): (SharedBytes, Option<Box<Filtered>>),
        (count, floor): (u64, Lsn),
        now_us: u64,
    ) -> Self {
        let (reach, listing) = (read.reach(keyspace), Listing::new(&read));
        let is_plain = filtered.is_none() && listing.is_none();
        let more = (!is_plain).then(|| Box::new(More { filtered, listing, ..More::default() }));
        let emissions = Emissions::new(count, floor);
        let state = State { answer, emissions, listeners: Listeners::NoneSince(now_us), more };
        let wide = (!matches!(reach, Reach::One(_))).then_some(reach);
        let is_special = wide.is_some() || part != Part::Everything;
        Self {
            id,
            read,
            special: is_special.then(|| Box::new(Special { wide, part })),
            saved: AtomicU32::new(0),
            noted: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            state: Mutex::new(state),
        }
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
        self.lock().listeners.look(listener);
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
    pub fn shown_at(&self, count: u64) -> Option<SharedBytes> {
        let state = self.lock();
        if state.emissions.count() == count {
            return Some(state.shown().clone());
        }
        let mut next = Vec::new();
        state.emissions.after(count, 1, &mut next).ok()?;
        next.pop().map(|next| next.before)
    }

    /// Puts the query on a list of those that a command may have changed, unless it is there.
    fn note(query: &SharedQuery, noted: &mut Vec<Noted>) {
        // Ordering comes from the locks of the shards.
        if !query.noted.load(Ordering::Relaxed) {
            query.noted.store(true, Ordering::Relaxed);
            noted.push(Noted::Query(query.clone()));
        }
    }

    /// As [`Query::note`], because of a key that the read does not name.
    fn note_key(query: &SharedQuery, key: &[u8], noted: &mut Vec<Noted>) {
        if let Some(listing) = query.lock().listing() {
            listing.note(key);
        }
        Self::note(query, noted);
    }

    /// As [`Query::note`], because anything may have changed.
    fn note_everything(query: &SharedQuery, noted: &mut Vec<Noted>) {
        if let Some(listing) = query.lock().listing() {
            listing.note_everything();
        }
        Self::note(query, noted);
    }

    /// Whether an LSN may be one that a crash has taken back: the log does not reach back to it any more, so it does not know
    /// of gaps there, and no emission of the query, behind which one goes on wherever in between one was, is newer.
    fn may_be_lost(&self, lsn: Lsn, log: &Log) -> bool {
        lsn < log.floor() && lsn > self.lock().emissions.last()
    }

    /// The shards that it reads.
    fn reach(&self, keyspace: &Keyspace) -> Reach {
        self.wide().map_or_else(|| self.read.reach(keyspace), Reach::clone)
    }

    /// The same, if that is more than its key's shard.
    fn wide(&self) -> Option<&Reach> {
        self.special.as_ref()?.wide.as_ref()
    }

    /// What it looks at of what its key holds, if that is not all of it.
    fn part(&self) -> Option<&Part> {
        self.special.as_ref().map(|special| &special.part)
    }

    /// Whether what a change has touched may concern it. `entry` gives the key's entry after the change.
    fn is_touched<'e>(&self, touched: &Touched<'_>, entry: impl FnOnce() -> Option<&'e Entry>) -> bool {
        match self.part() {
            None | Some(Part::Everything) => true,
            Some(_) if matches!(touched, Touched::Everything) => true,
            Some(part) => part.is_touched(&self.read.borrowed(), touched, entry),
        }
    }

    /// What it takes whatever its state is.
    fn fixed_bytes(&self) -> usize {
        let special = if self.special.is_some() { size_of::<Special>() } else { 0 };
        let places = PLACES_BYTES + watched::names(self).count() * watched::NAME_BYTES;
        size_of::<Self>() + self.read.bytes() + special + places
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
