//! Client-side caching: registration of trackers, their reads, and invalidation.

use super::broadcast::Broadcast;
use super::changed::Changed;
use super::totals::TrackingLimits;
use super::tracker::{Invalidation, Notifier, Stale, Tracker};
use super::trackers::Tracking;
use crate::command::{Run, flags};
use crate::context::Keys;
use crate::engine::Engine;
use crate::execute::call::Call;
use crate::execute::moment::Moment;
use crate::keyspace::Shard;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tidemark_log::Lsn;

/// Size of the tracking tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackingFigures {
    /// Clients with tracking on.
    pub trackers: usize,
    /// Keys that were read.
    pub keys: usize,
    /// Sum of the readers of all keys.
    pub readers: usize,
    /// Memory of keys and readers, in bytes.
    pub bytes: usize,
    /// Prefixes that clients have subscribed to.
    pub prefixes: usize,
}

/// Maximum keys evicted under one lock after limits were lowered, so that no command waits for
/// long.
const FORGOTTEN_AT_ONCE: usize = 1000;

impl Engine {
    /// Sets the limits of the tracking tables. [`Engine::forget_tracked`] evicts the excess.
    pub fn limit_tracking(&self, limits: TrackingLimits) {
        self.tracking().totals.set_limits(limits);
    }

    /// Evicts keys above the limits and notifies their readers. Needed only after limits were
    /// lowered.
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

    /// Returns the size of the tracking tables.
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

    /// Registers a client for invalidations. `notify` is called when messages wait that connection
    /// `taker` can take.
    pub fn track(&self, taker: u64, notify: Notifier) -> Arc<Tracker> {
        let tracking = self.tracking();
        let _switching = tracking.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let id = tracking.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let tracker = Arc::new(Tracker::new(id, taker, notify));
        let mut trackers = tracking.trackers.write().unwrap_or_else(PoisonError::into_inner);
        trackers.insert(id, Arc::clone(&tracker));
        tracker
    }

    /// Subscribes the client to changes of keys with a prefix, which it must not have subscribed to
    /// before.
    pub fn track_prefix(&self, tracker: &Arc<Tracker>, prefix: &[u8]) {
        let tracking = self.tracking();
        let _switching = tracking.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = tracking.prefixes.is_empty();
        tracking.prefixes.join(prefix, tracker);
        if is_first {
            self.each_shard(|shard| shard.interest_mut().tracked.set_prefixes(Some(&tracking.prefixes)));
        }
    }

    /// Unregisters a client. `prefixes` are those that it has subscribed to.
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
        // The keys that it has read stay in the tables, as in Redis, until they change or are
        // evicted. Without any tracker, nothing needs to stay.
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

    /// Records that a tracker has read the keys of a command, which are locked, if the command is
    /// read-only, or a script that has read something and changed nothing.
    #[cold]
    pub(crate) fn remember(&self, keys: &mut Keys<'_>, call: &Call<'_>, reader: u64, script_reads: bool) {
        let is_read = match call.command.run {
            Run::Script(_) => script_reads,
            _ => call.command.is(flags::READONLY),
        };
        if !is_read {
            return;
        }
        for key in call.command.keys.keys(call.args) {
            // An expired key is recorded after its removal.
            if !(keys.has_met_expired() && keys.has_expired(key)) {
                self.remember_key(keys.shard_mut(key), key, reader);
            }
        }
    }

    /// Records that a tracker has read an absent key. If the key exists by now, notifies the
    /// tracker immediately that its answer is stale.
    pub(crate) fn remember_absent(&self, call: &Call<'_>, key: &[u8], reader: u64) {
        let locked = self.lock_keys(std::iter::once(key));
        let mut keys = self.keys(locked, call.db, call.now_us);
        if keys.exists(key) {
            let readers = std::iter::once(reader).collect();
            self.notify_readers(&Changed { key: key.into(), readers }, None);
        } else {
            self.remember_key(keys.shard_mut(key), key, reader);
        }
    }

    fn remember_key(&self, shard: &mut Shard, key: &[u8], reader: u64) {
        let totals = &self.tracking().totals;
        shard.interest_mut().tracked.remember(key, reader, totals);
        // Adding one key exceeds the limits by one key, or by a few if it is long.
        while totals.exceed_limits() && self.forget_one(shard) {}
    }

    /// Evicts one of the shard's keys and notifies its readers. Returns whether there was one.
    fn forget_one(&self, shard: &mut Shard) -> bool {
        let forgotten = shard.interest_mut().tracked.forget_any(|| self.random());
        shard.drop_interest_if_empty();
        let Some(changed) = forgotten else { return false };
        self.notify_readers(&changed, None);
        true
    }

    /// Notifies the readers of a changed key, and adds the key to the broadcasts of matching
    /// prefixes. `broadcasts` receives those whose listener must be notified. Without a record,
    /// because the log refused the change, no tracker is exempt.
    pub(crate) fn invalidate(
        &self,
        changed: &Changed,
        moment: Option<Moment>,
        broadcasts: &mut Vec<Arc<Broadcast>>,
    ) {
        self.notify_readers(changed, moment);
        self.tracking().prefixes.matching(&changed.key, |broadcast| {
            if broadcast.add(&changed.key, moment) {
                broadcasts.push(Arc::clone(broadcast));
            }
            true
        });
    }

    /// Notifies all trackers that any key may have changed.
    pub(crate) fn invalidate_everything(&self, moment: Option<Moment>) {
        let trackers = self.tracking().trackers.read().unwrap_or_else(PoisonError::into_inner);
        trackers.values().for_each(|tracker| tracker.add(Invalidation::new(Stale::Everything, moment)));
    }

    fn notify_readers(&self, changed: &Changed, moment: Option<Moment>) {
        if changed.readers.is_empty() {
            return;
        }
        let spared = moment.and_then(|moment| moment.spared);
        let trackers = self.tracking().trackers.read().unwrap_or_else(PoisonError::into_inner);
        let notified = changed.readers.iter().filter(|reader| Some(**reader) != spared);
        for tracker in notified.filter_map(|reader| trackers.get(reader)) {
            tracker.add(Invalidation::new(Stale::Key(Arc::clone(&changed.key)), moment));
        }
    }
}

impl Invalidation {
    fn new(stale: Stale, moment: Option<Moment>) -> Self {
        Self { stale, lsn: moment.map_or(Lsn::ZERO, |moment| moment.lsn) }
    }
}
