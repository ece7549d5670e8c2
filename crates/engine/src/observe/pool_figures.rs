//! Activity and open reservations of pools, for monitoring.

use crate::engine::Engine;
use crate::keyspace::PoolTotals;

/// Activity of pools: see [`Engine::pool_figures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolFigures {
    /// Totals since [`Engine::begin_counting`], or since the start.
    pub totals: PoolTotals,
    /// Number of pools, including expired ones that are not yet removed.
    pub pools: usize,
    /// Number of open reservations.
    pub reservations: usize,
}

impl Engine {
    /// Totals and open reservations of all pools. O(pools with reservations).
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
