//! How large the scenarios are.

use std::time::Duration;

/// What the scenarios count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Emissions between two looks at the clock, with one await behind them where there is one.
    pub batch: u64,
    /// Emissions that are awaited one by one between two looks at the clock.
    pub round_trips: u64,
    /// How often a value goes around a cycle.
    pub hops: u64,
    /// Circuits that exist at once and have nothing to do.
    pub idle_circuits: u64,
    /// How long they are watched.
    pub idle_time: Duration,
    /// Names among which one is looked up.
    pub names: u64,
    /// The same where caches are too small for them.
    pub many_names: u64,
    /// The most items that a catalogue has.
    pub items: u64,
}

impl Sizes {
    /// What figures are made with.
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

    /// Enough to see that everything runs.
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
