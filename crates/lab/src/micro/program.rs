//! A laboratory as a separate program for `cargo bench`.

use super::fork::Caller;
use crate::interrupt::Interrupt;
use crate::{output, single_dash};
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::io::{Stderr, StdoutLock, stderr, stdout};
use std::process::ExitCode;

/// The function that runs a laboratory with its flags.
type Run<O> = fn(&O, &Caller, &mut StdoutLock<'static>, &mut Stderr) -> anyhow::Result<()>;

#[derive(Parser)]
struct Program<O: Args> {
    #[command(flatten)]
    options: O,
    /// `cargo bench` adds this.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

/// Runs a laboratory under this name with the program's arguments.
pub(crate) fn main<O: Args>(name: &'static str, about: &'static str, run: Run<O>) -> ExitCode {
    let command = Program::<O>::command().name(name).about(about);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let flags = single_dash::long_flags(&command);
    let matches = command.get_matches_from(single_dash::normalise(arguments, &flags));
    let program = Program::<O>::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let caller = Caller { arguments: Vec::new() };
    exit_code(run(&program.options, &caller, &mut stdout().lock(), &mut stderr()))
}

/// Returns the program's exit code for this result.
pub(super) fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("{error:#}"));
            Interrupt::exit_code().map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}
