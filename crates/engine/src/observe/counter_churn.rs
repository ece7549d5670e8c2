//! The counters that move most, from samples of their moves.

use crate::engine::Engine;
use crate::keyspace::{HALF_MS, KeyChurn, hash};

/// Sort order of the busiest counters, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChurnOrder {
    /// By number of moves.
    #[default]
    Moves,
    /// By units moved.
    Units,
    /// By units that were never committed: the writes that coalescing has saved.
    Churn,
}

/// The counters that move most: see [`Engine::churning`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Churning {
    /// Average number of moves per sampled one; 0 if sampling is off, in which case there are no
    /// keys.
    pub sample: u32,
    /// Length of the window, which ends now. Milliseconds.
    pub window_ms: u64,
    /// The counters, in the requested order.
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
    /// Samples one of `sample` moves of counters on average, none if that is 0. A new rate discards
    /// earlier samples. Cost of a move: a subtraction if it is not sampled, a comparison if
    /// sampling is off. Memory: at most about 30 KiB per shard with moving counters.
    pub fn set_churn_sample(&self, sample: u32, now_us: u64) {
        if self.keyspace().committing().churn_sampling().0 == sample {
            return;
        }
        self.keyspace().committing().set_churn_sampling(sample, now_us / 1000);
        for index in 0..self.keyspace().shard_count() {
            // A secret seed: a client that could predict the sampled moves could hide a key.
            let seed = hash(&index.to_le_bytes());
            self.keyspace().lock(index).set_churn_sample(sample, seed);
        }
    }

    /// Returns the counters of all databases that moved most within the last 30 to 60 seconds, at
    /// most `count`.
    ///
    /// A key with more than 1/64 of the sampled moves of its shard in half a window is always a
    /// candidate; others may be missing. `order` only sorts the candidates. Copies the summaries of
    /// all shards: at most some thousand keys.
    pub fn churning(&self, order: ChurnOrder, count: usize, now_us: u64) -> Churning {
        let now_ms = now_us / 1000;
        let (sample, since_ms) = self.keyspace().committing().churn_sampling();
        let window_ms = (HALF_MS + now_ms % HALF_MS).min(now_ms.saturating_sub(since_ms));
        let mut keys: Vec<KeyChurn> = (0..self.keyspace().shard_count())
            .flat_map(|index| self.keyspace().lock(index).churn(now_ms))
            .collect();
        keys.sort_by(|one, other| {
            // The names make the order deterministic.
            order
                .rank(other)
                .cmp(&order.rank(one))
                .then_with(|| (one.db, &one.name).cmp(&(other.db, &other.name)))
        });
        keys.truncate(count);
        Churning { sample, window_ms: if sample == 0 { 0 } else { window_ms }, keys }
    }
}
