//! Clients that keep what they have read, and are told when it is no longer so.
//!
//! A [`Tracker`] is such a client. Either the shards remember what it reads, or it names prefixes and is told of every
//! change of keys that begin so.
//!
//! ```text
//! read ──► Engine::remember ──► Tracked: who has read which key (one table in each shard)
//!                                  │
//! write ─► Keys::changed ─► Interest::note: taken out ─► append ─► Engine::emit ─► Tracker::add ─► its connection takes it
//!                                  │                                    │
//!                                  └─ Prefixes: how the key begins      └─► Broadcast::add ─► Audience::broadcast ─► pass_on
//! ```
//!
//! # Why nobody keeps what is no longer so
//!
//! *A read and a change cannot miss each other.* A read is remembered under the locks under which it was answered, and a
//! change takes the readers out under the same lock. So either the read has seen the change, or the change finds the read.
//!
//! *The word that a value is stale comes behind the value.* A change may be made, and its readers told, while the answer to
//! the read is still being written. But what a tracker is told waits in the tracker, and the thread that serves the reader's
//! connection takes it from there only between commands: behind the answer, in one stream of bytes. Whoever lets another
//! connection take it has two streams, and has to reckon with either order, as with Redis.
//!
//! *It comes neither before a read would show the change, nor later.* An invalidation has the LSN of its record. With
//! `always` nobody is shown a change before it is durable, so the kept value is what a read would answer until then, and
//! the invalidation is held back like the answers to reads. In the other modes reads show a change at once, and the
//! invalidation leaves at once: it names no position in the log, so there is nothing to come back with after a crash that
//! takes the change back, which ends the connection and with it everything that the client may rely on.
//!
//! *What is lost is told as everything.* What waits for a client is bounded, as is what is gathered for a prefix. Beyond it
//! the client is told to forget whatever it has. The tables are bounded by keys and by bytes: beyond
//! that a key at random is forgotten and its readers told as if it had changed. If the log refuses a change that has been
//! made, the readers are told all the same: they were taken out of the table.
//!
//! Nothing of this reaches the log or a snapshot: it belongs to connections, which no restart survives.
//!
//! # Locks
//!
//! Whoever changes who is tracked; then shards, in order; then the prefixes; then one prefix's batch, or the trackers; then
//! one tracker. None of the latter is held while a shard is locked that was not before.

mod broadcast;
mod table;
mod tracker;

pub use broadcast::Broadcast;
pub use tracker::{Invalidation, Stale, Tell, Tracker};

pub(crate) use broadcast::Prefixes;
pub(crate) use table::Tracked;

use crate::call::Call;
use crate::command::flags;
use crate::context::Keys;
use crate::engine::Engine;
use crate::keyspace::Shard;
use crate::query::Moment;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use table::{Readers, Totals};
use tidemark_log::Lsn;

/// How much is remembered of what clients have read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackingLimits {
    /// So many different keys; `None` is as many as there is room for.
    pub keys: Option<usize>,
    /// So many bytes, with the keys' names.
    pub bytes: usize,
}

impl Default for TrackingLimits {
    /// A million, 256 MiB.
    fn default() -> Self {
        Self { keys: Some(1_000_000), bytes: 256 << 20 }
    }
}

/// How much is remembered, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackingFigures {
    /// Clients that keep what they read.
    pub trackers: usize,
    /// Keys that were read.
    pub keys: usize,
    /// Readers of all keys together.
    pub readers: usize,
    /// What keys and readers take.
    pub bytes: usize,
    /// Prefixes that clients have asked for.
    pub prefixes: usize,
}

/// A changed key, and the trackers that have read it.
#[derive(Debug)]
pub(crate) struct Changed {
    key: Arc<[u8]>,
    readers: Readers,
}

/// All trackers, and what is counted of what the shards remember for them.
pub(crate) struct Tracking {
    /// Held by whoever changes who is tracked, so that shards compare keys with prefixes exactly while there are any.
    switching: Mutex<()>,
    trackers: RwLock<BTreeMap<u64, Arc<Tracker>>>,
    last_id: AtomicU64,
    prefixes: Arc<Prefixes>,
    totals: Arc<Totals>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            switching: Mutex::default(),
            trackers: RwLock::default(),
            last_id: AtomicU64::new(0),
            prefixes: Arc::default(),
            totals: Arc::new(Totals::new(TrackingLimits::default())),
        }
    }
}

/// How many keys are forgotten at once where limits have been lowered, so that nobody waits for it.
const FORGOTTEN_AT_ONCE: usize = 1000;

impl Engine {
    /// Limits what is remembered. What is more than that is forgotten by [`Engine::forget_tracked`].
    pub fn limit_tracking(&self, limits: TrackingLimits) {
        self.tracking().totals.set_limits(limits);
    }

    /// Forgets what is more than the limits allow, and tells its readers. Nothing is, but where limits have been lowered.
    pub fn forget_tracked(&self) {
        let totals = &self.tracking().totals;
        for index in 0..self.keyspace().shard_count() {
            while totals.exceed_limits() {
                let mut shard = self.keyspace().lock(index);
                let forgotten = (0..FORGOTTEN_AT_ONCE).take_while(|_| self.forget_one(&mut shard)).count();
                if forgotten < FORGOTTEN_AT_ONCE {
                    break;
                }
            }
        }
    }

