//! `tidemark bench kv --reactive-bench`, `bench reconnect`, `bench crash` and `bench fan-out` on
//! the real server, and on one that breaks its promises.

use crate::support::bench_report::{figure, value};
use crate::support::{Server, free_port, wait_until};
use serde_json::Number;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidemark_lab::report::Report;

/// What a relay does to the one emission with this number, counted from 1 over all connections.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Drop(u64),
    Repeat(u64),
}

/// Runs a benchmark; returns the exit code and the results, which must be all of standard output.
fn bench(scenario: &str, flags: &[&str]) -> (Option<i32>, Report) {
    let output = run(scenario, &[flags, &["--json"]].concat());
    let report: Report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((report.schema, report.scenario.as_str()), (1, scenario));
    (output.status.code(), report)
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
    "20",
    "--keyspace",
    "20",
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
        assert_eq!(status, Some(0), "{report:?}");
        assert!(value(&report, "emissions") > Some(0.0), "{report:?}");
        let latency = figure(&report, None, None, "emission_latency").expect("a latency");
        assert!(latency.max.as_ref().and_then(Number::as_f64) >= latency.value.as_f64(), "{report:?}");
    }
}

#[test]
fn a_returning_subscriber_gets_missed_emissions_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let (status, report) = bench("reconnect", &flags(&at(server.port), &RECONNECT));
    assert_eq!(status, Some(0), "{report:?}");
    for iteration in 1..=3 {
        let of_iteration = |name| figure(&report, None, Some(iteration), name).map(|figure| &figure.value);
        assert_eq!(of_iteration("emissions_received"), Some(&16.into()), "{report:?}");
        assert!(of_iteration("first_missed_time").is_some(), "{report:?}");
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
        assert_eq!(status, Some(0), "{report:?}");
        let counted = (value(&report, "exactly_once"), value(&report, "writes"));
        assert_eq!(counted, (Some(100.0), Some(180.0)), "{report:?}");
        assert!(value(&report, "recovery_time") > Some(0.0), "{report:?}");
        assert!(!base.exists(), "what was right leaves nothing behind");
    }
}

#[test]
fn one_emission_dropped_or_repeated_on_its_way_fails_every_program() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    // Not the last emission before a crash: that one may be sent again.
    for (fault, early_fault, missed, duplicates) in
        [(Fault::Drop(20), Fault::Drop(5), 1.0, 0.0), (Fault::Repeat(20), Fault::Repeat(5), 0.0, 1.0)]
    {
        for (scenario, fault, own, names) in [
            ("reconnect", fault, &RECONNECT[..], ["emissions_missed", "emissions_repeated"]),
            ("crash", early_fault, &CRASH, ["writes_missed", "writes_repeated"]),
            ("kv", fault, &KV, ["emissions_missing", "emissions_repeated"]),
        ] {
            let (status, report) = bench(scenario, &flags(&at(relay(server.port, fault)), own));
            assert_eq!(status, Some(1), "{scenario}, {fault:?}: {report:?}");
            assert!(!report.verdict.has_passed(), "{scenario}, {fault:?}: {report:?}");
            let counted = names.map(|name| value(&report, name));
            assert_eq!(counted, [Some(missed), Some(duplicates)], "{scenario}, {fault:?}: {report:?}");
        }
    }
}

#[test]
fn every_subscriber_of_a_fan_out_has_each_value_and_so_has_the_floor() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &["--maxclients", "41"]);
    let (status, report) = bench("fan-out", &flags(&at(server.port), &FAN_OUT));
    assert_eq!(status, Some(0), "{report:?}");
    assert_eq!(value(&report, "emissions_received"), Some(f64::from(40 * (2 + 3))), "{report:?}");
    let floor = figure(&report, Some("floor"), None, "last_subscriber_time").expect("a floor");
    assert!(floor.value.as_f64() > Some(0.0), "{report:?}");
    for name in ["last_subscriber_time", "last_subscriber_ratio"] {
        assert!(value(&report, name) > Some(0.0), "{name}: {report:?}");
    }
    for name in ["memory_before", "memory_subscribed", "memory_after", "memory_peak"] {
        assert!(value(&report, name) > Some(0.0), "{name}: {report:?}");
    }
    assert!(value(&report, "memory_peak") >= value(&report, "memory_after"), "{report:?}");
    assert_eq!(value(&report, "output_waiting"), Some(0.0), "{report:?}");
    let (status, report) = bench("reconnect", &flags(&at(server.port), &["--iterations", "1"]));
    assert_eq!(status, Some(0), "all clients have left: {report:?}");
}

#[test]
fn an_emission_to_one_of_many_subscribers_that_is_dropped_or_repeated_fails_the_fan_out() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    // The second measured round has the emissions 121 to 160.
    let (missed, repeated) = ("emissions_missed", "emissions_repeated");
    for (fault, name, other) in [(Fault::Drop(130), missed, repeated), (Fault::Repeat(130), repeated, missed)]
    {
        let relayed = at(relay(server.port, fault));
        let (status, report) =
            bench("fan-out", &flags(&relayed, &[&FAN_OUT[..], &["--floor=false"]].concat()));
        assert_eq!(status, Some(1), "{fault:?}: {report:?}");
        let counted = (value(&report, name), value(&report, other));
        assert_eq!(counted, (Some(1.0), Some(0.0)), "{fault:?}: {report:?}");
    }
}

#[test]
fn limits_of_server_or_system_are_reported_before_any_client_connects() {
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
    assert_eq!(status, Some(1), "{report:?}");
    assert_eq!(value(&report, "exactly_once"), Some(0.0), "{report:?}");
    assert!(value(&report, "writes_lost") > Some(0.0), "{report:?}");
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
fn an_interrupted_benchmark_leaves_no_server_behind() {
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
