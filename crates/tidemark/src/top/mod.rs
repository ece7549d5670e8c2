//! `tidemark top`: shows what a server is doing, continuously.
//!
//! ```text
//! source (a connection) ─► counters, pools, series: reading ─► text, json ─► view ─► stdout, or screen
//!                                                 signals and keys (screen) ─┘
//! ```

mod counters;
mod line;
mod listing;
mod pools;
mod screen;
mod series;
mod source;
mod view;

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
    /// How prize pools are drawn from, what is left in them, and whether the draws are as the odds
    /// say
    Pools(pools::PoolsArgs),
    /// Which time series have the most points, get the most, and take the most memory
    Series(series::SeriesArgs),
}

/// Shows the subject.
pub(crate) fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    match args.subject {
        Subject::Counters(args) => counters::run(&args),
        Subject::Pools(args) => pools::run(&args),
        Subject::Series(args) => series::run(&args),
    }
}
