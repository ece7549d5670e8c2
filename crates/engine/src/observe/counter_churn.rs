//! Which counters move most: sampled where they move, and gathered for whoever asks.

use crate::engine::Engine;
use crate::keyspace::{HALF_MS, KeyChurn, hash};

/// By what the counters are ordered that move most: the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChurnOrder {
    /// How often they move.
    #[default]
    Moves,
    /// By how many units they move.
    Units,
    /// How many of these units are never committed: what keeping their net instead of their moves has saved.
    Churn,
}

/// The counters that move most: see [`Engine::churning`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Churning {
    /// One of so many moves is looked at, on average; 0: none is, and there are no keys.
    pub sample: u32,
    /// What the figures are of: so long until now, milliseconds.
    pub window_ms: u64,
    /// The counters, in the order that was asked for.
    pub keys: Vec<KeyChurn>,
}

impl ChurnOrder {
    fn rank(self, key: &KeyChurn) -> (u64, u64) {
        match self {
            Self::Moves => (key.moves, key.units),
            Self::Units => (key.units, key.moves),
            Self::Churn => (key.cancelled(), key.moves),
        }
    }
}

impl Engine {
    /// Lets one of `sample` moves of counters be looked at, on average, or none if that is 0. If it was another number until now, what has
    /// been seen is forgotten. A move that is not looked at costs a subtraction; where none is, a comparison. Memory: at most some
    /// 30 KiB for each shard in which counters move.
    pub fn set_churn_sample(&self, sample: u32, now_us: u64) {
        if self.keyspace().committing().churn_sampling().0 == sample {
            return;
        }
        self.keyspace().committing().set_churn_sampling(sample, now_us / 1000);
        for index in 0..self.keyspace().shard_count() {
            // What nobody outside can know: whoever knew which moves are looked at could keep a key out of sight.
            let seed = hash(&index.to_le_bytes());
            self.keyspace().lock(index).set_churn_sample(sample, seed);
        }
    }

    /// The counters of all databases that have moved most within the last half to one minute, at most `count`.
    ///
    /// A key with more than one in 64 of the moves that were looked at in its shard, within a half of the window, is among those that are
    /// ordered here; another one may be missing. What `order` says only orders them. Copies what all shards know: some thousand keys at
    /// the most.
    pub fn churning(&self, order: ChurnOrder, count: usize, now_us: u64) -> Churning {
        let now_ms = now_us / 1000;
        let (sample, since_ms) = self.keyspace().committing().churn_sampling();
        let window_ms = (HALF_MS + now_ms % HALF_MS).min(now_ms.saturating_sub(since_ms));
        let mut keys: Vec<KeyChurn> = (0..self.keyspace().shard_count())
            .flat_map(|index| self.keyspace().lock(index).churn(now_ms))
            .collect();
        keys.sort_by(|one, other| {
            // The names make the order the same for everybody.
            order
                .rank(other)
                .cmp(&order.rank(one))
                .then_with(|| (one.db, &one.name).cmp(&(other.db, &other.name)))
        });
        keys.truncate(count);
        Churning { sample, window_ms: if sample == 0 { 0 } else { window_ms }, keys }
    }
}
