//! Registry of HTTP subscribers, by query: one listener of the engine, besides the workers.
//!
//! All of it runs on the HTTP thread, except notifications that a query has emitted or the log has
//! advanced.

use crate::durability::log_state::has_failed;
use crate::group::Group;
use crate::net::outbox::{Reached, Until};
use crate::net::pause::Pause;
use crate::subscription::json_cache::JsonCache;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidemark_engine::Engine;
use tidemark_engine::watch::{Read, SharedQuery};
use tidemark_log::{Clock, Log, Lsn, Options};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How often an answer looks again whether this member of a group has its lease, and the pause between two
/// looks: a second in all.
const LEASE_LOOKS: u32 = 500;
const LEASE_PAUSE: Duration = Duration::from_millis(2);

/// The subscribers over HTTP, and the means to wake them.
pub(crate) struct HttpRegistry {
    clock: Clock,
    /// The engine's listener number of all HTTP subscribers together.
    listener: usize,
    /// Queries with emissions since the last look. The engine notifies once per query and look,
    /// which bounds the list.
    emitted: Mutex<Vec<SharedQuery>>,
    notified: Notify,
    log_moved: Notify,
    pause_changed: Notify,
    /// Answers as JSON.
    pub(crate) json: JsonCache,
    by_query: Mutex<HashMap<Lsn, Vec<Arc<HttpListener>>>>,
    /// Limit of connections that watch, and a permit for each free place.
    limit: usize,
    places: Arc<Semaphore>,
}

impl HttpRegistry {
    /// Creates a registry for at most `limit` connections. `listener` is their number at the
    /// engine.
    pub(crate) fn new(listener: usize, limit: usize, clock: &Clock) -> HttpRegistry {
        HttpRegistry {
            clock: clock.clone(),
            listener,
            emitted: Mutex::default(),
            notified: Notify::new(),
            log_moved: Notify::new(),
            pause_changed: Notify::new(),
            json: JsonCache::default(),
            by_query: Mutex::default(),
            limit,
            places: Arc::new(Semaphore::new(limit)),
        }
    }

    pub(crate) fn listener(&self) -> usize {
        self.listener
    }

    /// Acquires a place for a connection, if one is free. Dropping the permit frees it.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Number of connections that watch.
    pub(crate) fn count(&self) -> usize {
        self.limit.saturating_sub(self.places.available_permits())
    }

    /// Notes that a query has emitted. Called from any thread, with shards locked. O(1) in the
    /// number of subscribers.
    pub(crate) fn notify(&self, query: &SharedQuery) {
        lock(&self.emitted).push(query.clone());
        self.notified.notify_one();
    }

    /// Notes that the log has advanced or failed.
    pub(crate) fn log_moved(&self) {
        self.log_moved.notify_waiters();
    }

    /// Notes that `CLIENT PAUSE` has begun or was ended early.
    pub(crate) fn pause_changed(&self) {
        self.pause_changed.notify_waiters();
    }

    /// Adds a subscriber to a query that it is not subscribed to.
    pub(crate) fn join(&self, query: Lsn, http_listener: &Arc<HttpListener>) {
        lock(&self.by_query).entry(query).or_default().push(Arc::clone(http_listener));
        // Wakes the retention task, which now has work.
        self.notified.notify_one();
    }

    /// Removes a subscriber. Returns whether it was the last one to the query.
    pub(crate) fn leave(&self, query: Lsn, http_listener: &Arc<HttpListener>) -> bool {
        let mut queries = lock(&self.by_query);
        let Some(http_listeners) = queries.get_mut(&query) else { return false };
        if let Some(at) = http_listeners.iter().position(|other| Arc::ptr_eq(other, http_listener)) {
            http_listeners.swap_remove(at);
        }
        let was_last = http_listeners.is_empty();
        if was_last {
            queries.remove(&query);
        }
        was_last
    }

    /// Waits for an emission or a new subscriber, then wakes the subscribers of all queries that
    /// have emitted.
    pub(crate) async fn pass_on(&self) {
        self.notified.notified().await;
        let emitted = std::mem::take(&mut *lock(&self.emitted));
        for query in emitted {
            // Re-armed before the emissions are read: later emissions notify again.
            query.look(self.listener);
            if let Some(http_listeners) = lock(&self.by_query).get(&query.id()) {
                http_listeners.iter().for_each(|http_listener| http_listener.notify(query.id()));
            }
        }
    }

    /// Waits until the log has reached `until`.
    ///
    /// # Errors
    /// The log has failed first; or more terms of this member of a group have ended than
    /// `ended_terms`, those when what waits was executed: it may have been taken back.
    pub(crate) async fn wait_for_log(
        &self,
        log: &Log,
        group: Option<&Group>,
        until: Option<Until>,
        ended_terms: u64,
    ) -> Result<(), NeverReached> {
        let mut looks = LEASE_LOOKS;
        loop {
            let moved = self.log_moved.notified();
            tokio::pin!(moved);
            // Enabled before the check: no movement is missed.
            moved.as_mut().enable();
            if let Some(Until::Written(lsn)) = until {
                log.request_write(lsn);
            }
            let is_reached = until.is_none_or(|until| Reached::by(log).has(until));
            // Behind the look at the log, whose progress may be that of another leader.
            if group.map_or(0, Group::ended_terms) != ended_terms {
                return Err(NeverReached::TermEnded);
            }
            if let Some(group) = group.filter(|group| is_reached && group.confirms_reads() && group.leads()) {
                let is_confirmed = group.is_confirmed().await && group.ended_terms() == ended_terms;
                return if is_confirmed { Ok(()) } else { Err(NeverReached::TermEnded) };
            }
            if is_reached && group.is_none_or(|group| group.consensus().has_lease()) {
                // Behind the look at the lease: a member that follows needs none.
                let has_ended = group.map_or(0, Group::ended_terms) != ended_terms;
                return if has_ended { Err(NeverReached::TermEnded) } else { Ok(()) };
            }
            if is_reached {
                // The lease is renewed, or no quorum answers.
                if looks == 0 {
                    return Err(NeverReached::TermEnded);
                }
                looks -= 1;
                tokio::time::sleep(LEASE_PAUSE).await;
                continue;
            }
            if has_failed(log) {
                return Err(NeverReached::LogFailed);
            }
            if let Some(Until::Committed(lsn)) = until {
                log.request_sync(lsn);
            }
            moved.await;
        }
    }

