//! The benchmarks of counters as a whole: every row runs, and the original's names are there.

use tidemark_lab::counter_cost::{Benchmark, CounterCostScenario, benchmarks};

fn said(arguments: &[&str]) -> String {
    crate::support::micro::try_run::<CounterCostScenario>(arguments).unwrap()
}

#[test]
fn every_benchmark_runs() {
    crate::support::micro::assert_all_are_there(&benchmarks(), &said(&["--bm", "ss", "--quick"]));
}

#[test]
fn names_are_unique_and_rows_say_what_they_measure() {
    crate::support::micro::assert_names_are_unique_and_rows_say_what_they_measure(&benchmarks());
}

#[test]
fn the_rows_that_say_most_are_a_part_of_all_and_have_all_targets_in_them() {
    crate::support::micro::assert_the_summary_is_a_part(&benchmarks());
    let is_listed = |one: &Benchmark| one.target().is_none() || one.is_in_summary();
    assert!(benchmarks().iter().all(is_listed));
    assert_eq!(said(&["-l", "--summary", "Limiter_"]), "CounterOps.Limiter_gcra_shared_1\n");
}

#[test]
fn the_originals_benchmarks_are_found_by_their_names() {
    let wanted: Vec<&str> = include_str!("counter_names/original.txt").lines().collect();
    assert_eq!(wanted.len(), 24);
    for name in wanted {
        assert!(!said(&["-l", name]).is_empty(), "{name}");
    }
}
