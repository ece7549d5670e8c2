//! `tidemark series`: writes points of a server into files that other programs read, and takes points from such files.
//!
//! ```text
//! export: selection ─► headers ─► pages ═► destination          (═► another thread)
//! import: source ─► collector ─► sender ─► tally
//! ```

mod export;
mod import;
mod link;
mod moment;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use tidemark_lab::interrupt::Interrupt;
use tidemark_lab::output;

/// Write points of time series to files, and take points from files: Parquet, CSV, JSON Lines
#[derive(Args)]
pub(crate) struct SeriesArgs {
    #[command(subcommand)]
    command: SeriesCommand,
}

#[derive(Subcommand)]
enum SeriesCommand {
    /// Write points of series and lenses to a file or to standard output
    Export(Box<export::ExportArgs>),
    /// Add the points of files to series, which are created if they do not exist
    Import(Box<import::ImportArgs>),
}

/// Runs one of the subcommands.
pub(crate) fn run(args: SeriesArgs) -> anyhow::Result<ExitCode> {
    let result = match args.command {
        SeriesCommand::Export(args) => export::run(&args),
        SeriesCommand::Import(args) => import::run(&args),
    };
    match (result, Interrupt::exit_code()) {
        (Err(error), Some(code)) if error.is::<link::Interrupted>() => {
            output::report(format_args!("tidemark: {error}"));
            Ok(ExitCode::from(code))
        }
        (result, _) => result,
    }
}
