//! What others have for what circuits do, in turns with a circuit: giving values to another thread until it has them all, there
//! and back, to several who listen, and how late they arrive.
//!
//! Nothing is bounded, everybody sends `u64`, and whoever takes them is on a core of its own. What circuits call an await is
//! asked of a channel in the way that channels have for it: a value that is answered by a value in a channel back.
//!
//! `cargo bench -p tidemark-circuit --features tidemark-lab/peers -- --against peers`; without the feature there is the standard
//! library's channel alone.

#[cfg(feature = "peers")]
mod actor;
mod channel;
mod circuit;

use crate::circuit::benchmark::{Benchmark, Work};
use crate::circuit::open_loop::{self, Lateness};
use crate::circuit::sizes::Sizes;
use crate::circuit::tally::{Take, Tally};
use std::hint::black_box;
use std::time::Instant;

/// How many there are who listen, where there are several.
const WIDTH: u64 = 5;

/// Who carries values to another core.
trait Carrier {
    /// A way to there.
    type Open<T: Take>: Open;

    /// Opens a way at whose end each of these is given every value. They take them as long as the way is open.
    fn open<T: Take>(ends: Vec<T>) -> anyhow::Result<Self::Open<T>>;
}

/// An open way.
trait Open: 'static {
    /// Sends a value of less than 2^63.
    fn send(&mut self, value: u64) -> anyhow::Result<()>;

    /// Sends such a value and waits until it is taken.
    fn ask(&mut self, value: u64) -> anyhow::Result<()>;

    /// Waits until all that was sent is taken.
    fn flush(&mut self) -> anyhow::Result<()>;
}

/// Somebody who is measured.
struct Peer {
    who: &'static str,
    how: &'static str,
    start: fn(Scenario, &Sizes) -> anyhow::Result<Work>,
}

impl Peer {
    fn of<C: Carrier>(who: &'static str, how: &'static str) -> Self {
        Peer { who, how, start: Scenario::start::<C> }
    }

    /// All, and first those with which the others are compared.
    fn all() -> Vec<Self> {
        let mut all = circuit::peers();
        all.extend(channel::peers());
        #[cfg(feature = "peers")]
        all.push(actor::peer());
        all
    }
}

/// What is measured of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// Sending, until it returns; receiving is waited for outside of the measured time.
    Admission,
    /// Sending many, until all are received.
    Batch,
    /// Sending one, until it is received.
    RoundTrip,
    /// Sending many to several, until all are received.
    FanOut,
    /// How late values are received of which so many are sent in a second.
    Latency { per_second: u64 },
}

/// The group of a scenario, the name of its rows, and what they measure.
struct Description {
    group: &'static str,
    row: &'static str,
    measures: &'static str,
}

impl Scenario {
    const ALL: [Self; 7] = [
        Self::Admission,
        Self::Batch,
        Self::RoundTrip,
        Self::FanOut,
        Self::Latency { per_second: 10_000 },
        Self::Latency { per_second: 100_000 },
        Self::Latency { per_second: 1_000_000 },
    ];

    fn description(self) -> Description {
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
                "sending 10,000 to five who listen on another core, until the last is received, each of the 10,000; counted",
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

    /// The row of this peer.
    fn row(self, peer: &Peer) -> Benchmark {
        let Description { group, row, measures } = self.description();
        let start = peer.start;
        let benchmark =
            Benchmark::new(format!("{row}{}", peer.who), format!("{measures}; {}", peer.how), move |sizes| {
                start(self, sizes)
            });
        let benchmark = benchmark.in_group(group).in_summary();
        if matches!(self, Self::Latency { .. }) { benchmark.of_latencies() } else { benchmark }
    }

    fn start<C: Carrier>(self, sizes: &Sizes) -> anyhow::Result<Work> {
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

pub(super) fn suite() -> Vec<Benchmark> {
    let peers = Peer::all();
    Scenario::ALL.iter().flat_map(|scenario| peers.iter().map(|peer| scenario.row(peer))).collect()
}

/// One loop for all who are measured, compiled for each.
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

#[cfg(test)]
mod tests {
    use super::{Scenario, suite};

    #[test]
    fn everybody_is_compared_with_a_circuit_that_is_entered_by_a_lane() {
        let rows = suite();
        for scenario in Scenario::ALL {
            let group = scenario.description().group;
            let mut members = rows.iter().filter(|row| row.group() == Some(group));
            let baseline = members.next().expect("a row").name();
            assert!(baseline.ends_with("_circuit_lane"), "{group}: {baseline}");
            assert!(members.any(|row| row.name().ends_with("_std_mpsc")), "{group}");
        }
    }
}
