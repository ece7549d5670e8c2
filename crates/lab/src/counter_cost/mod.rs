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

pub use crate::micro::{Benchmark, Caller, Quantity, SelectionError, Sizes};

use crate::micro::{self, MicroOptions};
use std::io::Write;
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

/// Runs the laboratory as the flags say. Writes results to `out` and progress to `notes`, whose
/// errors are ignored.
pub fn run(
    options: &CounterCostOptions,
    caller: &Caller,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> anyhow::Result<()> {
    micro::run(&benchmarks(), &options.micro, caller, out, notes)
}

/// Runs the laboratory with the program's arguments, for `cargo bench`.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main("counter", "What counters cost", run)
}
