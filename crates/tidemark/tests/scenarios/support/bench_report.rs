//! Figures of a benchmark's report.

use tidemark_lab::report::{Figure, Report};

/// Returns the figure of this name that belongs to a part of the run and a round, or to the whole.
pub(crate) fn figure<'a>(
    report: &'a Report,
    part: Option<&str>,
    round: Option<u32>,
    name: &str,
) -> Option<&'a Figure> {
    let is_meant = |one: &&Figure| one.name == name && one.of.as_deref() == part && one.round == round;
    report.figures.iter().find(is_meant)
}

/// Returns the value of a figure of the whole run.
pub(crate) fn value(report: &Report, name: &str) -> Option<f64> {
    figure(report, None, None, name)?.value.as_f64()
}
