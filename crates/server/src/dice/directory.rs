//! Directory of the connections of each client: those that gave the same ID.
//!
//! A client sends commands on one connection and listens on another: `HANDSHAKE id command` and
//! `HANDSHAKE id watch`. The connection with the latest `watch` gets the emissions of all, on any
//! worker.

use crate::net::connection_id::ConnectionAddress;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::Lsn;

/// All connections that gave an ID.
#[derive(Default)]
pub(crate) struct Directory(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// By connection number.
    connections: HashMap<u64, Entry>,
    /// Connection numbers by ID.
    by_id: HashMap<Box<str>, Vec<u64>>,
    /// Number of handshakes with `watch` so far.
    handshakes: u64,
}

struct Entry {
    subscriber: ConnectionAddress,
    ids: Vec<Box<str>>,
    /// Number of its latest handshake with `watch`.
    watches: Option<u64>,
    /// Numbering offsets of its subscriptions, by query.
    bases: BTreeMap<Lsn, u64>,
}

/// Registration of a connection's subscription, which ends when it is dropped.
pub(super) struct Registration {
    directory: Arc<Directory>,
    connection: u64,
    query: Lsn,
}

impl Directory {
    /// Records a connection's ID. If it listens, returns the other connections with this ID.
    pub(super) fn introduce(
        &self,
        subscriber: ConnectionAddress,
        id: &str,
        watches: bool,
    ) -> Vec<ConnectionAddress> {
        let mut entries = self.lock();
        let connection = subscriber.connection_id.client;
        entries.handshakes += u64::from(watches);
        let latest = watches.then_some(entries.handshakes);
        let entry = entries.connections.entry(connection).or_insert_with(|| Entry {
            subscriber,
            ids: Vec::new(),
            watches: None,
            bases: BTreeMap::new(),
        });
        entry.watches = latest.or(entry.watches);
        if !entry.ids.iter().any(|known| **known == *id) {
            entry.ids.push(id.into());
            entries.by_id.entry(id.into()).or_default().push(connection);
        }
        if watches {
            entries
                .named(id)
                .filter(|entry| entry.subscriber != subscriber)
                .map(|entry| entry.subscriber)
                .collect()
        } else {
            Vec::new()
        }
    }

    /// Removes a connection.
    pub(crate) fn leave(&self, connection: u64) {
        let mut entries = self.lock();
        let Some(entry) = entries.connections.remove(&connection) else { return };
        for id in entry.ids {
            if let Some(named) = entries.by_id.get_mut(&id) {
                named.retain(|other| *other != connection);
                if named.is_empty() {
                    entries.by_id.remove(&id);
                }
            }
        }
    }

    /// Returns the connection that receives this one's emissions, if it is another one.
    pub(super) fn listener_for(&self, connection: u64) -> Option<ConnectionAddress> {
        let entries = self.lock();
        let latest = entries
            .related(connection)
            .filter(|entry| entry.watches.is_some())
            .max_by_key(|entry| entry.watches)?;
        (latest.subscriber.connection_id.client != connection).then_some(latest.subscriber)
    }

    /// Returns the other connections of the same client.
    pub(super) fn others(&self, connection: u64) -> Vec<ConnectionAddress> {
        let entries = self.lock();
        let mut others: Vec<ConnectionAddress> = Vec::new();
        for entry in entries.related(connection) {
            if entry.subscriber.connection_id.client != connection && !others.contains(&entry.subscriber) {
                others.push(entry.subscriber);
            }
        }
        others
    }

    /// Returns the numbering offset of the client's subscription to a query, if it has one.
    pub(super) fn base_of(&self, connection: u64, query: Lsn) -> Option<u64> {
        self.lock().related(connection).find_map(|entry| entry.bases.get(&query).copied())
    }

    /// Registers a connection's subscription; `None` if the connection has no ID.
    pub(super) fn register(self: &Arc<Self>, connection: u64, query: Lsn, base: u64) -> Option<Registration> {
        let mut entries = self.lock();
        entries.connections.get_mut(&connection)?.bases.insert(query, base);
        Some(Registration { directory: Arc::clone(self), connection, query })
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn named(&self, id: &str) -> impl Iterator<Item = &Entry> {
        self.by_id.get(id).into_iter().flatten().filter_map(|connection| self.connections.get(connection))
    }

    /// Returns the connections that share an ID with this one, itself included, possibly repeated.
    fn related(&self, connection: u64) -> impl Iterator<Item = &Entry> {
        self.connections
            .get(&connection)
            .into_iter()
            .flat_map(|entry| &entry.ids)
            .flat_map(|id| self.named(id))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(entry) = self.directory.lock().connections.get_mut(&self.connection) {
            entry.bases.remove(&self.query);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::connection_id::ConnectionId;

    fn subscriber(number: u64) -> ConnectionAddress {
        ConnectionAddress {
            worker: number as usize % 2,
            connection_id: ConnectionId { slot: number as usize, client: number },
        }
    }

    #[test]
    fn the_latest_connection_that_watches_listens_for_the_others() {
        let directory = Directory::default();
        assert!(directory.introduce(subscriber(1), "a", false).is_empty());
        assert!(directory.introduce(subscriber(1), "alias", true).is_empty());
        assert_eq!(directory.listener_for(1), None);
        assert_eq!(directory.introduce(subscriber(2), "a", true), [subscriber(1)]);
        assert!(directory.introduce(subscriber(3), "b", true).is_empty());
        assert_eq!((directory.listener_for(1), directory.listener_for(2)), (Some(subscriber(2)), None));
        assert_eq!((directory.others(1), directory.others(3)), (vec![subscriber(2)], vec![]));
        assert_eq!(directory.introduce(subscriber(1), "a", true), [subscriber(2)], "it can take it back");
        assert_eq!((directory.listener_for(1), directory.listener_for(2)), (None, Some(subscriber(1))));
        directory.leave(1);
        assert_eq!(directory.listener_for(2), None);
        directory.leave(2);
        directory.leave(3);
        let entries = directory.lock();
        assert!(entries.connections.is_empty() && entries.by_id.is_empty());
    }

    #[test]
    fn a_client_has_one_subscription_to_a_query() {
        let directory = Arc::new(Directory::default());
        directory.introduce(subscriber(1), "a", false);
        directory.introduce(subscriber(2), "a", true);
        directory.introduce(subscriber(3), "b", true);
        assert!(directory.register(4, Lsn(7), 3).is_none());
        let registration = directory.register(2, Lsn(7), 3);
        assert_eq!((directory.base_of(1, Lsn(7)), directory.base_of(3, Lsn(7))), (Some(3), None));
        drop(registration);
        assert_eq!(directory.base_of(1, Lsn(7)), None);
    }
}
