//! Microbenchmarks in the manner of JMH: the cost of one operation, repeated, with its confidence.
//!
//! - [`Benchmark`] is a row; the suites of a laboratory are lists of them.
//! - `runner.rs` repeats a benchmark's work for a while and measures the time.
//! - `row.rs` has the results of one benchmark, `series.rs` the samples of one of its metrics.
//! - `program.rs` runs a laboratory under `cargo bench`.
//! - `report.rs`, `ratios.rs`, `markdown.rs`, `go.rs`, `jmh.rs` and `comparison.rs` print results,
//!   `result_file.rs` stores them.
//!
//! Each file uses only the ones before it: benchmarks and their instruments (`tally`, `lateness`,
//! `open_loop`, `threads`, `kept`) ─► measurement (`runner`, `fork`) ─► rows ─► reports ─► this
//! file. The suites are in [`crate::circuit`], [`crate::counter_cost`] and [`crate::pool`].
//!
//! A scenario that loses values is an error, not a figure.

pub(crate) mod benchmark;
mod comparison;
pub(crate) mod cores;
mod fork;
mod go;
mod group;
mod jmh;
pub(crate) mod kept;
pub(crate) mod lateness;
mod markdown;
pub(crate) mod open_loop;
pub(crate) mod options;
pub(crate) mod program;
mod ratios;
mod report;
mod result_file;
mod row;
mod runner;
pub(crate) mod selection;
mod series;
pub(crate) mod sizes;
pub(crate) mod tally;
#[cfg(test)]
mod test_report;
pub(crate) mod threads;

pub use benchmark::{Benchmark, Quantity};
pub use options::{MicroOptions, Mode};
pub use selection::SelectionError;
pub use sizes::Sizes;

use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::output;
use crate::scenario::{Console, Scenario};
use anyhow::{Context, anyhow};
use comparison::Comparison;
use go::GoLines;
use markdown::Markdown;
use options::{Action, Plan};
use report::{Failure, MicroResults};
use result_file::ResultFile;
use row::Row;
use selection::{Run, Selection};
use serde::Serialize;
use signal_hook::consts::SIGINT;
use std::io::{self, Write};
use std::time::SystemTime;

/// Lists, compares or measures these benchmarks, as the flags say. A report names the scenario and
/// has the rest of its options.
pub(crate) fn run<S: Scenario>(
    benchmarks: &[Benchmark],
    options: &MicroOptions,
    rest: &impl Serialize,
    console: &mut Console<'_>,
) -> anyhow::Result<()> {
    if let Some(Action::Compare { a, b }) = &options.action {
        let comparison = Comparison::read(a, b)?;
        return printed(write!(console.out, "{comparison}"));
    }
    let plan = options.plan();
    if !options.as_fork.is_empty() {
        return run_as_fork(options, &plan, benchmarks, console.out);
    }
    let selection = Selection {
        patterns: &options.patterns,
        summary: options.summary,
        against: options.against.as_deref(),
    };
    let runs = selection.runs(benchmarks)?;
    if options.list {
        return printed(list(runs.iter().flat_map(|run| &run.benchmarks), options.verbose, console.out));
    }
    anyhow::ensure!(
        !((options.markdown || options.go || options.json) && options.prints_json()),
        "--markdown, --go or --json, and -rff -, would both be standard output; write the results to a file, or leave one out"
    );
    warn(options, console);
    // Before anything takes long: an invalid path is reported immediately.
    let file = options.results_path().map(ResultFile::at).transpose()?;
    let interrupt = Interrupt::by_signal()?;
    let report = measure(&runs, &How { options, plan: &plan, interrupt: &interrupt }, console);
    let count = runs.iter().map(|run| run.benchmarks.len()).sum();
    let end = end_of(&report, &interrupt, count);
    if report.rows.is_empty() && end.is_err() {
        // Keep a file with another run's results rather than replace it with an empty one.
        return end;
    }
    match (
        write_results::<S>(
            &How { options, plan: &plan, interrupt: &interrupt },
            rest,
            file.as_ref(),
            &report,
            console,
        ),
        end,
    ) {
        (Ok(()), end) => end,
        // A reader that has closed its end does not turn a failure into a success.
        (Err(error), Err(end)) if output::is_closed(&error) => Err(end),
        (Err(error), Err(end)) => Err(end.context(format!("{error:#}"))),
        (Err(error), Ok(())) => Err(error),
    }
}

