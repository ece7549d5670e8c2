//! How a subscription begins, resumes and ends, and how queries come into being and leave.

use super::audience::Audience;
use super::emission::Gone;
use super::evaluation::with_answer;
use super::filter::Filtering;
use super::reach::Reach;
use super::read::Read;
use super::registry::Queries;
use super::registry::QueryLimits;
use super::retention::RetentionLimits;
use super::state::Filtered;
use super::watched_read::{Query, SharedQuery};
use crate::apply_error::ApplyError;
use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::record::{self, Cursor, kind};
use crate::shared_bytes::SharedBytes;
use std::sync::atomic::Ordering;
use tidemark_log::{Lsn, Room};

/// A subscription's beginning: the answer, and from where on changes will be told.
#[derive(Debug, Clone)]
pub struct Subscribed {
    /// What is watched.
    pub query: SharedQuery,
    /// The answer.
    pub answer: SharedBytes,
    /// The answer is that of the state behind this record.
    pub lsn: Lsn,
    /// The number of the latest emission, which the answer contains.
    pub number: u64,
    /// The record of the query, if this subscription is its first, or of keys found expired.
    pub logged: Option<Lsn>,
}

/// What comes of the wish to go on behind an LSN.
#[derive(Debug, Clone)]
pub enum Resumed {
    /// The emissions behind this number are there.
    Behind {
        /// What is watched.
        query: SharedQuery,
        /// The number of the last emission at the LSN or before.
        number: u64,
    },
    /// Some are not retained any more.
    Gone(Gone),
    /// The LSN is beyond the end of the log, which is here, or its record was lost in a crash.
    Beyond(Lsn),
    /// There is no such query.
    Unknown,
}

/// The most different reads of one key: a change of it answers all of them.
const READS_OF_A_KEY: usize = 4096;
/// The most different reads over the whole keyspace: every change concerns all of them.
const READS_OF_EVERYTHING: usize = 256;
/// How many queries are forgotten at once, so that nobody waits for it.
const FORGOTTEN_AT_ONCE: usize = 1000;
/// How many queries without listeners make place for others at once, so that not everybody who comes looks for one.
const DISPLACED_AT_ONCE: usize = 100;

/// Refuses a read whose keys are read by so many others that a change would take too long.
fn admit_beside_others(keys: &mut Keys<'_>, read: &Read, reach: &Reach) -> Result<(), CommandError> {
    let (present, most) = if *reach == Reach::All {
        let most = keys.shards().map(|shard| shard.index().everywhere_len()).max();
        (most.unwrap_or(0), READS_OF_EVERYTHING)
    } else {
        let db = read.db();
        let counts = read.keys().into_iter().map(|key| keys.shard_mut(key).index().of_key(db, key).len());
        (counts.max().unwrap_or(0), READS_OF_A_KEY)
    };
    if present < most {
        return Ok(());
    }
    Err(CommandError::Text(format!("ERR {present} other reads of the same keys are watched already").into()))
}

impl Engine {
    /// Says who passes emissions on. Once, before anybody subscribes.
    pub fn set_audience(&self, audience: Box<dyn Audience>) {
        // A second audience would never hear of anything; there is none.
        let _ = self.registry().audience.set(audience);
    }

    /// Limits what is retained of emissions.
    pub fn limit_retention(&self, limits: RetentionLimits) {
        self.registry().retention.set_limits(limits);
    }

    /// Limits how many queries there may be.
    pub fn limit_queries(&self, limits: QueryLimits) {
        self.registry().set_limits(limits);
    }

    /// How many queries there are, and the bytes of their retained emissions.
    pub fn query_figures(&self) -> (usize, usize) {
        (self.registry().lock().len(), self.registry().retention.bytes())
    }

    /// How many answers of watched reads have been looked at anew behind changes of their keys, and how many were known to be the
    /// same, because the change touched nothing that they look at.
    pub fn evaluation_figures(&self) -> (u64, u64) {
        (self.registry().evaluated(), self.keyspace().spared())
    }

