//! Who is tracked, what they have read, and how they are told of changes.

use super::broadcast::Broadcast;
use super::changed::Changed;
use super::totals::TrackingLimits;
use super::tracker::{Invalidation, Stale, Tell, Tracker};
use super::trackers::Tracking;
use crate::command::flags;
use crate::context::Keys;
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::execute::moment::Moment;
use crate::keyspace::Shard;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tidemark_log::Lsn;

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
                let forget = |_: &usize| totals.exceed_limits() && self.forget_one(&mut shard);
                if (0..FORGOTTEN_AT_ONCE).take_while(forget).count() < FORGOTTEN_AT_ONCE {
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
        for key in call.command.keys.keys(call.args) {
            // An expired key counts as read when it has been removed.
            if !(keys.has_met_expired() && keys.has_expired(key)) {
                self.remember_key(keys.shard_mut(key), key, reader);
            }
        }
    }

    /// Remembers that a tracker has read a key and has found none. If there is one by now, the tracker is told at once that its
    /// answer is stale.
    pub(crate) fn remember_absent(&self, call: &Call<'_>, key: &[u8], reader: u64) {
        let locked = self.lock_keys(std::iter::once(key));
        let mut keys = self.keys(locked, call.db, call.now_us);
        if keys.exists(key) {
            let readers = std::iter::once(reader).collect();
            self.tell_readers(&Changed { key: key.into(), readers }, None);
        } else {
            self.remember_key(keys.shard_mut(key), key, reader);
        }
    }

    fn remember_key(&self, shard: &mut Shard, key: &[u8], reader: u64) {
        let totals = &self.tracking().totals;
        shard.interest_mut().tracked.remember(key, reader, totals);
        // One key more is one too many at most, or a few if it is long.
        while totals.exceed_limits() && self.forget_one(shard) {}
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
