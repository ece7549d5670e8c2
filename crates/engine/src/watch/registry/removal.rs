//! Removal of queries without listeners, and of old emissions.

use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::persist::record::{self, kind};
use crate::watch::registry::queries::Queries;
use crate::watch::watched_read::{Query, SharedQuery};
use tidemark_log::{AppendError, Lsn, Room};

/// Most queries removed per call, to bound its duration.
const FORGOTTEN_AT_ONCE: usize = 1000;
/// Queries without listeners that are removed together to make place, so that not every new query
/// searches for one.
const DISPLACED_AT_ONCE: usize = 100;

impl Engine {
    /// Restarts the time without listeners of all queries. To be called after the log has been
    /// replayed: subscribers have had no chance to resume yet.
    pub fn keep_queries(&self, now_us: u64) {
        self.registry().lock().iter().for_each(|query| query.lock().listeners.begin_anew(now_us));
    }

    /// Returns when [`Engine::forget_watched`] next has work, in microseconds since 1970.
    pub fn next_forgetting_us(&self) -> Option<u64> {
        let registry = self.registry();
        let abandoned = {
            let queries = registry.lock();
            let abandoned_us = queries.iter().filter_map(|query| query.abandoned_us()).min();
            abandoned_us.map(|at| at.saturating_add(registry.retention.max_age_us()))
        };
        [abandoned, registry.retention.next_due_us()].into_iter().flatten().min()
    }

    /// Drops emissions that are too old, and removes queries that have had no listener for as long.
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

    /// Removes queries without listeners if a limit leaves no place for another, those without
    /// listeners for longest first. O(number of queries), per hundred new ones.
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
                // They have listeners again, or the log accepts no records.
                return;
            }
        }
    }

    /// Ends a query for all its subscribers, with a record. Returns whether it existed. Subscribers
    /// find later emissions gone.
    ///
    /// # Errors
    /// The query has names, which must be ended first; or the log accepts no record.
    pub fn end_query(&self, id: Lsn, now_us: u64) -> Result<bool, CommandError> {
        self.check_writable()?;
        let mut room = Room::NONE;
        self.make_room(0, &mut room)?;
        let Some(query) = self.query(id) else { return Ok(false) };
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), now_us);
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
            query.lock().listeners.notify(|listener| audience.notify(listener, &query));
        }
        Ok(true)
    }

    /// Logs the end of a query and removes it. The caller has locked everything that it reads.
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

    /// Removes a query, with a record, unless a listener has joined it meanwhile.
    fn abandon(&self, query: &SharedQuery, abandoned_before: u64, now_us: u64) {
        let mut room = Room::NONE;
        if self.check_writable().is_err() || self.make_room(0, &mut room).is_err() {
            return;
        }
        let mut keys = self.keys_of(&query.reach(self.keyspace()), query.read(), now_us);
        let mut queries = self.registry().lock();
        if !query.is_abandoned(abandoned_before) || queries.of_id(query.id).is_none() {
            return;
        }
        // If the log accepts no record, the query stays.
        let _ = self.log_end(&mut keys, &mut queries, query, room);
    }
}

impl Query {
    /// Returns since when a query has had no listener, in microseconds since 1970; `None` if it has
    /// a listener or a name.
    fn abandoned_us(&self) -> Option<u64> {
        let state = self.lock();
        state.listeners.none_since_us().filter(|_| state.names() == 0)
    }

    fn is_abandoned(&self, before_us: u64) -> bool {
        self.abandoned_us().is_some_and(|at| at < before_us)
    }
}