/// Returns the result of a run of so many benchmarks.
fn end_of(report: &MicroResults<'_>, interrupt: &Interrupt, count: usize) -> anyhow::Result<()> {
    let (measured, failed) = (report.rows.len(), report.failures.len());
    let failure = report.failures.first().map(|Failure { name, why }| {
        let first = if failed > 1 { ", the first of them" } else { ":" };
        anyhow!("{failed} of {count} benchmarks failed{first} {name}: {why}")
    });
    let interrupted = interrupt.is_asked_for().then(|| {
        format!("interrupted: {measured} of {count} benchmarks were measured, the last ones maybe less often")
    });
    match (failure, interrupted) {
        (None, None) => Ok(()),
        (None, Some(interrupted)) => Err(anyhow!(interrupted)),
        (Some(failure), None) => Err(failure),
        (Some(failure), Some(interrupted)) => Err(failure.context(interrupted)),
    }
}

/// Warns about flags that make the figures less reliable.
fn warn(options: &MicroOptions, console: &mut Console<'_>) {
    if cfg!(debug_assertions) && !options.quick {
        console.note("built with assertions: the figures are not those of a release build");
    }
    if options.quick {
        console.note("--quick: small scenarios, no figures to go by");
    }
    if options.against.as_deref() == Some("peers") && !cfg!(feature = "peers") {
        console.note("built without the feature `peers`: of those there is std::sync::mpsc alone");
    }
}

/// Settings of a run.
#[derive(Clone, Copy)]
struct How<'a> {
    options: &'a MicroOptions,
    plan: &'a Plan,
    interrupt: &'a Interrupt,
}

fn measure<'a>(runs: &[Run<'a>], how: &How<'_>, console: &mut Console<'_>) -> MicroResults<'a> {
    let How { options, plan, interrupt } = *how;
    let start = SystemTime::now();
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for (number, run) in runs.iter().enumerate() {
        let names: Vec<&str> = run.benchmarks.iter().map(|one| one.name()).collect();
        console.note(format_args!("{}/{}: {}", number + 1, runs.len(), names.join(", ")));
        let outcomes = match plan.forks {
            0 => runner::measure(&run.benchmarks, plan, interrupt),
            _ => fork::measure(&console.caller, &names, options, plan, interrupt),
        };
        for (&benchmark, outcome) in run.benchmarks.iter().zip(outcomes) {
            if let Some(why) = outcome.failure.clone() {
                let failure = Failure { name: benchmark.name().to_owned(), why };
                console.note(&failure);
                failures.push(failure);
            }
            if outcome.has_figures() {
                rows.push(Row { benchmark, outcome, mode: plan.mode, group: run.group() });
            }
        }
        if interrupt.is_asked_for() {
            break;
        }
    }
    MicroResults {
        start,
        end: SystemTime::now(),
        is_interrupted: interrupt.is_asked_for(),
        rows,
        failures,
        machine: Machine::this(),
        verbose: options.verbose,
    }
}

/// Writes the file before printing, which fails if the reader has closed its end.
fn write_results<S: Scenario>(
    how: &How<'_>,
    rest: &impl Serialize,
    file: Option<&ResultFile<'_>>,
    report: &MicroResults<'_>,
    console: &mut Console<'_>,
) -> anyhow::Result<()> {
    let How { options, plan, .. } = *how;
    let mut json = serde_json::to_string_pretty(&jmh::entries(report, plan))?;
    json.push('\n');
    let kept = file.map_or(Ok(()), |file| file.write(&json));
    let out = &mut *console.out;
    let written = if options.prints_json() {
        printed(out.write_all(json.as_bytes()))
    } else if options.markdown {
        printed(write!(out, "{}", Markdown(report)))
    } else if options.go {
        printed(write!(out, "{}", GoLines(report)))
    } else {
        let written = console.print::<S>(&options.of_run(rest), report, options.json);
        written.map(|_| ()).context("cannot write to standard output")
    };
    // Without the file, the printed text is the only result of the run.
    kept.map_err(anyhow::Error::from).and(written)
}

/// Adds context to an error of printing.
fn printed(result: io::Result<()>) -> anyhow::Result<()> {
    result.context("cannot write to standard output")
}

