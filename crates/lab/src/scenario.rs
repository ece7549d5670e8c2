//! The trait of a benchmark scenario, and where a scenario prints.

use crate::report::{Report, Results, Verdict};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;

/// A benchmark scenario.
pub trait Scenario {
    /// Name on the command line and in reports.
    const NAME: &'static str;
    /// Flags.
    type Options: clap::Args;

    /// Runs the scenario and prints its results. An error means that they are not complete.
    fn run(options: &Self::Options, console: &mut Console<'_>) -> anyhow::Result<Verdict>;
}

/// Where a scenario prints, and how it starts its own program again.
pub struct Console<'a> {
    /// Results.
    pub(crate) out: &'a mut dyn Write,
    /// Progress. Errors are ignored: a measurement goes on if its progress has no reader.
    pub(crate) notes: &'a mut dyn Write,
    pub(crate) caller: Caller,
}

/// How to start this program so that it runs the same scenario.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The arguments before the scenario's own.
    pub arguments: Vec<OsString>,
}

impl<'a> Console<'a> {
    /// Creates a console that prints results to `out` and progress to `notes`.
    pub fn new(out: &'a mut dyn Write, notes: &'a mut dyn Write, caller: Caller) -> Self {
        Console { out, notes, caller }
    }

    /// Prints a line of progress.
    pub(crate) fn note(&mut self, line: impl Display) {
        let _ = writeln!(self.notes, "{line}");
    }

    /// Prints the results of a scenario, as text or as a report in JSON. Returns the verdict.
    pub(crate) fn print<S: Scenario>(
        &mut self,
        options: &impl Serialize,
        results: &impl Results,
        json: bool,
    ) -> anyhow::Result<Verdict> {
        let contents = results.contents();
        if json {
            return self.print_report(Report::new(S::NAME, options, contents)?);
        }
        write!(self.out, "{results}")?;
        Ok(contents.verdict)
    }

    /// Prints a report. Returns its verdict.
    pub(crate) fn print_report(&mut self, report: Report) -> anyhow::Result<Verdict> {
        serde_json::to_writer_pretty(&mut *self.out, &report)?;
        writeln!(self.out)?;
        Ok(report.verdict)
    }
}
