//! The lab of counters through its command line.

use clap::{CommandFactory, Parser};
use std::collections::HashMap;
use std::ffi::OsString;
use tidemark_lab::counter::{CounterOptions, run};
use tidemark_lab::scenario::{Caller, Console};
use tidemark_lab::single_dash;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    options: CounterOptions,
}

pub(crate) fn parsed(arguments: &[&str]) -> Result<CounterOptions, clap::Error> {
    let command = Program::command();
    let flags: Vec<String> = command
        .get_arguments()
        .filter_map(clap::Arg::get_long_and_visible_aliases)
        .flatten()
        .map(str::to_owned)
        .collect();
    let arguments = ["counter"].iter().chain(arguments).map(OsString::from);
    Program::try_parse_from(single_dash::normalise(arguments, &flags)).map(|program| program.options)
}

/// Runs the lab; returns whether it passed, and its output.
pub(crate) fn try_run(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<(bool, String)> {
    let environment =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let (mut out, mut notes) = (Vec::new(), std::io::sink());
    let mut console = Console::new(&mut out, &mut notes, Caller { arguments: Vec::new() });
    let verdict = run(&parsed(arguments)?, &environment, &mut console)?;
    let text = String::from_utf8(out)?;
    Ok(if verdict.has_passed() { (true, text) } else { (false, format!("{text}\n{verdict:?}")) })
}

/// The output of a run that passes.
pub(crate) fn said(arguments: &[&str]) -> String {
    let (is_right, text) = try_run(arguments, &[]).unwrap();
    assert!(is_right, "{text}");
    text
}

/// The fields of the machine-readable line, in order.
pub(crate) fn summary(text: &str) -> Vec<(String, String)> {
    let line = text.lines().rfind(|line| line.starts_with("Summary: ")).expect("a line for programs");
    let field = |field: &str| {
        let (name, value) = field.split_once('=').expect("name=value");
        (name.to_owned(), value.to_owned())
    };
    line["Summary: ".len()..].split(' ').map(field).collect()
}

/// The numeric fields of the summary.
pub(crate) fn figures(text: &str) -> HashMap<String, u128> {
    let number = |(name, value): (String, String)| Some((name, value.parse().ok()?));
    summary(text).into_iter().filter_map(number).collect()
}
