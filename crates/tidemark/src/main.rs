//! The `tidemark` binary: one subcommand per job.

mod answer;
mod asking;
mod bench_command;
mod cli;
mod cluster_command;
mod counted;
mod log_command;
mod name;
mod pool_command;
mod private_file;
mod series_command;
mod serve_command;
mod server_args;
mod top;
mod usage_error;

use clap::{ArgAction, Parser, Subcommand};
use signal_hook::consts::SIGXFSZ;
use std::process::ExitCode;
use std::sync::Arc;
use tidemark_lab::allocations::Counting;
use tidemark_lab::circuit::SelectionError;
use tidemark_lab::counter::VariableError;
use tidemark_lab::output;
use tidemark_server::config::ConfigError;

// `tidemark bench` reports how often a benchmark allocates. A process has one allocator, so every
// subcommand uses this one. It counts only inside `allocations::during`, which only the laboratory
// calls: `serve` never turns it on and writes no counter. The cost for `serve` is one relaxed load
// of a flag that never changes and one branch that is never taken, for each allocation and each
// release. Avoiding that would take a second program for `bench`: twice the time to build and twice
// the size to install.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting::new(mimalloc::MiMalloc);

/// Client libraries look for ` v=MAJOR.MINOR.PATCH` in this line.
const VERSION: &str = concat!("server v=", env!("CARGO_PKG_VERSION"), " bits=64");

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it failed, and the last line says why; 2 the command line is wrong, or the configuration.
Environment: TIDEMARK_* variables stand in for the flags that name them.";

const EXIT_USAGE: u8 = 2;

/// Hot state at memory speed, right after a crash: a durable server for every Redis client
#[derive(Parser)]
#[command(name = "tidemark", display_name = "Tidemark", version = VERSION, disable_version_flag = true)]
#[command(after_help = EXIT_CODES, arg_required_else_help = true)]
struct Arguments {
    /// Print the version
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: Option<bool>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve clients of the Redis protocol
    Serve(serve_command::ServeArgs),
    /// Talk to a server: at a prompt, from standard input, or one command
    Cli(cli::CliArgs),
    /// Show what a server is doing, continuously
    Top(top::TopArgs),
    /// Measure circuits, and servers of the Redis protocol: Tidemark or any other
    Bench(bench_command::BenchArgs),
    /// Inspect and repair a log's files
    Log(log_command::LogArgs),
    /// Show a cluster, and change who leads and who its members are
    Cluster(cluster_command::ClusterArgs),
    /// Verify, export and import prize pools
    Pool(pool_command::PoolArgs),
    /// Write points of time series to files, and take points from files: Parquet, CSV, JSON Lines
    Series(series_command::SeriesArgs),
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail like a write to a full disk, instead
/// of silently ending the process.
fn outlive_file_size_limit() {
    // A handler that does nothing. If it cannot be installed, the default behaviour stays.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

fn main() -> ExitCode {
    outlive_file_size_limit();
    let arguments = Arguments::try_parse_from(bench_command::normalised(std::env::args_os()));
    let arguments = arguments.unwrap_or_else(|error| usage_error::in_plain_words(error).exit());
    let result = match arguments.command {
        Command::Serve(serve) => serve_command::run(serve),
        Command::Cli(cli) => cli::run(cli),
        Command::Top(top) => top::run(top),
        Command::Bench(bench) => bench_command::run(bench),
        Command::Log(log) => log_command::run(log),
        Command::Cluster(cluster) => cluster_command::run(cluster),
        Command::Pool(pool) => pool_command::run(pool),
        Command::Series(series) => series_command::run(series),
    };
    result.unwrap_or_else(|error| {
        if output::is_closed(&error) {
            return ExitCode::SUCCESS;
        }
        output::report(format_args!("tidemark: {error:#}"));
        let is_usage =
            error.is::<ConfigError>() || error.is::<SelectionError>() || error.is::<VariableError>();
        if is_usage { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
    })
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_version_is_found_where_redis_clients_look() {
        let version = Arguments::command().render_version();
        let after = version.split(" v=").nth(1).expect("the marker that test harnesses search");
        assert!(after.starts_with(env!("CARGO_PKG_VERSION")));
    }
}
