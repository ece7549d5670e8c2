//! All queries, by read and by id.

use crate::error::CommandError;
use crate::tracking::Broadcast;
use crate::watch::audience::Audience;
use crate::watch::budget::{Budget, WriteBudget};
use crate::watch::by_id::ById;
use crate::watch::part::Part;
use crate::watch::read::Read;
use crate::watch::registry::named::Names;
use crate::watch::registry::saving::Saving;
use crate::watch::retention::Retention;
use crate::watch::state::State;
use crate::watch::ticks::Ticks;
use crate::watch::watched_read::SharedQuery;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tidemark_log::Lsn;

/// Limits on the number and size of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Number of queries.
    pub queries: usize,
    /// Bytes of the queries and their latest answers, checked when a query begins. Answers may grow
    /// later.
    pub bytes: usize,
}

impl Default for QueryLimits {
    /// A million, 1 GiB.
    fn default() -> Self {
        Self { queries: 1_000_000, bytes: 1 << 30 }
    }
}

/// All queries, their limits and names, and the audience of their emissions.
pub(crate) struct Registry {
    queries: Mutex<Queries>,
    max_queries: AtomicUsize,
    max_bytes: AtomicUsize,
    /// Bytes of the queries, their latest answers, and the state of their operators.
    bytes: AtomicUsize,
    evaluated: AtomicU64,
    /// Replaces the command table as the source of a read's part.
    #[cfg(test)]
    pub(in crate::watch) part_of: OnceLock<fn(&Read) -> Part>,
    pub(in crate::watch) dormant: AtomicUsize,
    pub(in crate::watch) budget: Budget,
    pub(in crate::watch) retention: Retention,
    pub(in crate::watch) saving: Saving,
    pub(in crate::watch) ticks: Ticks,
    pub(crate) names: Names,
    pub(in crate::watch) audience: OnceLock<Box<dyn Audience>>,
}

/// The queries, indexed twice.
#[derive(Default)]
pub(in crate::watch) struct Queries {
    by_read: HashSet<ByRead>,
    by_id: ById<SharedQuery>,
}

/// A query, hashed and compared by its read.
struct ByRead(SharedQuery);

impl Borrow<Read> for ByRead {
    fn borrow(&self) -> &Read {
        &self.0.read
    }
}

impl Hash for ByRead {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.read.hash(state);
    }
}

impl PartialEq for ByRead {
    fn eq(&self, other: &Self) -> bool {
        self.0.read == other.0.read
    }
}

impl Eq for ByRead {}

impl Default for Registry {
    fn default() -> Self {
        let limits = QueryLimits::default();
        Self {
            queries: Mutex::default(),
            max_queries: AtomicUsize::new(limits.queries),
            max_bytes: AtomicUsize::new(limits.bytes),
            bytes: AtomicUsize::new(0),
            evaluated: AtomicU64::new(0),
            #[cfg(test)]
            part_of: OnceLock::new(),
            dormant: AtomicUsize::new(0),
            budget: Budget::default(),
            retention: Retention::default(),
            saving: Saving::default(),
            ticks: Ticks::default(),
            names: Names::default(),
            audience: OnceLock::new(),
        }
    }
}

