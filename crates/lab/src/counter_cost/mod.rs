//! What counters cost their callers: every benchmark that the original names, under its name, by one thread and by two.
//!
//! How rows are measured is in [`crate::micro`]; how several threads do the work of one is in `threads`, what stands beside counters in
//! `rivals`, and the rows are in `reads`, `hot`, `many` and `moves`.

mod hot;
mod many;
mod moves;
mod reads;
mod rivals;
mod threads;

pub use crate::micro::{Benchmark, Caller, Quantity, SelectionError, Sizes};

use crate::micro::{self, MicroOptions};
use crate::single_dash;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{Write, stderr, stdout};
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
    [moves::rows(), reads::rows(), hot::rows(), many::rows()].into_iter().flatten().collect()
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

/// The laboratory as a program of its own: what `cargo bench` starts.
#[derive(Parser)]
#[command(name = "counter", about = "What counters cost")]
struct Program {
    #[command(flatten)]
    options: CounterCostOptions,
    /// `cargo bench` adds this.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

/// Runs the laboratory with the program's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let flags = single_dash::long_flags(&Program::command());
    let program = Program::parse_from(single_dash::normalise(arguments, &flags));
    let caller = Caller { arguments: Vec::new() };
    micro::exit_code(run(&program.options, &caller, &mut stdout().lock(), &mut stderr()))
}
