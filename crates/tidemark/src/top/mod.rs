//! `tidemark top`: what a server is doing, again and again.
//!
//! ```text
//! source (INFO counters, COUNTER.TOP) ─► reading ─► counters ─► text, json ─► standard output, or screen
//!                                         signals and keys (screen) ─┘
//! ```

mod counters;
mod json;
mod name;
mod reading;
mod screen;
mod sort;
mod source;
mod text;

use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Arguments of `tidemark top`.
#[derive(Args)]
pub(crate) struct TopArgs {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// How counters move, what of it is committed, and which of them move most
    Counters(counters::CountersArgs),
}

/// Shows what was asked for.
pub(crate) fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    match args.subject {
        Subject::Counters(args) => counters::run(&args),
    }
}
