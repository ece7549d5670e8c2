//! Registry of one worker's subscribers, by query.

use crate::net::inbox::{Inbox, Message};
use crate::subscription::channel_registry::ChannelRegistry;
use crate::subscription::http_registry::HttpRegistry;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_engine::keyspace::hash;
use tidemark_engine::tracking::Broadcast;
use tidemark_engine::watch::{Audience, ById, SharedQuery};
use tidemark_log::Lsn;

/// Slots of subscribed clients.
type Slots = SmallVec<[usize; 2]>;

/// One worker's subscribers, by the slots of their connections. A connection ends its subscriptions
/// before its slot is reused. Only the worker's thread borrows it, and never across a call.
#[derive(Default)]
pub(crate) struct SubscriptionRegistry(RefCell<Watched>);

/// Split, because most queries have one subscriber, which should take little memory.
#[derive(Default)]
struct Watched {
    /// Subscribers of queries that have exactly one.
    one: ById<(Lsn, usize)>,
    /// Subscribers of all other queries.
    several: HashMap<Lsn, Vec<usize>>,
}

impl SubscriptionRegistry {
    /// Adds a subscriber to a query that it is not subscribed to.
    pub(crate) fn join(&self, query: Lsn, slot: usize) {
        let mut watched = self.0.borrow_mut();
        let Watched { one, several } = &mut *watched;
        if let Some(slots) = several.get_mut(&query) {
            debug_assert!(
                !slots.contains(&slot),
                "one for each client; a query may have many, so only debug builds look"
            );
            slots.push(slot);
        } else if let Some((_, first)) = one.remove(query) {
            assert!(first != slot, "the client in slot {slot} subscribes to the query {query} twice");
            several.insert(query, vec![first, slot]);
        } else {
            one.insert((query, slot));
        }
    }

    /// Removes a subscriber. Returns whether it was the worker's last one to the query.
    pub(crate) fn leave(&self, query: Lsn, slot: usize) -> bool {
        let mut watched = self.0.borrow_mut();
        let Watched { one, several } = &mut *watched;
        if one.get(query).is_some_and(|(_, first)| *first == slot) {
            return one.remove(query).is_some();
        }
        let Some(slots) = several.get_mut(&query) else { return false };
        if let Some(at) = slots.iter().position(|other| *other == slot) {
            slots.swap_remove(at);
        }
        if let [left] = slots[..] {
            several.remove(&query);
            one.insert((query, left));
        }
        false
    }

    /// Returns the subscribers of a query.
    pub(crate) fn of(&self, query: Lsn) -> Slots {
        let watched = self.0.borrow();
        match watched.one.get(query) {
            Some((_, slot)) => Slots::from_slice(&[*slot]),
            None => watched.several.get(&query).map_or(Slots::new(), |slots| Slots::from_slice(slots)),
        }
    }
}

/// Notifies workers through their inboxes, HTTP subscribers and the channel thread of emissions.
pub(crate) struct Listeners {
    pub(crate) workers: Vec<Arc<Inbox>>,
    /// Its listener number follows the last worker's.
    pub(crate) http: Arc<HttpRegistry>,
    /// Its listener number follows HTTP's.
    pub(crate) channels: Arc<ChannelRegistry>,
}

impl Audience for Listeners {
    fn notify(&self, listener: usize, query: &SharedQuery) {
        if listener == self.http.listener() {
            self.http.notify(query);
        } else if listener == self.channels.listener() {
            self.channels.mailbox().emitted(query);
        } else {
            self.workers[listener].send(Message::Emitted(query.clone()));
        }
    }

    fn tick_earlier(&self) {
        // Any worker ticks, and all may be asleep.
        self.workers.first().inspect(|worker| worker.wake());
    }

    fn broadcast(&self, broadcast: &Arc<Broadcast>) {
        // A prefix always maps to the same worker, which keeps its broadcasts in order.
        let number = hash(broadcast.prefix()) as usize % self.workers.len();
        self.workers[number].send(Message::Broadcast(Arc::clone(broadcast)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_subscriber_to_leave_is_known() {
        let (registry, query) = (SubscriptionRegistry::default(), Lsn(7));
        let (one, other, third) = (1, 2, 3);
        assert!(!registry.leave(query, one), "there is none");
        registry.join(query, one);
        assert_eq!(registry.of(query).as_slice(), [one]);
        assert!(!registry.leave(query, other), "it has not come yet");
        registry.join(query, other);
        registry.join(query, third);
        assert_eq!(registry.of(query).as_slice(), [one, other, third]);
        assert!(!registry.leave(query, one) && !registry.leave(query, third));
        assert!(!registry.leave(query, one), "it has left already");
        assert_eq!(registry.of(query).as_slice(), [other]);
        assert!(registry.leave(query, other));
        assert!(registry.of(query).is_empty() && registry.of(Lsn(8)).is_empty());
    }
}
