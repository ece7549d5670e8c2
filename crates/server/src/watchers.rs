//! Who of one worker's clients subscribes to which query.

use crate::http_watchers::HttpWatchers;
use crate::inbox::{Inbox, Message, Target};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_engine::keyspace::hash;
use tidemark_engine::query::{Audience, Query};
use tidemark_engine::tracking::Broadcast;
use tidemark_log::Lsn;

/// Most reads have one subscriber.
type Targets = SmallVec<[Target; 1]>;

/// One worker's subscribers. Only its own thread looks, and never while it calls anything else.
#[derive(Default)]
pub(crate) struct Watchers(RefCell<HashMap<Lsn, Targets>>);

impl Watchers {
    /// Notes a subscriber to a query, which it does not subscribe to yet.
    pub(crate) fn join(&self, query: Lsn, target: Target) {
        let mut queries = self.0.borrow_mut();
        let targets = queries.entry(query).or_default();
        debug_assert!(!targets.contains(&target), "one subscription to a query for each client");
        targets.push(target);
    }

    /// Forgets a subscriber; whether it was the worker's last one to the query.
    pub(crate) fn leave(&self, query: Lsn, target: Target) -> bool {
        let mut queries = self.0.borrow_mut();
        let Some(targets) = queries.get_mut(&query) else { return false };
        if let Some(at) = targets.iter().position(|other| *other == target) {
            targets.swap_remove(at);
        }
        let was_last = targets.is_empty();
        if was_last {
            queries.remove(&query);
        }
        was_last
    }

    /// The subscribers to a query.
    pub(crate) fn of(&self, query: Lsn) -> Targets {
        self.0.borrow().get(&query).cloned().unwrap_or_default()
    }
}

/// Tells workers, by their inboxes, and those who watch over HTTP what was emitted.
pub(crate) struct Listeners {
    pub(crate) workers: Vec<Arc<Inbox>>,
    /// The listener behind the last worker.
    pub(crate) http: Arc<HttpWatchers>,
}

impl Audience for Listeners {
    fn tell(&self, listener: usize, query: &Arc<Query>) {
        match self.workers.get(listener) {
            Some(inbox) => inbox.send(Message::Emitted(Arc::clone(query))),
            None => self.http.tell(query),
        }
    }

    fn broadcast(&self, broadcast: &Arc<Broadcast>) {
        // Always the same worker for a prefix, so that what is passed on keeps its order.
        let number = hash(broadcast.prefix()) as usize % self.workers.len().max(1);
        if let Some(inbox) = self.workers.get(number) {
            inbox.send(Message::Broadcast(Arc::clone(broadcast)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_subscriber_to_leave_is_known() {
        let (watchers, query) = (Watchers::default(), Lsn(7));
        let (one, other) = (Target { slot: 1, client: 1 }, Target { slot: 2, client: 2 });
        assert!(!watchers.leave(query, one), "there is none");
        watchers.join(query, one);
        watchers.join(query, other);
        assert_eq!(watchers.of(query).as_slice(), [one, other]);
        assert!(!watchers.leave(query, one));
        assert!(!watchers.leave(query, one), "it has left already");
        assert!(watchers.leave(query, other));
        assert!(watchers.of(query).is_empty() && watchers.of(Lsn(8)).is_empty());
    }
}
