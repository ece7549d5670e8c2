//! Checks for every lab of micro-benchmarks.

use clap::{Args, Parser};
use std::collections::HashSet;
use tidemark_lab::micro::Benchmark;
use tidemark_lab::scenario::{Caller, Console, Scenario};

#[derive(Parser)]
struct Program<O: Args> {
    #[command(flatten)]
    options: O,
}

/// Runs a lab with these flags and returns its output.
pub(crate) fn try_run<S: Scenario>(arguments: &[&str]) -> anyhow::Result<String> {
    let options = Program::<S::Options>::parse_from([&["bench"], arguments].concat()).options;
    let (mut out, mut notes) = (Vec::new(), std::io::sink());
    let caller = Caller { arguments: Vec::new() };
    S::run(&options, &mut Console::new(&mut out, &mut notes, caller))?;
    Ok(String::from_utf8(out)?)
}

/// Asserts that every benchmark has a line in this table.
pub(crate) fn assert_all_are_there(benchmarks: &[Benchmark], table: &str) {
    for benchmark in benchmarks {
        let is_row = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(benchmark.name()) && matches!(words.next(), Some("ss" | "sample"))
        };
        assert!(table.lines().any(is_row), "{} is missing:\n{table}", benchmark.name());
    }
}

/// Asserts that some rows are in the summary, and most are not.
pub(crate) fn assert_the_summary_is_a_part(benchmarks: &[Benchmark]) {
    let count = benchmarks.iter().filter(|one| one.is_in_summary()).count();
    assert!((1..benchmarks.len() / 2).contains(&count), "{count} of {}", benchmarks.len());
}

pub(crate) fn assert_names_are_unique_and_rows_say_what_they_measure(benchmarks: &[Benchmark]) {
    let names: HashSet<&str> = benchmarks.iter().map(Benchmark::name).collect();
    assert_eq!(names.len(), benchmarks.len());
    for one in benchmarks {
        assert!(one.measures().len() > 10, "{} does not say what it measures", one.name());
    }
}
