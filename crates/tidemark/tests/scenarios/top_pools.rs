//! `tidemark top pools` with a real server.

use crate::support::terminal::{Running, Terminal};
use crate::support::{Server, call, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn top(port: u16, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["top", "pools", "--port", &port.to_string()]).args(arguments);
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Starts a server with two pools, one of which has a name that must not reach a terminal.
fn server(directory: &std::path::Path) -> Server {
    let server = Server::start(directory, &[]);
    let mut client = server.client();
    call(
        &mut client,
        &["POOL.CREATE", "summer \u{1b}[2J", "ITEMS", "car", "1000000", "2", "mug", "1", "UNLIMITED"],
    );
    call(&mut client, &["POOL.DRAW", "summer \u{1b}[2J", "COUNT", "10"]);
    call(&mut client, &["POOL.CREATE", "winter", "ITEMS", "hat", "1", "100"]);
    call(&mut client, &["POOL.RESERVE", "winter", "3600000", "COUNT", "3"]);
    call(&mut client, &["SET", "other", "value"]);
    server
}

#[test]
fn one_reading_is_a_document() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let output = top(server.port, &["--once", "--json", "--sort", "draws"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&document["pools"], &document["draws"], &document["reservations"]),
        (&2.into(), &13.into(), &1.into())
    );
    assert!(document["draws_per_second"].is_null(), "one reading gives no rates");
    let first = &document["top"][0];
    assert_eq!(
        (&first["key"], &first["draws"], &first["sold_out"]),
        (&"summer \u{1b}[2J".into(), &10.into(), &1.into())
    );
    assert_eq!(first["verdict"], "too few draws to say");
    let stock = &first["stock"];
    assert_eq!(
        (&stock[0]["id"], &stock[0]["left"], &stock[0]["odds"]),
        (&"car".into(), &0.into(), &0.0.into())
    );
    assert_eq!((&stock[1]["unlimited"], &stock[1]["drawn"]), (&true.into(), &8.into()));
    let some = top(server.port, &["--once", "--json", "--match", "win*"]);
    let document: Value = serde_json::from_slice(&some.stdout).expect("JSON");
    assert_eq!((&document["pools"], &document["top"][0]["key"]), (&1.into(), &"winter".into()));
    let elsewhere = top(server.port, &["--once", "--json", "-n", "3"]);
    let document: Value = serde_json::from_slice(&elsewhere.stdout).expect("JSON");
    assert_eq!(document["pools"], 0);
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
    assert!(pages[0].starts_with("2 pools; 13 draws; 1 reservation open\n"), "{shown}");
    assert!(pages[1].starts_with("2 pools; 13 draws, 0.0 a second; 1 reservation open\n"), "{shown}");
    assert!(
        pages[1].contains("  summer \\u{1b}[2J\n") && pages[1].contains("SOLD OUT         2 drawn"),
        "{shown}"
    );
    assert!(pages[1].contains("unlimited") && pages[1].contains("97 left"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn draws_are_compared_with_their_odds() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    call(&mut client, &["POOL.CREATE", "p", "ITEMS", "car", "1", "UNLIMITED", "mug", "3", "UNLIMITED"]);
    let mut view = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    view.args(["top", "pools", "--port", &server.port.to_string(), "--interval", "100ms", "--json"]);
    let mut view = Running(view.stdout(Stdio::piped()).spawn().expect("the binary starts"));
    let mut lines = BufReader::new(view.0.stdout.take().expect("a pipe")).lines();
    let mut document = || -> Value {
        let line = lines.next().expect("a reading").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    assert!(document()["draws_per_second"].is_null(), "the first reading gives no rates");
    // The second reading compares the draws since the first.
    call(&mut client, &["POOL.DRAW", "p", "COUNT", "1000"]);
    let (mut compared, mut has_rate) = (Value::Null, false);
    wait_until("readings have the draws", || {
        compared = document();
        // A reading asks for the totals first, so they may show the draws one reading later than
        // the pool.
        has_rate |= compared["draws_per_second"].as_f64().expect("a number") > 0.0;
        has_rate && compared["top"][0]["compared_draws"] != 0
    });
    let pool = &compared["top"][0];
    assert_eq!((&pool["compared_draws"], &pool["left_out_draws"]), (&1000.into(), &0.into()), "{compared}");
    assert!(pool["deviation"].as_f64().expect("a number") < 6.0, "{compared}");
}

#[test]
fn errors_are_reported() {
    let port = crate::support::free_port();
    let nobody = top(port, &["--once"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text(&nobody.stderr).starts_with(&format!("tidemark: could not connect to 127.0.0.1:{port}: ")));
    for arguments in [&["--sort", "size"][..], &["--keys", "101"], &["--once", "--count", "2"]] {
        assert_eq!(top(port, arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn on_a_terminal_a_page_stays_in_place_until_it_is_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut terminal = Terminal::start("top pools", server.port, "");
    let first = terminal.await_text("\u{1b}[J\u{1b}[?2026l");
    assert!(first.contains(" by draws a second; d t r n order, q leaves"), "{first:?}");
    assert!(!first.contains("\u{1b}[2J") && first.contains("2 pools; 13 draws"), "{first:?}");
    // The page is as wide as the terminal.
    assert!(first.contains('…'), "{first:?}");
    terminal.press("n");
    terminal.await_text(" by name; ");
    // Keys without a meaning change nothing.
    terminal.press("xr");
    terminal.await_text(" by reservations; ");
    terminal.press("q");
    terminal.await_text("\u{1b}[?25h\u{1b}[?1049l");
    terminal.await_text("ended with 0");
}
