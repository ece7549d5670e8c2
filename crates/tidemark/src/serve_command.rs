//! `tidemark serve`: the server in the foreground.

use rustix::termios::tcgetwinsize;
use std::io::{self, Write};
use std::process::ExitCode;
pub(crate) use tidemark_server::config::ServeArgs;
use tidemark_server::config::short_help;

/// Columns of help when standard output is no terminal.
const COLUMNS: usize = 80;

/// Serves until a signal or `SHUTDOWN` stops the server.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    if args.short_help {
        let columns = tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col)).ok();
        let columns = columns.filter(|columns| *columns > 0).unwrap_or(COLUMNS);
        io::stdout().write_all(short_help(columns).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    tidemark_server::run(&args)?;
    Ok(ExitCode::SUCCESS)
}
