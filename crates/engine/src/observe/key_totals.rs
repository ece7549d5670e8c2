//! Numbers of expired keys and freed values, for monitoring.

use crate::engine::Engine;
use crate::keyspace::{Reclaimed, reclaimed};

impl Engine {
    /// Number of keys that were removed because they had expired, since [`Engine::begin_counting`].
    pub fn expired_keys(&self) -> u64 {
        (0..self.keyspace().shard_count()).map(|index| self.keyspace().lock(index).expired()).sum()
    }

    /// Numbers of values that the process's background thread has freed, and that wait to be freed.
    pub fn reclaimed(&self) -> Reclaimed {
        reclaimed()
    }
}
