//! The laboratory of pools as a whole: every row runs and its books are right, and the original's names are there.

mod support;

use std::alloc::System;
use tidemark_lab::allocations::Counting;
use tidemark_lab::pool::{Benchmark, benchmarks, run};

/// For the rows that count allocations.
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

fn said(arguments: &[&str]) -> String {
    support::micro::try_run(run, arguments).unwrap()
}

#[test]
fn every_benchmark_runs_and_its_books_are_right() {
    support::micro::assert_all_are_there(&benchmarks(), &said(&["--bm", "ss", "--quick"]));
}

#[test]
fn names_are_unique_and_rows_say_what_they_measure() {
    support::micro::assert_names_are_unique_and_rows_say_what_they_measure(&benchmarks());
}

#[test]
fn the_rows_that_say_most_are_a_part_of_all_and_have_all_targets_in_them() {
    support::micro::assert_the_summary_is_a_part(&benchmarks());
    let is_told = |one: &Benchmark| one.target().is_none() || one.is_in_summary();
    assert!(benchmarks().iter().all(is_told));
}
