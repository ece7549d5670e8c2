//! Registration of queries in the registry and the shards' indices, from records and snapshots, and
//! the reverse.

use crate::context::Keys;
use crate::engine::Engine;
use crate::persist::apply_error::ApplyError;
use crate::persist::record::Cursor;
use crate::watch::evaluation::answered;
use crate::watch::filter::Filtering;
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use crate::watch::registry::queries::Queries;
use crate::watch::state::{Answered, Filtered};
use crate::watch::watched_read::{Query, SharedQuery};
use std::sync::atomic::Ordering;
use tidemark_log::Lsn;

impl Engine {
    /// Applies a `watch` record, which begins a query.
    pub(crate) fn apply_watch(
        &self,
        lsn: Lsn,
        time_us: u64,
        bytes: &mut Cursor<'_>,
    ) -> Result<(), ApplyError> {
        let read =
            Read::decode(bytes).ok_or_else(|| bytes.malformed("this is no read that can be watched"))?;
        let as_of_us = read.decode_as_of(bytes)?;
        let mut keys = self.keys_of(&read.reach(self.keyspace()), &read, time_us);
        let answered = answered(&mut keys, &read, as_of_us);
        let answered = answered.map_err(|block| bytes.malformed(block.to_string()))?;
        let query = Query::new(lsn, self.registry().with_part(read), self.keyspace(), answered, time_us);
        let query = SharedQuery::new(query);
        self.register(&mut keys, &mut self.registry().lock(), &query);
        Ok(())
    }

    /// Applies an `unwatch` record, which ends a query.
    pub(crate) fn apply_unwatch(&self, time_us: u64, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let id = bytes.varint().map(Lsn).ok_or_else(|| bytes.malformed("the read that ends is missing"))?;
        let query =
            self.query(id).ok_or_else(|| bytes.malformed(format!("no read is watched since record {id}")))?;
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), time_us);
        self.unregister(&mut keys, &mut self.registry().lock(), &query);
        Ok(())
    }

    /// Loads the queries in a frame of a snapshot that covers the log up to `lsn`. To be called
    /// after all keys are loaded, at `now_us` in microseconds since 1970.
    pub fn load_queries(&self, lsn: Lsn, now_us: u64, frame: &[u8]) -> Result<(), ApplyError> {
        self.load_queries_if(lsn, now_us, frame, |_| true)
    }

    /// Does the same as [`Engine::load_queries`], for the queries that `is_wanted` selects.
    pub(in crate::watch) fn load_queries_if(
        &self,
        lsn: Lsn,
        now_us: u64,
        frame: &[u8],
        is_wanted: impl Fn(Lsn) -> bool,
    ) -> Result<(), ApplyError> {
        let mut bytes = Cursor::new(frame);
        while !bytes.is_empty() {
            self.load_query(lsn, now_us, &mut bytes, &is_wanted)?;
        }
        Ok(())
    }

    fn load_query(
        &self,
        lsn: Lsn,
        now_us: u64,
        bytes: &mut Cursor<'_>,
        is_wanted: impl Fn(Lsn) -> bool,
    ) -> Result<(), ApplyError> {
        let Kept { id, count, last, read, answers } = decode_query(bytes)?;
        let is_dormant = answers.is_none();
        if !is_wanted(id) {
            return Ok(());
        }
        let mut keys = self.keys_of(&read.reach(self.keyspace()), &read, now_us);
        let read = self.registry().with_part(read);
        let query = SharedQuery::new(Query::restored(
            id,
            read,
            self.keyspace(),
            answers.unwrap_or_default(),
            (count, last),
            now_us,
        ));
        query.is_dormant.store(is_dormant, Ordering::Relaxed);
        let mut queries = self.registry().lock();
        if id > last || last > lsn {
            return Err(bytes.malformed(format!(
                "the read watched since record {id} has changed last at record {last}, and the snapshot is of record {lsn}"
            )));
        }
        if queries.of_id(id).is_some() {
            return Err(bytes.malformed(format!("the read watched since record {id} is there twice")));
        }
        self.register(&mut keys, &mut queries, &query);
        Ok(())
    }

    pub(in crate::watch) fn register(&self, keys: &mut Keys<'_>, queries: &mut Queries, query: &SharedQuery) {
        queries.insert(query);
        assert_eq!(keys.db(), query.read.db(), "what the query reads is locked");
        let is_dormant = query.is_dormant();
        {
            let mut state = query.lock();
            if is_dormant {
                state.more = None;
            } else if let Some(listing) = state.listing() {
                listing.update(keys);
            }
            self.registry().resize(0, query.fixed_bytes());
        }
        if is_dormant {
            self.registry().dormant.fetch_add(1, Ordering::Relaxed);
        } else {
            Query::join_index(query, keys);
        }
        self.registry().count(&mut query.lock(), 0);
    }

    pub(in crate::watch) fn unregister(
        &self,
        keys: &mut Keys<'_>,
        queries: &mut Queries,
        query: &SharedQuery,
    ) {
        {
            let mut state = query.lock();
            self.registry().saving.before_change(query, &state);
            query.is_removed.store(true, Ordering::Relaxed);
            let more = state.more.as_mut().map_or(0, |more| std::mem::take(&mut more.counted));
            self.registry().resize(query.fixed_bytes() + state.answer.heap_bytes() + more, 0);
        }
        // After the query is saved: a snapshot that no longer finds it here finds it among the
        // saved.
        queries.remove(query);
        if query.is_dormant() {
            self.registry().dormant.fetch_sub(1, Ordering::Relaxed);
        } else {
            Query::leave_index(query, keys);
        }
    }
}

