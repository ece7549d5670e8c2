//! What the program does with a scenario, for tests: from flags to options, and from a run to what it says.

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

/// Whether a run succeeded, and what it said.
#[cfg(feature = "wire")]
pub(crate) fn text(run: impl FnOnce(&mut Vec<u8>) -> anyhow::Result<bool>) -> anyhow::Result<(bool, String)> {
    let mut out = Vec::new();
    let succeeded = run(&mut out)?;
    Ok((succeeded, String::from_utf8(out)?))
}

/// The same of a run that says it in JSON.
#[cfg(feature = "wire")]
pub(crate) fn report(
    run: impl FnOnce(&mut Vec<u8>) -> anyhow::Result<bool>,
) -> anyhow::Result<(bool, serde_json::Value)> {
    let (succeeded, text) = text(run)?;
    Ok((succeeded, serde_json::from_str(&text)?))
}