    /// Lets a listener watch a read, and answers it: nothing is missed and nothing told twice between the answer and the
    /// first emission. A read that nobody watches yet is noted in the log first. Costs the read itself.
    ///
    /// An answer that is an error is no beginning: it becomes the error, and nothing is watched.
    pub fn subscribe(&self, read: Read, listener: usize, now_us: u64) -> Result<Subscribed, CommandError> {
        // Before the locks: making room may wait for the disk.
        let mut room = Room::NONE;
        let is_known = self.registry().lock().of_read(&read).is_some();
        if !is_known {
            self.check_writable()?;
            self.make_place(now_us);
            self.make_room(read.bytes(), &mut room)?;
        }
        let reach = read.reach(self.keyspace());
        let mut keys = self.keys_to_expire(&reach, &read, now_us);
        let expired = self.expire_read(&mut keys, &read);
        let mut queries = self.registry().lock();
        if let Some(query) = queries.of_read(&read).cloned() {
            drop(queries);
            return Ok(self.join(&keys, query, listener, expired));
        }
        self.check_writable()?;
        self.registry().admit(queries.len())?;
        admit_beside_others(&mut keys, &read, &reach)?;
        let answer = with_answer(&mut keys, &read, |answer| match answer {
            [b'-', error @ ..] => {
                Err(CommandError::Text(String::from_utf8_lossy(error.trim_ascii_end()).into_owned().into()))
            }
            answer => Ok(SharedBytes::from(answer)),
        })?;
        let id = self
            .log()
            .append_into(room, now_us, kind::WATCH, |into| read.encode(into))
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        let query = Query::new(id, self.registry().with_part(read), self.keyspace(), answer, now_us);
        let query = SharedQuery::new(query);
        self.register(&mut keys, &mut queries, &query);
        drop(queries);
        Ok(self.join(&keys, query, listener, Some(id)))
    }

    /// Lets a listener go on where a subscription to query `id` had got to, the emission at `lsn` included.
    pub fn resume(&self, id: Lsn, lsn: Lsn, listener: usize) -> Resumed {
        let Some(query) = self.query(id) else { return Resumed::Unknown };
        // With what it reads locked, every record up to the head has been emitted, as far as it concerns the query.
        let keys = self.keys_of(&query.reach(self.keyspace()), query.read.db(), 0);
        let head = self.log().appended();
        // A position that the log itself keeps was looked at when it was acknowledged.
        let may_be_lost = query.may_be_lost(lsn, self.log()) && !self.registry().names.is_position(id, lsn);
        let mut state = query.lock();
        if query.is_removed.load(Ordering::Relaxed) {
            return Resumed::Unknown;
        }
        if lsn > head || self.log().is_lost(lsn) {
            return Resumed::Beyond(head);
        }
        if may_be_lost {
            return Resumed::Gone(Gone { floor: state.emissions.last() });
        }
        match state.emissions.number_at(lsn) {
            Err(gone) => Resumed::Gone(gone),
            Ok(number) => {
                state.listeners.join(listener);
                drop((state, keys));
                Resumed::Behind { query, number }
            }
        }
    }

    /// The same behind the emission of this number. One that has never been is beyond the end.
    pub fn resume_after(&self, id: Lsn, number: u64, listener: usize) -> Resumed {
        // Under the registry's lock, which whoever removes a query holds.
        let queries = self.registry().lock();
        let Some(query) = queries.of_id(id).cloned() else { return Resumed::Unknown };
        let mut state = query.lock();
        if number > state.emissions.count() {
            return Resumed::Beyond(self.log().appended());
        }
        match state.emissions.after(number, 0, &mut Vec::new()) {
            Err(gone) => Resumed::Gone(gone),
            Ok(()) => {
                state.listeners.join(listener);
                drop(state);
                Resumed::Behind { query, number }
            }
        }
    }

