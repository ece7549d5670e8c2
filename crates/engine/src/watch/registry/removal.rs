//! How queries leave to which nobody listens, and emissions that are too old.

use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::persist::record::{self, kind};
use crate::watch::registry::queries::Queries;
use crate::watch::watched_read::{Query, SharedQuery};
use tidemark_log::{AppendError, Lsn, Room};

/// How many queries are forgotten at once, so that nobody waits for it.
const FORGOTTEN_AT_ONCE: usize = 1000;
/// How many queries without listeners make place for others at once, so that not everybody who comes looks for one.
const DISPLACED_AT_ONCE: usize = 100;

impl Engine {
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
    pub(in crate::watch) fn make_place(&self, now_us: u64) {
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

    /// Ends a query for all its subscribers, with a record; whether it was there. They find that what comes next is gone.
    ///
    /// # Errors
    /// The query has names, which end first; or the log takes no record.
    pub fn end_query(&self, id: Lsn, now_us: u64) -> Result<bool, CommandError> {
        self.check_writable()?;
        let mut room = Room::NONE;
        self.make_room(0, &mut room)?;
        let Some(query) = self.query(id) else { return Ok(false) };
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read.db(), now_us);
        let mut queries = self.registry().lock();
        if queries.of_id(id).is_none() {
            return Ok(false);
        }
        let names = query.lock().names();
        if names > 0 {
            return Err(CommandError::Text(
                format!("ERR query {id} has {names} named subscriptions; end them with UNWATCH NAMED first")
                    .into(),
            ));
        }
        self.log_end(&mut keys, &mut queries, &query, room)
            .map_err(|error| CommandError::LogFailed(error.to_string()))?;
        if let Some(audience) = self.registry().audience.get() {
            query.lock().listeners.tell(|listener| audience.tell(listener, &query));
        }
        Ok(true)
    }

    /// Removes a query with the record of its end. Everything that it reads is locked.
    fn log_end(
        &self,
        keys: &mut Keys<'_>,
        queries: &mut Queries,
        query: &SharedQuery,
        room: Room<'_>,
    ) -> Result<(), AppendError> {
        let encode = |into: &mut Vec<u8>| record::put_varint(into, query.id.0);
        let lsn = self.log().append_into(room, keys.now_us(), kind::UNWATCH, encode)?;
        keys.note_logged(lsn);
        self.unregister(keys, queries, query);
        Ok(())
    }

    /// Removes a query, with a record, unless a subscriber has come back to it.
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
        // Without a log that takes the record it stays.
        let _ = self.log_end(&mut keys, &mut queries, query, room);
    }
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
