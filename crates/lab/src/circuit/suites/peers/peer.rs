//! A peer and its rows.

use super::carrier::Carrier;
use super::scenario::{Description, Scenario};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::sizes::Sizes;

/// A peer.
pub(super) struct Peer {
    name: &'static str,
    how: &'static str,
    start: fn(Scenario, &Sizes) -> anyhow::Result<Work>,
}

impl Peer {
    pub(super) fn of<C: Carrier>(name: &'static str, how: &'static str) -> Self {
        Peer { name, how, start: Scenario::start::<C> }
    }

    /// Returns the row of this scenario.
    pub(super) fn row(&self, scenario: Scenario) -> Benchmark {
        let Description { group, row, measures } = scenario.description();
        let start = self.start;
        let benchmark = Benchmark::new(
            format!("{row}{}", self.name),
            format!("{measures}; {}", self.how),
            move |sizes| start(scenario, sizes),
        );
        let benchmark = benchmark.in_group(group).in_summary();
        if matches!(scenario, Scenario::Latency { .. }) { benchmark.of_latencies() } else { benchmark }
    }
}
