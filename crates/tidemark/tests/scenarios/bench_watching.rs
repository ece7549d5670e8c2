//! `tidemark bench kv --reactive-bench`, `bench reconnect`, `bench crash` and `bench fan-out` on
//! the real server, and on one that breaks its promises.

use crate::support::{Server, free_port, wait_until};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a relay does to the one emission with this number, counted from 1 over all connections.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Drop(u64),
    Repeat(u64),
}

/// Runs a benchmark; returns the exit code and the results, which must be all of standard output.
fn bench(scenario: &str, flags: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = run(scenario, &[flags, &["--json"]].concat());
    let results = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), results)
}

fn run(scenario: &str, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["bench", scenario])
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

/// Returns the flags that name a server on this machine.
fn at(port: u16) -> [String; 4] {
    ["--host".into(), "127.0.0.1".into(), "--port".into(), port.to_string()]
}

fn flags<'a>(target: &'a [String; 4], rest: &[&'a str]) -> Vec<&'a str> {
    target.iter().map(String::as_str).chain(rest.iter().copied()).collect()
}

const KV: [&str; 12] = [
    "--duration",
    "500ms",
    "--warmup",
    "100ms",
    "--reactive-bench",
    "--reactive-watchers",
    "2",
    "--reactive-keyspace",
    "200",
    "--keyspace",
    "200",
    "--op-timeout=2s",
];
const RECONNECT: [&str; 6] = ["--iterations", "3", "--poll-interval", "20ms", "--max-wait", "3s"];
const CRASH: [&str; 10] = [
    "--iterations",
    "3",
    "--updates",
    "60",
    "--update-interval",
    "1ms",
    "--max-wait",
    "3s",
    "--away",
    "30ms",
];

const FAN_OUT: [&str; 6] = ["--subscribers", "40", "--rounds", "3", "--max-wait", "5s"];

#[test]
fn emissions_under_load_come_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    for durable in ["--durable-set=false", "--durable-set=true"] {
        let (status, report) = bench("kv", &flags(&at(server.port), &[&KV[..], &[durable]].concat()));
        assert_eq!(status, Some(0), "{report}");
        assert!(report["emitCount"].as_u64() > Some(0), "{report}");
        assert!(report["emitMaxMs"].as_f64() >= report["emitP50Ms"].as_f64(), "{report}");
    }
}

#[test]
fn who_comes_back_is_given_what_he_missed_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let (status, report) = bench("reconnect", &flags(&at(server.port), &RECONNECT));
    assert_eq!(status, Some(0), "{report}");
    for result in report["results"].as_array().expect("results") {
        assert_eq!(result["emissionsReceived"], 16, "{report}");
        assert!(result["firstMissedTimeMs"].is_number(), "{report}");
    }
}

#[test]
fn a_crash_of_client_server_or_both_loses_and_repeats_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("running"), &[]);
    let base = directory.path().join("killed");
    let base_dir = ["--base-dir", base.to_str().unwrap(), "--stabilize-wait", "20s"];
    for (scenario, port) in [("client", server.port), ("server", free_port()), ("both", free_port())] {
        let rest = [&CRASH[..], &base_dir, &["--scenario", scenario]].concat();
        let (status, report) = bench("crash", &flags(&at(port), &rest));
        assert_eq!(status, Some(0), "{report}");
        let summary = &report["summary"];
        assert_eq!((&summary["exactlyOnceRate"], &summary["totalUpdates"]), (&100.0.into(), &180.into()));
        assert!(summary["p50RecoveryMs"].as_f64() > Some(0.0), "{report}");
        assert!(!base.exists(), "what was right leaves nothing behind");
    }
}

#[test]
fn one_emission_dropped_or_repeated_on_its_way_fails_every_program() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    // Not the last emission before a crash: that one may be sent again.
    for (fault, early_fault, missed, duplicates) in
        [(Fault::Drop(20), Fault::Drop(5), 1, 0), (Fault::Repeat(20), Fault::Repeat(5), 0, 1)]
    {
        for (scenario, fault, own) in [("reconnect", fault, &RECONNECT[..]), ("crash", early_fault, &CRASH)] {
            let (status, report) = bench(scenario, &flags(&at(relay(server.port, fault)), own));
            assert_eq!(status, Some(1), "{scenario}, {fault:?}: {report}");
            let summary = &report["summary"];
            let counted = (&summary["totalMissed"], &summary["totalDuplicates"]);
            assert_eq!(counted, (&missed.into(), &duplicates.into()), "{scenario}, {fault:?}: {report}");
        }
        let (status, report) = bench("kv", &flags(&at(relay(server.port, fault)), &KV));
        assert_eq!(status, Some(1), "{fault:?}: {report}");
        let counted = (&report["emitMissing"], &report["emitDuplicates"]);
        assert_eq!(counted, (&missed.into(), &duplicates.into()), "{fault:?}: {report}");
    }
}

#[test]
fn every_subscriber_of_a_fan_out_has_each_value_and_so_has_the_floor() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &["--maxclients", "41"]);
    let (status, report) = bench("fan-out", &flags(&at(server.port), &FAN_OUT));
    assert_eq!(status, Some(0), "{report}");
    assert_eq!(report["emissionsReceived"], 40 * (2 + 3), "{report}");
    let floor = &report["summary"]["floor"];
    for time in [&report["summary"]["lastP50Ms"], &floor["lastP50Ms"], &floor["lastRatio"]["estimate"]] {
        assert!(time.as_f64() > Some(0.0), "{report}");
    }
    let memory = &report["memory"];
    for bytes in ["beforeBytes", "subscribedBytes", "afterBytes", "peakBytes"] {
        assert!(memory[bytes].as_u64() > Some(0), "{bytes}: {report}");
    }
    assert!(memory["peakBytes"].as_u64() >= memory["afterBytes"].as_u64(), "{report}");
    assert_eq!(memory["waitingOutputBytes"], 0, "{report}");
    let (status, report) = bench("reconnect", &flags(&at(server.port), &["--iterations", "1"]));
    assert_eq!(status, Some(0), "everybody has left: {report}");
}