    /// Waits until the log has room for a record of so many bytes, or refuses it.
    pub(crate) async fn wait_for_room(&self, log: &Log, bytes: usize) {
        log.look_for_stall();
        loop {
            let moved = self.log_moved.notified();
            tokio::pin!(moved);
            // Enabled before the check: no movement is missed.
            moved.as_mut().enable();
            if log.has_room_for(bytes) {
                return;
            }
            tokio::select! {
                () = moved => {}
                () = tokio::time::sleep(Options::STALL_AFTER) => log.look_for_stall(),
            }
        }
    }

    /// Waits until `pause` is over if the read is not watched yet: the begin of a watched read
    /// appends a record.
    pub(crate) async fn wait_for_pause(&self, pause: &Pause, engine: &Engine, read: &Read) {
        self.wait_while_paused(pause, || engine.query_of(read).is_none()).await;
        if engine.query_of(read).is_none() {
            self.wait_for_room(engine.log(), 0).await;
        }
    }

    /// Waits until `pause` is over, or `concerns` returns that it no longer concerns the caller.
    pub(crate) async fn wait_while_paused(&self, pause: &Pause, concerns: impl Fn() -> bool) {
        while concerns() {
            let changed = self.pause_changed.notified();
            tokio::pin!(changed);
            // Enabled before the check: no change is missed.
            changed.as_mut().enable();
            let Some(rest) = pause.rest(self.clock.now_us()) else { return };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }
}

/// Why the log will not reach what an answer waits for. Whether the changes stay is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeverReached {
    /// A write or sync of the log has failed.
    LogFailed,
    /// This member of a group leads no longer.
    TermEnded,
}

impl NeverReached {
    /// The error for a subscription that ends.
    pub(crate) fn error(self) -> String {
        format!("MISCONF {}: the rest is not sent", self.reason())
    }

    /// The reason, for a client.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            NeverReached::LogFailed => "the log has failed",
            NeverReached::TermEnded => "another member of the group may lead now",
        }
    }
}

/// One connection's queries that may have emitted.
#[derive(Debug, Default)]
pub(crate) struct HttpListener {
    notified: Mutex<BTreeSet<Lsn>>,
    woken: Notify,
}

impl HttpListener {
    /// Marks a query of the connection as ready.
    pub(crate) fn notify(&self, query: Lsn) {
        lock(&self.notified).insert(query);
        self.woken.notify_one();
    }

    /// Waits for a ready query and takes it. Round robin after `last`, the query taken before, so
    /// no query starves.
    pub(crate) async fn next(&self, last: Lsn) -> Lsn {
        loop {
            if let Some(query) = self.take(last) {
                return query;
            }
            self.woken.notified().await;
        }
    }

    fn take(&self, last: Lsn) -> Option<Lsn> {
        let mut notified = lock(&self.notified);
        let behind = notified.range((Bound::Excluded(last), Bound::Unbounded)).next().copied();
        let query = behind.or_else(|| notified.first().copied())?;
        notified.remove(&query);
        Some(query)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_subscriber_to_leave_is_known() {
        let (registry, query) = (HttpRegistry::new(2, 10, &Clock::System), Lsn(7));
        let (one, other) = (Arc::new(HttpListener::default()), Arc::new(HttpListener::default()));
        assert!(!registry.leave(query, &one), "there is none");
        registry.join(query, &one);
        registry.join(query, &other);
        assert!(!registry.leave(query, &one));
        assert!(!registry.leave(query, &one), "it has left already");
        assert!(registry.leave(query, &other));
    }

    #[test]
    fn there_are_as_many_places_as_are_allowed() {
        let registry = HttpRegistry::new(0, 2, &Clock::System);
        let places = (registry.place(), registry.place());
        assert!(places.0.is_some() && places.1.is_some() && registry.place().is_none());
        assert_eq!(registry.count(), 2);
        drop(places);
        assert!(registry.place().is_some());
        assert_eq!(registry.count(), 0);
    }

    #[test]
    fn queries_are_looked_at_in_turn() {
        let http_listener = HttpListener::default();
        let mut last = Lsn::ZERO;
        let mut turns = Vec::new();
        [5, 3, 9].into_iter().for_each(|query| http_listener.notify(Lsn(query)));
        while let Some(query) = http_listener.take(last) {
            turns.push(query.0);
            last = query;
            if turns.len() < 6 {
                // The query has more emissions.
                http_listener.notify(query);
            }
        }
        assert_eq!(turns, [3, 5, 9, 3, 5, 9, 3, 5]);
    }
}
