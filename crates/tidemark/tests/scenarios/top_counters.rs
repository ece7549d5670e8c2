//! `tidemark top counters` with a real server: as text, as JSON, on a terminal, and while the
//! server goes away.

use crate::support::terminal::{Running, Terminal};
use crate::support::{Answer, Server};
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server that samples every move, with a counter whose moves cancel and one whose moves
/// do not.
fn server(directory: &std::path::Path) -> Server {
    let server = Server::start(directory, &["--counter-churn-sample", "1", "--counter-max-age", "86400000"]);
    let mut client = server.client();
    for command in [
        &["COUNTER.ADD", "seats \u{1b}[2J", "10"][..],
        &["COUNTER.ADD", "seats \u{1b}[2J", "-10"],
        &["COUNTER.ADD", "seats \u{1b}[2J", "1"],
        &["COUNTER.ADD", "likes", "40"],
        &["COUNTER.COMMIT", "likes"],
    ] {
        assert!(!client.call(command).expect("the server answers").is_error(), "{command:?}");
    }
    server
}

fn top(port: u16, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["top", "counters", "--port", &port.to_string()]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(port: u16, arguments: &[&str]) -> Output {
    top(port, arguments).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn next(lines: &mut std::io::Lines<BufReader<ChildStdout>>) -> serde_json::Value {
    let line = lines.next().expect("a line").expect("text");
    serde_json::from_str(&line).expect("JSON")
}

#[test]
fn one_reading_is_a_document() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let output = output(server.port, &["--once", "--json"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["keys"], 2);
    assert_eq!(document["uncommitted"]["units"], 1);
    let total = &document["total"];
    assert_eq!(
        (&total["moves"], &total["moved_units"], &total["commits"], &total["committed_units"]),
        (&4.into(), &61.into(), &1.into(), &40.into())
    );
    assert!(document["per_second"].is_null(), "one reading gives no rates");
    let seats = &document["top"][0];
    assert_eq!(
        (&seats["key"], &seats["moves"], &seats["units"], &seats["committed"], &seats["churn"]),
        (&"seats \u{1b}[2J".into(), &3.into(), &21.into(), &0.into(), &1.0.into())
    );
    assert_eq!(document["top"][1]["key"], "likes");
}

#[test]
fn elsewhere_than_on_a_terminal_it_is_plain_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let output = output(server.port, &["--count", "2", "--interval", "100ms", "--sort", "units"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let shown = text(&output.stdout);
    assert!(!shown.contains('\u{1b}'), "neither colours nor what a key is named: {shown}");
    let pages: Vec<&str> = shown.split("\n\n").collect();
    // Each has two parts, and is followed by an empty line.
    assert_eq!(pages.len(), 5, "{shown}");
    assert!(pages[0].starts_with("2 counters; 1 uncommitted with 1 unit, the oldest for "), "{shown}");
    assert!(pages[0].contains("moves                                 4                  -\n"), "{shown}");
    assert!(pages[2].contains("moves                                 4                0.0\n"), "{shown}");
    let keys: Vec<&str> = pages[3].lines().skip(2).filter_map(|line| line.split("  ").last()).collect();
    assert_eq!(keys, ["likes", "seats \\u{1b}[2J"]);
}

#[test]
fn a_server_that_goes_away_is_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let port = server.port;
    let mut running =
        Running(top(port, &["--json", "--interval", "100ms"]).spawn().expect("the binary starts"));
    let mut lines = BufReader::new(running.0.stdout.take().expect("a pipe")).lines();
    let mut errors = BufReader::new(running.0.stderr.take().expect("a pipe")).lines();
    assert_eq!(next(&mut lines)["keys"], 2);
    assert!(server.terminate().success());
    let lost = errors.next().expect("a line").expect("text");
    assert!(lost.starts_with("tidemark top: ") && lost.ends_with("; trying again"), "{lost}");

    let mut again = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    again.args(["serve", "--port", &port.to_string(), "--dir"]).arg(directory.path());
    let _again = Running(again.stdout(Stdio::null()).spawn().expect("the binary starts"));
    let back = errors.next().expect("a line").expect("text");
    assert_eq!(back, format!("tidemark top: 127.0.0.1:{port} is there again"));
    let began = Instant::now();
    while next(&mut lines)["total"]["moves"] != 0 {
        assert!(began.elapsed() < PATIENCE, "the new server has counted nothing yet");
    }
}

#[test]
fn a_reader_that_closes_the_output_ends_it_quietly() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut child = top(server.port, &["--interval", "100ms"]).spawn().expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn errors_are_reported() {
    let port = crate::support::free_port();
    let nobody = output(port, &["--once"]);
    assert_eq!(nobody.status.code(), Some(1));
    let message = text(&nobody.stderr);
    assert!(message.starts_with(&format!("tidemark: could not connect to 127.0.0.1:{port}: ")), "{message}");

    for arguments in
        [&["--interval", "1ms"][..], &["--sort", "name"], &["--count", "0"], &["--once", "--count", "2"]]
    {
        assert_eq!(output(port, arguments).status.code(), Some(2), "{arguments:?}");
    }

    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let set = server.client().call(&["CONFIG", "SET", "requirepass", "secret"]).expect("the server answers");
    assert_eq!(set, Answer::Status("OK".into()));
    let refused = output(server.port, &["--once"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("NOAUTH"), "{}", text(&refused.stderr));
    let wrong = output(server.port, &["--once", "--password", "guess"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("the server refused the password"), "{}", text(&wrong.stderr));
    let mut command = top(server.port, &["--once"]);
    assert!(command.env("TIDEMARK_PASSWORD", "secret").output().expect("the binary starts").status.success());
}

#[test]
fn on_a_terminal_a_page_stays_in_place_until_it_is_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut terminal = Terminal::start("top counters", server.port, "");
    terminal.await_text("\u{1b}[?1049h\u{1b}[?25l");
    let first = terminal.await_text("\u{1b}[J\u{1b}[?2026l");
    assert!(first.starts_with("\u{1b}[?2026h\u{1b}[H\u{1b}[1m127.0.0.1:"), "{first:?}");
    assert!(!first.contains("\u{1b}[2J") && first.contains("  seats \\u{1b}[2J\u{1b}[K"), "{first:?}");
    // The page is as wide as the terminal.
    assert!(first.contains('…'), "{first:?}");
    terminal.await_text(" by moves; ");
    terminal.press("u");
    terminal.await_text(" by units; ");
    terminal.press("q");
    terminal.await_text("\u{1b}[?25h\u{1b}[?1049l");
    let after = terminal.await_text("ended with 0");
    assert!(!after.contains("\u{1b}[H"), "nothing is drawn any more: {after:?}");
    let settings = terminal.await_text("echoe");
    assert!(
        settings.contains(" icanon ") && settings.contains(" echo "),
        "the terminal is as it was: {settings}"
    );
}

#[test]
fn ctrl_c_leaves_the_terminal_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server(directory.path());
    let mut terminal = Terminal::start("top counters", server.port, "NO_COLOR=1");
    let first = terminal.await_text("\u{1b}[J\u{1b}[?2026l");
    assert!(first.contains("\u{1b}[?2026h\u{1b}[H127.0.0.1:"), "nothing stands out: {first:?}");
    assert!(server.terminate().success());
    terminal.await_text("; trying again");
    terminal.press("\u{3}");
    terminal.await_text("\u{1b}[?25h\u{1b}[?1049l");
    terminal.await_text("ended with 0");
    let settings = terminal.await_text("echoe");
    assert!(settings.contains(" icanon ") && settings.contains(" echo "), "{settings}");
}
