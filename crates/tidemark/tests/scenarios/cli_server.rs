//! `tidemark cli` with a real server, where an answer is not simply one reply, and outputs that nobody reads.

use crate::support::Server;
use std::io::Write;
use std::process::{Command, Output, Stdio};

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
fn an_output_that_nobody_reads_is_the_end_and_no_error() {
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
