//! The lab of pools as a whole: every row runs and its books are right, and the original's names
//! are there.

use std::collections::{HashMap, HashSet};
use tidemark_lab::pool::{Benchmark, PoolScenario, benchmarks};

fn said(arguments: &[&str]) -> String {
    crate::support::micro::try_run::<PoolScenario>(arguments).unwrap()
}

#[test]
fn every_benchmark_runs_and_its_books_are_right() {
    crate::support::micro::assert_all_are_there(&benchmarks(), &said(&["--bm", "ss", "--quick"]));
}

#[test]
fn names_are_unique_and_rows_say_what_they_measure() {
    crate::support::micro::assert_names_are_unique_and_rows_say_what_they_measure(&benchmarks());
    // Go's lines do not name the suite.
    let all = benchmarks();
    let short: HashSet<&str> = all.iter().filter_map(|one| one.name().split('.').nth(1)).collect();
    assert_eq!(short.len(), all.len());
}

#[test]
fn the_rows_that_say_most_are_a_part_of_all_and_have_all_targets_in_them() {
    crate::support::micro::assert_the_summary_is_a_part(&benchmarks());
    let is_listed = |one: &Benchmark| one.target().is_none() || one.is_in_summary();
    assert!(benchmarks().iter().all(is_listed));
}

/// Parses Go's lines: values by unit, by the benchmark's name.
fn go_lines(text: &str) -> HashMap<String, HashMap<String, f64>> {
    let lines = text.lines().filter(|line| line.starts_with("Benchmark"));
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, _processors) = words[0].rsplit_once('-').unwrap();
        assert!(words[1].parse::<u64>().unwrap() > 0, "{line}");
        let pairs = words[2..].chunks_exact(2);
        assert!(pairs.remainder().is_empty(), "{line}");
        let pairs = pairs.map(|pair| (pair[1].to_owned(), pair[0].parse().unwrap()));
        (name.to_owned(), pairs.collect())
    };
    lines.map(line).collect()
}

#[cfg(feature = "log")]
#[test]
fn the_originals_benchmarks_are_there_with_its_metrics_in_its_lines() {
    let wanted: Vec<&str> = include_str!("pool_names/original.txt").lines().collect();
    assert_eq!(wanted.len(), 8);
    let text = said(&["--go", "--quick", "--bm", "ss", "^PoolOps."]);
    assert!(text.ends_with("PASS\n"), "{text}");
    let lines = go_lines(&text);
    assert_eq!(lines.len(), wanted.len(), "{text}");
    for name in wanted {
        let metrics = &lines[&format!("Benchmark{name}")];
        for unit in ["ns/op", "draws/sec", "bytes/draw", "allocs/draw"] {
            assert!(metrics.contains_key(unit), "{name} has no {unit}:\n{text}");
        }
        assert_eq!(
            metrics.contains_key("wal_bytes/draw"),
            name.contains("WithMmap") || name.contains("WithBasic")
        );
    }
    for name in ["BenchmarkPoolDrawWithBasicWALCallback", "BenchmarkPoolDrawWithMmapWALCallback"] {
        let metrics = &lines[name];
        assert!(metrics["wal_file_size"] > 0.0 && metrics["wal_bytes/draw"] > 0.0, "{text}");
        // The logged bytes, not the space preallocated for the files, which is at least a mebibyte.
        assert!(metrics["wal_file_size"] < 65_536.0, "{text}");
    }
}

#[test]
fn a_line_of_an_amount_has_its_unit() {
    let lines = go_lines(&said(&["--go", "--quick", "--bm", "ss", "RecordOps.bytes_4_by_64"]));
    // A draw of four items is a byte, and 64 of them share a chain of 32 bytes and two numbers.
    let bytes = lines["Benchmarkbytes_4_by_64"]["B/draw"];
    assert!((1.5..2.0).contains(&bytes), "{bytes}");
}
