//! What pools have done and what is open, for whoever watches the server.

use crate::engine::Engine;
use crate::keyspace::PoolTotals;

/// What pools have done: see [`Engine::pool_figures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolFigures {
    /// Since [`Engine::begin_counting`], or else since the start.
    pub totals: PoolTotals,
    /// How many keys are pools, expired but not yet removed ones included.
    pub pools: usize,
    /// How many reservations are open.
    pub reservations: usize,
}

impl Engine {
    /// What all pools have done, and what of them is open now. O(pools with reservations).
    pub fn pool_figures(&self) -> PoolFigures {
        let mut figures = PoolFigures::default();
        for index in 0..self.keyspace().shard_count() {
            let shard = self.keyspace().lock(index);
            figures.totals.add(shard.drawn());
            for database in shard.databases() {
                figures.pools += database.pool_count();
                figures.reservations += database.reservation_count();
            }
        }
        figures
    }
}
