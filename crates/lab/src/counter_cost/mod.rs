//! Costs of counters for their callers: every benchmark of the original under its name, by one
//! thread and by two.
//!
//! [`crate::micro`] measures the rows. `threads` creates rows by one and by two threads, `scanned`
//! is the alternative next to counters, and the rows are in `reads`, `hot`, `many`, `moves` and
//! `limiters`.

mod hot;
mod limiters;
mod many;
mod moves;
mod reads;
mod scanned;
mod threads;

pub use crate::micro::{Benchmark, Quantity, SelectionError, Sizes};

use crate::micro::{self, MicroOptions};
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use std::process::ExitCode;

/// Flags of the laboratory of counters.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CounterCostOptions {
    #[command(flatten)]
    micro: MicroOptions,
}

/// Returns all benchmarks, in the order in which they run.
#[must_use]
pub fn benchmarks() -> Vec<Benchmark> {
    [moves::rows(), reads::rows(), hot::rows(), many::rows(), limiters::rows()]
        .into_iter()
        .flatten()
        .collect()
}

/// What counters cost their callers. `cargo bench` runs it, `tidemark bench` does not.
pub struct CounterCostScenario;

impl Scenario for CounterCostScenario {
    const NAME: &'static str = "counter-cost";
    type Options = CounterCostOptions;

    fn run(options: &CounterCostOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        micro::run::<Self>(&benchmarks(), &options.micro, &(), console)?;
        Ok(Verdict::passed())
    }
}

/// Runs the laboratory with the program's arguments, for `cargo bench`.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main::<CounterCostScenario>("counter", "What counters cost")
}
