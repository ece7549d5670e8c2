//! What the program does with a scenario, for tests: from flags to options, and from a run to what it says.

#[cfg(feature = "wire")]
use crate::report::{Report, Results, SCHEMA};
#[cfg(feature = "wire")]
use crate::scenario::{Caller, Console, Scenario};
use clap::{Args, Parser};
#[cfg(feature = "wire")]
use serde_json::{Map, Value};
#[cfg(feature = "wire")]
use std::collections::HashSet;

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

/// Whether a run passed, and its report, which the schema describes.
#[cfg(feature = "wire")]
pub(crate) fn report<S: Scenario>(options: &S::Options) -> anyhow::Result<(bool, Value)> {
    let (passed, text) = text::<S>(options)?;
    let report = checked(serde_json::from_str(&text)?);
    assert_eq!((report.scenario.as_str(), report.verdict.has_passed()), (S::NAME, passed));
    Ok((passed, serde_json::from_str(&text)?))
}

/// The report of some results without options.
#[cfg(feature = "wire")]
pub(crate) fn report_of(results: &impl Results) -> Value {
    let report = Report::new("test", &Map::new(), results.contents()).expect("it has a form in JSON");
    serde_json::to_value(checked(report)).expect("it has a form in JSON")
}

/// Checks what every report has.
#[cfg(feature = "wire")]
fn checked(report: Report) -> Report {
    assert_eq!((report.schema, report.version.as_str()), (SCHEMA, env!("CARGO_PKG_VERSION")));
    let mut names = HashSet::new();
    for figure in &report.figures {
        let name = (&figure.name, &figure.of, figure.round);
        assert!(names.insert(name), "{name:?} is there twice");
    }
    report
}

/// The figure of this name that belongs to the whole run; null if there is none.
#[cfg(feature = "wire")]
pub(crate) fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    figure_of(report, Value::Null, Value::Null, name)
}

/// The figure of this name, part and round; null if there is none.
#[cfg(feature = "wire")]
pub(crate) fn figure_of<'a>(
    report: &'a Value,
    part: impl Into<Value>,
    round: impl Into<Value>,
    name: &str,
) -> &'a Value {
    let (part, round) = (part.into(), round.into());
    let figures = report["figures"].as_array().expect("figures");
    let is_meant =
        |figure: &&Value| figure["name"] == name && figure["of"] == part && figure["round"] == round;
    figures.iter().find(is_meant).unwrap_or(&Value::Null)
}

/// The value of a figure of the whole run; null if there is none.
#[cfg(feature = "wire")]
pub(crate) fn value<'a>(report: &'a Value, name: &str) -> &'a Value {
    &figure(report, name)["value"]
}