impl Query {
    /// Adds a query to the indices of the keys that it reads. The caller has locked everything that
    /// it reads.
    pub(in crate::watch) fn join_index(query: &SharedQuery, keys: &mut Keys<'_>) {
        if query.selection().is_some() {
            Self::begin_selecting(query, keys);
        } else if query.wide() == Some(&Reach::All) {
            keys.shards_mut().for_each(|shard| shard.index_mut().insert_everywhere(query));
        } else {
            for key in query.read.keys() {
                keys.shard_mut(key).index_mut().insert(query.read.db(), key, query);
            }
        }
    }

    /// Removes a query from the indices that it has joined. The caller has locked everything that
    /// it reads.
    pub(in crate::watch) fn leave_index(query: &SharedQuery, keys: &mut Keys<'_>) {
        if query.selection().is_some() {
            Self::end_selecting(query, keys);
        } else if query.wide() == Some(&Reach::All) {
            keys.shards_mut().for_each(|shard| shard.forget_everywhere(query));
        } else {
            for key in query.read.keys() {
                keys.shard_mut(key).forget_query(query.read.db(), key, query);
            }
        }
    }
}

/// Returns the number of emissions of query `id` in a frame that [`Engine::load_queries`] reads;
/// `None` if the query is not in it, or is dormant there.
pub fn count_in_frame(frame: &[u8], id: Lsn) -> Result<Option<u64>, ApplyError> {
    let mut bytes = Cursor::new(frame);
    while !bytes.is_empty() {
        let kept = decode_query(&mut bytes)?;
        if kept.id == id {
            return Ok(kept.answers.is_some().then_some(kept.count));
        }
    }
    Ok(None)
}

/// A query as stored in a snapshot.
struct Kept {
    id: Lsn,
    /// Number of emissions, and the LSN of the last.
    count: u64,
    last: Lsn,
    read: Read,
    /// Latest answer, and the filter's output and state; `None` if the query is dormant.
    answers: Option<(Answered, Option<Box<Filtered>>)>,
}

fn decode_query(bytes: &mut Cursor<'_>) -> Result<Kept, ApplyError> {
    let start = bytes.offset();
    read_query(bytes).ok_or_else(|| {
        bytes.malformed(format!("the watched read that begins at byte {start} cannot be read to its end"))
    })
}

fn read_query(bytes: &mut Cursor<'_>) -> Option<Kept> {
    let first = bytes.varint()?;
    let is_dormant = first == 0;
    let id = Lsn(if is_dormant { bytes.varint()? } else { first });
    let (count, last, read) = (bytes.varint()?, Lsn(bytes.varint()?), Read::decode(bytes)?);
    if is_dormant {
        return Some(Kept { id, count, last, read, answers: None });
    }
    let as_of_us = read.decode_as_of(bytes).ok()?;
    let answer = read.decode_answered(as_of_us, bytes.bytes()?)?;
    let filtered = match Filtering::new(&read.filter(), read.protocol()) {
        None => None,
        Some(filtering) => Some(Filtered::decode(filtering, bytes)?),
    };
    Some(Kept { id, count, last, read, answers: Some((answer, filtered)) })
}
