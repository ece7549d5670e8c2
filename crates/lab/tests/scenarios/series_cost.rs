//! The benchmarks of series as a whole: every row runs, and every operation has every data set.

use tidemark_lab::series_cost::{SeriesCostScenario, benchmarks};

fn said(arguments: &[&str]) -> String {
    crate::support::micro::try_run::<SeriesCostScenario>(arguments).unwrap()
}

#[test]
fn every_benchmark_runs() {
    crate::support::micro::assert_all_are_there(&benchmarks(), &said(&["--bm", "ss", "--quick"]));
}

#[test]
fn names_are_unique_and_rows_say_what_they_measure() {
    crate::support::micro::assert_names_are_unique_and_rows_say_what_they_measure(&benchmarks());
    crate::support::micro::assert_the_summary_is_a_part(&benchmarks());
}

#[test]
fn each_data_set_says_how_small_its_points_are() {
    let text = said(&["--bm", "ss", "--quick", "SeriesOps.bytes"]);
    assert_eq!(text.lines().filter(|line| line.contains("B/point")).count(), 5, "{text}");
}
