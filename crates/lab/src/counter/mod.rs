//! The laboratory of counters: what churn costs when only its net is stored, beside what others do, under the original's flags.
//!
//! ```text
//! traffic ─► workers ─► subject ─► meter ─► store
//!               │          ▲                  │
//!            ledger      watch             read back
//!               └──────────┴───────┬──────────┘
//!                               outcome ─► report, table, JSON
//! ```
//!
//! Each file uses only what stands before it: what is asked for (`variant`, `target`, `lookup`, `parse`, `flags`, `settings`), what measures
//! (`stopwatch`, `sample`, `meter`, `real_stores`, `metered`, `ledger`, `traffic`), what is measured (`subject`, `named`, `ticker`, `subjects`), what is found (`outcome`, `watch`, `profile`, `run`) and how it is said (`text`, `report`, `table`, `batches`), what a kill
//! leaves (`kill`), and this file.
//!
//! Nothing may flatter: operations are random draws that never come around, the clock's cost is taken off, the final flush is part of
//! the measured time, and the workers' ledger is compared with what the store has at the end. A counter that has done what it must not
//! ends the program with an error.

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

pub use crate::micro::Caller;

use crate::interrupt::Interrupt;
use crate::output;
use anyhow::Context;
use flags::Action;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Does what the flags and the variables of the environment say, which are looked up by `environment`; this program comes back to
/// this laboratory by the `caller`'s arguments. Writes what is found to `out`,
/// and how far it is to `notes`, which may fail without a consequence. Returns false if a counter has done what it must not.
pub fn run(
    options: &CounterOptions,
    caller: &Caller,
    environment: &dyn Fn(&str) -> Option<String>,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> anyhow::Result<bool> {
    if cfg!(debug_assertions) {
        let _ = writeln!(notes, "built with assertions: the figures are not those of a release build");
    }
    match &options.action {
        None if options.kill => {
            let settings = Settings::resolve(&options.flags, environment, Settings::harness())?;
            let aftermath = kill::run(&settings, caller, notes)?;
            output::write_report(&aftermath, options.printing.json, out)?;
            Ok(aftermath.faults().is_empty())
        }
        Some(Action::Victim { notebook, names, flags }) => {
            let settings = Settings::resolve(flags, environment, Settings::harness())?;
            kill::work(&Settings { names: names.clone(), ..settings }, notebook, out)?;
            Ok(true)
        }
        None => {
            let settings = Settings::resolve(&options.flags, environment, Settings::harness())?;
            let outcome = run::run(&settings, options.profile.as_deref(), &Interrupt::by_signal()?)?;
            output::write_report(&outcome, options.printing.json, out)?;
            Ok(outcome.faults().is_empty())
        }
        Some(Action::Baselines { flags, printing }) => {
            let settings = Settings::resolve(flags, environment, Settings::baselines())?;
            let runs = batches::baselines(&settings, flags.variant);
            if printing.json {
                let interrupt = Interrupt::by_signal()?;
                let run = |settings| run::run(settings, None, &interrupt);
                // The last one says of itself that it was interrupted.
                let runs = runs.iter().take_while(|_| !interrupt.is_asked_for());
                let outcomes = runs.map(run).collect::<anyhow::Result<Vec<_>>>()?;
                serde_json::to_writer_pretty(&mut *out, &outcomes)?;
                writeln!(out)?;
                Ok(outcomes.iter().all(|outcome| outcome.faults().is_empty()))
            } else {
                write_table(&runs, out, notes)
            }
        }
        Some(Action::Sweep { out: path, flags }) => {
            let settings = Settings::resolve(flags, environment, Settings::baselines())?;
            // Before anything takes long: a mistaken name is told at once.
            let mut file = create(path)?;
            let is_right = write_table(&batches::sweep(&settings), &mut file, notes)?;
            file.sync_all().with_context(|| format!("cannot write {}", path.display()))?;
            writeln!(out, "{}", path.display())?;
            Ok(is_right)
        }
    }
}

/// Makes the runs one after the other, each a line as soon as it is done. Returns whether all have done only what they may.
fn write_table(runs: &[Settings], out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<bool> {
    writeln!(out, "{}", header())?;
    let mut is_right = true;
    let interrupt = Interrupt::by_signal()?;
    for (number, settings) in runs.iter().enumerate() {
        let _ = writeln!(notes, "{}/{}: {}", number + 1, runs.len(), settings.variant);
        let outcome = run::run(settings, None, &interrupt).with_context(|| settings.variant.to_string())?;
        // In a table a part of a run would pass for all of it.
        if interrupt.is_asked_for() {
            let _ = writeln!(notes, "interrupted: {number} of {} runs were measured", runs.len());
            break;
        }
        writeln!(out, "{}", table::line(&outcome))?;
        for fault in outcome.faults() {
            is_right = false;
            let _ = writeln!(notes, "{}: {fault}", settings.variant);
        }
    }
    Ok(is_right)
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}
