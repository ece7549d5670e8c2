//! `tidemark bench circuit` that is interrupted, whose processes are killed, or whose disk is full.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use tempfile::TempDir;

/// A run that is measuring its first benchmark.
struct Run {
    process: Child,
    notes: BufReader<ChildStderr>,
    directory: TempDir,
}

impl Run {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = bench(arguments)
            .args(["--wi", "0", "-rff", "results.json"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut notes = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("1/") {
            line.clear();
            assert!(notes.read_line(&mut line).unwrap() > 0, "it ends before it measures");
        }
        Run { process, notes, directory }
    }

    /// Returns the id of the measuring child process.
    fn fork(&self) -> u32 {
        let id = self.process.id();
        loop {
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
            if let Some(child) = children.split_whitespace().next() {
                return child.parse().unwrap();
            }
            std::thread::yield_now();
        }
    }

    /// Waits until the process has used a fifth of a second of processor time.
    fn wait_until_busy(process: u32) {
        let ticks = || {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
            stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse::<u32>().unwrap()
        };
        while ticks() < 20 {
            std::thread::yield_now();
        }
    }

    /// Waits for the end; returns the exit code, standard output, standard error, and the results
    /// without spaces.
    fn end(mut self) -> (Option<i32>, String, String, String) {
        let mut said = String::new();
        self.notes.read_to_string(&mut said).unwrap();
        let output = self.process.wait_with_output().unwrap();
        let results = fs::read_to_string(self.directory.path().join("results.json")).unwrap();
        let results = results.split_whitespace().collect();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said, results)
    }
}

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["bench", "circuit"]).args(arguments);
    command
}

fn send(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// Returns how many forks have samples in the results of one benchmark.
fn forks(results: &str) -> usize {
    let (_, samples) = results.split_once(r#""rawData":[["#).unwrap();
    samples.split_once("]]").unwrap().0.split("],[").count()
}

#[test]
fn an_interrupt_keeps_what_a_fork_has_found_that_was_not_interrupted() {
    let run = Run::start(&["^IdOps.id_from_subject$", "-f", "3", "-i", "10", "-r", "0.1"]);
    run.fork();
    send("-INT", run.process.id());
    let (code, table, said, results) = run.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("interrupted: 1 of 1 benchmarks"), "{said}");
    assert!(table.contains("IdOps.id_from_subject  avgt   10"), "{table}");
    assert_eq!(forks(&results), 1, "{results}");
}

#[test]
fn an_interrupted_fork_gives_what_it_has_found_until_then() {
    let run = Run::start(&["^IdOps.id_from_subject$", "-f", "3", "-i", "10000", "-r", "0.001"]);
    let fork = run.fork();
    // Some of its iterations are over then, and most are not.
    Run::wait_until_busy(fork);
    send("-INT", run.process.id());
    send("-INT", fork);
    let (code, _, said, results) = run.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("interrupted: 1 of 1 benchmarks"), "{said}");
    assert_eq!(forks(&results), 1, "{results}");
}

#[test]
fn a_fork_that_dies_has_failed_and_all_others_are_kept() {
    let run =
        Run::start(&["^IdOps.id_from_subject$", "^IdOps.id_toString$", "-f", "1", "-i", "10", "-r", "0.1"]);
    send("-KILL", run.fork());
    let (code, table, said, results) = run.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.ends_with("IdOps.id_from_subject: fork 1 of 1 ended with signal: 9 (SIGKILL)\n"), "{said}");
    let failed = "IdOps.id_from_subject failed: fork 1 of 1 ended with signal: 9 (SIGKILL)";
    assert!(table.contains(failed) && table.contains("IdOps.id_toString  avgt   10"), "{table}");
    assert!(results.contains("IdOps.id_toString") && !results.contains("IdOps.id_from"), "{results}");
}

/// The program's allocator counts for `bench`: a newly allocated text is one block.
#[test]
fn the_profiler_of_allocations_states_what_an_operation_asks_for() {
    let output = bench(&["^IdOps.id_toString$", "-bm", "ss", "-prof", "gc", "-rff", "-"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &results[0]["secondaryMetrics"];
    let score = |metric: &str| found[metric]["score"].as_f64().unwrap_or_else(|| panic!("{metric}: {found}"));
    assert!(score("gc.alloc.count.norm") >= 1.0, "{found}");
    assert!(score("gc.alloc.rate.norm") >= 1.0, "{found}");
}

#[test]
fn a_pattern_that_means_nothing_is_a_wrong_command_line() {
    for (pattern, reason) in [("", "an empty pattern means nothing"), ("nope", "no benchmark's name has")] {
        let output = bench(&["-l", pattern]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(reason), "{output:?}");
    }
}

#[test]
fn a_full_disk_is_reported_with_what_could_not_be_written() {
    let one_shot = ["^IdOps.id_from_subject$", "-bm", "ss"];
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = bench(&one_shot).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot write to standard output: No space left"), "{}", said(&output));
    // The printed output is then the only result.
    let output = bench(&one_shot).args(["-rff", "/dev/full"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot write /dev/full: No space left"), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("IdOps.id_from_subject"));
}