impl Registry {
    pub(in crate::watch) fn lock(&self) -> MutexGuard<'_, Queries> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::watch) fn set_limits(&self, limits: QueryLimits) {
        self.max_queries.store(limits.queries, Ordering::Relaxed);
        self.max_bytes.store(limits.bytes, Ordering::Relaxed);
    }

    pub(in crate::watch) fn set_budget(&self, budget: WriteBudget) {
        self.budget.set(budget);
    }

    /// Returns an error unless another query may begin besides `present` ones.
    pub(in crate::watch) fn admit(&self, present: usize) -> Result<(), CommandError> {
        let bytes = self.bytes();
        let (what, limit) = if present >= self.max_queries.load(Ordering::Relaxed) {
            (format!("{present} different reads are watched"), "watch-max-queries")
        } else if bytes >= self.max_bytes.load(Ordering::Relaxed) {
            (format!("the reads that are watched take {bytes} bytes"), "watch-max-bytes")
        } else {
            return Ok(());
        };
        Err(CommandError::Text(format!("ERR {what} already, as many as {limit} allows").into()))
    }

    /// Returns the bytes of the queries and their latest answers.
    pub(in crate::watch) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns a read with the part of the value that it uses.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "a test may have it say something else"))]
    pub(in crate::watch) fn with_part(&self, read: Read) -> (Read, Part) {
        #[cfg(test)]
        if let Some(part_of) = self.part_of.get() {
            let part = part_of(&read);
            return (read, part);
        }
        let part = read.part();
        (read, part)
    }

    pub(in crate::watch) fn count_evaluated(&self) {
        self.evaluated.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::watch) fn evaluated(&self) -> u64 {
        self.evaluated.load(Ordering::Relaxed)
    }

    /// Passes the changes gathered for a prefix to the audience.
    pub(crate) fn broadcast(&self, broadcast: &Arc<Broadcast>) {
        if let Some(audience) = self.audience.get() {
            audience.broadcast(broadcast);
        }
    }

    /// Replaces `before` by `now` in the counted bytes.
    pub(in crate::watch) fn resize(&self, before: usize, now: usize) {
        // In one step, so that no reader sees an intermediate value.
        let all = self.bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        assert!(before <= all, "what took {before} bytes takes {now}, and all queries together took {all}");
    }

    /// Updates the counted bytes of a query's state, whose answer had `answer_before` bytes.
    pub(in crate::watch) fn count(&self, state: &mut State, answer_before: usize) {
        self.resize(answer_before, state.answer.heap_bytes());
        if let Some(more) = &mut state.more {
            let now = more.bytes();
            self.resize(std::mem::replace(&mut more.counted, now), now);
        }
    }
}

impl Queries {
    pub(in crate::watch) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(in crate::watch) fn of_read(&self, read: &Read) -> Option<&SharedQuery> {
        self.by_read.get(read).map(|query| &query.0)
    }

    /// Returns the query of a read, if it is not dormant.
    pub(in crate::watch) fn awake_of_read(&self, read: &Read) -> Option<&SharedQuery> {
        self.of_read(read).filter(|query| !query.is_dormant())
    }

    pub(in crate::watch) fn of_id(&self, id: Lsn) -> Option<&SharedQuery> {
        self.by_id.get(id)
    }

    pub(in crate::watch) fn insert(&mut self, query: &SharedQuery) {
        self.find_by_read(query);
        self.by_id.insert(query.clone());
        self.check_len();
    }

    /// Makes a query the one that is found by its read, unless an equal one that is not dormant
    /// exists.
    pub(in crate::watch) fn find_by_read(&mut self, query: &SharedQuery) {
        if self.of_read(&query.read).is_none_or(|known| known.is_dormant()) {
            self.by_read.replace(ByRead(query.clone()));
        }
    }

    pub(in crate::watch) fn remove(&mut self, query: &SharedQuery) {
        if self.of_read(&query.read).is_some_and(|known| SharedQuery::ptr_eq(known, query)) {
            self.by_read.remove(&query.read);
        }
        let was_there = self.by_id.remove(query.id).is_some();
        assert!(was_there, "the query of record {} leaves and is not there", query.id);
        self.check_len();
    }

    fn check_len(&self) {
        let (by_read, by_id) = (self.by_read.len(), self.by_id.len());
        assert!(by_read <= by_id, "{by_read} queries are found by what they read, and {by_id} by their ids");
    }

    /// Returns at most `most` queries with ids above `after`, up to `last`, in order.
    pub(in crate::watch) fn range(&self, after: Lsn, last: Lsn, most: usize) -> Vec<SharedQuery> {
        let behind = self.by_id.behind(after).take_while(|query| query.id <= last);
        behind.take(most).cloned().collect()
    }

    /// Iterates over all queries in the order of their ids.
    pub(in crate::watch) fn iter(&self) -> impl Iterator<Item = &SharedQuery> {
        self.by_id.iter()
    }
}
