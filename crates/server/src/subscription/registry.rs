//! Who of one worker's clients subscribes to which query.

use crate::net::inbox::{Inbox, Message};
use crate::subscription::channel_publisher::ChannelPublisher;
use crate::subscription::http_registry::HttpRegistry;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tidemark_engine::keyspace::hash;
use tidemark_engine::tracking::Broadcast;
use tidemark_engine::watch::{Audience, ById, SharedQuery};
use tidemark_log::Lsn;

/// The slots of clients.
type Slots = SmallVec<[usize; 2]>;

/// One worker's subscribers, by the slots of their connections: whoever leaves ends its subscriptions before its slot is another's.
/// Only the worker's own thread looks, and never while it calls anything else.
#[derive(Default)]
pub(crate) struct SubscriptionRegistry(RefCell<Watched>);

/// Most reads have one subscriber, which takes no more than it must.
#[derive(Default)]
struct Watched {
    /// The subscribers to queries that have one.
    one: ById<(Lsn, usize)>,
    /// Those to all other queries.
    several: HashMap<Lsn, Vec<usize>>,
}

impl SubscriptionRegistry {
    /// Notes a subscriber to a query, which it does not subscribe to yet.
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

    /// Forgets a subscriber; whether it was the worker's last one to the query.
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

    /// The subscribers to a query.
    pub(crate) fn of(&self, query: Lsn) -> Slots {
        let watched = self.0.borrow();
        match watched.one.get(query) {
            Some((_, slot)) => Slots::from_slice(&[*slot]),
            None => watched.several.get(&query).map_or(Slots::new(), |slots| Slots::from_slice(slots)),
        }
    }
}

/// Tells workers, by their inboxes, those who watch over HTTP, and the thread of channels what was emitted.
pub(crate) struct Listeners {
    pub(crate) workers: Vec<Arc<Inbox>>,
    /// The listener behind the last worker.
    pub(crate) http: Arc<HttpRegistry>,
    /// The listener behind that.
    pub(crate) channels: Arc<ChannelPublisher>,
}

impl Audience for Listeners {
    fn tell(&self, listener: usize, query: &SharedQuery) {
        if listener == self.http.listener() {
            self.http.tell(query);
        } else if listener == self.channels.listener() {
            self.channels.mailbox().emitted(query);
        } else {
            self.workers[listener].send(Message::Emitted(query.clone()));
        }
    }

    fn broadcast(&self, broadcast: &Arc<Broadcast>) {
        // Always the same worker for a prefix, so that what is passed on keeps its order.
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
