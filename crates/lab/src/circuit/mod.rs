//! The laboratory of circuits: every benchmark of the original under its name, each with what it
//! really measures; further rows for what those do not measure; and peers in turns.
//!
//! The suites in `suites/` are lists of rows, which [`crate::micro`] measures. `rig`, `batch` and
//! `making` are shared by the suites.

mod batch;
mod making;
mod options;
mod rig;
mod suites;

pub use crate::micro::{Benchmark, Caller, Quantity, SelectionError, Sizes};
pub use options::CircuitOptions;
pub use suites::all as benchmarks;

use crate::micro;
use std::io::Write;
use std::process::ExitCode;

/// Runs the laboratory as the flags say. Writes results to `out` and progress to `notes`, whose
/// errors are ignored.
pub fn run(
    options: &CircuitOptions,
    caller: &Caller,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> anyhow::Result<()> {
    micro::run(&benchmarks(), &options.micro, caller, out, notes)
}

/// Runs the laboratory with the program's arguments, for `cargo bench`.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main("circuit", "What circuits cost", run)
}
