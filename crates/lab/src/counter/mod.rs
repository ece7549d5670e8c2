//! The laboratory of counters: costs of churn if only its net is stored, next to peers, under the
//! original's flags.
//!
//! ```text
//! traffic ─► workers ─► subject ─► meter ─► store
//!               │          ▲                  │
//!            ledger      watch             read back
//!               └──────────┴───────┬──────────┘
//!                               outcome ─► report, table, JSON
//! ```
//!
//! Each file uses only the ones before it: inputs (`variant`, `target`, `lookup`, `parse`, `flags`,
//! `settings`), instruments (`stopwatch`, `sample`, `meter`, `real_stores`, `metered`, `ledger`,
//! `traffic`), subjects (`subject`, `named`, `ticker`, `subjects`), measurement (`outcome`,
//! `watch`, `profile`, `run`), output (`text`, `report`, `table`, `batches`), the kill scenario
//! (`kill`), and this file.
//!
//! The figures must not flatter. Operations are random draws that never repeat, the clock's cost is
//! subtracted, the final flush is part of the measured time, and the workers' ledger is compared
//! with the final content of the store. A counter that breaks its promise ends the program with an
//! error.

mod batches;
mod flags;
mod kill;
mod ledger;
mod lookup;
mod meter;
mod metered;
mod named;
mod outcome;
mod parse;
mod profile;
mod real_stores;
mod report;
mod run;
mod sample;
mod settings;
mod stopwatch;
mod subject;
mod subjects;
mod table;
mod target;
mod text;
mod ticker;
mod traffic;
mod variant;
mod watch;

pub use flags::{CounterOptions, Flags};
pub use lookup::Lookup;
pub use settings::{Settings, VariableError};
pub use table::header;
pub use target::Target;
pub use variant::Variant;

use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::report::{Contents, Figures, Report, Verdict};
use crate::scenario::{Console, Scenario};
use anyhow::Context;
use flags::Action;
use outcome::Outcome;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

/// The laboratory of counters.
pub struct CounterScenario;

impl Scenario for CounterScenario {
    const NAME: &'static str = "counter";
    type Options = CounterOptions;

    fn run(options: &CounterOptions, console: &mut Console<'_>) -> anyhow::Result<Verdict> {
        run(options, &|name| std::env::var(name).ok(), console)
    }
}

/// Runs the laboratory as the flags and the environment variables say; `environment` looks up the
/// variables.
pub fn run(
    options: &CounterOptions,
    environment: &dyn Fn(&str) -> Option<String>,
    console: &mut Console<'_>,
) -> anyhow::Result<Verdict> {
    if cfg!(debug_assertions) {
        console.note("built with assertions: the figures are not those of a release build");
    }
    match &options.action {
        None if options.kill => {
            let settings = Settings::resolve(&options.flags, environment, Settings::harness())?;
            let aftermath = kill::run(&settings, console)?;
            let given = RunOptions { action: "kill", profile: None, settings: &aftermath.settings };
            console.print::<CounterScenario>(&given, &aftermath, options.printing.json)
        }
        Some(Action::Victim { notebook, names, flags }) => {
            let settings = Settings::resolve(flags, environment, Settings::harness())?;
            kill::work(&Settings { names: names.clone(), ..settings }, notebook, &mut console.out)?;
            Ok(Verdict::passed())
        }
        None => {
            let settings = Settings::resolve(&options.flags, environment, Settings::harness())?;
            let profile = options.profile.as_deref();
            let outcome = run::run(&settings, profile, &Interrupt::by_signal()?)?;
            let profile = profile.map(|folder| folder.display().to_string());
            let given = RunOptions { action: "run", profile, settings: &outcome.settings };
            console.print::<CounterScenario>(&given, &outcome, options.printing.json)
        }
        Some(Action::Baselines { flags, printing }) => {
            let settings = Settings::resolve(flags, environment, Settings::baselines())?;
            let runs = batches::baselines(&settings, flags.variant);
            if printing.json {
                let given = RunOptions { action: "baselines", profile: None, settings: &settings };
                report_baselines(&runs, &given, console)
            } else {
                write_table(&runs, console.out, console.notes)
            }
        }
        Some(Action::Sweep { out: path, flags }) => {
            let settings = Settings::resolve(flags, environment, Settings::baselines())?;
            // Before anything takes long: an invalid path is reported immediately.
            let mut file = create(path)?;
            let verdict = write_table(&batches::sweep(&settings), &mut file, console.notes)?;
            file.sync_all().with_context(|| format!("cannot write {}", path.display()))?;
            writeln!(console.out, "{}", path.display())?;
            Ok(verdict)
        }
    }
}

/// The options of a run, as its report states them.
#[derive(Serialize)]
struct RunOptions<'a> {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    #[serde(flatten)]
    settings: &'a Settings,
}

/// Makes the runs one after the other, and prints one report of all.
fn report_baselines(
    runs: &[Settings],
    given: &RunOptions<'_>,
    console: &mut Console<'_>,
) -> anyhow::Result<Verdict> {
    let (start, interrupt) = (SystemTime::now(), Interrupt::by_signal()?);
    // The last run may be a partial one; the report states that it was interrupted.
    let runs = runs.iter().take_while(|_| !interrupt.is_asked_for());
    let outcomes =
        runs.map(|settings| run::run(settings, None, &interrupt)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut figures = Figures::default();
    for outcome in &outcomes {
        figures.add_of(outcome.settings.variant.name(), |figures| outcome.add_figures(figures));
    }
    let contents = Contents {
        start,
        end: SystemTime::now(),
        interrupted: interrupt.is_asked_for(),
        machine: Machine::this(),
        servers: Vec::new(),
        figures,
        notes: Vec::new(),
        verdict: Verdict::unless(outcomes.iter().flat_map(faults).collect()),
    };
    let mut report = Report::new(CounterScenario::NAME, given, contents)?;
    // Each figure names its own.
    report.options.remove("variant");
    console.print_report(report)
}

/// Returns the ways in which a counter broke its promise, each with the variant's name.
fn faults(outcome: &Outcome) -> Vec<String> {
    let variant = outcome.settings.variant;
    outcome.faults().iter().map(|fault| format!("{variant}: {fault}")).collect()
}

/// Makes the runs one after the other, and prints the line of each when it ends.
fn write_table(runs: &[Settings], out: &mut dyn Write, notes: &mut dyn Write) -> anyhow::Result<Verdict> {
    writeln!(out, "{}", header())?;
    let mut reasons = Vec::new();
    let interrupt = Interrupt::by_signal()?;
    for (number, settings) in runs.iter().enumerate() {
        let _ = writeln!(notes, "{}/{}: {}", number + 1, runs.len(), settings.variant);
        let outcome = run::run(settings, None, &interrupt).with_context(|| settings.variant.to_string())?;
        // In a table a partial run would pass for a complete one.
        if interrupt.is_asked_for() {
            let _ = writeln!(notes, "interrupted: {number} of {} runs were measured", runs.len());
            break;
        }
        writeln!(out, "{}", table::line(&outcome))?;
        for fault in faults(&outcome) {
            let _ = writeln!(notes, "{fault}");
            reasons.push(fault);
        }
    }
    Ok(Verdict::unless(reasons))
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}
