//! The benchmarks of counters as a whole: every row runs, and the original's names are there.

use clap::Parser;
use std::collections::HashSet;
use tidemark_lab::counter_cost::{Benchmark, Caller, CounterCostOptions, benchmarks, run};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    options: CounterCostOptions,
}

fn said(arguments: &[&str]) -> String {
    let options = Program::parse_from([&["bench"], arguments].concat()).options;
    let mut out = Vec::new();
    run(&options, &Caller { arguments: Vec::new() }, &mut out, &mut std::io::sink()).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_benchmark_runs() {
    let table = said(&["--bm", "ss", "--quick"]);
    for benchmark in benchmarks() {
        let is_row = |line: &str| line.split_whitespace().next() == Some(benchmark.name());
        assert!(table.lines().any(is_row), "{} is missing:\n{table}", benchmark.name());
    }
}

#[test]
fn names_are_unique_and_rows_say_what_they_measure() {
    let all = benchmarks();
    let names: HashSet<&str> = all.iter().map(Benchmark::name).collect();
    assert_eq!(names.len(), all.len());
    for one in &all {
        assert!(one.measures().len() > 10, "{} does not say what it measures", one.name());
    }
}

#[test]
fn the_originals_benchmarks_are_found_by_their_names() {
    let wanted: Vec<&str> = include_str!("counter_names/original.txt").lines().collect();
    assert_eq!(wanted.len(), 24);
    for name in wanted {
        assert!(!said(&["-l", name]).is_empty(), "{name}");
    }
}
