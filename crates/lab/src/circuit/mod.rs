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

pub use crate::micro::{Benchmark, Quantity, SelectionError, Sizes};
pub use options::CircuitOptions;
pub use suites::all as benchmarks;

use crate::micro;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use std::process::ExitCode;

/// The laboratory of circuits.
pub struct CircuitScenario;

impl Scenario for CircuitScenario {
    const NAME: &'static str = "circuit";
    type Options = CircuitOptions;

    fn run(options: &CircuitOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        micro::run::<Self>(&benchmarks(), &options.micro, &(), console)?;
        Ok(Verdict::passed())
    }
}

/// Runs the laboratory with the program's arguments, for `cargo bench`.
#[must_use]
pub fn main() -> ExitCode {
    micro::program::main::<CircuitScenario>(CircuitScenario::NAME, "What circuits cost")
}
