//! Measurement in fresh processes, so that one benchmark cannot affect another.

use super::options::{MicroOptions, Plan};
use super::runner::Outcome;
use crate::interrupt::Interrupt;
use crate::scenario::Caller;
use signal_hook::consts::SIGINT;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};

/// Why a fork has no samples.
#[derive(Debug, thiserror::Error)]
enum ForkError {
    #[error("could not be started: {0}")]
    NotStarted(io::Error),
    #[error("ended with {0}")]
    Ended(ExitStatus),
    #[error("has written no samples: {0}")]
    Unreadable(serde_json::Error),
    #[error("has measured something else")]
    SomethingElse,
}

/// Measures these benchmarks in fresh processes, one after the other, and merges the results.
/// Returns an outcome for each, in their order.
pub(crate) fn measure(
    caller: &Caller,
    names: &[&str],
    options: &MicroOptions,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Vec<Outcome> {
    let outcome = |name: &&str| Outcome { name: (*name).to_owned(), ..Outcome::default() };
    let mut all: Vec<Outcome> = names.iter().map(outcome).collect();
    for number in 1..=plan.forks {
        let is_left = |(one, _): &(&Outcome, &&str)| one.failure.is_none();
        let left: Vec<&str> = all.iter().zip(names).filter(is_left).map(|(_, name)| *name).collect();
        if left.is_empty() || interrupt.is_asked_for() {
            break;
        }
        match measure_once(caller, &left, options, plan) {
            Ok(found) => add(&mut all, found),
            // Ctrl-C interrupted the fork as well, before it could answer.
            Err(ForkError::Ended(how)) if how.signal() == Some(SIGINT) && interrupt.is_asked_for() => break,
            Err(error) => {
                let turns = match left.len() {
                    1 => String::new(),
                    count => format!(", in which {count} took turns,"),
                };
                fail(&mut all, &format!("fork {number} of {}{turns} {error}", plan.forks));
                break;
            }
        }
    }
    all
}

/// Adds a fork's results to the outcomes that have not failed.
fn add(all: &mut [Outcome], found: Vec<Outcome>) {
    let left = all.iter_mut().filter(|one| one.failure.is_none());
    left.zip(found).for_each(|(sum, fork)| sum.add(fork));
}

/// Marks all remaining outcomes as failed: it is unknown which benchmark caused the failure.
fn fail(all: &mut [Outcome], why: &str) {
    for one in all.iter_mut().filter(|one| one.failure.is_none()) {
        one.failure = Some(why.to_owned());
    }
}

fn measure_once(
    caller: &Caller,
    names: &[&str],
    options: &MicroOptions,
    plan: &Plan,
) -> Result<Vec<Outcome>, ForkError> {
    let program = std::env::current_exe().map_err(ForkError::NotStarted)?;
    let seconds = |time: std::time::Duration| time.as_secs_f64().to_string();
    let mut command = Command::new(program);
    command.args(&caller.arguments).arg("--as-fork").arg(names.join(","));
    command.args(["--mode", plan.mode.word()]);
    command.args(["--warmup-iterations", &plan.warmup_iterations.to_string()]);
    command.args(["--iterations", &plan.iterations.to_string()]);
    command.args(["--warmup-time", &seconds(plan.warmup_time), "--time", &seconds(plan.time)]);
    if plan.allocations {
        command.args(["--profiler", "gc"]);
    }
    if options.quick {
        command.arg("--quick");
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(ForkError::NotStarted)?;
    read(&output, names)
}

/// Parses the output of a fork.
fn read(output: &Output, names: &[&str]) -> Result<Vec<Outcome>, ForkError> {
    if !output.status.success() {
        return Err(ForkError::Ended(output.status));
    }
    let found: Vec<Outcome> = serde_json::from_slice(&output.stdout).map_err(ForkError::Unreadable)?;
    let same = found.iter().map(|outcome| outcome.name.as_str()).eq(names.iter().copied());
    if same { Ok(found) } else { Err(ForkError::SomethingElse) }
}

#[cfg(test)]
mod tests {
    use super::{add, fail, read};
    use crate::micro::runner::Outcome;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    fn outcome(name: &str, samples: &[f64]) -> Outcome {
        Outcome { name: name.to_owned(), samples: vec![samples.to_vec()], ..Outcome::default() }
    }

    fn output(exit_code: i32, found: &[Outcome]) -> Output {
        let stdout = serde_json::to_vec(found).unwrap();
        Output { status: ExitStatus::from_raw(exit_code << 8), stdout, stderr: Vec::new() }
    }

    #[test]
    fn a_benchmark_that_fails_in_a_fork_has_no_figures_and_is_not_in_the_next() {
        let mut all = vec![Outcome::default(), Outcome::default()];
        (all[0].name, all[1].name) = ("A.a".to_owned(), "A.b".to_owned());
        let mut fork = |found: &[Outcome], names: &[&str]| {
            add(&mut all, read(&output(0, found), names).unwrap());
        };
        fork(&[outcome("A.a", &[1.0]), outcome("A.b", &[2.0])], &["A.a", "A.b"]);
        let mut failed = outcome("A.b", &[]);
        (failed.samples, failed.failure) = (Vec::new(), Some("it is wrong".to_owned()));
        fork(&[outcome("A.a", &[3.0]), failed], &["A.a", "A.b"]);
        fork(&[outcome("A.a", &[5.0])], &["A.a"]);
        assert_eq!(all[0].samples, [[1.0], [3.0], [5.0]]);
        assert_eq!(all[1].failure.as_deref(), Some("it is wrong"));
        assert_eq!([all[0].has_figures(), all[1].has_figures()], [true, false]);
    }

    #[test]
    fn a_fork_that_dies_takes_nothing_from_those_before_it() {
        let mut all = vec![outcome("A.a", &[1.0]), outcome("A.b", &[2.0])];
        all[1].failure = Some("it is wrong".to_owned());
        fail(&mut all, "it died");
        assert_eq!(all[0].samples, [[1.0]]);
        assert_eq!(
            all.iter().map(|one| one.failure.as_deref().unwrap()).collect::<Vec<_>>(),
            ["it died", "it is wrong"]
        );
    }

    #[test]
    fn a_fork_that_was_interrupted_before_it_had_a_sample_adds_none() {
        let mut all = vec![outcome("A.a", &[1.0])];
        add(&mut all, vec![outcome("A.a", &[])]);
        assert_eq!(all[0].samples, [[1.0]]);
    }

    #[test]
    fn a_fork_without_a_word_or_with_another_ones_is_an_error() {
        let error = |output: &Output| read(output, &["A.a"]).unwrap_err().to_string();
        let silent = |exit_code| Output { stdout: Vec::new(), ..output(exit_code, &[]) };
        assert_eq!(error(&silent(101)), "ended with exit status: 101");
        assert!(error(&silent(0)).contains("no samples"));
        assert!(error(&output(0, &[outcome("A.b", &[1.0])])).contains("something else"));
    }
}
