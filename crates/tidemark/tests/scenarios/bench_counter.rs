//! `tidemark bench counter --kill` as a user sees it: a process that counts against a real store is
//! killed, and loses no more than the counters promise.

use crate::support::bench_report::{figure, value};
use std::collections::HashMap;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use tidemark_lab::report::Report;

/// Runs with few keys and small promises, so that it reaches their limits.
fn kill(variant: &str, store: &str, more: &[&str]) -> HashMap<String, i128> {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args([
            "bench",
            "counter",
            "--kill",
            "-goroutines=4",
            "-keys=5",
            "-threshold=16",
            "-commit_interval=2ms",
        ])
        .args([&format!("-variant={variant}"), &format!("-store={store}"), "-duration=300ms"])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let line = said.lines().find_map(|line| line.strip_prefix("Kill: ")).expect("a line for programs");
    let figure = |field: &str| {
        let (name, value) = field.split_once('=').expect("name=value");
        Some((name.to_owned(), value.parse().ok()?))
    };
    line.split(' ').filter_map(figure).collect()
}

/// Checks what every kill must preserve, with any store.
fn costs_what_is_promised(store: &str) {
    for (variant, lost, reserved) in [("vsa", 16, 16), ("quota", 16, 16), ("exact", 0, 16)] {
        let found = kill(variant, store, &["-churn=30", "-initial_scalar=1000000"]);
        assert!(found["ops"] > 0 && found["in_doubt"] <= 4, "{found:?}");
        assert!(found["lost_key"] <= lost && found["reserved_key"] <= reserved, "{found:?}");
        assert_eq!(found["durable_minus_truth"], 0, "{found:?}");
        if variant != "vsa" {
            assert!(found["over_admitted_key"] <= lost, "{found:?}");
            assert!(found["under_admitted_key"] <= reserved, "{found:?}");
            assert!(found["admitted_afterwards"] > 0, "{found:?}");
        }
    }
    // Killed long after the limit was reached: the second process finds nothing left, and no client
    // got more.
    let found = kill("exact", store, &["-churn=0", "-initial_scalar=40"]);
    assert_eq!((found["admitted"], found["over_admitted"]), (5 * 40, 0), "{found:?}");
}

#[test]
fn a_kill_costs_what_is_promised_with_the_log() {
    let directory = tempfile::tempdir().unwrap();
    costs_what_is_promised(&format!("log:{}", directory.path().display()));
}

#[test]
fn a_kill_has_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("-store=log:{}", directory.path().display());
    let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["bench", "counter", "--kill", "-variant=exact", "-goroutines=2", "-keys=3", "-block=16"])
        .args([&store, "-duration=100ms", "-json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report.options["action"], "kill");
    assert!(value(&report, "operations") > Some(0.0), "{report:?}");
    for (name, promised) in [("lost_key", "promised_lost_key"), ("reserved_key", "promised_reserved_key")] {
        assert!(value(&report, name) <= value(&report, promised), "{report:?}");
        assert!(value(&report, name).is_some(), "{report:?}");
    }
}

/// Debian's `redis-server`, which syncs every write.
struct Redis {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl Redis {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = crate::support::free_port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arg(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("Debian's redis-server is installed: apt-get install redis-server");
        let mut redis = Redis { child, port, _directory: directory };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(redis.child.try_wait().unwrap().is_none(), "redis-server has ended");
            std::thread::yield_now();
        }
        redis
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_kill_costs_what_is_promised_with_redis() {
    let redis = Redis::start();
    costs_what_is_promised(&format!("redis://127.0.0.1:{}", redis.port));
}

/// The program's allocator counts for `bench`, and only there.
#[test]
fn a_run_states_what_it_asked_of_the_allocator() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["bench", "counter", "-ops=20000", "-goroutines=2", "-keys=16", "-json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["allocations", "memory_allocated", "memory_per_key"] {
        assert!(value(&report, name) > Some(0.0), "{name}: {report:?}");
    }
    let kept = figure(&report, None, None, "memory_kept").unwrap();
    assert!(kept.value.is_i64() && kept.unit == "B", "{report:?}");
}

#[test]
fn what_would_say_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = format!("-store=log:{}", directory.path().display());
    for (arguments, reason) in [
        (["-variant=exact", "-store=memory"], "needs a store that survives it"),
        (["-variant=atomic", &log], "nothing that a kill could take"),
        (["-keys=50000000", &log], "-keys must be less than"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["bench", "counter", "--kill"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{arguments:?}: {said}");
    }
}