    /// Lets a listener be told of a query's emissions from now on, wherever it is to begin. `None` if the query is not there any
    /// more, because nobody has listened for so long.
    pub fn listen(&self, id: Lsn, listener: usize) -> Option<SharedQuery> {
        // Under the registry's lock, which whoever removes a query holds.
        let queries = self.registry().lock();
        let query = queries.of_id(id)?.clone();
        query.lock().listeners.join(listener);
        Some(query)
    }

    /// Up to where a query's emissions are complete, whatever is going on, and how many there are up to there.
    pub fn progress(&self, query: &Query) -> (Lsn, u64) {
        let _keys = self.keys_of(&query.reach(self.keyspace()), query.read.db(), 0);
        (self.log().appended(), query.count())
    }

    /// The query of this read, if somebody watches it or did a while ago.
    pub fn query_of(&self, read: &Read) -> Option<SharedQuery> {
        self.registry().lock().of_read(read).cloned()
    }

    /// The query of this id.
    pub fn query(&self, id: Lsn) -> Option<SharedQuery> {
        self.registry().lock().of_id(id).cloned()
    }

    /// The queries that name this key, whatever else they read.
    pub fn queries_of(&self, db: u8, key: &[u8]) -> Vec<SharedQuery> {
        self.keyspace().lock(self.keyspace().shard_of(key)).index().of_key(db, key).to_vec()
    }

    /// Ends that a listener is told of a query's emissions.
    pub fn leave(&self, query: &Query, listener: usize, now_us: u64) {
        query.lock().listeners.leave(listener, now_us);
    }

    /// To be called when the log has been replayed: queries that nobody listens to are kept as long as if they had been left
    /// now. Their subscribers have not had a chance to come back yet.
    pub fn keep_queries(&self, now_us: u64) {
        self.registry().lock().iter().for_each(|query| query.lock().listeners.begin_anew(now_us));
    }

    /// When [`Engine::forget_watched`] has something to do at the earliest, in microseconds since 1970.
    pub fn next_forgetting_us(&self) -> Option<u64> {
        let registry = self.registry();
        let abandoned = {
            let queries = registry.lock();
            let abandoned_us = queries.iter().filter_map(|query| query.abandoned_us()).min();
            abandoned_us.map(|at| at.saturating_add(registry.retention.max_age_us()))
        };
        [abandoned, registry.retention.next_due_us()].into_iter().flatten().min()
    }

    /// Lets go of emissions that are too old, and of queries that nobody has listened to for as long.
    pub fn forget_watched(&self, now_us: u64) {
        let registry = self.registry();
        registry.retention.drop_old(now_us);
        let abandoned_before = now_us.saturating_sub(registry.retention.max_age_us());
        let abandoned: Vec<SharedQuery> = {
            let queries = registry.lock();
            let abandoned = queries.iter().filter(|query| query.is_abandoned(abandoned_before));
            abandoned.take(FORGOTTEN_AT_ONCE).cloned().collect()
        };
        for query in abandoned {
            self.abandon(&query, abandoned_before, now_us);
        }
    }

    /// Lets queries go to which nobody listens, if there is no place for a further one otherwise: those first whose listeners
    /// left first. O(number of queries), for a hundred that come.
    fn make_place(&self, now_us: u64) {
        loop {
            let mut abandoned: Vec<(u64, SharedQuery)> = {
                let queries = self.registry().lock();
                if self.registry().admit(queries.len()).is_ok() {
                    return;
                }
                queries.iter().filter_map(|query| Some((query.abandoned_us()?, query.clone()))).collect()
            };
            if abandoned.is_empty() {
                return;
            }
            if abandoned.len() > DISPLACED_AT_ONCE {
                abandoned.select_nth_unstable_by_key(DISPLACED_AT_ONCE, |(at, _)| *at);
                abandoned.truncate(DISPLACED_AT_ONCE);
            }
            let before = self.registry().lock().len();
            abandoned.iter().for_each(|(_, query)| self.abandon(query, u64::MAX, now_us));
            if self.registry().lock().len() >= before {
                // They have listeners again, or the log takes no records.
                return;
            }
        }
    }

