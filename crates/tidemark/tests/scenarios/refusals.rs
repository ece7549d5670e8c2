//! Errors say what was wrong, the value, and what would be right.

use crate::support::{Server, free_port};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

fn tidemark(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(line.split(' '));
    command
}

#[test]
fn errors_about_a_command_line_state_the_correct_form() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("file"), "").expect("a file");
    for (line, code, reason) in [
        (
            "log verify --dir none",
            1,
            "cannot read the directory none; give it with --dir: No such file or directory",
        ),
        ("log verify --dir file", 1, "cannot read the directory file; give it with --dir: Not a directory"),
        (
            "log truncate --dir none --after x",
            2,
            "invalid value 'x' for '--after <AFTER>': it must be a whole number",
        ),
        ("cli -p x PING", 2, "invalid value 'x' for '--port <PORT>': it must be a whole number"),
        ("cli -p 70000 PING", 2, "invalid value '70000' for '--port <PORT>': 70000 is not in 0..=65535"),
    ] {
        let output = tidemark(line).current_dir(directory.path()).output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(code) && message.contains(reason),
            "{line}: {:?} {message}",
            output.status
        );
    }
}

#[test]
fn a_variable_that_is_wrong_is_wrong_usage() {
    let output = tidemark("bench counter").env("HARNESS_DURATION", "xx").output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("HARNESS_DURATION=xx: invalid duration \"xx\"; write a number and a unit"),
        "{message}"
    );
    assert_eq!(output.status.code(), Some(2), "{message}");
}

#[test]
fn an_argument_may_be_any_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let port = server.port;
    let set = tidemark(&format!("cli -p {port} SET k"))
        .arg(OsStr::from_bytes(b"caf\xe9"))
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&set.stdout), "OK\n", "{}", String::from_utf8_lossy(&set.stderr));
    let get = tidemark(&format!("cli -p {port} GET k")).output().expect("it runs");
    assert_eq!(get.stdout, b"caf\xe9\n");
}

#[test]
fn a_server_that_listens_everywhere_says_where_it_is_reached() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let mut server = tidemark(&format!("serve --bind * --port {port}"))
        .current_dir(directory.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(server.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("talk to it")).unwrap_or_default();
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(line, format!("talk to it  redis-cli -h 127.0.0.1 -p {port}"));
}
