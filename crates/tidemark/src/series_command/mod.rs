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

use crate::server_args::ServerArgs;
use clap::{ArgAction, Args, Subcommand};
use std::process::ExitCode;
use std::time::Duration;
use tidemark_lab::duration;
use tidemark_lab::interrupt::Interrupt;
use tidemark_lab::output;
use tidemark_lab::target::Target;

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

/// Flags of both subcommands.
#[derive(Args)]
struct LinkArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Database
    #[arg(short = 'n', long)]
    database: Option<u32>,
    /// Longest wait for a connection, and for an answer
    #[arg(short, long, default_value = "30s", value_parser = duration::parse)]
    timeout: Duration,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

impl LinkArgs {
    fn target(&self) -> Target {
        let mut target = self.server.target();
        target.database = self.database.unwrap_or(target.database);
        target
    }
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
