//! `tidemark cli` with a real server, where an answer is not always one reply, and outputs that are
//! not read.

use crate::support::terminal::{Running, Terminal};
use crate::support::{Server, call};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn tidemark(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn cli(server: &Server, arguments: &[&str], input: &str) -> Output {
    let mut command = tidemark(&[&["cli", "-p", &server.port.to_string()], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the program runs");
    process.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    process.wait_with_output().expect("it ends")
}

fn printed(server: &Server, arguments: &[&str], input: &str) -> String {
    let output = cli(server, arguments, input);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn to_unsubscribe_ends_with_the_last_confirmation() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    for protocol in ["-2", "-3"] {
        for command in ["UNSUBSCRIBE", "PUNSUBSCRIBE", "sunsubscribe"] {
            assert!(printed(&server, &[protocol, command], "").starts_with(&command.to_lowercase()));
            let lines = printed(&server, &[protocol], &format!("{command} a b\nPING\n"));
            assert_eq!(lines.matches(&command.to_lowercase()).count(), 2, "{lines}");
            assert!(lines.ends_with("PONG\n"), "each reply belongs to its command: {lines}");
        }
        let lines = printed(&server, &[protocol], "MULTI\nUNSUBSCRIBE a\nEXEC\nPING\n");
        assert!(lines.starts_with("OK\nQUEUED\n") && lines.ends_with("PONG\n"), "{lines}");
    }
}

#[test]
fn replies_that_were_switched_off_are_not_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    assert_eq!(printed(&server, &["CLIENT", "REPLY", "OFF"], ""), "");
    assert_eq!(printed(&server, &["client", "reply", "skip"], ""), "");
    assert_eq!(printed(&server, &["CLIENT", "REPLY", "ON"], ""), "OK\n");
    assert_eq!(printed(&server, &[], "CLIENT REPLY SKIP\nSET a 1\nGET a\n"), "1\n");
    assert_eq!(printed(&server, &[], "CLIENT REPLY OFF\nSET a 2\nNOPE\nCLIENT REPLY ON\nGET a\n"), "OK\n2\n");
}

#[test]
fn to_shut_down_a_server_is_a_success() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path(), &[]);
    assert_eq!(printed(&server, &["SHUTDOWN"], ""), "");
    assert!(server.child.wait().expect("it ends").success());
}

#[test]
fn a_closed_output_ends_the_cli_without_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let port = server.port.to_string();
    for arguments in [&["serve", "--print-config"][..], &["cli", "-p", &port, "PING"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = tidemark(arguments).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command that continues to print.
struct Listening {
    process: Running,
    lines: Receiver<String>,
}

impl Listening {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut command = tidemark(&[&["cli", "-p", &server.port.to_string()], arguments].concat());
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = Running(spawned.expect("the program runs"));
        let out = BufReader::new(process.0.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Listening { process, lines }
    }

    /// Waits for a line that contains `text`.
    fn await_line(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("{text:?} is missing behind {line:?}: {error}"));
        }
    }

    fn interrupt(&self) {
        let pid = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    }

    /// Returns the exit code and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut errors = String::new();
        let mut pipe = self.process.0.stderr.take().expect("a pipe");
        pipe.read_to_string(&mut errors).expect("text");
        (self.process.0.wait().expect("it ends").code(), errors)
    }
}

#[test]
fn a_command_that_subscribes_prints_what_is_pushed_until_ctrl_c() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut writer = server.client();
    for (arguments, answer, pushed) in [
        (&["GET.WATCH", "price"][..], "99", "emission"),
        (&["-2", "get.watch", "price"], "99", "emission"),
        (&["--json", "GET.WATCH", "price", "|", "MARK"], "99", "[\"emission\","),
        (&["CHANGES", "FROM", "$"], "durable", "change"),
        (&["-2", "CHANGES", "FROM", "$"], "durable", "change"),
        (&["CLIENT", "TRACKING", "ON", "BCAST"], "OK", "invalidate"),
        (&["SUBSCRIBE", "news"], "subscribe", "message"),
    ] {
        call(&mut writer, &["SET", "price", "99"]);
        let mut listening = Listening::start(&server, arguments);
        listening.await_line(answer);
        for _ in 0..2 {
            call(&mut writer, &["INCR", "price"]);
            call(&mut writer, &["PUBLISH", "news", "price"]);
            listening.await_line(pushed);
        }
        listening.interrupt();
        let (code, errors) = listening.end();
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_command_that_subscribes_to_nothing_ends_with_its_reply() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut subscriber = server.client();
    call(&mut subscriber, &["SUBSCRIBE", "prices"]);
    for arguments in [
        &["GET.WATCH", "price", "|", "CHANNEL", "prices"][..],
        &["CHANGES", "STOP"],
        &["CLIENT", "TRACKING", "OFF"],
        &["EMITRECONNECT", "price", "9-9", "1"],
    ] {
        assert_ne!(printed(&server, arguments, ""), "", "{arguments:?}");
    }
    let refused = cli(&server, &["LPUSH.WATCH", "price", "1"], "");
    assert_eq!(refused.status.code(), Some(1), "{}", String::from_utf8_lossy(&refused.stdout));
}

#[test]
fn a_server_that_ends_is_an_error_of_a_command_that_listens() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut listening = Listening::start(&server, &["GET.WATCH", "price"]);
    listening.await_line("seq 0");
    server.terminate();
    let (code, errors) = listening.end();
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("the server closed the connection"), "{errors}");
}

#[test]
fn a_listening_command_ends_quietly_when_its_output_closes() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut writer = server.client();
    let mut command = tidemark(&["cli", "-p", &server.port.to_string(), "GET.WATCH", "price"]);
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut process = Running(process);
    let mut out = BufReader::new(process.0.stdout.take().expect("a pipe"));
    assert!(out.read_line(&mut String::new()).expect("text") > 0);
    drop(out);
    call(&mut writer, &["SET", "price", "100"]);
    assert_eq!(process.0.wait().expect("it ends").code(), Some(0));
    let mut errors = String::new();
    process.0.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert_eq!(errors, "Reading messages... (press Ctrl-C to quit)\n");
}

#[test]
fn pushes_are_shown_above_the_line_that_is_typed() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut writer = server.client();
    let mut terminal = Terminal::run(&format!("cli -p {}", server.port), "TIDEMARK_HISTORY=");
    let prompt = format!("127.0.0.1:{}> ", server.port);
    terminal.await_text(&prompt);
    terminal.press("GET.WATCH price\r");
    terminal.await_text("sub_id");
    terminal.await_text(&prompt);
    terminal.press("PI");
    terminal.await_text("PI");
    for number in ["101", "102"] {
        call(&mut writer, &["SET", "price", number]);
        terminal.await_text(&format!("\"{number}\""));
        // The typed line is shown again.
        terminal.await_text(&prompt);
        terminal.await_text("PI");
    }
    terminal.press("NG\r");
    terminal.await_text("PONG");
    terminal.await_text(&prompt);
    server.terminate();
    terminal.await_text("the server closed the connection");
    terminal.press("quit\r");
    terminal.await_text("ended with 0");
}
