//! `tidemark bench pool` as a user runs it: rows of this process, and draws from the real server.

use crate::support::Server;
use crate::support::bench_report::figure;
use std::process::{Command, Output, Stdio};
use tidemark_lab::report::Report;

fn bench(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["bench", "pool", "--quick", "-bm", "ss"])
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_originals_lines_are_printed_on_request() {
    let output = bench(&["-go", "PoolDrawWithBasicWALCallback"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("BenchmarkPoolDrawWithBasicWALCallback-")).unwrap();
    for unit in [" ns/op", " draws/sec", " bytes/draw", " wal_bytes/draw", " wal_file_size"] {
        assert!(line.contains(unit), "{line}");
    }
}

#[test]
fn draws_from_a_server_are_measured_and_none_is_left_over() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let (port, redis) = (server.port.to_string(), format!("redis://127.0.0.1:{}", server.port));
    // This server also stands in for Redis, whose commands it has.
    let output = bench(&["--host", "127.0.0.1", "-p", &port, "--redis", &redis, "WireOps"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = said(&output);
    for row in ["draw", "draw_count_1000", "incr", "redis_incr", "redis_spop", "redis_zpopmin"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("WireOps.{row} "))), "no {row}: {text}");
    }
    let keys = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["cli", "-h", "127.0.0.1", "-p", &port, "DBSIZE"])
        .output()
        .expect("the binary starts");
    assert_eq!(said(&keys), "0\n", "keys are left");
}

#[test]
fn a_report_states_which_server_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let output = bench(&["--host", "127.0.0.1", "-p", &server.port.to_string(), "-json", "WireOps.draw$"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report.options["host"], &report.options["port"]),
        (&"127.0.0.1".into(), &server.port.into())
    );
    let score = figure(&report, Some("WireOps.draw"), None, "score").unwrap();
    assert!(score.value.as_f64() > Some(0.0), "{report:?}");
    assert!(report.verdict.has_passed());
}

#[test]
fn processes_of_their_own_do_not_ask_a_server() {
    let output = bench(&["-p", "1", "-f", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("-p and -f do not go together"), "{}", said(&output));
}
