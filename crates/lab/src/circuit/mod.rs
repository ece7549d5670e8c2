//! The laboratory of circuits: every benchmark that the original names, under its name, each with what it really measures;
//! what those do not measure, beside them; and what others have for the same purpose, in turns.
//!
//! - [`Benchmark`] is a row; the suites in `suites/` are lists of them.
//! - `runner.rs` does a benchmark's work for a while and looks at the clock.
//! - `report.rs`, `ratios.rs`, `markdown.rs`, `jmh.rs` and `comparison.rs` say what was found.
//!
//! A scenario whose values do not all arrive is an error, not a figure.

mod batch;
mod benchmark;
mod comparison;
mod cores;
mod fork;
mod interrupt;
mod jmh;
mod making;
mod markdown;
mod open_loop;
mod options;
mod ratios;
mod report;
mod rig;
mod runner;
mod selection;
mod sizes;
mod suites;
mod tally;

pub use benchmark::{Benchmark, Quantity};
pub use fork::Caller;
pub use options::{CircuitOptions, Mode};
pub use selection::SelectionError;
pub use sizes::Sizes;
pub use suites::all as benchmarks;

use crate::machine::Machine;
use crate::single_dash;
use anyhow::Context;
use clap::{CommandFactory, Parser};
use comparison::Comparison;
use interrupt::Interrupt;
use markdown::Markdown;
use options::{Action, Plan};
use report::{Report, Row};
use selection::{Run, Selection};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Does what the flags say and writes to `out`.
pub fn run(options: &CircuitOptions, caller: &Caller, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(Action::Compare { a, b }) = &options.action {
        write!(out, "{}", Comparison::read(a, b)?)?;
        return Ok(());
    }
    let plan = options.plan();
    let benchmarks = benchmarks();
    if !options.as_fork.is_empty() {
        return run_as_fork(options, &plan, &benchmarks, out);
    }
    let selection = Selection {
        patterns: &options.patterns,
        summary: options.summary,
        against: options.against.as_deref(),
    };
    let runs = selection.runs(&benchmarks)?;
    if options.list {
        return list(runs.iter().flat_map(|run| &run.benchmarks), options.verbose, out);
    }
    warn(options);
    // Before anything takes long: a mistaken name is told at once.
    if let Some(path) = options.result_file.as_ref().filter(|path| *path != Path::new("-")) {
        OpenOptions::new().append(true).create(true).open(path).with_context(|| cannot_write(path))?;
    }
    let interrupt = Interrupt::by_signal()?;
    let rows = measure(&runs, options, &plan, caller, &interrupt)?;
    let report = Report { rows, machine: Machine::this(), verbose: options.verbose };
    write_results(options, &report, &plan, out)?;
    let count: usize = runs.iter().map(|run| run.benchmarks.len()).sum();
    anyhow::ensure!(
        !interrupt.is_asked_for(),
        "interrupted: {} of {count} benchmarks were measured, the last ones maybe less often",
        report.rows.len()
    );
    Ok(())
}

/// Says what the figures will not be.
fn warn(options: &CircuitOptions) {
    if cfg!(debug_assertions) && !options.quick {
        eprintln!("built with assertions: the figures are not those of a release build");
    }
    if options.quick {
        eprintln!("--quick: small scenarios, no figures to go by");
    }
    if options.against.as_deref() == Some("peers") && !cfg!(feature = "peers") {
        eprintln!("built without the feature `peers`: of those there is std::sync::mpsc alone");
    }
}

fn measure<'a>(
    runs: &[Run<'a>],
    options: &CircuitOptions,
    plan: &Plan,
    caller: &Caller,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Row<'a>>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let names: Vec<&str> = run.benchmarks.iter().map(|one| one.name()).collect();
        eprintln!("{}/{}: {}", number + 1, runs.len(), names.join(", "));
        let outcomes = match plan.forks {
            0 => runner::measure(&run.benchmarks, plan, interrupt)?,
            _ => fork::measure(caller, &names, options, plan, interrupt)?,
        };
        let found = run.benchmarks.iter().zip(outcomes);
        let found = found.filter(|(_, outcome)| outcome.samples.iter().any(|fork| !fork.is_empty()));
        rows.extend(found.map(|(&benchmark, outcome)| {
            let group = run.group.clone();
            Row { benchmark, outcome, mode: plan.mode, group }
        }));
        if interrupt.is_asked_for() {
            break;
        }
    }
    Ok(rows)
}

fn write_results(
    options: &CircuitOptions,
    report: &Report<'_>,
    plan: &Plan,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut json = serde_json::to_string_pretty(&jmh::entries(report, plan))?;
    json.push('\n');
    let file = options.result_file.as_deref();
    if file == Some(Path::new("-")) {
        out.write_all(json.as_bytes())?;
        return Ok(());
    }
    if options.markdown {
        write!(out, "{}", Markdown(report))?;
    } else {
        write!(out, "{report}")?;
    }
    match file {
        Some(path) => std::fs::write(path, json).with_context(|| cannot_write(path)),
        None => Ok(()),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn list<'a>(
    benchmarks: impl Iterator<Item = &'a &'a Benchmark>,
    verbose: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
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
    options: &CircuitOptions,
    plan: &Plan,
    benchmarks: &[Benchmark],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let find = |name: &String| {
        benchmarks
            .iter()
            .find(|one| one.name() == name)
            .with_context(|| format!("no benchmark is called {name}"))
    };
    let run = options.as_fork.iter().map(find).collect::<anyhow::Result<Vec<_>>>()?;
    serde_json::to_writer(out, &runner::measure(&run, plan, &Interrupt::default())?)?;
    Ok(())
}

/// The laboratory as a program of its own: what `cargo bench` starts.
#[derive(Parser)]
#[command(name = "circuit", about = "What circuits cost")]
struct Program {
    #[command(flatten)]
    options: CircuitOptions,
    /// `cargo bench` adds this.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

/// Runs the laboratory with the program's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = Program::parse_from(single_dash::normalise(arguments, &long_flags(&Program::command())));
    let caller = Caller { arguments: Vec::new() };
    match run(&program.options, &caller, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The long flags of a command with their other names.
#[must_use]
pub fn long_flags(command: &clap::Command) -> Vec<String> {
    let names = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases);
    names.flatten().map(str::to_owned).collect()
}
