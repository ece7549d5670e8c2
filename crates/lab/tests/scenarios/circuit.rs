//! The lab of circuits as a whole: every row runs, and the flags do what they say.

use std::collections::HashSet;
use std::iter;
use tidemark_lab::circuit::{Benchmark, CircuitScenario, benchmarks};

fn try_run(arguments: &[&str]) -> anyhow::Result<String> {
    crate::support::micro::try_run::<CircuitScenario>(arguments)
}

#[test]
fn every_benchmark_runs_and_none_loses_a_value() {
    crate::support::micro::assert_all_are_there(&benchmarks(), &try_run(&["--bm", "ss", "--quick"]).unwrap());
}

#[test]
fn names_are_unique_and_rows_say_what_they_measure() {
    crate::support::micro::assert_names_are_unique_and_rows_say_what_they_measure(&benchmarks());
}

#[test]
fn the_aim_of_a_row_is_that_of_what_it_measures() {
    // Emission alone has the target of admission by a pipe; emission with draining also has one of
    // its own.
    let (admission, drained) = (7.0, 8.0);
    let all = benchmarks();
    let until_returned = |one: &&Benchmark| one.measures().contains("until the last has returned");
    let alone: Vec<_> = all.iter().filter(until_returned).collect();
    assert!(alone.iter().any(|one| one.name() == "PipeOps.emit_to_async_pipe"));
    for one in alone {
        assert!(one.target().is_none_or(|target| target <= admission), "{}: {:?}", one.name(), one.target());
    }
    for one in all.iter().filter(|one| one.name().starts_with("PipeOps.emit_to_async_pipe_batch")) {
        assert_eq!(one.target(), Some(drained), "{}", one.name());
        assert!(one.measures().contains("one await"), "{}", one.name());
    }
}

#[test]
fn a_row_of_which_nothing_arrives_does_not_say_that_it_counts() {
    let verbose = try_run(&["-l", "-v", "^PipeOps.empty_emit_batch$"]).unwrap();
    assert!(verbose.contains("nothing to count") && !verbose.contains("is counted"), "{verbose}");
}

/// The names of the original's benchmarks, and those of its newer suite: each is the name of a row,
/// or an alias of one.
#[test]
fn the_originals_benchmarks_are_there_under_their_names() {
    let all = benchmarks();
    let there: HashSet<&str> = all
        .iter()
        .flat_map(|one| iter::once(one.name()).chain(one.other_names().iter().map(String::as_str)))
        .collect();
    for (list, least) in
        [(include_str!("circuit_names/original.txt"), 500), (include_str!("circuit_names/newer.txt"), 240)]
    {
        let wanted = listed(list);
        assert!(wanted.len() > least, "{} names are not all", wanted.len());
        let missing: Vec<&String> = wanted.iter().filter(|name| !there.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

/// Parses a list of names: a line with a suite, then indented lines with its benchmarks. Each
/// benchmark of a suite with `+batch` has a batch variant.
fn listed(list: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut suite = "";
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        if !line.starts_with(' ') {
            suite = line;
            continue;
        }
        for benchmark in line.split_whitespace() {
            match suite.strip_suffix(" +batch") {
                Some(suite) => {
                    names.insert(format!("{suite}.{benchmark}"));
                    names.insert(format!("{suite}.{benchmark}_batch"));
                }
                None => _ = names.insert(format!("{suite}.{benchmark}")),
            }
        }
    }
    names
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
    let whole = std::fs::read(&a).unwrap();
    for (bytes, expected) in [
        (&b""[..], "b.json is empty; measure again"),
        (&whole[..whole.len() / 2], "b.json is cut off"),
        (b"[]", "b.json has no results"),
        (b"{}", "b.json is no result file"),
        (b"[{}]", "b.json is no result file"),
        (b"hello", "b.json is no result file"),
        (b"\xff\xfe", "b.json is no result file"),
    ] {
        std::fs::write(&b, bytes).unwrap();
        let error = format!("{:#}", try_run(&["compare", &a, &b]).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
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
    crate::support::micro::assert_the_summary_is_a_part(&benchmarks());
    let summary: Vec<_> = try_run(&["-l", "--summary"]).unwrap().lines().map(str::to_owned).collect();
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
fn a_file_that_cannot_be_written_is_reported_before_anything_is_measured() {
    let error = format!("{:#}", try_run(&["IdOps", "--rff", "/nowhere/x.json"]).unwrap_err());
    assert!(error.contains("the directory of /nowhere/x.json"), "{error}");
}
