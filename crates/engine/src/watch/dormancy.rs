//! Dormant queries: writers do not answer them, because that would cost writers too much.
//!
//! ```text
//!            a record exceeds its budget (budget.rs), or a block of a series cannot be read
//!   awake  ───────────────────────────────────────────►  dormant: in no shard's index, costs writers nothing
//!     ▲                                                      │ a subscriber resumes, or has stayed
//!     └──── record `wake`: emissions so far, and the last ◄──┘ a Past follows the log up to its end
//! ```
//!
//! Dormancy is a decision of one process, like an eviction from a cache, and is not logged.
//! Emissions remain a function of the log: a [`Past`] replays those of a dormant query, with the
//! numbers and LSNs that they would have had. When it reaches the end of the log, the query
//! continues from there. The record `wake` stores the result, so a server that starts from a
//! snapshot with the query dormant has the number.
//!
//! ```text
//! wake   LSN of the watch varint │ emissions so far varint │ LSN of the last one varint
//!          │ if it depends on a time: that as of which it is answered varint
//!          │ with a filter: length varint of its output │ output │ state of its operators
//! ```

use crate::command::find_series;
use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::persist::apply_error::ApplyError;
use crate::persist::record::{Cursor, kind};
use crate::watch::continuation::Continuation;
use crate::watch::evaluation::answered;
use crate::watch::index::key_list::Listing;
use crate::watch::replay::past::Past;
use crate::watch::state::{Answered, FOLLOWED};
use crate::watch::watched_read::{Query, SharedQuery};
use std::sync::atomic::Ordering;
use tidemark_log::{Lsn, Room};

/// Most bytes of a `wake` record without the state of operators.
const RECORD_BYTES: usize = 64;

/// Result of an attempt to wake a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waking {
    /// Writers answer the query again.
    Awake,
    /// Its answers would still cost writers too much.
    TooCostly,
    /// It reads a block of a series that cannot be read from its file.
    Unreadable,
    /// The replay did not reach the end of the log in time.
    NotYet,
}

impl Engine {
    /// Returns the number of dormant queries.
    pub fn dormant_queries(&self) -> usize {
        self.registry().dormant.load(Ordering::Relaxed)
    }

    /// Makes a query dormant and notifies its listeners: later emissions are replayed from the log.
    /// The caller has locked everything that it reads.
    pub(super) fn make_dormant(&self, keys: &mut Keys<'_>, query: &SharedQuery) {
        let registry = self.registry();
        {
            let mut state = query.lock();
            if query.is_dormant() || query.is_removed.load(Ordering::Relaxed) {
                return;
            }
            registry.saving.before_change(query, &state);
            query.is_dormant.store(true, Ordering::Relaxed);
            let answer = std::mem::take(&mut state.answer);
            if let Some(more) = &mut state.more {
                (more.listing, more.followed) = (None, None);
            }
            registry.resize(answer.heap_bytes(), 0);
            if let Some(audience) = registry.audience.get() {
                state.listeners.notify(|listener| audience.notify(listener, query));
            }
        }
        registry.dormant.fetch_add(1, Ordering::Relaxed);
        Query::leave_index(query, keys);
        registry.count(&mut query.lock(), 0);
    }

