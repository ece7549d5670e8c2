//! The laboratory of circuits as a whole: every row runs, and the flags do what they say.

use clap::Parser;
use std::alloc::System;
use std::collections::HashSet;
use tidemark_lab::allocations::Counting;
use tidemark_lab::circuit::{Benchmark, Caller, CircuitOptions, benchmarks, run};

/// For the rows that count allocations.
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

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
        let is_row = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(benchmark.name()) && matches!(words.next(), Some("ss" | "sample"))
        };
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

/// What the original's newer suite names.
#[test]
fn the_newer_suites_benchmarks_are_there_under_their_names() {
    let list = try_run(&["-l"]).unwrap();
    let names: HashSet<&str> = list.lines().collect();
    let suites = [
        ("BankOps", "get_cached get_varied_batch get_varied_control_batch"),
        ("BasinOps", "baseline_emit_batch basin_burst_then_drain_batch basin_emit_batch"),
        ("CellOps", "baseline_empty_pipe_batch get_cell_seeded pipe_cell_cached update_cell_batch"),
        (
            "ChannelOps",
            "observed_emit_admission_batch observed_emit_batch piped_emit_admission_batch piped_emit_batch \
             composed_emit_batch unobserved_emit_admission_batch unobserved_emit_batch",
        ),
        ("ConduitOps", "get_by_name get_by_substrate get_cached get_varied_batch get_varied_control_batch"),
        (
            "CrossCircuitOps",
            "cross_circuit_channel_emit_batch cross_circuit_emit_admission_batch cross_circuit_fanout_emit_batch \
             cross_circuit_pipe_emit_batch",
        ),
        ("CyclicOps", "cyclic_emit_deep_100k cyclic_emit_direct cyclic_emit_registrar"),
        (
            "FiberOps",
            "above_compare_batch above_natural_batch baseline_plain_batch chance_batch diff_batch distinct_bounded_batch \
             every_batch every_duration_batch guard_batch guard_diff_batch heartbeat_changing_batch \
             heartbeat_duplicate_batch identity_batch limit_batch peek_batch pipe_create_fiber reduce_batch \
             route_match_batch route_noMatch_batch streak_fire_batch streak_match_batch streak_miss_batch \
             when_match_batch when_noMatch_batch",
        ),
        (
            "FlowOps",
            "baseline_plain_batch composed_batch fiber_batch fiber_factory_batch identity_batch map_batch \
             map_chained_batch pipe_create_fiber_factory pipe_create_map",
        ),
        (
            "IngressOps",
            "ingress_idle_roundtrip ingress_contended_admission_batch ingress_contended_emit_batch \
             ingress_sustained_emit_400k",
        ),
        (
            "MirrorOps",
            "baseline_emit_batch mirror_emit_identity_batch mirror_emit_multi_batch mirror_emit_string_batch",
        ),
        ("NameOps", "name_within name_within_false name_hashCode"),
        (
            "PinOps",
            "baseline_field_get_loop baseline_field_set_loop get_loop_owner_context get_set_loop_owner_context \
             set_loop_owner_context",
        ),
        ("PipeMapOps", "baseline_plain_batch mapped_chained_batch mapped_emit_batch mapped_stateful_batch"),
        (
            "PipeOps",
            "baseline_blackhole async_emit_admission_batch async_emit_batch async_emit_chained_batch \
             async_emit_registered_fanout_batch async_emit_fanout_batch async_emit_with_flow_batch baseline_counter \
             empty_emit_batch pipe_create pipe_create_empty pipe_create_fanout pipe_create_named_fanout \
             pipe_create_with_flow pipe_target_same_circuit static_fanout_emit_batch",
        ),
        ("PoolOps", "derived_get_varied_batch get_by_name get_varied_batch get_varied_control_batch"),
        ("PortOps", "baseline_empty_pipe_batch emit_batch replace_batch update_arg_batch update_batch"),
        ("RelateOps", "pipe_create_relate relate_fires_batch relate_suppresses_batch"),
        (
            "RunChangeOps",
            "change_fires_batch change_suppresses_batch pipe_create_change pipe_create_run run_changing_batch \
             run_constant_batch",
        ),
        (
            "ScanOps",
            "pipe_create_flow_factory pipe_create_scan scan_inputAware_batch scan_runningMean_batch \
             scan_runningSum_batch scan_via_flow_factory_batch",
        ),
        (
            "ScopeOps",
            "scope_create_close_children scope_create_close_leaf scope_create_close_nested \
             scope_create_close_observed scope_create_close_twice",
        ),
        ("SinkOps", "baseline_emit_batch sink_emit_batch"),
        ("StateOps", "slot_name slot_type slot_value state_upsert_head state_upsert_tail"),
        ("StemOps", "baseline_emit_batch_depth_1 stem_emit_batch_depth_10 subscriber_emit_batch_depth_5"),
        (
            "TransitOps",
            "transit_contraction_100k transit_fanout_1k_batch transit_fanout_4k_batch transit_fanout_8k_batch \
             transit_fanout_full_ring_batch transit_fanout_over_capacity_batch",
        ),
        (
            "WindowOps",
            "filter_then_window_batch map_then_window_batch pipe_create_window pipe_create_window_duration \
             window_16_batch window_4_batch window_64_batch window_all_batch window_any_batch window_count_batch \
             window_duration_16_batch window_duration_expiring_batch window_duration_size_batch window_fold_batch \
             window_for_each_batch window_is_empty_batch window_none_batch window_prefix_batch window_reduce_batch \
             window_reverse_batch window_size_batch window_skip_batch window_slice_batch window_suffix_batch \
             window_trim_batch",
        ),
    ];
    let wanted = suites.iter().flat_map(|(suite, benchmarks)| {
        benchmarks.split_whitespace().map(move |benchmark| format!("{suite}.{benchmark}"))
    });
    let missing: Vec<String> = wanted.filter(|name| !names.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_benchmark_is_found_by_what_other_versions_call_it() {
    for (pattern, name) in [
        ("batch_await$", "PipeOps.async_emit_batch\n"),
        ("async_emit_chained_await", "PipeOps.async_emit_chained_batch\n"),
        ("fanout_await", "PipeOps.async_emit_fanout_batch\n"),
        ("with_flow_await", "PipeOps.async_emit_with_flow_batch\n"),
        ("single_await$", "IngressOps.ingress_idle_roundtrip\n"),
        ("cyclic_deep_await", "CyclicOps.cyclic_emit_deep_await\n"),
    ] {
        assert!(try_run(&["-l", pattern]).unwrap().contains(name), "{pattern}");
    }
    assert!(
        try_run(&["-l", "-v", "single_await$"])
            .unwrap()
            .contains("also called: PipeOps.async_emit_single_await")
    );
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

#[test]
fn peers_alone_are_compared_with_what_they_are_peers_of() {
    let flags = ["--against", "peers", "--quick", "--bm", "ss", "-i", "2"];
    let table = try_run(&[&flags[..], &["fan_out_std", "at_10k_std"]].concat()).unwrap();
    for name in ["Peers.fan_out_circuit_lane", "Peers.fan_out_std_mpsc", "LatencyOps.at_10k_std_mpsc:p99.9"] {
        assert!(table.lines().any(|line| line.starts_with(name)), "no {name}:\n{table}");
    }
    assert!(!table.contains("Peers.batch"), "{table}");
    for (group, baseline) in
        [("fan-out", "Peers.fan_out"), ("latency at 10,000 a second", "LatencyOps.at_10k")]
    {
        let heading = format!("Times of {group}, in turns, over that of {baseline}_circuit_lane:");
        assert!(table.contains(&heading), "no {heading:?}:\n{table}");
    }
    assert!(table.contains("LatencyOps.at_10k_std_mpsc:rate "), "{table}");
    assert!(table.contains("  LatencyOps.at_10k_std_mpsc:p99 "), "{table}");
}

#[test]
fn any_benchmarks_are_compared_with_one() {
    let flags = ["IdOps", "--against", "^IdOps.id_toString$", "--bm", "ss", "-i", "2", "--markdown"];
    let tables = try_run(&flags).unwrap();
    assert!(tables.contains("over that of `IdOps.id_toString`, round by round"), "{tables}");
    assert!(tables.contains("| `IdOps.id_from_subject_batch` | "), "{tables}");
    let error = try_run(&["IdOps", "--against", "IdOps"]).unwrap_err().to_string();
    assert!(error.contains("write \"^IdOps.id_from_subject$\""), "{error}");
}

#[test]
fn the_rows_that_say_most_are_a_part_of_all() {
    let all: Vec<_> = try_run(&["-l"]).unwrap().lines().map(str::to_owned).collect();
    let summary: Vec<_> = try_run(&["-l", "--summary"]).unwrap().lines().map(str::to_owned).collect();
    assert!(summary.len() < all.len() / 2 && summary.iter().all(|name| all.contains(name)));
    for name in [
        "CircuitOps.idle_memory",
        "CircuitOps.emission_allocations_pipe_pool",
        "LatencyOps.at_1m_circuit_lane",
    ] {
        assert!(summary.iter().any(|one| one == name), "{name}");
    }
    let error = try_run(&["--summary", "IdOps"]).unwrap_err().to_string();
    assert!(error.contains("--summary leaves"), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    let error = format!("{:#}", try_run(&["IdOps", "--rff", "/nowhere/x.json"]).unwrap_err());
    assert!(error.contains("cannot write /nowhere/x.json"), "{error}");
}
