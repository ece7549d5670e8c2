//! `tidemark top pools` beside a real server.

mod support;

use std::process::{Command, Output};
use support::terminal::Terminal;
use support::{Server, call};

fn top(port: u16, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["top", "pools", "--port", &port.to_string()]).args(arguments);
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A server with two pools, one of which has a name that must not reach a terminal.
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
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&document["pools"], &document["draws"], &document["reservations"]),
        (&2.into(), &13.into(), &1.into())
    );
    assert!(document["draws_per_second"].is_null(), "one reading tells no rates");
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
    let document: serde_json::Value = serde_json::from_slice(&some.stdout).expect("JSON");
    assert_eq!((&document["pools"], &document["top"][0]["key"]), (&1.into(), &"winter".into()));
    let elsewhere = top(server.port, &["--once", "--json", "-n", "3"]);
    let document: serde_json::Value = serde_json::from_slice(&elsewhere.stdout).expect("JSON");
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
    assert!(pages[0].starts_with("2 pools; 13 draws; 1 reservations open\n"), "{shown}");
    assert!(pages[1].starts_with("2 pools; 13 draws, 0.0 a second; 1 reservations open\n"), "{shown}");
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
    let port = server.port;
    let view = std::thread::spawn(move || top(port, &["--count", "20", "--interval", "100ms", "--json"]));
    while !view.is_finished() {
        call(&mut client, &["POOL.DRAW", "p", "COUNT", "100"]);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let output = view.join().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let last = text(&output.stdout).lines().last().expect("a line").to_owned();
    let document: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    let pool = &document["top"][0];
    assert!(pool["compared_draws"].as_u64().expect("a number") >= 100, "{document}");
    assert_eq!(pool["left_out_draws"], 0);
    assert!(pool["deviation"].as_f64().expect("a number") < 6.0, "{document}");
    assert!(document["draws_per_second"].as_f64().expect("a number") > 0.0, "{document}");
}

#[test]
fn what_is_wrong_is_told() {
    let port = support::free_port();
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
    // Keys that mean nothing change nothing.
    terminal.press("xr");
    terminal.await_text(" by reservations; ");
    terminal.press("q");
    terminal.await_text("\u{1b}[?25h\u{1b}[?1049l");
    terminal.await_text("ended with 0");
}
