//! Measuring in a fresh process, as often as asked for: nothing that one benchmark leaves behind reaches another.

use super::interrupt::Interrupt;
use super::options::{CircuitOptions, Plan};
use super::runner::{Measured, Outcome};
use anyhow::Context;
use std::ffi::OsString;
use std::process::{Command, Output, Stdio};

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
) -> Measured<Outcome> {
    let mut all: Vec<Outcome> = Vec::new();
    for _ in 0..plan.forks {
        let fork = measure_once(caller, names, options, plan);
        if interrupt.is_asked_for() {
            // It was asked too, and has ended in the middle.
            break;
        }
        match fork {
            Ok(Measured { found, failure }) => {
                add(&mut all, found);
                if failure.is_some() {
                    return Measured { found: all, failure };
                }
            }
            // Nobody says which of them it was.
            Err(failure) => return Measured { found: Vec::new(), failure: Some(failure) },
        }
    }
    Measured { found: all, failure: None }
}

/// Adds what a fork has found to what those before it have.
fn add(all: &mut Vec<Outcome>, found: Vec<Outcome>) {
    if all.is_empty() {
        *all = found;
    } else {
        all.iter_mut().zip(found).for_each(|(sum, fork)| sum.add(fork));
    }
}

fn measure_once(
    caller: &Caller,
    names: &[&str],
    options: &CircuitOptions,
    plan: &Plan,
) -> anyhow::Result<Measured<Outcome>> {
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
    read(&output, names)
}

/// What a fork has written, which one that has failed does as well unless it was ended from outside.
fn read(output: &Output, names: &[&str]) -> anyhow::Result<Measured<Outcome>> {
    let names_joined = || names.join(", ");
    let failure = (!output.status.success())
        .then(|| anyhow::anyhow!("the fork for {} failed: {}", names_joined(), output.status));
    let found = match (serde_json::from_slice::<Vec<Outcome>>(&output.stdout), failure) {
        (Ok(found), failure) => Measured { found, failure },
        (Err(_), Some(failure)) => return Err(failure),
        (Err(error), None) => return Err(error).context("a fork's samples are not readable"),
    };
    let same = found.found.iter().map(|outcome| outcome.name.as_str()).eq(names.iter().copied());
    anyhow::ensure!(same, "a fork has measured something else than {}", names_joined());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{add, read};
    use crate::circuit::runner::Outcome;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    fn outcome(name: &str, sample: f64, has_failed: bool) -> Outcome {
        Outcome { name: name.to_owned(), samples: vec![vec![sample]], has_failed, ..Outcome::default() }
    }

    fn output(exit_code: i32, found: &[Outcome]) -> Output {
        let stdout = serde_json::to_vec(found).unwrap();
        Output { status: ExitStatus::from_raw(exit_code << 8), stdout, stderr: Vec::new() }
    }

    #[test]
    fn a_fork_that_fails_takes_the_figures_of_its_failure_alone() {
        let mut all = Vec::new();
        let first =
            read(&output(0, &[outcome("A.a", 1.0, false), outcome("A.b", 2.0, false)]), &["A.a", "A.b"]);
        add(&mut all, first.unwrap().found);
        let second = output(1, &[outcome("A.a", 3.0, false), outcome("A.b", 4.0, true)]);
        let second = read(&second, &["A.a", "A.b"]).unwrap();
        assert!(second.failure.unwrap().to_string().contains("the fork for A.a, A.b failed: exit status: 1"));
        add(&mut all, second.found);
        assert_eq!(all[0].samples, [[1.0], [3.0]]);
        assert_eq!([all[0].has_figures(), all[1].has_figures()], [true, false]);
    }

    #[test]
    fn a_fork_without_a_word_or_with_another_ones_is_an_error() {
        let error = |output: &Output| read(output, &["A.a"]).map(drop).unwrap_err().to_string();
        let silent = |exit_code| Output { stdout: Vec::new(), ..output(exit_code, &[]) };
        assert!(error(&silent(101)).contains("the fork for A.a failed: exit status: 101"));
        assert!(error(&silent(0)).contains("not readable"));
        assert!(error(&output(0, &[outcome("A.b", 1.0, false)])).contains("something else than A.a"));
    }
}