fn list<'a>(
    benchmarks: impl Iterator<Item = &'a &'a Benchmark>,
    verbose: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for benchmark in benchmarks {
        writeln!(out, "{}", benchmark.name())?;
        if verbose {
            writeln!(out, "    measures: {}", benchmark.measures())?;
            if !benchmark.other_names().is_empty() {
                writeln!(out, "    also called: {}", benchmark.other_names().join(", "))?;
            }
        }
    }
    Ok(())
}

fn run_as_fork(
    options: &MicroOptions,
    plan: &Plan,
    benchmarks: &[Benchmark],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let find = |name: &String| {
        benchmarks
            .iter()
            .find(|one| one.name() == name)
            .with_context(|| format!("no benchmark is called {name}"))
    };
    let run = options.as_fork.iter().map(find).collect::<anyhow::Result<Vec<_>>>()?;
    // Ctrl-C reaches all processes of the terminal. A fork then returns its results so far, which
    // is a success; the parent process reports that the run ended early.
    let interrupt = Interrupt::default();
    interrupt.also_by(SIGINT)?;
    let found = runner::measure(&run, plan, &interrupt);
    serde_json::to_writer(out, &found)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::benchmark::{Benchmark, Work};
    use super::program::exit_code;
    use super::test_report::benchmark;
    use super::{MicroOptions, run as run_of};
    use crate::circuit::CircuitScenario;
    use crate::report::{Report, Verdict};
    use crate::scenario::{Caller, Console};
    use crate::test_run::options;
    use std::cell::Cell;
    use std::io::{self, Write};
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::Duration;

    /// A reader that has closed its end.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn run(benchmarks: &[Benchmark], flags: &[&str], out: &mut impl Write) -> anyhow::Result<Verdict> {
        let short = ["-i", "3", "--wi", "0", "-r", "1us"];
        let options = options::<MicroOptions>(&[&short, flags].concat());
        // The progress has no reader either.
        let caller = Caller { arguments: Vec::new() };
        run_of::<CircuitScenario>(benchmarks, &options, &(), &mut Console::new(out, &mut Closed, caller))?;
        Ok(Verdict::passed())
    }

    /// A benchmark that loses a value in the iteration of this number.
    fn losing_in(iteration: u32, name: &str) -> Benchmark {
        let begun = Cell::new(0);
        Benchmark::new(name, "", move |_| {
            begun.set(begun.get() + 1);
            let is_lost = begun.get() == iteration;
            Work::calls(1, move || {
                anyhow::ensure!(!is_lost, "it did not arrive");
                Ok(Duration::from_millis(1))
            })
        })
    }

    /// Returns the benchmarks in a result file with their numbers of samples.
    fn results(file: &Path) -> Vec<(String, usize)> {
        let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let entry = |entry: &serde_json::Value| {
            let samples = entry["primaryMetric"]["rawData"][0].as_array().unwrap().len();
            (entry["benchmark"].as_str().unwrap().to_owned(), samples)
        };
        json.as_array().unwrap().iter().map(entry).collect()
    }

    #[test]
    fn a_reader_that_has_seen_enough_costs_no_results_and_is_no_failure() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("results.json");
        let result = run(&[benchmark("A.a")], &["--rff", file.to_str().unwrap()], &mut Closed);
        assert_eq!(results(&file), [("A.a".to_owned(), 3)]);
        assert_eq!(exit_code(result), ExitCode::SUCCESS);
        assert_eq!(exit_code(run(&[benchmark("A.a")], &["-l"], &mut Closed)), ExitCode::SUCCESS);
        assert_eq!(exit_code(run(&[benchmark("A.a")], &["--rff", "-"], &mut Closed)), ExitCode::SUCCESS);
    }

    #[test]
    fn a_benchmark_that_fails_takes_nothing_from_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("results.json");
        let benchmarks = [benchmark("A.a"), losing_in(2, "A.b"), benchmark("A.c")];
        let mut out = Vec::new();
        let error = run(&benchmarks, &["--rff", file.to_str().unwrap()], &mut out).unwrap_err();
        let error = format!("{error:#}");
        assert_eq!(error, "1 of 3 benchmarks failed: A.b: it did not arrive");
        assert_eq!(results(&file), [("A.a".to_owned(), 3), ("A.c".to_owned(), 3)]);
        let table = String::from_utf8(out).unwrap();
        assert!(
            table.contains("\nA.a        avgt    3") && table.contains("\nA.c        avgt    3"),
            "{table}"
        );
        assert!(table.ends_with("\nA.b failed: it did not arrive\n"), "{table}");
        // A reader that has closed its end does not hide it either.
        let result = run(&[benchmark("A.a"), losing_in(1, "A.b")], &[], &mut Closed);
        assert_eq!(exit_code(result), ExitCode::FAILURE);
    }

    #[test]
    fn a_benchmark_that_panics_takes_nothing_from_the_others() {
        let panics = |name| Benchmark::new(name, "", |_| panic!("it broke"));
        let mut out = Vec::new();
        let error = run(&[benchmark("A.a"), panics("A.b"), panics("A.c"), benchmark("A.d")], &[], &mut out)
            .unwrap_err();
        let expected = "2 of 4 benchmarks failed, the first of them A.b: it panicked: it broke";
        assert_eq!(format!("{error:#}"), expected);
        let table = String::from_utf8(out).unwrap();
        assert!(table.contains("\nA.a ") && table.contains("\nA.d "), "{table}");
        assert!(table.contains("\nA.b failed: it panicked: it broke\nA.c failed: "), "{table}");
    }

    #[test]
    fn without_what_they_are_over_there_are_no_ratios() {
        for (format, heading) in
            [(&[][..], "No ratios of the bench"), (&["--markdown"], "\nNo ratios of the")]
        {
            let benchmarks = [losing_in(2, "A.a"), benchmark("A.b"), benchmark("A.c")];
            let mut out = Vec::new();
            let flags = [&["A.", "--against", "A.a"], format].concat();
            assert!(run(&benchmarks, &flags, &mut out).is_err());
            let table = String::from_utf8(out).unwrap();
            assert!(table.contains(heading) && !table.contains("Times of"), "{table}");
            assert!(table.contains("figures of A.a") || table.contains("figures of `A.a`"), "{table}");
        }
    }

    #[test]
    fn a_row_measured_in_turns_with_a_failing_one_keeps_its_rounds() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("results.json");
        let flags = ["A.", "--against", "A.a", "--rff", file.to_str().unwrap()];
        let benchmarks = [benchmark("A.a"), losing_in(3, "A.b"), benchmark("A.c")];
        assert!(run(&benchmarks, &flags, &mut Vec::new()).is_err());
        assert_eq!(results(&file), [("A.a".to_owned(), 3), ("A.c".to_owned(), 3)]);
    }

    #[test]
    fn a_run_without_a_result_leaves_the_file_of_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("results.json");
        let flags = ["--rff", file.to_str().unwrap()];
        run(&[benchmark("A.a")], &flags, &mut Vec::new()).unwrap();
        assert!(run(&[losing_in(1, "A.b")], &flags, &mut Vec::new()).is_err());
        assert_eq!(results(&file), [("A.a".to_owned(), 3)]);
    }

    #[test]
    fn a_report_has_every_metric_of_a_benchmark_and_why_others_failed() {
        let benchmarks = [benchmark("A.a"), losing_in(2, "A.b"), benchmark("A.c")];
        let mut out = Vec::new();
        let error = run(&benchmarks, &["--json", "--against", "A.a", "A."], &mut out).unwrap_err();
        let report: Report = serde_json::from_slice(&out).unwrap();
        assert_eq!((report.scenario.as_str(), &report.options["iterations"]), ("circuit", &3.into()));
        let figures: Vec<_> =
            report.figures.iter().map(|one| (one.of.as_deref(), one.name.as_str())).collect();
        let expected = [(Some("A.a"), "score"), (Some("A.c"), "score"), (Some("A.c"), "ratio_to_A.a")];
        assert_eq!(figures, expected);
        assert_eq!((report.figures[0].unit.as_str(), report.figures[0].count), ("ns/op", Some(3)));
        assert_eq!(report.verdict, Verdict::unless(vec!["A.b failed: it did not arrive".to_owned()]));
        assert_eq!(error.to_string(), "1 of 3 benchmarks failed: A.b: it did not arrive");
    }

    #[test]
    fn tables_and_json_are_not_both_standard_output() {
        let error = run(&[benchmark("A.a")], &["--markdown", "--rff", "-"], &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("--markdown"), "{error}");
    }
}
