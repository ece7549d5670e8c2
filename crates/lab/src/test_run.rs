//! What the program does with a scenario, for tests: from flags to options, and from a run to what it says.

#[cfg(feature = "wire")]
use crate::scenario::{Caller, Console, Scenario};
use clap::{Args, Parser};

/// The command line of one scenario. A flag that is given twice means the last.
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Line<O: Args> {
    #[command(flatten)]
    pub(crate) options: O,
}

/// The options that some flags mean.
pub(crate) fn try_options<O: Args>(flags: &[&str]) -> Result<O, clap::Error> {
    Line::try_parse_from([&["bench"], flags].concat()).map(|line| line.options)
}

/// The options that flags without a mistake mean.
pub(crate) fn options<O: Args>(flags: &[&str]) -> O {
    try_options(flags).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether a run passed, and what it printed.
#[cfg(feature = "wire")]
pub(crate) fn text<S: Scenario>(options: &S::Options) -> anyhow::Result<(bool, String)> {
    let (mut out, mut notes) = (Vec::new(), std::io::sink());
    let caller = Caller { arguments: Vec::new() };
    let verdict = S::run(options, &mut Console::new(&mut out, &mut notes, caller))?;
    Ok((verdict.has_passed(), String::from_utf8(out)?))
}

/// The same of a run that prints JSON.
#[cfg(feature = "wire")]
pub(crate) fn report<S: Scenario>(options: &S::Options) -> anyhow::Result<(bool, serde_json::Value)> {
    let (passed, text) = text::<S>(options)?;
    Ok((passed, serde_json::from_str(&text)?))
}
