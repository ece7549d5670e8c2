//! A watched read, as all have it who are concerned with it.

use crate::keyspace::Entry;
use crate::watch::budget::Cost;
use crate::watch::emission::{Emission, Gone};
use crate::watch::part::Part;
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use crate::watch::state::State;
use crate::watch::touched::Touched;
use crate::wire::shared_bytes::SharedBytes;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::{Log, Lsn};

/// A query as all have it who are concerned with it. Nobody refers to one weakly, so there is one count only.
pub type SharedQuery = triomphe::Arc<Query>;

/// A watched read. See the documentation of [`crate::watch`].
pub struct Query {
    pub(super) id: Lsn,
    pub(super) read: Read,
    /// What most reads have nothing of.
    pub(super) special: Option<Box<Special>>,
    /// The number of the latest snapshot that has it. Changes under the lock of the state.
    pub(super) saved: AtomicU32,
    /// It is on the list of those that a command may have changed. Changes under the locks of what it reads.
    pub(super) noted: AtomicBool,
    /// It is in the registry no more: nobody may join it. Changes under the lock of the state.
    pub(super) is_removed: AtomicBool,
    /// Writers do not answer it: see [`crate::watch::dormancy`]. Changes under the locks of what it reads and of the state.
    pub(super) is_dormant: AtomicBool,
    /// What an answer costs.
    pub(super) cost: Cost,
    pub(super) state: Mutex<State>,
}

/// What an operator may want to know of a watched read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryFigures {
    /// Whether it has a subscriber.
    pub is_subscribed: bool,
    /// How many named subscriptions it has.
    pub names: usize,
    /// How many emissions there have been; at least so many, if it is dormant.
    pub emissions: u64,
    /// Whether changes do not answer it, because that would cost them too much.
    pub is_dormant: bool,
    /// What one answer costs, about. Nanoseconds.
    pub cost_ns: u64,
}

// With the counts in front of it, what one of a million plain reads takes of the allocator.
const _: () = assert!(size_of::<Query>() <= 120, "a query keeps what every read needs, and no more");

/// What a query keeps whose read concerns several shards, or only a part of what its key holds.
pub(super) struct Special {
    /// Which shards it reads, if that is more than its key's.
    pub(super) wide: Option<Reach>,
    /// What it looks at of what the keys hold: what changes of the rest does not concern it.
    pub(super) part: Part,
}

impl Query {
    /// The LSN of the record that began it: unique, and the same for ever.
    pub fn id(&self) -> Lsn {
        self.id
    }

    /// What is read.
    pub fn read(&self) -> &Read {
        &self.read
    }

    /// The number of the latest emission: how many there have been. At least so many, if it is dormant.
    pub fn count(&self) -> u64 {
        self.lock().emissions.count()
    }

    /// Whether it has a listener.
    pub(super) fn is_heard(&self) -> bool {
        self.lock().listeners.none_since_us().is_none()
    }

    /// Whether it has ended: nothing is emitted any more.
    pub fn has_ended(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// Figures for operators.
    pub fn figures(&self) -> QueryFigures {
        let state = self.lock();
        QueryFigures {
            is_subscribed: state.listeners.none_since_us().is_none(),
            names: state.names(),
            emissions: state.emissions.count(),
            is_dormant: self.is_dormant(),
            cost_ns: self.cost.ns(),
        }
    }

    /// Notes that a listener looks: from the next emission on it is told again.
    pub fn look(&self, listener: usize) {
        self.lock().listeners.look(listener);
    }

    /// Up to `most` emissions behind number `after`, oldest first, into `into`. O(number of them). Of a dormant query those
    /// that it retains; behind them what comes is to be made from the log.
    pub fn emissions_after(&self, after: u64, most: usize, into: &mut Vec<Emission>) -> Result<(), Gone> {
        let (state, before) = (self.lock(), into.len());
        state.emissions.after(after, most, into)?;
        if into.len() == before && self.is_dormant() {
            return Err(Gone { floor: state.emissions.last() });
        }
        Ok(())
    }

    /// The latest emission, if it is behind number `after`. Of a dormant query the latest that it retains.
    pub fn latest_after(&self, after: u64) -> Result<Option<Emission>, Gone> {
        let state = self.lock();
        let latest = state.emissions.latest_after(after)?;
        if latest.is_none() && self.is_dormant() {
            return Err(Gone { floor: state.emissions.last() });
        }
        Ok(latest)
    }

    /// What subscribers saw when there had been so many emissions; `None` if that is not retained.
    pub fn shown_at(&self, count: u64) -> Option<SharedBytes> {
        let state = self.lock();
        if state.emissions.count() == count && !self.is_dormant() {
            return Some(state.shown().clone());
        }
        let mut next = Vec::new();
        state.emissions.after(count, 1, &mut next).ok()?;
        next.pop().map(|next| next.before)
    }

    /// Puts it on the list of those that a command may have changed; whether it was not there.
    pub(crate) fn join_noted(&self) -> bool {
        // Ordering comes from the locks of the shards.
        let is_new = !self.noted.load(Ordering::Relaxed);
        if is_new {
            self.noted.store(true, Ordering::Relaxed);
        }
        is_new
    }

    /// Notes that a key has changed which the read does not name.
    pub(crate) fn note_listed(&self, key: &[u8]) {
        if let Some(listing) = self.lock().listing() {
            listing.note(key);
        }
    }

    /// Notes that any key may have changed which the read does not name.
    pub(crate) fn note_all_listed(&self) {
        if let Some(listing) = self.lock().listing() {
            listing.note_everything();
        }
    }

    /// Whether an LSN may be one that a crash has taken back: the log does not reach back to it any more, so it does not know
    /// of gaps there, and no emission of the query, behind which one goes on wherever in between one was, is newer. A dormant
    /// query does not know: the log is asked where its subscriber goes on.
    pub(super) fn may_be_lost(&self, lsn: Lsn, log: &Log) -> bool {
        lsn < log.floor() && !self.is_dormant() && lsn > self.lock().emissions.last()
    }

    /// The shards that it reads, if they are more than its key's.
    pub(super) fn wide(&self) -> Option<&Reach> {
        self.special.as_ref()?.wide.as_ref()
    }

    /// What it looks at of what its key holds, if that is not all of it.
    pub(super) fn part(&self) -> Option<&Part> {
        self.special.as_ref().map(|special| &special.part)
    }

    /// Whether what a change has touched may concern it. `entry` gives the key's entry after the change.
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
