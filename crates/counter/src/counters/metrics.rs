//! What has happened to counters by name, in numbers.

use std::time::Duration;

/// What has happened since the counters were opened, and how many there are. Numbers only grow unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Counters in memory or being loaded now.
    pub keys: usize,
    /// Counters with something that the store does not have, now.
    pub dirty: usize,
    /// Positions that the store was asked for.
    pub loads: u64,
    /// Counters that were put away.
    pub evictions: u64,
    /// Batches that the store has.
    pub batches: u64,
    /// The changes in them.
    pub changes: u64,
    /// The sum of the changes' amounts without their signs. Units.
    pub units: u128,
    /// How often a batch was sent again because the store had not answered.
    pub resends: u64,
    /// Changes that the store has refused.
    pub rejections: u64,
    /// Counters that were due and had nothing to commit, because all of it had cancelled.
    pub absorbed: u64,
}

/// How far the store is from the truth at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Exposure {
    /// The sum of what is uncommitted of all counters, each without its sign. Units.
    pub units: u128,
    /// For how long the oldest change may have been uncommitted.
    pub oldest: Option<Duration>,
}
