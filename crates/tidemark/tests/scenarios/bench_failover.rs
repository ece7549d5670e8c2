//! `tidemark bench failover` and `tidemark bench kv --cluster` as a user runs them.

use crate::support::bench_report::figure;
use std::process::{Command, Output, Stdio};
use tidemark_lab::report::Report;

fn bench(directory: &std::path::Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .arg("bench")
        .args(flags)
        .current_dir(directory)
        // Data of servers that are started there.
        .env("TMPDIR", directory)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

fn failover(directory: &std::path::Path, flags: &[&str]) -> Output {
    // Times of a cluster on a machine that does other work.
    let patient = ["--heartbeat-ms", "50", "--election-min-ms", "300", "--election-max-ms", "600"];
    let short = ["failover", "--stabilize-wait", "200ms", "--clients", "3", "--answer-timeout", "300ms"];
    bench(directory, &[&short[..], &patient, flags].concat())
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_killed_leader_costs_a_gap_and_no_acknowledged_write() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        failover(directory.path(), &["-rounds", "1", "-fault", "kill", "-quiet-for", "300ms", "-json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report.scenario.as_str(), report.interrupted), ("failover", false));
    for round in [None, Some(1)] {
        let figure = |name| figure(&report, Some("kill"), round, name).expect(name);
        for name in ["client_gap", "cluster_gap", "total_failover_time", "return_time"] {
            assert!(figure(name).value.as_f64() > Some(0.0), "{name}: {report:?}");
        }
        for name in ["detection_time", "election_time"] {
            assert!(figure(name).value.as_f64() >= Some(0.0), "{name}: {report:?}");
        }
        let count = |name| figure(name).value.as_u64();
        assert!(count("writes_acknowledged") >= Some(100), "{report:?}");
        assert!(count("elections") >= Some(1), "{report:?}");
        for name in ["writes_missing", "writes_phantom", "writes_disagreeing", "stuck_clients"] {
            assert_eq!(count(name), Some(0), "{name}: {report:?}");
        }
    }
    let leader = |name| figure(&report, Some("kill"), Some(1), name).expect(name).value.as_u64();
    assert_ne!(leader("old_leader"), leader("new_leader"));
    assert!(figure(&report, Some("quiet"), None, "elections").is_some(), "{report:?}");
    assert!(report.verdict.has_passed());
    let left: Vec<_> = directory.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "nothing stays of a run without a fault: {left:?}");
}

#[test]
fn a_stopped_leader_comes_back_to_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let output = failover(directory.path(), &["-iterations", "1", "-fault", "stop"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = said(&output);
    for line in
        ["=== Failover Benchmark Summary ===", "Fault: stop", "Total Failover Time (ms):", " missing=0 "]
    {
        assert!(text.contains(line), "{line:?} is not in:\n{text}");
    }
}

#[test]
fn a_cut_network_is_measured_or_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let output = failover(directory.path(), &["-iterations", "1", "-fault", "cut"]);
    let text = said(&output);
    if output.status.code() == Some(0) {
        assert!(text.contains("Fault: cut") && text.contains(" missing=0 "), "{text}");
    } else {
        // Where users have no namespaces.
        assert!(text.contains("--fault cut is not possible here"), "{text}");
        assert!(text.contains("run as root") || text.contains("install iproute2"), "{text}");
    }
}

#[test]
fn flags_that_measure_nothing_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for flags in [&["-fault", "burn"][..], &["-clients", "0"], &["-election-ms", "100"]] {
        assert_eq!(failover(directory.path(), flags).status.code(), Some(2), "{flags:?}");
    }
    let output = failover(directory.path(), &["-iterations", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("--quiet-for"), "{}", said(&output));
}

#[test]
fn a_cluster_is_measured_beside_one_server() {
    let directory = tempfile::tempdir().unwrap();
    let short = ["-rounds", "2", "-duration", "300ms", "-warmup", "100ms", "-keyspace", "100"];
    let one_write = ["-cmd", "SET", "-conns", "1", "-workers", "1", "-json"];
    let output = bench(directory.path(), &[&["kv", "-cluster"], &short[..], &one_write].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    for (part, name) in [
        (Some("cluster"), "throughput"),
        (Some("alone"), "latency_median"),
        (Some("cluster/alone"), "throughput_ratio"),
        (None, "sync"),
        (None, "round_trip"),
    ] {
        assert!(figure(&report, part, None, name).expect(name).value.as_f64() > Some(0.0), "{report:?}");
    }
    assert!(figure(&report, None, None, "latency_beyond_sync_and_round_trip").is_some(), "{report:?}");
    let has_etcd = figure(&report, Some("etcd"), None, "throughput").is_some();
    assert_eq!(has_etcd, report.servers.len() == 3, "{report:?}");
    assert!(has_etcd || report.notes.iter().any(|note| note.contains("etcd")), "{report:?}");
    let left: Vec<_> = directory.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "nothing stays: {left:?}");
}