    /// Wakes a dormant query, from where `past` is. `follow` brings the past up to the given LSN,
    /// the end of the log, or returns `false` if that takes too long. Everything that the query
    /// reads is locked meanwhile.
    ///
    /// # Panics
    /// The past answers differently from the state at the same LSN.
    pub fn wake<E>(
        &self,
        query: &SharedQuery,
        past: &mut Past,
        now_us: u64,
        follow: impl FnOnce(&mut Past, Lsn) -> Result<bool, E>,
    ) -> Result<Waking, E>
    where
        E: From<CommandError>,
    {
        self.check_writable()?;
        let mut room = Room::NONE;
        self.make_room(RECORD_BYTES + past.filter_bytes(), &mut room)?;
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), now_us);
        if !query.is_dormant() {
            return Ok(Waking::Awake);
        }
        if !self.affords(&mut keys, query, past.cost_ns()) {
            return Ok(Waking::TooCostly);
        }
        let head = self.applied();
        if !follow(past, head)? {
            return Ok(Waking::NotYet);
        }
        let (continuation, past_kept) = past.continuation();
        let Ok(present) = answered(&mut keys, &query.read, continuation.as_of_us) else {
            return Ok(Waking::Unreadable);
        };
        let is_followed = past_kept.first() == Some(&FOLLOWED);
        if is_followed != present.followed.is_some() {
            // The answer has become longer than an answer may be while its rows were followed, and only the
            // past knows them.
            return Ok(Waking::TooCostly);
        }
        let (id, count, kept) = (query.id, continuation.count, present.kept());
        assert!(
            *kept == *past_kept,
            "behind record {head} query {id} keeps {} bytes, and its past, behind emission {count}, {} others",
            kept.len(),
            past_kept.len()
        );
        let lsn = self
            .log()
            .append_into(room, now_us, kind::WAKE, |into| continuation.encode(id, into))
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        keys.note_logged(lsn);
        self.continue_from(&mut keys, query, present, continuation);
        Ok(Waking::Awake)
    }

    /// Applies a `wake` record. If the query was never dormant in this process, it must be where
    /// the record says.
    pub(crate) fn apply_wake(&self, time_us: u64, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let id = bytes
            .varint()
            .map(Lsn)
            .ok_or_else(|| bytes.malformed("the id of the read that continues is missing"))?;
        let query =
            self.query(id).ok_or_else(|| bytes.malformed(format!("no read is watched since record {id}")))?;
        let continuation = Continuation::decode(&query, bytes).ok_or_else(|| {
            bytes.malformed(format!(
                "the state from which the read watched since record {id} continues cannot be read"
            ))
        })?;
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), time_us);
        if query.is_dormant() {
            let present = answered(&mut keys, &query.read, continuation.as_of_us);
            let present = present.map_err(|block| bytes.malformed(block.to_string()))?;
            self.continue_from(&mut keys, &query, present, continuation);
            return Ok(());
        }
        let state = query.lock();
        let (count, last) = (state.emissions.count(), state.emissions.last());
        if (count, last) != (continuation.count, continuation.last) {
            return Err(bytes.malformed(format!(
                "the read watched since record {id} continues after emission {} of record {}, and has had {count}, the last at \
                 record {last}",
                continuation.count, continuation.last
            )));
        }
        Ok(())
    }

    /// Continues a dormant query. The caller has locked everything that it reads.
    fn continue_from(&self, keys: &mut Keys<'_>, query: &SharedQuery, present: Answered, from: Continuation) {
        let registry = self.registry();
        let mut queries = registry.lock();
        let Continuation { count, last, as_of_us: _, filtered } = from;
        {
            let mut state = query.lock();
            assert!(query.is_dormant(), "the query of record {} continues, and was not dormant", query.id);
            registry.saving.before_change(query, &state);
            let before = state.answer.heap_bytes();
            state.keep(present);
            let listing = Listing::of(&query.read);
            if filtered.is_some() || listing.is_some() {
                let more = state.more.get_or_insert_default();
                (more.filtered, more.listing) = (filtered, listing);
            }
            if let Some(listing) = state.listing() {
                listing.update(keys);
            }
            registry.resize(before, state.answer.heap_bytes());
            registry.retention.give_back(state.emissions.go_on_behind(count, last));
            query.is_dormant.store(false, Ordering::Relaxed);
        }
        registry.dormant.fetch_sub(1, Ordering::Relaxed);
        queries.find_by_read(query);
        Query::join_index(query, keys);
        let mut state = query.lock();
        let answer = state.answer.heap_bytes();
        registry.count(&mut state, answer);
    }

    /// Returns whether writers can afford a query of this cost besides the others of the same keys.
    /// The caller has locked everything that it reads.
    fn affords(&self, keys: &mut Keys<'_>, query: &Query, cost_ns: u64) -> bool {
        let budget = &self.registry().budget;
        let limit = budget.write_ns();
        if limit == u64::MAX {
            return budget.may_be_heard();
        }
        let sum = |queries: &[SharedQuery]| queries.iter().map(|other| other.cost.ns()).sum::<u64>();
        let db = query.read.db();
        let read: Vec<Box<[u8]>> = match query.selection() {
            Some(filter) => keys
                .as_logged(|keys| find_series(filter, keys).into_iter().map(|(key, _)| key.into()).collect()),
            None => query.read.keys().into_iter().map(Box::from).collect(),
        };
        let of_keys: Vec<u64> =
            read.iter().map(|key| sum(keys.shard_mut(key).index().of_key(db, key))).collect();
        let everywhere = keys.shards().map(|shard| sum(shard.index().everywhere())).max();
        // A write touches one of the keys, and answers all queries over every key.
        let others = of_keys.into_iter().max().unwrap_or(0) + everywhere.unwrap_or(0);
        // Half of the limit: answers may grow, and becoming dormant again soon would cost more than
        // waiting.
        others.saturating_add(cost_ns) <= limit / 2 && budget.may_be_heard()
    }
}

impl Query {
    /// Returns whether writers do not answer the query. Changes under the locks of all that it
    /// reads.
    pub fn is_dormant(&self) -> bool {
        self.is_dormant.load(Ordering::Relaxed)
    }
}
