//! Metrics of counters by name.

use std::time::Duration;

/// Totals since the counters were opened; `keys` and `dirty` are current numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Counters that are in memory or being loaded now.
    pub keys: usize,
    /// Counters with uncommitted changes now.
    pub dirty: usize,
    /// Positions that were requested from the store.
    pub loads: u64,
    /// Counters that were evicted.
    pub evictions: u64,
    /// Batches that the store has acknowledged.
    pub batches: u64,
    /// The changes in these batches.
    pub changes: u64,
    /// Sum of the absolute amounts of these changes. Units.
    pub units: u128,
    /// How often a batch was resent because the store had not answered.
    pub resends: u64,
    /// Changes that the store has rejected.
    pub rejections: u64,
    /// Counters that were due with nothing to commit, because their changes had cancelled.
    pub absorbed: u64,
}

/// How far the store is from the true positions at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Exposure {
    /// Sum of the absolute uncommitted amounts of all counters. Units.
    pub units: u128,
    /// Upper bound of the age of the oldest uncommitted change.
    pub oldest: Option<Duration>,
}
