//! A shard: its part of every database, and who waits for or watches its keys.

use super::{DATABASES, Database};
use crate::blocking::Waiter;
use crate::value::Type;
use crate::watch::Watch;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A key with the number of its database.
pub type KeyId = (u8, Box<[u8]>);

/// One command at a time runs on a shard: whoever holds its lock.
pub struct Shard {
    databases: Vec<Database>,
    /// Clients blocked on a key, longest first.
    waiting: HashMap<KeyId, VecDeque<Arc<Waiter>>>,
    /// Transactions to abort when a key changes.
    watching: HashMap<KeyId, Vec<Arc<Watch>>>,
}

impl Shard {
    pub(super) fn new() -> Self {
        let databases = (0..DATABASES).map(|_| Database::default()).collect();
        Self { databases, waiting: HashMap::new(), watching: HashMap::new() }
    }

    /// The shard's part of a database. `number` is below [`DATABASES`].
    #[inline]
    pub fn database(&self, number: usize) -> &Database {
        &self.databases[number]
    }

    /// As [`Shard::database`], to change it.
    #[inline]
    pub fn database_mut(&mut self, number: usize) -> &mut Database {
        &mut self.databases[number]
    }

    /// All databases, in order.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// All databases, to change them.
    pub(crate) fn databases_mut(&mut self) -> &mut [Database] {
        &mut self.databases
    }

    /// Exchanges two databases.
    pub fn swap(&mut self, one: usize, other: usize) {
        self.databases.swap(one, other);
    }

    /// Puts a client at the end of a key's queue.
    pub(crate) fn wait(&mut self, db: u8, key: &[u8], waiter: Arc<Waiter>) {
        self.waiting.entry((db, key.into())).or_default().push_back(waiter);
    }

    /// Takes a client out of a key's queue.
    pub(crate) fn stop_waiting(&mut self, db: u8, key: &[u8], waiter: &Arc<Waiter>) {
        let id: KeyId = (db, key.into());
        if let Some(queue) = self.waiting.get_mut(&id) {
            queue.retain(|other| !Arc::ptr_eq(other, waiter));
            if queue.is_empty() {
                self.waiting.remove(&id);
            }
        }
    }

    /// The client that has waited longest for a key to hold a value of this type, and is still waiting. Those whose wait
    /// is over are dropped from the queue.
    pub(crate) fn first_waiting(&mut self, db: u8, key: &[u8], held: Type) -> Option<Arc<Waiter>> {
        let id: KeyId = (db, key.into());
        let queue = self.waiting.get_mut(&id)?;
        while queue.front().is_some_and(|first| first.is_claimed()) {
            queue.pop_front();
        }
        let found = queue.iter().find(|waiter| waiter.block.wants == held && !waiter.is_claimed()).cloned();
        if queue.is_empty() {
            self.waiting.remove(&id);
        }
        found
    }

    /// Whether any client waits for any key here.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Keys of a database that clients wait for.
    pub(crate) fn awaited_keys(&self, db: u8) -> Vec<Box<[u8]>> {
        self.waiting.keys().filter(|(number, _)| *number == db).map(|(_, key)| key.clone()).collect()
    }

    /// Registers a transaction's watch on a key.
    pub(crate) fn watch(&mut self, db: u8, key: &[u8], watch: &Arc<Watch>) {
        self.watching.entry((db, key.into())).or_default().push(Arc::clone(watch));
    }

    /// Ends a transaction's watch on a key.
    pub(crate) fn unwatch(&mut self, db: u8, key: &[u8], watch: &Arc<Watch>) {
        let id: KeyId = (db, key.into());
        if let Some(watches) = self.watching.get_mut(&id) {
            watches.retain(|other| !Arc::ptr_eq(other, watch));
            if watches.is_empty() {
                self.watching.remove(&id);
            }
        }
    }

    /// Tells the transactions that watch a key that it has changed.
    #[inline]
    pub(crate) fn touch(&mut self, db: u8, key: &[u8]) {
        if self.watching.is_empty() {
            return;
        }
        if let Some(watches) = self.watching.get(&(db, Box::from(key)) as &KeyId) {
            watches.iter().for_each(|watch| watch.touch());
        }
    }

    /// Tells the transactions that watch any key of a database that exists, now or after a swap with `other`.
    pub(crate) fn touch_database(&mut self, db: u8, other: Option<u8>) {
        for ((number, key), watches) in &self.watching {
            let hash = super::hash(key);
            let exists = |db: u8| self.databases[db as usize].get(hash, key).is_some();
            if *number == db && (exists(db) || other.is_some_and(exists)) {
                watches.iter().for_each(|watch| watch.touch());
            }
        }
    }
}
