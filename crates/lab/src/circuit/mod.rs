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
use std::io::Write;
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

/// Runs the laboratory with the program's arguments, as `cargo bench` has it.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main("circuit", "What circuits cost", run)
}