#[test]
fn an_emission_to_one_of_many_subscribers_that_is_dropped_or_repeated_fails_the_fan_out() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    // The second measured round has the emissions 121 to 160.
    for (fault, field, other) in
        [(Fault::Drop(130), "missed", "duplicates"), (Fault::Repeat(130), "duplicates", "missed")]
    {
        let relayed = at(relay(server.port, fault));
        let (status, report) =
            bench("fan-out", &flags(&relayed, &[&FAN_OUT[..], &["--floor=false"]].concat()));
        assert_eq!(status, Some(1), "{fault:?}: {report}");
        let counted = (&report["faults"][field], &report["faults"][other]);
        assert_eq!(counted, (&1.into(), &0.into()), "{fault:?}: {report}");
    }
}

#[test]
fn what_server_or_system_does_not_allow_is_said_before_anybody_connects() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &["--maxclients", "40"]);
    let output = run("fan-out", &flags(&at(server.port), &FAN_OUT));
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("start it with --maxclients 41"), "{message}");

    let limited =
        format!("ulimit -n 64; exec '{}' bench fan-out --subscribers 100", env!("CARGO_BIN_EXE_tidemark"));
    let output = Command::new("sh").args(["-c", &limited]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("or take at most 32 (--subscribers)"), "{message}");
}

#[test]
fn a_server_that_comes_back_without_its_data_fails() {
    let directory = tempfile::tempdir().unwrap();
    let forgetful = script(
        directory.path(),
        // serve --bind ADDRESS --port PORT --dir DIRECTORY
        &format!("rm -rf \"$7\"\nexec '{}' \"$@\"", env!("CARGO_BIN_EXE_tidemark")),
    );
    let base = directory.path().join("killed");
    let rest = [
        ["--binary", forgetful.to_str().unwrap()],
        ["--base-dir", base.to_str().unwrap()],
        ["--scenario", "server"],
        ["--iterations", "1"],
        ["--updates", "40"],
        ["--max-wait", "1s"],
        ["--stabilize-wait", "20s"],
    ];
    let (status, report) = bench("crash", &flags(&at(0), rest.as_flattened()));
    assert_eq!(status, Some(1), "{report}");
    let summary = &report["summary"];
    assert_eq!(summary["exactlyOnceRate"], 0.0, "{report}");
    assert!(summary["totalLostWrites"].as_u64() > Some(0), "{report}");
    assert!(base.exists(), "what was wrong stays to be looked at");
}

#[test]
fn a_port_that_is_taken_is_an_error_and_not_a_measurement() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("other"), &[]);
    let base = directory.path().join("killed");
    let rest = ["--scenario", "server", "--base-dir", base.to_str().unwrap()];
    let output = run("crash", &flags(&at(server.port), &rest));
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(&format!("port {} is taken", server.port)), "{message}");
}

#[test]
fn who_is_asked_to_stop_leaves_no_server_behind() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("killed");
    let mut running = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["bench", "crash", "--scenario", "server", "--port", "0", "--updates", "1000000"])
        .args(["--stabilize-wait", "20s", "--base-dir", base.to_str().unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = running.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let mut server = String::new();
    wait_until("the benchmark starts a server", || {
        let children = std::fs::read_to_string(&children).expect("it runs");
        server.extend(children.split_whitespace().next());
        !server.is_empty()
    });
    let stopped = Command::new("kill").args(["-TERM", &id.to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(running.wait().unwrap().code(), Some(128 + 15));
    assert!(!Path::new(&format!("/proc/{server}")).exists(), "the server has ended with it");
}

/// Makes an executable that runs these lines of shell.
fn script(directory: &Path, lines: &str) -> PathBuf {
    let path = directory.join("server.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Starts a relay between a server and its clients that applies the fault to one emission. Returns
/// the port to connect to.
fn relay(server: u16, fault: Fault) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let emissions = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let upstream = TcpStream::connect(("127.0.0.1", server)).unwrap();
            upstream.set_nodelay(true).unwrap();
            client.set_nodelay(true).unwrap();
            let (mut requests, mut sink) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut requests, &mut sink);
                let _ = sink.shutdown(std::net::Shutdown::Both);
            });
            let emissions = Arc::clone(&emissions);
            std::thread::spawn(move || {
                let _ = pass_on(upstream, &client, fault, &emissions);
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

/// Forwards values one by one, unchanged except for the fault.
fn pass_on(
    upstream: TcpStream,
    mut client: &TcpStream,
    fault: Fault,
    emissions: &AtomicU64,
) -> std::io::Result<()> {
    let mut reader = crate::support::frames::Frames::new(upstream);
    loop {
        let frame = reader.next_frame()?;
        let times = if frame.starts_with(b">5\r\n$8\r\nemission\r\n") {
            match (fault, emissions.fetch_add(1, Ordering::Relaxed) + 1) {
                (Fault::Drop(number), count) if number == count => 0,
                (Fault::Repeat(number), count) if number == count => 2,
                _ => 1,
            }
        } else {
            1
        };
        for _ in 0..times {
            client.write_all(&frame)?;
        }
    }
}
