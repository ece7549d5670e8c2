//! The laboratory of circuits as a whole: every row runs, and the flags do what they say.

use clap::Parser;
use std::collections::HashSet;
use tidemark_lab::circuit::{Benchmark, Caller, CircuitOptions, benchmarks, run};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    options: CircuitOptions,
}

fn try_run(arguments: &[&str]) -> anyhow::Result<String> {
    let options = Program::parse_from([&["bench"], arguments].concat()).options;
    let mut out = Vec::new();
    run(&options, &Caller { arguments: Vec::new() }, &mut out)?;
    Ok(String::from_utf8(out)?)
}

#[test]
fn every_benchmark_runs_and_none_loses_a_value() {
    let table = try_run(&["--bm", "ss", "--quick"]).unwrap();
    for benchmark in benchmarks() {
        let is_row = |line: &str| line.split(' ').next() == Some(benchmark.name()) && line.contains(" ss ");
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

/// What the original's document names, as far as the components are there.
#[test]
fn the_originals_benchmarks_are_there_under_their_names() {
    let list = try_run(&["-l"]).unwrap();
    let names: HashSet<&str> = list.lines().collect();
    let mut wanted: Vec<String> = Vec::new();
    for (suite, benchmarks) in [
        (
            "PipeOps",
            "emit_to_async_pipe emit_to_empty_pipe emit_to_receptor_pipe emit_with_await emit_no_await emit_chain_depth_1 \
             emit_chain_depth_5 emit_chain_depth_10 emit_chain_depth_20 emit_fanout_width_1 emit_fanout_width_5 \
             emit_fanout_width_10 emit_fanout_width_20 emit_to_chained_pipes emit_to_transform_pipe \
             emit_to_double_transform emit_to_fanout emit_with_counter_await",
        ),
        (
            "CircuitOps",
            "hot_await_queue_drain hot_pipe_async hot_pipe_async_with_flow hot_conduit_create hot_conduit_create_named \
             hot_conduit_create_with_flow create_and_close create_await_close conduit_create_close conduit_create_named \
             conduit_create_with_flow pipe_async pipe_async_with_flow",
        ),
        ("ConduitOps", "get_by_name get_by_substrate get_cached subscribe subscribe_with_emission_await"),
        ("CyclicOps", "cyclic_emit cyclic_emit_await cyclic_emit_deep_await"),
        (
            "FlowOps",
            "baseline_no_flow_await flow_diff_await flow_guard_await flow_limit_await flow_sample_await flow_sift_await \
             flow_combined_diff_guard_await flow_combined_diff_sample_await flow_combined_guard_limit_await",
        ),
        ("NameOps", "name_chaining name_chaining_batch name_compare name_from_string name_path_generation"),
        ("SubjectOps", "subject_compare subject_compare_same subject_compare_three_way"),
        (
            "StateOps",
            "state_compact state_iterate_slots state_slot_add_int state_value_read state_values_stream",
        ),
        (
            "SubscriberOps",
            "close_one_subscription_await close_ten_conduits_await close_idempotent_batch_await",
        ),
        ("CortexOps", "circuit circuit_named current name_path slot_int state_empty scope scope_named"),
        (
            "ReservoirOps",
            "reservoir_drain_await reservoir_burst_then_drain_await_batch reservoir_emit_drain_cycles_await",
        ),
        (
            "TapOps",
            "tap_create_identity tap_emit_identity_batch_await tap_emit_string_batch_await tap_close tap_lifecycle",
        ),
        (
            "ScopeOps",
            "scope_create_and_close scope_register_multiple_batch scope_closure scope_hierarchy scope_complex",
        ),
        ("IdOps", "id_from_subject id_toString"),
    ] {
        wanted.extend(benchmarks.split_whitespace().map(|benchmark| format!("{suite}.{benchmark}")));
    }
    let missing: Vec<&String> = wanted.iter().filter(|name| !names.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_list_is_filtered_and_explains_on_request() {
    assert_eq!(
        try_run(&["-l", "^IdOps*batch$"]).unwrap(),
        "IdOps.id_from_subject_batch\nIdOps.id_toString_batch\n"
    );
    let verbose = try_run(&["-l", "-v", "id_toString$"]).unwrap();
    assert_eq!(verbose, "IdOps.id_toString\n    measures: an identity as a text of its own\n");
}

#[test]
fn an_unknown_pattern_is_an_error_that_says_how_to_find_the_names() {
    let error = try_run(&["NoSuchOps"]).unwrap_err().to_string();
    assert!(error.contains("\"NoSuchOps\"") && error.contains("-l lists them"), "{error}");
}

#[test]
fn results_go_to_a_file_in_jmhs_format_and_two_files_compare() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (a, b) = (path("a.json"), path("b.json"));
    for file in [&a, &b] {
        let table = try_run(&[
            "id_from_subject$",
            "-i",
            "2",
            "-r",
            "1us",
            "--wi",
            "0",
            "--rf",
            "json",
            "--rff",
            file,
        ])
        .unwrap();
        assert!(table.contains("IdOps.id_from_subject  avgt    2"), "{table}");
    }
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&a).unwrap()).unwrap();
    assert_eq!(json[0]["benchmark"], "IdOps.id_from_subject");
    assert!(json[0]["primaryMetric"]["score"].as_f64().unwrap() > 0.0);
    assert!(try_run(&["compare", &a, &b]).unwrap().contains("IdOps.id_from_subject"));

    let error = format!("{:#}", try_run(&["compare", &a, &path("c.json")]).unwrap_err());
    assert!(error.contains("cannot read") && error.contains("c.json"), "{error}");
    std::fs::write(&b, "{}").unwrap();
    let error = format!("{:#}", try_run(&["compare", &a, &b]).unwrap_err());
    assert!(error.contains("is no result file"), "{error}");
}

#[test]
fn json_to_standard_output_is_all_there_is() {
    let json = try_run(&["id_from_subject$", "--bm", "ss", "--rff", "-"]).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["mode"], "ss");
}

#[test]
fn peers_are_measured_in_turns_and_compared() {
    let table = try_run(&["Peers.admission", "--quick", "-i", "3", "-r", "1us", "--wi", "0"]).unwrap();
    assert!(
        table.contains("Times of admission, in turns, over that of Peers.admission_circuit_lane:"),
        "{table}"
    );
    assert!(table.contains("3 rounds"), "{table}");
}
