//! `tidemark bench series` as a user runs it.

use crate::support::bench_report::figure;
use std::process::{Command, Output, Stdio};
use tidemark_lab::report::Report;

fn bench(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["bench", "series", "-quick"])
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_report_has_every_scenario_of_the_original() {
    let output = bench(&["-json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let names = include_str!("../../../lab/tests/scenarios/series_names/original.txt");
    for name in names.lines() {
        let time = figure(&report, Some(name), None, "iteration_time").expect(name);
        assert!(time.value.as_u64() > Some(0) && time.p90.is_some() && time.count == Some(2), "{time:?}");
        let is_faulty = name.starts_with("faults/");
        assert_eq!(figure(&report, Some(name), None, "faults_injected").is_some(), is_faulty, "{name}");
    }
    assert!(report.verdict.has_passed());
}

#[test]
fn wrong_flags_and_unknown_scenarios_are_refused() {
    assert_eq!(bench(&["-iterations", "0"]).status.code(), Some(2));
    let output = bench(&["nothing"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no scenario fits \"nothing\""), "{}", said(&output));
}
