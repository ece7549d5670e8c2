//! Who watches which query over HTTP: one listener of the engine beside the workers.
//!
//! All of it happens on the thread of HTTP, but for what others tell: that a query has emitted, or that the log has moved.

use crate::clock::now_us;
use crate::durability::log_state::has_failed;
use crate::net::outbox::{Reached, Until};
use crate::net::pause::Pause;
use crate::subscription::json_cache::JsonCache;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_engine::Engine;
use tidemark_engine::watch::{Read, SharedQuery};
use tidemark_log::{Log, Lsn, Options};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The subscribers over HTTP, and the means to wake them.
pub(crate) struct HttpRegistry {
    /// The engine's number for all of them together.
    listener: usize,
    /// Queries that have emitted something since they were last looked at. The engine tells of each once until then, which
    /// bounds them.
    emitted: Mutex<Vec<SharedQuery>>,
    told: Notify,
    log_moved: Notify,
    pause_changed: Notify,
    /// What they are given.
    pub(crate) json: JsonCache,
    by_query: Mutex<HashMap<Lsn, Vec<Arc<HttpListener>>>>,
    /// Connections that may watch at once, and those of them that are free.
    limit: usize,
    places: Arc<Semaphore>,
}

impl HttpRegistry {
    /// At most `limit` connections, which together are number `listener` to the engine.
    pub(crate) fn new(listener: usize, limit: usize) -> HttpRegistry {
        HttpRegistry {
            listener,
            emitted: Mutex::default(),
            told: Notify::new(),
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

    /// A place for one more connection, if there is one. It is free again when the place is dropped.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// How many connections watch.
    pub(crate) fn count(&self) -> usize {
        self.limit.saturating_sub(self.places.available_permits())
    }

    /// Tells that a query has emitted something. From any thread, with shards locked: it costs the same for any number of
    /// subscribers.
    pub(crate) fn tell(&self, query: &SharedQuery) {
        lock(&self.emitted).push(query.clone());
        self.told.notify_one();
    }

    /// Tells that the log has got further or has failed.
    pub(crate) fn log_moved(&self) {
        self.log_moved.notify_waiters();
    }

    /// Tells that `CLIENT PAUSE` has begun, or ended before its time.
    pub(crate) fn pause_changed(&self) {
        self.pause_changed.notify_waiters();
    }

    /// Adds a subscriber to a query, which it does not subscribe to yet.
    pub(crate) fn join(&self, query: Lsn, ear: &Arc<HttpListener>) {
        lock(&self.by_query).entry(query).or_default().push(Arc::clone(ear));
        // Whoever looks for what is too old has a reason to from now on.
        self.told.notify_one();
    }

    /// Removes a subscriber; whether it was the last one to the query.
    pub(crate) fn leave(&self, query: Lsn, ear: &Arc<HttpListener>) -> bool {
        let mut queries = lock(&self.by_query);
        let Some(ears) = queries.get_mut(&query) else { return false };
        if let Some(at) = ears.iter().position(|other| Arc::ptr_eq(other, ear)) {
            ears.swap_remove(at);
        }
        let was_last = ears.is_empty();
        if was_last {
            queries.remove(&query);
        }
        was_last
    }

    /// Waits until something has been emitted, or there is one more subscriber, and wakes the subscribers of what has emitted.
    pub(crate) async fn pass_on(&self) {
        self.told.notified().await;
        let emitted = std::mem::take(&mut *lock(&self.emitted));
        for query in emitted {
            // Before anything is read: what is emitted from now on is told anew.
            query.look(self.listener);
            if let Some(ears) = lock(&self.by_query).get(&query.id()) {
                ears.iter().for_each(|ear| ear.tell(query.id()));
            }
        }
    }

    /// Waits until the log has come so far; `false` if it has failed before.
    pub(crate) async fn wait_for_log(&self, log: &Log, until: Until) -> bool {
        loop {
            let moved = self.log_moved.notified();
            tokio::pin!(moved);
            // From here on no movement is missed.
            moved.as_mut().enable();
            if let Until::Written(lsn) = until {
                log.request_write(lsn);
            }
            if Reached::by(log).has(until) {
                return true;
            }
            if has_failed(log) {
                return false;
            }
            if let Until::Durable(lsn) = until {
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
            // From here on no movement is missed.
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

    /// Waits until `pause` is over, if a read is watched by nobody yet: its beginning is a record of the log.
    pub(crate) async fn wait_for_pause(&self, pause: &Pause, engine: &Engine, read: &Read) {
        self.wait_while_paused(pause, || engine.query_of(read).is_none()).await;
        if engine.query_of(read).is_none() {
            self.wait_for_room(engine.log(), 0).await;
        }
    }

    /// Waits until `pause` is over, or `concerns` says that it does not concern whoever waits.
    pub(crate) async fn wait_while_paused(&self, pause: &Pause, concerns: impl Fn() -> bool) {
        while concerns() {
            let changed = self.pause_changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let Some(rest) = pause.rest(now_us()) else { return };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }
}

/// What one connection hears: which of its queries may have emitted something.
#[derive(Debug, Default)]
pub(crate) struct HttpListener {
    told: Mutex<BTreeSet<Lsn>>,
    woken: Notify,
}

impl HttpListener {
    /// Notes that a query of the connection is to be looked at.
    pub(crate) fn tell(&self, query: Lsn) {
        lock(&self.told).insert(query);
        self.woken.notify_one();
    }

    /// Waits until a query is to be looked at, and takes it: in turn, so that none keeps the others from theirs. `last` is the
    /// one that had the turn before.
    pub(crate) async fn next(&self, last: Lsn) -> Lsn {
        loop {
            if let Some(query) = self.take(last) {
                return query;
            }
            self.woken.notified().await;
        }
    }

    fn take(&self, last: Lsn) -> Option<Lsn> {
        let mut told = lock(&self.told);
        let behind = told.range((Bound::Excluded(last), Bound::Unbounded)).next().copied();
        let query = behind.or_else(|| told.first().copied())?;
        told.remove(&query);
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
        let (registry, query) = (HttpRegistry::new(2, 10), Lsn(7));
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
        let registry = HttpRegistry::new(0, 2);
        let places = (registry.place(), registry.place());
        assert!(places.0.is_some() && places.1.is_some() && registry.place().is_none());
        assert_eq!(registry.count(), 2);
        drop(places);
        assert!(registry.place().is_some());
        assert_eq!(registry.count(), 0);
    }

    #[test]
    fn queries_are_looked_at_in_turn() {
        let ear = HttpListener::default();
        let mut last = Lsn::ZERO;
        let mut turns = Vec::new();
        [5, 3, 9].into_iter().for_each(|query| ear.tell(Lsn(query)));
        while let Some(query) = ear.take(last) {
            turns.push(query.0);
            last = query;
            if turns.len() < 6 {
                // It has more.
                ear.tell(query);
            }
        }
        assert_eq!(turns, [3, 5, 9, 3, 5, 9, 3, 5]);
    }
}
