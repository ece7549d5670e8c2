//! Publish and subscribe: the subscribers of each channel, across all workers.
//!
//! A message goes to the inbox of every worker with a subscriber, under the registry's lock. So two
//! messages reach any two subscribers in the same order.

use crate::events::publication::{Kind, Publication};
use crate::net::connection_id::ConnectionAddress;
use crate::net::inbox::Inbox;
use crate::net::outbox::Until;
use crate::subscription::channel_flow::Turn;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_engine::command::parse::glob;

type Names = HashMap<Arc<[u8]>, Vec<ConnectionAddress>, BuildHasherDefault<std::hash::DefaultHasher>>;

#[derive(Default)]
struct Registry {
    channels: Names,
    /// Sorted: a client with several matching patterns gets its messages in a fixed order.
    patterns: BTreeMap<Arc<[u8]>, Vec<ConnectionAddress>>,
    shards: Names,
}

/// The subscriptions of all clients.
#[derive(Default)]
pub(crate) struct PubSub {
    registry: Mutex<Registry>,
    /// Number of subscriptions. While 0, publishing needs no lock.
    subscriptions: AtomicUsize,
}

impl PubSub {
    /// Adds a subscription that the client does not have yet.
    pub(crate) fn subscribe(&self, kind: Kind, name: &[u8], subscriber: ConnectionAddress) {
        let mut registry = self.lock();
        let subscribers = match kind {
            Kind::Channel => registry.channels.entry(name.into()).or_default(),
            Kind::Shard => registry.shards.entry(name.into()).or_default(),
            Kind::Pattern => registry.patterns.entry(name.into()).or_default(),
        };
        debug_assert!(
            !subscribers.contains(&subscriber),
            "a channel may have many: this looks at all of them"
        );
        subscribers.push(subscriber);
        self.subscriptions.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes a client's subscription. Returns whether it was the last one to that name.
    #[must_use]
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], subscriber: ConnectionAddress) -> bool {
        let mut registry = self.lock();
        let subscribers = match kind {
            Kind::Channel => registry.channels.get_mut(name),
            Kind::Shard => registry.shards.get_mut(name),
            Kind::Pattern => registry.patterns.get_mut(name),
        };
        let Some(subscribers) = subscribers else { return false };
        let before = subscribers.len();
        subscribers.retain(|other| *other != subscriber);
        self.subscriptions.fetch_sub(before - subscribers.len(), Ordering::SeqCst);
        let was_last = subscribers.is_empty();
        if was_last {
            match kind {
                Kind::Channel => drop(registry.channels.remove(name)),
                Kind::Shard => drop(registry.shards.remove(name)),
                Kind::Pattern => drop(registry.patterns.remove(name)),
            }
        }
        was_last
    }

    /// Whether there are any subscriptions.
    pub(crate) fn has_subscriptions(&self) -> bool {
        self.subscriptions.load(Ordering::SeqCst) > 0
    }

    /// Sends a message to all subscribers of a channel, and returns how many times it was sent. It
    /// reaches them once the log has reached `after`. A `turn` ends when all of them have room for
    /// more.
    pub(crate) fn publish(
        &self,
        kind: Kind,
        channel: &[u8],
        payload: &[u8],
        after: Option<Until>,
        turn: Option<&Arc<Turn>>,
        inboxes: &[Arc<Inbox>],
    ) -> usize {
        assert!(kind != Kind::Pattern, "a message is published to a channel");
        if !self.has_subscriptions() {
            return 0;
        }
        let registry = self.lock();
        let names = if kind == Kind::Shard { &registry.shards } else { &registry.channels };
        let channel: Arc<[u8]> = channel.into();
        let message = Publication {
            kind,
            name: Arc::clone(&channel),
            channel: Arc::clone(&channel),
            payload: payload.into(),
            after,
            turn: turn.cloned(),
        };
        let mut sent = 0;
        if let Some(subscribers) = names.get(&channel) {
            sent += send(message.clone(), subscribers, inboxes);
        }
        if kind == Kind::Channel {
            let matching = registry.patterns.iter().filter(|(pattern, _)| glob(pattern, &channel));
            for (pattern, subscribers) in matching {
                let name = Arc::clone(pattern);
                sent +=
                    send(Publication { kind: Kind::Pattern, name, ..message.clone() }, subscribers, inboxes);
            }
        }
        sent
    }

    /// How many times a message to a channel would be sent.
    pub(crate) fn receivers(&self, kind: Kind, channel: &[u8]) -> usize {
        if !self.has_subscriptions() {
            return 0;
        }
        let registry = self.lock();
        let names = if kind == Kind::Shard { &registry.shards } else { &registry.channels };
        let patterns = registry.patterns.iter().filter(|(pattern, _)| glob(pattern, channel));
        let matching: usize = patterns.map(|(_, subscribers)| subscribers.len()).sum();
        names.get(channel).map_or(0, Vec::len) + if kind == Kind::Channel { matching } else { 0 }
    }

    /// Returns the subscribed channels that match `pattern`; all without a pattern.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let registry = self.lock();
        let names = if kind == Kind::Shard { &registry.shards } else { &registry.channels };
        names.keys().filter(|name| pattern.is_none_or(|pattern| glob(pattern, name))).cloned().collect()
    }

    /// Number of subscribers of a channel, without patterns.
    pub(crate) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        let registry = self.lock();
        let names = if kind == Kind::Shard { &registry.shards } else { &registry.channels };
        names.get(name).map_or(0, Vec::len)
    }

    /// Numbers of subscribed channels, patterns and shard channels.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let registry = self.lock();
        (registry.channels.len(), registry.patterns.len(), registry.shards.len())
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(publication: Publication, subscribers: &[ConnectionAddress], inboxes: &[Arc<Inbox>]) -> usize {
    let publication = Arc::new(publication);
    for subscriber in subscribers {
        inboxes[subscriber.worker].publish(subscriber.connection_id, &publication);
    }
    subscribers.len()
}
