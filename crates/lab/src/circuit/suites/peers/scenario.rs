//! Scenarios that measure every peer by the same loops.

use super::carrier::{Carrier, Open};
use crate::micro::benchmark::Work;
use crate::micro::lateness::Lateness;
use crate::micro::open_loop;
use crate::micro::sizes::Sizes;
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;

/// Number of receivers in a fan-out.
const WIDTH: u64 = 5;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Sending until it returns; receipt is awaited outside the measured time.
    Admission,
    /// Sending many values, until all are received.
    Batch,
    /// Sending one value, until it is received.
    RoundTrip,
    /// Sending many values to several receivers, until all are received.
    FanOut,
    /// Latency of values that are sent at a rate.
    Latency { per_second: u64 },
}

/// The group of a scenario, the name of its rows, and what they measure.
pub(super) struct Description {
    pub(super) group: &'static str,
    pub(super) row: &'static str,
    pub(super) measures: &'static str,
}

impl Scenario {
    pub(super) const ALL: [Self; 7] = [
        Self::Admission,
        Self::Batch,
        Self::RoundTrip,
        Self::FanOut,
        Self::Latency { per_second: 10_000 },
        Self::Latency { per_second: 100_000 },
        Self::Latency { per_second: 1_000_000 },
    ];

    pub(super) fn description(self) -> Description {
        let (group, row, measures) = match self {
            Self::Admission => (
                "admission",
                "Peers.admission_",
                "sending to another core, until the last of 10,000 has returned; received and counted afterwards",
            ),
            Self::Batch => (
                "batch",
                "Peers.batch_",
                "sending 10,000 to another core, until the last is received, each; counted",
            ),
            Self::RoundTrip => (
                "round trips",
                "Peers.round_trip_",
                "sending to another core and waiting until it is received, one after the other; counted",
            ),
            Self::FanOut => (
                "fan-out",
                "Peers.fan_out_",
                "sending 10,000 to five receivers on another core, until the last is received, each of the 10,000; counted",
            ),
            Self::Latency { per_second: 10_000 } => (
                "latency at 10,000 a second",
                "LatencyOps.at_10k_",
                "how late a value is received on another core, of 10,000 sent in a second at fixed times; counted from the \
                 time at which it was to be sent",
            ),
            Self::Latency { per_second: 100_000 } => (
                "latency at 100,000 a second",
                "LatencyOps.at_100k_",
                "as at_10k, of 100,000 sent in a second",
            ),
            Self::Latency { .. } => (
                "latency at 1,000,000 a second",
                "LatencyOps.at_1m_",
                "as at_10k, of 1,000,000 sent in a second",
            ),
        };
        Description { group, row, measures }
    }

    pub(super) fn start<C: Carrier>(self, sizes: &Sizes) -> anyhow::Result<Work> {
        match self {
            Self::Admission | Self::Batch => exchange::<C>(self, sizes.batch, 1),
            Self::RoundTrip => exchange::<C>(self, sizes.round_trips, 1),
            Self::FanOut => exchange::<C>(self, sizes.batch, WIDTH),
            Self::Latency { per_second } => {
                let lateness = Lateness::new();
                let way = C::open(vec![lateness.clone()])?;
                open_loop::emissions(way, &lateness, per_second, Open::send, Open::flush)
            }
        }
    }
}

/// One loop for all peers, compiled for each.
fn exchange<C: Carrier>(scenario: Scenario, count: u64, width: u64) -> anyhow::Result<Work> {
    let mut tally = Tally::default();
    let mut tallies: Vec<Tally> = (1..width).map(|_| Tally::default()).collect();
    let counters = std::iter::once(&tally).chain(&tallies).map(Tally::counter).collect();
    let mut way = C::open(counters)?;
    Work::calls(count, move || {
        let clock = Instant::now();
        for value in 0..count {
            if scenario == Scenario::RoundTrip {
                way.ask(black_box(value))?;
            } else {
                way.send(black_box(value))?;
            }
        }
        let returned = clock.elapsed();
        way.flush()?;
        let is_sent = matches!(scenario, Scenario::Admission | Scenario::RoundTrip);
        let took = if is_sent { returned } else { clock.elapsed() };
        tally.expect(count)?;
        tallies.iter_mut().try_for_each(|tally| tally.expect(count))?;
        Ok(took)
    })
}
