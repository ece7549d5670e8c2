//! What reads have found, what has expired and what was freed, for whoever watches the server.

use crate::engine::Engine;
use crate::keyspace::{KeyTotals, Reclaimed, reclaimed};

impl Engine {
    /// What reads have found, and what has expired, since [`Engine::begin_counting`].
    pub fn key_totals(&self) -> KeyTotals {
        let mut totals = KeyTotals::default();
        for index in 0..self.keyspace().shard_count() {
            totals.add(self.keyspace().lock(index).looked_up());
        }
        totals
    }

    /// How many values the process's thread for that has freed, and how many wait for it.
    pub fn reclaimed(&self) -> Reclaimed {
        reclaimed()
    }
}
