//! How many keys have expired and how many values were freed, for whoever watches the server.

use crate::engine::Engine;
use crate::keyspace::{Reclaimed, reclaimed};

impl Engine {
    /// How many keys were removed because their time had come, since [`Engine::begin_counting`].
    pub fn expired_keys(&self) -> u64 {
        (0..self.keyspace().shard_count()).map(|index| self.keyspace().lock(index).expired()).sum()
    }

    /// How many values the process's thread for that has freed, and how many wait for it.
    pub fn reclaimed(&self) -> Reclaimed {
        reclaimed()
    }
}
