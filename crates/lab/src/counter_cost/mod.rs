//! What counters cost their callers: every benchmark that the original names, under its name, by one thread and by two.
//!
//! How rows are measured is in [`crate::micro`]; rows by one thread and by two are made in `threads`, what stands beside counters in
//! `scanned`, and the rows are in `reads`, `hot`, `many`, `moves` and `limiters`.

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

/// All benchmarks, in the order in which they run.
#[must_use]
pub fn benchmarks() -> Vec<Benchmark> {
    [moves::rows(), reads::rows(), hot::rows(), many::rows(), limiters::rows()]
        .into_iter()
        .flatten()
        .collect()
}

/// Does what the flags say. Writes what is found to `out`, and how far it is to `notes`, which may fail without a consequence.
pub fn run(
    options: &CounterCostOptions,
    caller: &Caller,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> anyhow::Result<()> {
    micro::run(&benchmarks(), &options.micro, caller, out, notes)
}

/// Runs the laboratory with the program's arguments, as `cargo bench` has it.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main("counter", "What counters cost", run)
}
