//! `tidemark bench`: the laboratory's scenarios.

use anyhow::Context;
use std::ffi::OsString;
use std::process::ExitCode;
use tidemark_lab::null_server;

/// Arguments of `tidemark bench`.
#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(clap::Subcommand)]
enum Scenario {
    /// Parse and answer, nothing else: what this machine allows
    NullServer(null_server::NullServerOptions),
}

/// Runs one scenario.
pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    match args.scenario {
        Scenario::NullServer(options) => {
            null_server::run(&options).with_context(|| format!("null server on port {}", options.port))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The program's arguments, with the single-dash spelling of long flags (`-duration 30s`) that the benchmarks accept.
pub(crate) fn normalised(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    arguments.collect()
}
