//! The query of a watched read, shared by the registry, the indices and the subscribers.

use crate::keyspace::Entry;
use crate::value::LabelFilter;
use crate::watch::budget::Cost;
use crate::watch::emission::{Emission, Gone};
use crate::watch::part::Part;
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use crate::watch::state::State;
use crate::watch::touched::Touched;
use crate::wire::shared_bytes::SharedBytes;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::{Log, Lsn};

/// Shared reference to a query. There are no weak references, so one count suffices.
pub type SharedQuery = triomphe::Arc<Query>;

/// A watched read. See the documentation of [`crate::watch`].
pub struct Query {
    pub(super) id: Lsn,
    pub(super) read: Read,
    /// State that most reads do not need.
    pub(super) special: Option<Box<Special>>,
    /// Number of the latest snapshot that has the query. Guarded by the state's lock.
    pub(super) saved: AtomicU32,
    /// The [`Cause`] why the query is on the list of those that a command may have changed; 0 if it is
    /// not. Guarded by the locks of what it reads.
    pub(super) noted: AtomicU8,
    /// Whether the query has left the registry, so no listener may join it. Guarded by the state's
    /// lock.
    pub(super) is_removed: AtomicBool,
    /// Whether writers do not answer it: see [`crate::watch::dormancy`]. Guarded by the locks of
    /// what it reads and of the state.
    pub(super) is_dormant: AtomicBool,
    pub(super) cost: Cost,
    pub(super) state: Mutex<State>,
}

/// Why a query may have another answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Points of its series have changed, and were noted.
    Points = 1,
    /// Anything.
    Any = 2,
}

/// Figures of a watched read for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryFigures {
    /// Whether it has a subscriber.
    pub is_subscribed: bool,
    /// Number of named subscriptions.
    pub names: usize,
    /// Number of emissions; a lower bound if the query is dormant.
    pub emissions: u64,
    /// Whether writers do not answer it, because that would cost them too much.
    pub is_dormant: bool,
    /// Estimated cost of one answer, in nanoseconds.
    pub cost_ns: u64,
    /// Time as of which it is answered, in microseconds since 1970, if it depends on one.
    pub as_of_us: Option<u64>,
}

// With its reference count, the allocation of each of up to a million plain reads.
const _: () = assert!(size_of::<Query>() <= 120, "a query keeps what every read needs, and no more");

/// State of a query over several shards, or over only a part of its key's value.
pub(super) struct Special {
    /// Shards that it reads, if there are more than its key's.
    pub(super) wide: Option<Reach>,
    /// Part of the value that it reads: changes elsewhere do not concern it.
    pub(super) part: Part,
    /// The labels of the series that it reads, if it selects them by labels.
    pub(super) selection: Option<LabelFilter>,
}

impl Query {
    /// Returns the LSN of the record that began the query: unique and permanent.
    pub fn id(&self) -> Lsn {
        self.id
    }

    /// Returns the read.
    pub fn read(&self) -> &Read {
        &self.read
    }

    /// Returns the number of the latest emission; a lower bound if the query is dormant.
    pub fn count(&self) -> u64 {
        self.lock().emissions.count()
    }

    pub(super) fn is_heard(&self) -> bool {
        self.lock().listeners.none_since_us().is_none()
    }

