//! Measuring in a fresh process, as often as asked for: nothing that one benchmark leaves behind reaches another.

use super::interrupt::Interrupt;
use super::options::{CircuitOptions, Plan};
use super::runner::Outcome;
use anyhow::Context;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// How this program is called so that it comes back to the laboratory of circuits.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The arguments before the laboratory's own.
    pub arguments: Vec<OsString>,
}

/// Measures these benchmarks in fresh processes, one after the other, and puts together what they found.
pub(super) fn measure(
    caller: &Caller,
    names: &[&str],
    options: &CircuitOptions,
    plan: &Plan,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Outcome>> {
    let mut all: Vec<Outcome> = Vec::new();
    for _ in 0..plan.forks {
        let outcomes = measure_once(caller, names, options, plan);
        if interrupt.is_asked_for() {
            // It was asked too, and has ended in the middle.
            break;
        }
        let outcomes = outcomes?;
        if all.is_empty() {
            all = outcomes;
            continue;
        }
        all.iter_mut().zip(outcomes).for_each(|(sum, fork)| sum.add(fork));
    }
    Ok(all)
}

fn measure_once(
    caller: &Caller,
    names: &[&str],
    options: &CircuitOptions,
    plan: &Plan,
) -> anyhow::Result<Vec<Outcome>> {
    let program =
        std::env::current_exe().context("cannot tell which program this is, to start it as a fork")?;
    let seconds = |time: std::time::Duration| time.as_secs_f64().to_string();
    let mut command = Command::new(program);
    command.args(&caller.arguments).arg("--as-fork").arg(names.join(","));
    command.args(["--mode", plan.mode.word()]);
    command.args(["--warmup-iterations", &plan.warmup_iterations.to_string()]);
    command.args(["--iterations", &plan.iterations.to_string()]);
    command.args(["--warmup-time", &seconds(plan.warmup_time), "--time", &seconds(plan.time)]);
    if options.profiler.is_some() {
        command.args(["--profiler", "gc"]);
    }
    if options.quick {
        command.arg("--quick");
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot start a fork")?;
    anyhow::ensure!(output.status.success(), "the fork for {} failed: {}", names.join(", "), output.status);
    let outcomes: Vec<Outcome> =
        serde_json::from_slice(&output.stdout).context("a fork's samples are not readable")?;
    let same = outcomes.iter().map(|outcome| outcome.name.as_str()).eq(names.iter().copied());
    anyhow::ensure!(same, "a fork has measured something else than {}", names.join(", "));
    Ok(outcomes)
}
