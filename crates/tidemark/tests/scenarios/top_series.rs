//! `tidemark top series` with a real server.

use crate::support::terminal::{Running, Terminal};
use crate::support::{Server, call, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn top(port: u16, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["top", "series", "--port", &port.to_string()]).args(arguments);
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Starts a server with two series, one of which has a name that must not reach a terminal.
fn server(directory: &std::path::Path) -> Server {
    let server = Server::start(directory, &[]);
    let mut client = server.client();
    for time in ["1", "2", "3"] {
        call(&mut client, &["TS.ADD", "hall \u{1b}[2J", time, "20.5", "LABELS", "room", "hall"]);
    }
    call(&mut client, &["TS.CREATE", "attic"]);
    call(&mut client, &["SET", "other", "value"]);
    server
}

fn document(output: &Output) -> Value {
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn one_reading_is_a_document() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let all = document(&top(server.port, &["--once", "--json", "--sort", "points"]));
    assert_eq!((&all["series"], &all["points"], &all["complete"]), (&2.into(), &3.into(), &true.into()));
    assert!(all["points_per_second"].is_null(), "one reading gives no rates");
    let first = &all["top"][0];
    assert_eq!(
        (&first["key"], &first["points"], &first["labels"]),
        (&"hall \u{1b}[2J".into(), &3.into(), &1.into())
    );
    assert!(first["bytes"].as_u64() > Some(0) && first["bytes_per_point"].as_f64() > Some(0.0), "{first}");
    let attic = document(&top(server.port, &["--once", "--json", "--match", "att*"]));
    assert_eq!((&attic["series"], &attic["top"][0]["bytes_per_point"]), (&1.into(), &Value::Null));
    assert_eq!(document(&top(server.port, &["--once", "--json", "-n", "3"]))["series"], 0);
    let none = document(&top(server.port, &["--once", "--json", "--keys", "0"]));
    assert_eq!((&none["series"], &none["top"]), (&2.into(), &Value::Array(Vec::new())));
}

#[test]
fn elsewhere_than_on_a_terminal_it_is_plain_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let output = top(server.port, &["--count", "2", "--interval", "100ms", "--sort", "name"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let shown = text(&output.stdout);
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let pages: Vec<&str> = shown.split_terminator("\n\n").collect();
    assert_eq!(pages.len(), 2, "{shown}");
    assert!(pages[0].starts_with("2 series; 3 points; "), "{shown}");
    assert!(pages[1].starts_with("2 series; 3 points, 0.0 a second; "), "{shown}");
    assert!(pages[1].contains("  hall \\u{1b}[2J\n") || pages[1].ends_with("  hall \\u{1b}[2J"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn readings_show_how_fast_points_come() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut client = server.client();
    let mut view = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    view.args(["top", "series", "--port", &server.port.to_string(), "--interval", "100ms", "--json"]);
    let mut view = Running(view.stdout(Stdio::piped()).spawn().expect("the binary starts"));
    let mut lines = BufReader::new(view.0.stdout.take().expect("a pipe")).lines();
    let mut document = || -> Value {
        let line = lines.next().expect("a reading").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    assert!(document()["points_per_second"].is_null(), "the first reading gives no rates");
    call(&mut client, &["TS.MADD", "attic", "1", "1", "attic", "2", "2"]);
    wait_until("a reading has the points", || {
        let reading = document();
        let first = &reading["top"][0];
        first["key"] == "attic" && first["points_per_second"].as_f64() > Some(0.0) && reading["points"] == 5
    });
}

#[test]
fn errors_are_reported() {
    let port = crate::support::free_port();
    let nobody = top(port, &["--once"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text(&nobody.stderr).starts_with(&format!("tidemark: could not connect to 127.0.0.1:{port}: ")));
    for arguments in [&["--sort", "size"][..], &["--keys", "1001"], &["--once", "--count", "2"]] {
        assert_eq!(top(port, arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn on_a_terminal_keys_change_the_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut terminal = Terminal::start("top series", server.port, "");
    terminal.await_text(" by points a second; a p m n order, q leaves");
    terminal.press("m");
    terminal.await_text(" by memory; ");
    // Keys without a meaning change nothing.
    terminal.press("xn");
    terminal.await_text(" by name; ");
    terminal.press("q");
    terminal.await_text("ended with 0");
}
