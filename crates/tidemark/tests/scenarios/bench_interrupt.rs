//! `tidemark bench` on Ctrl-C: the report covers what was measured until then; and the messages
//! until the end.

use crate::support::bench_report::{figure, value};
use crate::support::terminal::{Running, Terminal};
use crate::support::{Server, info_number, wait_until};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use tidemark_lab::report::Report;

/// Exit code that a shell reports for a program that Ctrl-C has ended.
const INTERRUPTED: Option<i32> = Some(130);

/// A benchmark that would run for longer than a test may.
struct Bench {
    process: Running,
    errors: BufReader<std::process::ChildStderr>,
}

impl Bench {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.arg("bench").args(arguments).stdin(Stdio::null());
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = Running(spawned.expect("the binary starts"));
        let errors = BufReader::new(process.0.stderr.take().expect("a pipe"));
        Bench { process, errors }
    }

    /// Waits for a line of standard error that begins with `start`.
    fn await_line(&mut self, start: &str) {
        let found = self.errors.by_ref().lines().any(|line| line.expect("text").starts_with(start));
        assert!(found, "no line begins with {start:?}");
    }

    fn interrupt(&self) {
        let pid = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    }

    /// Returns the exit code, standard output, and the rest of standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut errors) = (String::new(), String::new());
        self.process.0.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
        self.errors.read_to_string(&mut errors).expect("text");
        (self.process.0.wait().expect("it ends").code(), out, errors)
    }
}

#[test]
fn what_a_key_value_load_has_measured_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let port = server.port.to_string();
    let common = ["kv", "--port", &port, "--duration", "1h", "--warmup", "0s", "--keyspace", "100"];
    // Capacity for all requests that are due, however rarely the system lets the server run.
    let open_loop = ["--rate", "500", "--pipeline", "1000"];
    for flags in [&[][..], &open_loop, &["--reactive-bench", "--reactive-keyspace", "10"]] {
        let mut client = server.client();
        let processed = |client: &mut _| info_number(client, "stats", "total_commands_processed");
        let mut bench = Bench::start(&[&common[..], &["--json"], flags].concat());
        bench.await_line("measuring");
        let before = processed(&mut client);
        wait_until("requests are answered", || processed(&mut client) > before + 100);
        bench.interrupt();
        let (code, out, errors) = bench.end();
        assert_eq!(code, INTERRUPTED, "{out}{errors}");
        let report: Report = serde_json::from_str(&out).unwrap();
        assert!(report.interrupted, "{out}");
        let value = |name| value(&report, name).unwrap();
        assert!(value("successful_operations") > 0.0, "{out}");
        assert_eq!(figure(&report, None, None, "failed_operations").unwrap().value, 0.into(), "{out}");
        let seconds = value("duration");
        let rate = value("successful_operations") / seconds;
        assert!((rate - value("throughput")).abs() < 1.0, "{out}");
        assert!(seconds < 3_600.0, "{out}");
    }
    let bench = {
        let other = format!("redis://127.0.0.1:{port}");
        let mut bench = Bench::start(&[&common[..], &["--against", &other]].concat());
        bench.await_line("measuring");
        bench.interrupt();
        bench.end()
    };
    assert_eq!(bench.0, INTERRUPTED);
    assert!(bench.2.contains("interrupted before both servers were measured"), "{}", bench.2);
}

#[test]
fn what_counters_have_done_is_reported_and_checked() {
    for flags in [&["-duration=1h"][..], &["-duration=0", "-ops=1000000000000", "-variant=gcra"]] {
        let mut bench = Bench::start(&[&["counter", "-goroutines=2", "-keys=4"], flags].concat());
        bench.await_line("measuring");
        bench.interrupt();
        let (code, out, errors) = bench.end();
        assert_eq!(code, INTERRUPTED, "{out}{errors}");
        assert!(out.contains("\nInterrupted: ") && out.contains("\nSummary: variant="), "{out}");
    }
}

#[test]
fn benchmarks_of_pools_and_circuits_end_with_what_they_have() {
    for arguments in [["pool", "DrawOps.number"], ["circuit", "PipeOps.emit"]] {
        let mut bench = Bench::start(&[&arguments[..], &["-f", "0", "-i", "10000", "-r", "0.1"]].concat());
        bench.await_line("1/");
        bench.interrupt();
        let (code, out, errors) = bench.end();
        assert_eq!(code, INTERRUPTED, "{out}{errors}");
        assert!(errors.contains("interrupted: "), "{errors}");
    }
}

#[test]
fn scenarios_in_rounds_report_those_that_have_ended() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let port = server.port.to_string();
    for (scenario, flags, begun, reported) in [
        ("reconnect", &["--iterations", "10000"][..], "iteration 1/", "Iterations: "),
        ("fan-out", &["--rounds", "10000", "--subscribers", "10"], "round 1/", "Rounds: 10000 ("),
        (
            "crash",
            &["--scenario", "client", "--iterations", "1000", "--updates", "40"],
            "iteration 1/",
            "iterations with",
        ),
    ] {
        let mut bench = Bench::start(&[&[scenario, "--port", &port], flags].concat());
        bench.await_line(begun);
        bench.interrupt();
        let (code, out, errors) = bench.end();
        assert_eq!(code, INTERRUPTED, "{out}{errors}");
        assert!(out.contains(reported) && errors.contains("interrupted "), "{out}{errors}");
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    // Accepts connections and answers nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut bench = Bench::start(&["kv", "--host", "127.0.0.1", "--port", &port, "--op-timeout", "1h"]);
    let _connection = listener.accept().unwrap();
    wait_until("the program ends", || {
        bench.interrupt();
        bench.process.0.try_wait().unwrap().is_some()
    });
    assert_eq!(bench.process.0.wait().unwrap().code(), INTERRUPTED);
}

#[test]
fn a_terminal_is_shown_how_far_a_run_is() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let arguments = format!("bench kv --port {} --duration 1h --warmup 0s --keyspace 100", server.port);
    let mut terminal = Terminal::run(&arguments, "");
    for _ in 0..2 {
        terminal.await_text("\r\u{1b}[Kmeasuring ");
        terminal.await_text(" of 3600 s, ");
    }
    terminal.press("\u{3}");
    terminal.await_text("\r\u{1b}[KTidemark benchmark");
    terminal.await_text("Interrupted: ");
    terminal.await_text("ended with 130");
}
