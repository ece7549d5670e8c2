//! What others have for what circuits do, in turns with a circuit: giving values to another thread, until it has them all,
//! and there and back.
//!
//! Nothing is bounded, everybody sends `u64`, and whoever receives counts on a core of its own. A channel is asked for what
//! circuits call an await in the way that channels have for it: a last value, which is answered by a value in a channel back.
//!
//! `cargo run --release -p tidemark --features peers -- bench circuit Peers`; without the feature there is the standard
//! library's channel alone.

#[cfg(feature = "peers")]
mod actor;
mod channel;

use crate::circuit::benchmark::{Benchmark, Work};
use crate::circuit::rig::{By, Rig, Way};
use crate::circuit::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::Circuit;

/// What is measured of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// Sending, until it returns; receiving is waited for outside of the measured time.
    Admission,
    /// Sending many, until all are received.
    Batch,
    /// Sending one, until it is received.
    RoundTrip,
}

impl Scenario {
    const ALL: [Self; 3] = [Self::Admission, Self::Batch, Self::RoundTrip];

    fn word(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Batch => "batch",
            Self::RoundTrip => "round_trip",
        }
    }

    fn measures(self) -> &'static str {
        match self {
            Self::Admission => {
                "sending to another core, until the last of 10,000 has returned; received and counted afterwards"
            }
            Self::Batch => "sending 10,000 to another core, until the last is received, each; counted",
            Self::RoundTrip => {
                "sending to another core and waiting until it is received, one after the other; counted"
            }
        }
    }

    /// A row of this scenario.
    fn row(
        self,
        who: &str,
        how: &str,
        start: impl Fn(Self, u64) -> anyhow::Result<Work> + 'static,
    ) -> Benchmark {
        let name = format!("Peers.{}_{who}", self.word());
        let measures = format!("{}; {how}", self.measures());
        let row = Benchmark::new(name, measures, move |sizes| match self {
            Self::RoundTrip => start(self, sizes.round_trips),
            Self::Admission | Self::Batch => start(self, sizes.batch),
        });
        row.in_group(self.word())
    }
}

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    for scenario in Scenario::ALL {
        all.push(scenario.row("circuit_lane", "a circuit with a thread, by a lane", |scenario, count| {
            let rig = Rig::apart(By::Thread)?;
            let lane = rig.lane()?;
            circuit(rig, scenario, count, move |pipe| (lane, pipe))
        }));
        all.push(scenario.row("circuit_pipe", "a circuit with a thread, by a pipe", |scenario, count| {
            circuit(Rig::apart(By::Thread)?, scenario, count, |pipe| pipe)
        }));
        all.extend(channel::rows(scenario));
        #[cfg(feature = "peers")]
        all.push(actor::row(scenario));
    }
    all
}

fn circuit<W: Way>(
    rig: Rig,
    scenario: Scenario,
    count: u64,
    way: impl FnOnce(tidemark_circuit::Pipe<u64>) -> W,
) -> anyhow::Result<Work> {
    let mut tally = Tally::default();
    let counter = tally.counter();
    let mut way = way(rig.pipe(move |value: u64| counter.count(value))?);
    let circuit: Circuit = (*rig).clone();
    exchange(scenario, count, move |step| {
        // The rig ends the circuit when the work is dropped.
        let _ = &rig;
        match step {
            Step::Send(value) => way.emit(value),
            Step::Await => circuit.settle()?,
            Step::Verify(sent) => tally.expect(sent)?,
        }
        Ok(())
    })
}

/// What a scenario asks of whoever is measured.
#[derive(Clone, Copy)]
enum Step {
    /// Send this.
    Send(u64),
    /// Wait until everything sent is received.
    Await,
    /// Fail unless so many have been received since the last time.
    Verify(u64),
}

/// Runs a scenario. One loop for all who are measured; `act` is compiled into it.
fn exchange(
    scenario: Scenario,
    count: u64,
    mut act: impl FnMut(Step) -> anyhow::Result<()> + 'static,
) -> anyhow::Result<Work> {
    Work::calls(count, move || {
        let clock = Instant::now();
        for value in 0..count {
            act(Step::Send(black_box(value)))?;
            if scenario == Scenario::RoundTrip {
                act(Step::Await)?;
            }
        }
        let returned = clock.elapsed();
        act(Step::Await)?;
        let took = if scenario == Scenario::Batch { clock.elapsed() } else { returned };
        act(Step::Verify(count))?;
        Ok(took)
    })
}
