//! A laboratory as a separate program for `cargo bench`.

use crate::interrupt::Interrupt;
use crate::report::Verdict;
use crate::scenario::{Caller, Console, Scenario};
use crate::{output, single_dash};
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::io::{stderr, stdout};
use std::process::ExitCode;

#[derive(Parser)]
struct Program<O: Args> {
    #[command(flatten)]
    options: O,
    /// `cargo bench` adds this.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

/// Runs a laboratory under this name with the program's arguments.
pub(crate) fn main<S: Scenario>(name: &'static str, about: &'static str) -> ExitCode {
    let command = Program::<S::Options>::command().name(name).about(about);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let flags = single_dash::long_flags(&command);
    let matches = command.get_matches_from(single_dash::normalise(arguments, &flags));
    let program = Program::<S::Options>::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let caller = Caller { arguments: Vec::new() };
    let (mut out, mut notes) = (stdout().lock(), stderr());
    exit_code(S::run(&program.options, &mut Console::new(&mut out, &mut notes, caller)))
}

/// Returns the program's exit code for this result.
pub(super) fn exit_code(result: anyhow::Result<Verdict>) -> ExitCode {
    match result {
        Ok(verdict) => verdict.exit_code(),
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::report(format_args!("{error:#}"));
            Interrupt::exit_code().map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}
