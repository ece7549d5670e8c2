//! The laboratory of circuits: every benchmark that the original names, under its name, each with what it really measures;
//! what those do not measure, beside them; and what others have for the same purpose, in turns.
//!
//! The suites in `suites/` are lists of rows; how rows are measured is in [`crate::micro`]. What the suites share comes first: `rig`,
//! `batch` and `making`.

mod batch;
mod making;
mod options;
mod rig;
mod suites;

pub use crate::micro::{Benchmark, Caller, Quantity, SelectionError, Sizes};
pub use options::CircuitOptions;
pub use suites::all as benchmarks;

use crate::micro;
use crate::single_dash;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// Does what the flags say. Writes what is found to `out`, and how far it is to `notes`, which may fail without a consequence.
pub fn run(
    options: &CircuitOptions,
    caller: &Caller,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> anyhow::Result<()> {
    micro::run(&benchmarks(), &options.micro, caller, out, notes)
}

/// The laboratory as a program of its own: what `cargo bench` starts.
#[derive(Parser)]
#[command(name = "circuit", about = "What circuits cost")]
struct Program {
    #[command(flatten)]
    options: CircuitOptions,
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
