//! Sizes of the scenarios.

use std::time::Duration;

/// Sizes of the scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Emissions between two clock readings, followed by one await where the scenario has one.
    pub batch: u64,
    /// Emissions between two clock readings that are awaited one by one.
    pub round_trips: u64,
    /// Hops of a value around a cycle.
    pub hops: u64,
    /// Number of idle circuits.
    pub idle_circuits: u64,
    /// Time for which the idle circuits are observed.
    pub idle_time: Duration,
    /// Number of names for lookups.
    pub names: u64,
    /// Number of names that exceeds the caches.
    pub many_names: u64,
    /// Largest number of items in a catalogue.
    pub items: u64,
}

impl Sizes {
    /// Sizes for published figures.
    pub const FULL: Self = Sizes {
        batch: 10_000,
        round_trips: 1_000,
        hops: 10_000,
        idle_circuits: 100_000,
        idle_time: Duration::from_secs(3),
        names: 1_024,
        many_names: 300_000,
        items: 1_000_000,
    };

    /// Sizes for a quick check that everything runs.
    pub const QUICK: Self = Sizes {
        batch: 100,
        round_trips: 10,
        hops: 100,
        idle_circuits: 100,
        idle_time: Duration::from_millis(2),
        names: 16,
        many_names: 32,
        items: 64,
    };
}
