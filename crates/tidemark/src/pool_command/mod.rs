//! `tidemark pool`: checks and exports what a server's pools have done, and imports pools.
//!
//! ```text
//! history (log, snapshots) ─► verify, audit ─┐
//!     exported audit ─► outsider ────────────┴─► scribe ─► line ─► format
//! ```

mod audit;
mod check;
mod format;
mod hexadecimal;
mod history;
mod import;
mod line;
mod outsider;
mod scribe;
mod tally;
mod verify;

use crate::name::printable;
use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidemark_engine::keyspace::DATABASES;
use tidemark_engine::watch::PoolChange;

/// Verify, export and import prize pools
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PoolArgs {
    /// Data directory of the server
    #[arg(long, global = true, default_value = "./tidemark-data", env = "TIDEMARK_DIR")]
    dir: PathBuf,

    #[command(subcommand)]
    command: PoolCommand,
}

const AFTER_HELP: &str = "\
`verify` and `audit` only read, also while the server is at work on the same files.
Exit codes: 0 all is good; 1 it is not, and the last line says why; 2 the command line is wrong.";

#[derive(Subcommand)]
enum PoolCommand {
    /// Recompute every draw of a pool, from the log or an exported audit
    Verify(verify::VerifyArgs),
    /// Export every draw with its odds, and every other event of a pool
    Audit(audit::AuditArgs),
    /// Import a pool from the files of the Go project tiny-reward-pool
    Import(Box<import::ImportArgs>),
    /// Check whether a file is a catalogue, and show its odds
    Check(check::CheckArgs),
}

/// Runs one of the subcommands.
pub(crate) fn run(args: PoolArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        PoolCommand::Verify(verify) => verify::run(&verify, &args.dir),
        PoolCommand::Audit(audit) => audit::run(&audit, &args.dir),
        PoolCommand::Import(import) => import::run(&import),
        PoolCommand::Check(check) => check::run(&check),
    }
}

/// Key and database of a pool.
struct PoolName {
    key: Vec<u8>,
    db: u8,
}

impl PoolName {
    fn is(&self, place: &PoolChange<'_>) -> bool {
        (self.db, &*self.key) == (place.db, place.key)
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.key))?;
        match self.db {
            0 => Ok(()),
            db => write!(f, " of database {db}"),
        }
    }
}

/// Parses the number of a database.
fn database() -> RangedI64ValueParser<u8> {
    RangedI64ValueParser::new().range(0..DATABASES as i64)
}

/// Returns a progress bar over the bytes of all segments, which are read twice; hidden if standard
/// error is no terminal.
fn progress(dir: &Path) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let segments = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let segments = segments.filter(|file| file.file_name().to_string_lossy().starts_with("segment-"));
    let bytes: u64 = segments.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    let style = ProgressStyle::with_template("{bar:40} {binary_bytes} of {binary_total_bytes}, {eta} left");
    ProgressBar::new(bytes * 2).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
