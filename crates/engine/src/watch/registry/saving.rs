//! Copying of queries into a snapshot, as they were at its cut, while they change.
//!
//! The cut only starts a saving. Until it ends, a writer saves a query before it changes it, and
//! the walk saves the queries that no writer has changed: copy-on-write, as for keys.

use crate::persist::record::{put_bytes, put_varint};
use crate::watch::state::{Filtered, State};
use crate::watch::watched_read::SharedQuery;
use crate::wire::shared_bytes::SharedBytes;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tidemark_log::Lsn;

/// State of the snapshot that is being taken.
#[derive(Default)]
pub(in crate::watch) struct Saving {
    /// Number of the latest snapshot. Changes with all shards locked.
    pub(in crate::watch) number: AtomicU32,
    /// Queries with ids up to here are in the snapshot; 0 if none is being taken.
    pub(in crate::watch) cut: AtomicU64,
    /// Queries saved by writers before a change.
    saved: Mutex<Vec<Saved>>,
}

/// A query as it was at the cut.
pub(in crate::watch) struct Saved {
    query: SharedQuery,
    count: u64,
    last: Lsn,
    /// `None` if the query was dormant.
    answers: Option<(SharedBytes, Option<Box<Filtered>>)>,
    /// Time as of which the query is answered, if it depends on one.
    as_of_us: Option<u64>,
}

impl Saved {
    fn of(query: &SharedQuery, state: &State) -> Self {
        let State { emissions, more, .. } = state;
        let (count, last) = (emissions.count(), emissions.last());
        let filtered = || more.as_ref().and_then(|more| more.filtered.clone());
        let answers = (!query.is_dormant()).then(|| (state.kept(), filtered()));
        Self { query: query.clone(), count, last, answers, as_of_us: state.as_of_us() }
    }

    /// ```text
    /// id varint │ emissions so far varint │ LSN of the last one varint │ the read
    ///    │ if it depends on a time: that as of which it is answered varint │ length of the answer varint │ answer
    ///    │ with a filter: length varint of its output │ output │ state of its operators
    /// answer: as it is, or if its rows are followed: 0 │ what `Following::encode` writes
    /// dormant: 0 │ id varint │ emissions at least varint │ LSN of the last of them varint │ the read
    /// ```
    pub(in crate::watch) fn encode(&self, into: &mut Vec<u8>) {
        if self.answers.is_none() {
            put_varint(into, 0);
        }
        put_varint(into, self.query.id.0);
        put_varint(into, self.count);
        put_varint(into, self.last.0);
        self.query.read.encode(into);
        let Some((answer, filtered)) = &self.answers else { return };
        if let Some(as_of_us) = self.as_of_us {
            put_varint(into, as_of_us);
        }
        put_bytes(into, answer);
        if let Some(filtered) = filtered {
            put_bytes(into, &filtered.shown);
            filtered.filtering.encode(into);
        }
    }
}

impl Saving {
    pub(in crate::watch) fn saved(&self) -> Vec<Saved> {
        std::mem::take(&mut *self.saved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Saves a query for the current snapshot, unless it is saved or began after the cut. To be
    /// called before its state changes or it is removed, with a lock of what it reads held.
    pub(in crate::watch) fn before_change(&self, query: &SharedQuery, state: &State) {
        if let Some(saved) = self.save(query, state) {
            self.saved.lock().unwrap_or_else(PoisonError::into_inner).push(saved);
        }
    }

    pub(in crate::watch) fn save(&self, query: &SharedQuery, state: &State) -> Option<Saved> {
        let number = self.number.load(Ordering::Acquire);
        let cut = Lsn(self.cut.load(Ordering::Acquire));
        let is_wanted = query.id <= cut && query.saved.load(Ordering::Relaxed) != number;
        is_wanted.then(|| {
            query.saved.store(number, Ordering::Relaxed);
            let saved = Saved::of(query, state);
            let (id, last) = (query.id, saved.last);
            assert!(
                last <= cut,
                "the query of record {id} has emitted at record {last} before the snapshot of {cut} has it"
            );
            saved
        })
    }
}