    /// Returns whether the query has ended: it emits nothing more.
    pub fn has_ended(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// Returns figures for operators.
    pub fn figures(&self) -> QueryFigures {
        let state = self.lock();
        QueryFigures {
            is_subscribed: state.listeners.none_since_us().is_none(),
            names: state.names(),
            emissions: state.emissions.count(),
            is_dormant: self.is_dormant(),
            cost_ns: self.cost.ns(),
            as_of_us: state.as_of_us(),
        }
    }

    /// Records that a listener looks: the next emission notifies it again.
    pub fn look(&self, listener: usize) {
        self.lock().listeners.look(listener);
    }

    /// Appends up to `most` emissions after number `after` to `into`, oldest first. O(number of
    /// them). A dormant query has only those that it retains; later ones must be replayed from the
    /// log.
    pub fn emissions_after(&self, after: u64, most: usize, into: &mut Vec<Emission>) -> Result<(), Gone> {
        let (state, before) = (self.lock(), into.len());
        state.emissions.after(after, most, into)?;
        if into.len() == before && self.is_dormant() {
            return Err(Gone { floor: state.emissions.last() });
        }
        Ok(())
    }

    /// Returns the latest emission, if its number is above `after`. A dormant query has only those
    /// that it retains.
    pub fn latest_after(&self, after: u64) -> Result<Option<Emission>, Gone> {
        let state = self.lock();
        let latest = state.emissions.latest_after(after)?;
        if latest.is_none() && self.is_dormant() {
            return Err(Gone { floor: state.emissions.last() });
        }
        Ok(latest)
    }

    /// Returns what subscribers saw after `count` emissions; `None` if that is not retained, or if it
    /// follows from changes.
    pub fn shown_at(&self, count: u64) -> Option<SharedBytes> {
        let state = self.lock();
        if state.emissions.count() == count && !self.is_dormant() {
            return if state.followed().is_some() { None } else { Some(state.shown().clone()) };
        }
        let mut next = Vec::new();
        state.emissions.after(count, 1, &mut next).ok()?;
        next.pop().and_then(|next| next.before)
    }

    /// Puts the query on the list of those that a command may have changed. Returns whether it was
    /// not there.
    pub(crate) fn join_noted(&self, cause: Cause) -> bool {
        // The shard locks order these accesses.
        let known = self.noted.load(Ordering::Relaxed);
        if known < cause as u8 {
            self.noted.store(cause as u8, Ordering::Relaxed);
        }
        known == 0
    }

    /// Takes the query off that list. Returns whether only points have changed, all of which were noted.
    pub(super) fn leave_noted(&self) -> bool {
        let cause = self.noted.load(Ordering::Relaxed);
        self.noted.store(0, Ordering::Relaxed);
        cause == Cause::Points as u8
    }

    /// Records the change of a key that the read does not name.
    pub(crate) fn note_listed(&self, key: &[u8]) {
        if let Some(keys) = self.lock().unnamed_keys() {
            keys.note(key);
        }
    }

    /// Records that more than points has changed of a series that the query selects, if it does.
    pub(crate) fn note_selected(&self, key: &[u8]) {
        if self.selection().is_some() {
            self.note_listed(key);
        }
    }

    /// Records that any key that the read does not name may have changed.
    pub(crate) fn note_all_listed(&self) {
        if let Some(keys) = self.lock().unnamed_keys() {
            keys.note_everything();
        }
    }

    /// Returns whether a crash may have lost the record at `lsn`: the log no longer reaches back to
    /// it, so gaps there are unknown, and the query has no emission at or after it. With such an
    /// emission the subscription resumes there, wherever before it `lsn` was. False for a dormant
    /// query: its replay checks the log.
    pub(super) fn may_be_lost(&self, lsn: Lsn, log: &Log) -> bool {
        lsn < log.floor() && !self.is_dormant() && lsn > self.lock().emissions.last()
    }

    /// Returns the shards that the query reads, if there are more than its key's.
    pub(super) fn wide(&self) -> Option<&Reach> {
        self.special.as_ref()?.wide.as_ref()
    }

    /// Returns the part of the key's value that the query reads, if not all.
    pub(super) fn part(&self) -> Option<&Part> {
        self.special.as_ref().map(|special| &special.part)
    }

    /// Returns whether a change may concern the query. `entry` returns the key's entry after the
    /// change.
    pub(super) fn is_touched<'e>(
        &self,
        touched: &Touched<'_>,
        entry: impl FnOnce() -> Option<&'e Entry>,
    ) -> bool {
        match self.part() {
            None | Some(Part::Everything) => true,
            Some(_) if matches!(touched, Touched::Everything) => true,
            Some(part) => part.is_touched(&self.read.placed(), touched, entry),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("id", &self.id).field("read", &self.read).finish_non_exhaustive()
    }
}
