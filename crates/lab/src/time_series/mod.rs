//! The laboratory of series: the sixteen scenarios of the original by their names, some of ours
//! beside them, in its lines.
//!
//! Each file uses only the ones before it: `options`, `points` (what is appended and looked up),
//! `usage`, `row` (how a scenario is measured), the scenarios (`segments`, `files`, `server`,
//! `ingest`, `finding`, `faults`), `report`, and this file.
//!
//! The figures must not flatter. Inputs and results are opaque to the optimiser, every lookup finds
//! a point, every bit of what is served counts, and after each iteration all points are compared
//! with those that were appended. A fault that nothing notices fails the run.

mod fault_tally;
mod faults;
mod files;
mod finding;
mod ingest;
mod options;
mod points;
mod report;
mod row;
mod segments;
mod server;
mod usage;

pub use options::TimeSeriesOptions;

use crate::interrupt::Interrupt;
use crate::micro::selection::matches;
use crate::report::Verdict;
use crate::scenario::{Console, Scenario};
use report::TimeSeriesResults;
use row::Row;
use std::time::SystemTime;

/// The laboratory of series.
pub struct TimeSeriesScenario;

impl Scenario for TimeSeriesScenario {
    const NAME: &'static str = "series";
    type Options = TimeSeriesOptions;

    fn run(options: &TimeSeriesOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        let options = options.effective();
        let rows = selected(&options)?;
        if options.list {
            for row in &rows {
                writeln!(console.out, "{}: {}", row.name, row.measures)?;
            }
            return Ok(Verdict::passed());
        }
        warn(&options, console);
        let interrupt = Interrupt::by_signal()?;
        let results = measure(&rows, &options, &interrupt, console);
        console.print::<Self>(&options, &results, options.json)
    }
}

/// Returns the scenarios that the patterns mean, in the original's order.
fn selected(options: &TimeSeriesOptions) -> anyhow::Result<Vec<Row>> {
    let mut rows = segments::rows(options);
    rows.extend(files::rows(options));
    rows.extend(server::rows(options));
    rows.extend(ingest::rows(options));
    rows.extend(finding::rows(options));
    rows.extend(faults::rows(options));
    for pattern in &options.patterns {
        anyhow::ensure!(
            rows.iter().any(|row| matches(pattern, &row.name)),
            "no scenario fits {pattern:?}; -l lists them"
        );
    }
    let is_meant =
        |row: &Row| options.patterns.is_empty() || options.patterns.iter().any(|one| matches(one, &row.name));
    rows.retain(is_meant);
    Ok(rows)
}

/// Warns about flags that make the figures less reliable.
fn warn(options: &TimeSeriesOptions, console: &mut Console<'_>) {
    if cfg!(debug_assertions) && !options.quick {
        console.note("built with assertions: the figures are not those of a release build");
    }
    if options.quick {
        console.note("--quick: small scenarios, no figures to go by");
    }
}

fn measure(
    rows: &[Row],
    options: &TimeSeriesOptions,
    interrupt: &Interrupt,
    console: &mut Console<'_>,
) -> TimeSeriesResults {
    let start = SystemTime::now();
    let (mut measured, mut failures) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        console.note(format_args!("{}/{}: {}", number + 1, rows.len(), row.name));
        match row.measure(options, interrupt) {
            Ok(one) => measured.extend(one),
            Err(error) => failures.push(format!("{error:#}")),
        }
        if interrupt.is_asked_for() {
            break;
        }
    }
    if measured.is_empty() && failures.is_empty() {
        failures.push("nothing was measured".to_owned());
    }
    TimeSeriesResults {
        start,
        end: SystemTime::now(),
        is_interrupted: interrupt.is_asked_for(),
        measured,
        failures,
        notes: notes(rows, options),
    }
}

/// Returns what a reader must know about the figures.
fn notes(rows: &[Row], options: &TimeSeriesOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if rows.iter().any(|row| row.name.contains("file_backend") || row.name.contains("block_file")) {
        let folder = files::folder_of(options);
        notes.push(format!("logs are in {}, on {}", folder.display(), files::file_system(&folder)));
    }
    if options.like_tau {
        notes.push("--like-tau: set-up and release are measured too".to_owned());
    }
    notes
}