    /// Removes a query, with a record, unless somebody has come back to it. Without a log that takes the record it stays.
    fn abandon(&self, query: &SharedQuery, abandoned_before: u64, now_us: u64) {
        let mut room = Room::NONE;
        if self.check_writable().is_err() || self.make_room(0, &mut room).is_err() {
            return;
        }
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read.db(), now_us);
        let mut queries = self.registry().lock();
        if !query.is_abandoned(abandoned_before) || queries.of_id(query.id).is_none() {
            return;
        }
        let encode = |into: &mut Vec<u8>| record::put_varint(into, query.id.0);
        if self.log().append_into(room, now_us, kind::UNWATCH, encode).is_ok() {
            self.unregister(&mut keys, &mut queries, query);
        }
    }

    /// Applies the record of a query's beginning.
    pub(crate) fn apply_watch(
        &self,
        lsn: Lsn,
        time_us: u64,
        bytes: &mut Cursor<'_>,
    ) -> Result<(), ApplyError> {
        let read = Read::decode(bytes).ok_or(ApplyError::Malformed)?;
        let mut keys = self.keys_of(&read.reach(self.keyspace()), read.db(), time_us);
        let answer = with_answer(&mut keys, &read, |answer| SharedBytes::from(answer));
        let query = Query::new(lsn, self.registry().with_part(read), self.keyspace(), answer, time_us);
        let query = SharedQuery::new(query);
        let mut queries = self.registry().lock();
        if queries.of_read(&query.read).is_some() {
            return Err(ApplyError::Malformed);
        }
        self.register(&mut keys, &mut queries, &query);
        Ok(())
    }

    /// Applies the record of a query's end.
    pub(crate) fn apply_unwatch(&self, time_us: u64, bytes: &mut Cursor<'_>) -> Result<(), ApplyError> {
        let id = bytes.varint().ok_or(ApplyError::Malformed)?;
        let query = self.query(Lsn(id)).ok_or(ApplyError::Malformed)?;
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read.db(), time_us);
        self.unregister(&mut keys, &mut self.registry().lock(), &query);
        Ok(())
    }

    /// Brings back the queries of a frame of a snapshot that covers the log up to `lsn`. To be called when all keys are
    /// loaded, at `now_us` in microseconds since 1970.
    pub fn load_queries(&self, lsn: Lsn, now_us: u64, frame: &[u8]) -> Result<(), ApplyError> {
        self.load_queries_if(lsn, now_us, frame, |_| true)
    }

    /// As [`Engine::load_queries`], of those queries that are wanted.
    pub(super) fn load_queries_if(
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
        let Kept { id, count, last, read, answers } = decode_query(bytes).ok_or(ApplyError::Malformed)?;
        if !is_wanted(id) {
            return Ok(());
        }
        let mut keys = self.keys_of(&read.reach(self.keyspace()), read.db(), now_us);
        let read = self.registry().with_part(read);
        let query =
            SharedQuery::new(Query::restored(id, read, self.keyspace(), answers, (count, last), now_us));
        let mut queries = self.registry().lock();
        if id > last || last > lsn || queries.of_read(&query.read).is_some() || queries.of_id(id).is_some() {
            return Err(ApplyError::Malformed);
        }
        self.register(&mut keys, &mut queries, &query);
        Ok(())
    }

    fn register(&self, keys: &mut Keys<'_>, queries: &mut Queries, query: &SharedQuery) {
        queries.insert(query);
        debug_assert_eq!(keys.db(), query.read.db());
        {
            let mut state = query.lock();
            if let Some(listing) = state.listing() {
                listing.update(keys);
            }
            self.registry().resize(0, query.fixed_bytes());
            self.registry().count(&mut state, 0);
        }
        if query.wide() == Some(&Reach::All) {
            keys.shards_mut().for_each(|shard| shard.index_mut().insert_everywhere(query));
        } else {
            for key in query.read.keys() {
                keys.shard_mut(key).index_mut().insert(query.read.db(), key, query);
            }
        }
    }

    fn unregister(&self, keys: &mut Keys<'_>, queries: &mut Queries, query: &SharedQuery) {
        {
            let mut state = query.lock();
            self.registry().saving.before_change(query, &state);
            query.is_removed.store(true, Ordering::Relaxed);
            let more = state.more.as_mut().map_or(0, |more| std::mem::take(&mut more.counted));
            self.registry().resize(query.fixed_bytes() + state.answer.heap_bytes() + more, 0);
        }
        // Behind its being saved: a snapshot that does not find it here any more finds it there.
        queries.remove(query);
        if query.wide() == Some(&Reach::All) {
            keys.shards_mut().for_each(|shard| shard.forget_everywhere(query));
        } else {
            for key in query.read.keys() {
                keys.shard_mut(key).forget_query(query.read.db(), key, query);
            }
        }
    }

    fn join(&self, keys: &Keys<'_>, query: SharedQuery, listener: usize, logged: Option<Lsn>) -> Subscribed {
        debug_assert_eq!(keys.db(), query.read.db(), "what the query reads is locked");
        let mut state = query.lock();
        state.listeners.join(listener);
        let (answer, number) = (state.shown().clone(), state.emissions.count());
        drop(state);
        // What the query reads is locked, so no record behind this one has changed the answer.
        Subscribed { answer, lsn: self.log().appended(), number, logged, query }
    }

    /// Removes those of a read's keys whose time has come, so that nobody is answered what other reads do not show any more.
    fn expire_read(&self, keys: &mut Keys<'_>, read: &Read) -> Option<Lsn> {
        if read.reach(self.keyspace()) == Reach::All || self.check_writable().is_err() {
            return None;
        }
        read.keys().into_iter().for_each(|key| keys.drop_expired(key));
        self.log_expired(keys)
    }
}