    /// How much is remembered, and for whom.
    pub fn tracking_figures(&self) -> TrackingFigures {
        let Tracking { trackers, prefixes, totals, .. } = self.tracking();
        TrackingFigures {
            trackers: trackers.read().unwrap_or_else(PoisonError::into_inner).len(),
            keys: totals.keys(),
            readers: totals.readers(),
            bytes: totals.bytes(),
            prefixes: prefixes.len(),
        }
    }

    /// Lets a client be told of changes. `tell` is called when something waits that the connection `taker` can take.
    pub fn track(&self, taker: u64, tell: Tell) -> Arc<Tracker> {
        let tracking = self.tracking();
        let _switching = tracking.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let id = tracking.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let tracker = Arc::new(Tracker::new(id, taker, tell));
        let mut trackers = tracking.trackers.write().unwrap_or_else(PoisonError::into_inner);
        trackers.insert(id, Arc::clone(&tracker));
        tracker
    }

    /// Lets the client be told of every change of keys that begin so; it has not asked for this prefix before.
    pub fn track_prefix(&self, tracker: &Arc<Tracker>, prefix: &[u8]) {
        let tracking = self.tracking();
        let _switching = tracking.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = tracking.prefixes.is_empty();
        tracking.prefixes.join(prefix, tracker);
        if is_first {
            self.each_shard(|shard| shard.interest_mut().tracked.set_prefixes(Some(&tracking.prefixes)));
        }
    }

    /// Ends that a client is told of anything. The prefixes are those that it has asked for.
    pub fn untrack<'a>(&self, tracker: &Arc<Tracker>, prefixes: impl Iterator<Item = &'a [u8]>) {
        let tracking = self.tracking();
        let _switching = tracking.switching.lock().unwrap_or_else(PoisonError::into_inner);
        tracker.end();
        let is_last = {
            let mut trackers = tracking.trackers.write().unwrap_or_else(PoisonError::into_inner);
            trackers.remove(&tracker.id());
            trackers.is_empty()
        };
        let were_prefixes = !tracking.prefixes.is_empty();
        prefixes.for_each(|prefix| tracking.prefixes.leave(prefix, tracker));
        if were_prefixes && tracking.prefixes.is_empty() {
            self.each_shard(|shard| {
                shard.interest_mut().tracked.set_prefixes(None);
                shard.drop_interest_if_empty();
            });
        }
        // What it has read stays in the tables, as in Redis, until it changes or makes room for others. With nobody left
        // to be told, nothing need stay.
        if is_last {
            self.each_shard(|shard| {
                shard.interest_mut().tracked.forget_keys();
                shard.drop_interest_if_empty();
            });
        }
    }

    fn each_shard(&self, mut change: impl FnMut(&mut Shard)) {
        for index in 0..self.keyspace().shard_count() {
            change(&mut self.keyspace().lock(index));
        }
    }

    /// Remembers that a tracker has read the keys of a command, which are locked, if the command only reads.
    #[cold]
    pub(crate) fn remember(&self, keys: &mut Keys<'_>, call: &Call<'_>, reader: u64) {
        if !call.command.is(flags::READONLY) {
            return;
        }
        let totals = &self.tracking().totals;
        for key in call.command.keys.keys(call.args) {
            let shard = keys.shard_mut(key);
            shard.interest_mut().tracked.remember(key, reader, totals);
            // One key more is one too many at most, or a few if it is long.
            while totals.exceed_limits() && self.forget_one(shard) {}
        }
    }

    /// Forgets who has read one of a shard's keys, and tells them; whether there was any.
    fn forget_one(&self, shard: &mut Shard) -> bool {
        let forgotten = shard.interest_mut().tracked.forget_any(|| self.random());
        shard.drop_interest_if_empty();
        let Some(changed) = forgotten else { return false };
        self.tell_readers(&changed, None);
        true
    }

    /// Tells whoever has read a changed key, and gathers the key for those who have asked for a prefix of it: whose
    /// listener is to be told of that stands in `broadcasts` then. Without a record, because it could not be logged, nobody
    /// is spared.
    pub(crate) fn invalidate(
        &self,
        changed: &Changed,
        moment: Option<Moment>,
        broadcasts: &mut Vec<Arc<Broadcast>>,
    ) {
        self.tell_readers(changed, moment);
        self.tracking().prefixes.matching(&changed.key, |broadcast| {
            if broadcast.add(&changed.key, moment) {
                broadcasts.push(Arc::clone(broadcast));
            }
            true
        });
    }

    /// Tells all trackers that anything may have changed.
    pub(crate) fn invalidate_everything(&self, moment: Option<Moment>) {
        let trackers = self.tracking().trackers.read().unwrap_or_else(PoisonError::into_inner);
        trackers.values().for_each(|tracker| tracker.add(Invalidation::new(Stale::Everything, moment)));
    }

    fn tell_readers(&self, changed: &Changed, moment: Option<Moment>) {
        if changed.readers.is_empty() {
            return;
        }
        let spared = moment.and_then(|moment| moment.spared);
        let trackers = self.tracking().trackers.read().unwrap_or_else(PoisonError::into_inner);
        let told = changed.readers.iter().filter(|reader| Some(**reader) != spared);
        for tracker in told.filter_map(|reader| trackers.get(reader)) {
            tracker.add(Invalidation::new(Stale::Key(Arc::clone(&changed.key)), moment));
        }
    }
}

impl Invalidation {
    fn new(stale: Stale, moment: Option<Moment>) -> Self {
        Self { stale, lsn: moment.map_or(Lsn::ZERO, |moment| moment.lsn) }
    }
}
