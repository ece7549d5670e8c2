//! `tidemark serve`: the server in the foreground.

use std::process::ExitCode;
pub(crate) use tidemark_server::config::ServeArgs;

/// Serves until it is told to stop.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    tidemark_server::run(&args)?;
    Ok(ExitCode::SUCCESS)
}
