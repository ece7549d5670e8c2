//! Which queries there are.

use crate::engine::Engine;
use crate::watch::read::Read;
use crate::watch::watched_read::SharedQuery;
use tidemark_log::Lsn;

impl Engine {
    /// How many queries there are, and the bytes of their retained emissions.
    pub fn query_figures(&self) -> (usize, usize) {
        (self.registry().lock().len(), self.registry().retention.bytes())
    }

    /// The query of this read, if somebody watches it or did a while ago.
    pub fn query_of(&self, read: &Read) -> Option<SharedQuery> {
        self.registry().lock().of_read(read).cloned()
    }

    /// All queries, by their ids. O(number of them).
    pub fn all_queries(&self) -> Vec<SharedQuery> {
        self.registry().lock().iter().cloned().collect()
    }

    /// The query of this id.
    pub fn query(&self, id: Lsn) -> Option<SharedQuery> {
        self.registry().lock().of_id(id).cloned()
    }

    /// The queries that name this key, whatever else they read.
    pub fn queries_of(&self, db: u8, key: &[u8]) -> Vec<SharedQuery> {
        self.keyspace().lock(self.keyspace().shard_of(key)).index().of_key(db, key).to_vec()
    }
}