/// How many emissions query `id` has had, according to a frame of those that [`Engine::load_queries`] reads; `None` if it is not
/// in it.
pub fn count_in_frame(frame: &[u8], id: Lsn) -> Result<Option<u64>, ApplyError> {
    let mut bytes = Cursor::new(frame);
    while !bytes.is_empty() {
        let kept = decode_query(&mut bytes).ok_or(ApplyError::Malformed)?;
        if kept.id == id {
            return Ok(Some(kept.count));
        }
    }
    Ok(None)
}

/// A query as a snapshot keeps it.
struct Kept {
    id: Lsn,
    /// How many emissions there were, and the LSN of the last.
    count: u64,
    last: Lsn,
    read: Read,
    /// The latest answer, and what came of it.
    answers: (SharedBytes, Option<Box<Filtered>>),
}

fn decode_query(bytes: &mut Cursor<'_>) -> Option<Kept> {
    let (id, count, last) = (Lsn(bytes.varint()?), bytes.varint()?, Lsn(bytes.varint()?));
    let read = Read::decode(bytes)?;
    let answer = SharedBytes::from(bytes.bytes()?);
    let filtered = match Filtering::new(&read.filter(), read.protocol()) {
        None => None,
        Some(mut filtering) => {
            let shown = SharedBytes::from(bytes.bytes()?);
            filtering.decode(bytes)?;
            Some(Box::new(Filtered { filtering, shown }))
        }
    };
    Some(Kept { id, count, last, read, answers: (answer, filtered) })
}

impl Query {
    /// Since when nobody listens, if nobody does and it has no name, in microseconds since 1970.
    fn abandoned_us(&self) -> Option<u64> {
        let state = self.lock();
        state.listeners.none_since_us().filter(|_| state.names() == 0)
    }

    fn is_abandoned(&self, before_us: u64) -> bool {
        self.abandoned_us().is_some_and(|at| at < before_us)
    }
}

#[cfg(test)]
impl Engine {
    /// Lets something else than the command table say what reads look at that begin from now on.
    pub(crate) fn judge_by(&self, part_of: fn(&Read) -> crate::part::Part) {
        self.registry().part_of.set(part_of).expect("once");
    }
}
