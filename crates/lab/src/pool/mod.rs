//! The laboratory of pools: costs of draws, selectors, reservations, images and replays. It
//! includes every benchmark of tiny-reward-pool under its name, and peers in turns.
//!
//! [`crate::micro`] measures the rows. `stock` creates pools that never run out while they are
//! measured, and checks their books afterwards; `served` does the same for pools in a service. A
//! row fails if a draw was refused or its stock does not add up.

mod beyond_one_table;
mod draws;
mod images;
#[cfg(feature = "log")]
mod journals;
mod latency;
mod memory;
mod options;
mod original;
mod recording;
mod replays;
mod reservations;
mod selectors;
mod served;
mod service;
mod snapshots;
mod stock;
mod users;
#[cfg(feature = "wire")]
mod wire;

pub use crate::micro::{Benchmark, Quantity, SelectionError, Sizes};
pub use options::PoolOptions;

use crate::micro;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use std::process::ExitCode;

/// Returns all benchmarks, in the order in which they run.
#[must_use]
pub fn benchmarks() -> Vec<Benchmark> {
    let suites = [
        original::suite(),
        draws::suite(),
        selectors::suite(),
        recording::suite(),
        beyond_one_table::suite(),
        reservations::suite(),
        users::suite(),
        images::suite(),
        replays::suite(),
        memory::suite(),
        service::suite(),
        latency::suite(),
        snapshots::suite(),
        #[cfg(feature = "log")]
        journals::suite(),
    ];
    suites.into_iter().flatten().collect()
}

/// The laboratory of pools.
pub struct PoolScenario;

impl Scenario for PoolScenario {
    const NAME: &'static str = "pool";
    type Options = PoolOptions;

    fn run(options: &PoolOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        #[cfg(not(feature = "wire"))]
        let (all, of_servers) = (benchmarks(), ());
        #[cfg(feature = "wire")]
        let (all, of_servers) = {
            anyhow::ensure!(
                !options.wire.is_asked_for() || options.micro.forks == 0,
                "-p and -f do not go together: what is asked of a server is measured by this process; leave -f out"
            );
            let mut all = benchmarks();
            all.extend(wire::suite(&options.wire));
            (all, options.wire.is_asked_for().then_some(&options.wire))
        };
        micro::run::<Self>(&all, &options.micro, &of_servers, console)?;
        Ok(Verdict::passed())
    }
}

/// Runs the laboratory with the program's arguments, for `cargo bench`.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main::<PoolScenario>(PoolScenario::NAME, "What pools cost")
}
