//! Lookup of queries.

use crate::engine::Engine;
use crate::watch::read::Read;
use crate::watch::watched_read::SharedQuery;
use tidemark_log::Lsn;

impl Engine {
    /// Returns the number of queries, and the bytes of their retained emissions.
    pub fn query_figures(&self) -> (usize, usize) {
        (self.registry().lock().len(), self.registry().retention.bytes())
    }

    /// Returns the query of this read, if it has one, with or without subscribers.
    pub fn query_of(&self, read: &Read) -> Option<SharedQuery> {
        self.registry().lock().of_read(read).cloned()
    }

    /// Returns all queries in the order of their ids. O(number of queries).
    pub fn all_queries(&self) -> Vec<SharedQuery> {
        self.registry().lock().iter().cloned().collect()
    }

    /// Returns the query of this id.
    pub fn query(&self, id: Lsn) -> Option<SharedQuery> {
        self.registry().lock().of_id(id).cloned()
    }

    /// Returns the queries that name this key, whatever else they read.
    pub fn queries_of(&self, db: u8, key: &[u8]) -> Vec<SharedQuery> {
        self.keyspace().lock(self.keyspace().shard_of(key)).index().of_key(db, key).to_vec()
    }
}
