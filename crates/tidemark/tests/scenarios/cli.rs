//! `tidemark cli` as a user's script sees it: output, exit codes, and where errors go.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

/// A server that answers every command with OK; it ends with the test.
struct Server {
    process: Child,
    port: String,
}

impl Server {
    fn start() -> Self {
        let mut process =
            tidemark(&["bench", "null-server", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        Server { process, port }
    }

    fn cli(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut process = tidemark(&[&["cli", "-p", &self.port], arguments].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(input).unwrap();
        process.wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn tidemark(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(arguments);
    command
}

#[test]
fn one_command_prints_its_reply_in_the_chosen_form() {
    let server = Server::start();
    let output = server.cli(&["SET", "a", "-5"], b"");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"OK\n"[..]));
    assert_eq!(server.cli(&["--no-raw", "GET", "a"], b"").stdout, b"(nil)\n");
    assert_eq!(server.cli(&["--json", "GET", "a"], b"").stdout, b"null\n");
    assert_eq!(server.cli(&["-2", "-x", "SET", "a"], b"value\n").stdout, b"OK\n");
}

#[test]
fn lines_of_standard_input_are_commands() {
    let server = Server::start();
    let output = server.cli(&[], b"PING\n\nSET a \"x y\"\n");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"PONG\nOK\n"[..]));
}

#[test]
fn an_open_quote_stops_with_the_line_number() {
    let server = Server::start();
    let output = server.cli(&[], b"PING\nSET a \"x\n");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b"PONG\n"[..]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2: a quote is not closed"));
}

#[test]
fn no_server_is_exit_code_three_and_says_where() {
    let port = crate::support::free_port().to_string();
    let output = tidemark(&["cli", "-p", &port, "PING"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(&format!("could not connect to 127.0.0.1:{port}")), "{message}");
}

#[test]
fn a_mistyped_flag_is_answered_with_the_right_one() {
    let output = tidemark(&["cli", "--jsn", "PING"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--json"));
}
