//! A clean stop loses nothing, in every durability mode.

use crate::support::{Answer, Server, wait_until};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn snapshots(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).expect("the data directory");
    names
        .filter(|name| name.as_ref().expect("a name").file_name().to_string_lossy().starts_with("snapshot-"))
        .count()
}

/// Makes a server with some megabytes of data.
fn filled(directory: &Path, settings: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--durability", "always", "--snapshot-after", "0", "--dir"]).arg(directory);
    command.args(settings).stderr(Stdio::piped());
    let server = Server::spawn(command);
    let mut client = server.client();
    let value = "v".repeat(1 << 20);
    for n in 0..20 {
        let answer = client.call(&["SET", &format!("key:{n}"), &value]).expect("an answer");
        assert_eq!(answer, Answer::Status("OK".into()));
    }
    server
}

fn check_filled(directory: &Path) {
    let server = Server::start(directory, &[]);
    let mut client = server.client();
    for n in 0..20 {
        assert_eq!(
            client.call(&["STRLEN", &format!("key:{n}")]).expect("an answer"),
            Answer::Integer(1 << 20)
        );
    }
}

#[test]
fn sigterm_keeps_every_answered_write_in_every_mode() {
    for durability in ["always", "interval", "off"] {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Server::start(directory.path(), &["--durability", durability]);
        let mut client = server.client();
        for n in 0..1000 {
            let answer = client.call(&["INCR", &format!("key:{}", n % 10)]).expect("an answer");
            assert_eq!(answer, Answer::Integer(n / 10 + 1));
        }
        assert!(server.terminate().success(), "{durability}");
        let server = Server::start(directory.path(), &["--durability", durability]);
        let mut client = server.client();
        for n in 0..10 {
            let answer = client.call(&["GET", &format!("key:{n}")]).expect("an answer");
            assert_eq!(answer, Answer::Bulk("100".into()), "{durability}");
        }
    }
}

#[test]
fn every_signal_that_stops_the_server_keeps_every_answered_write_and_others_do_not_stop_it() {
    for stopping in ["TERM", "INT", "HUP", "QUIT"] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut server = Server::start(directory.path(), &[]);
        let mut client = server.client();
        for ignored in ["USR1", "USR2", "ALRM"] {
            server.signal(ignored);
        }
        for n in 1..=500 {
            assert_eq!(client.call(&["INCR", "visits"]).expect("an answer"), Answer::Integer(n));
        }
        server.signal(stopping);
        assert!(server.child.wait().expect("the process ends").success(), "{stopping}");
        let server = Server::start(directory.path(), &[]);
        let answer = server.client().call(&["GET", "visits"]).expect("an answer");
        assert_eq!(answer, Answer::Bulk("500".into()), "{stopping}");
    }
}

#[test]
fn under_nohup_a_closed_terminal_does_not_stop_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_tidemark")).args(["serve", "--dir"]).arg(directory.path());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let server = Server::spawn(command);
    server.signal("HUP");
    let mut client = server.client();
    for n in 1..=100 {
        assert_eq!(client.call(&["INCR", "visits"]).expect("an answer"), Answer::Integer(n));
    }
    assert!(server.terminate().success());
}

#[test]
fn two_servers_never_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let _server = Server::start(directory.path(), &[]);
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["serve", "--port", &crate::support::free_port().to_string(), "--dir"])
        .arg(directory.path())
        .output()
        .expect("the binary runs");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("is in use by another process"), "the reason is named: {said}");
}

#[test]
fn every_storage_and_format_of_the_log_serves_and_restarts() {
    for (storage, format, survives) in [
        ("file", "jsonl", true),
        ("file", "text", true),
        ("mmap", "binary", true),
        ("memory", "binary", false),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let arguments = ["--log-storage", storage, "--log-format", format, "--durability", "always"];
        let server = Server::start(directory.path(), &arguments);
        let mut client = server.client();
        assert_eq!(
            client.call(&["SET", "k", "\u{1}\u{2}é\n"]).expect("an answer"),
            Answer::Status("OK".into())
        );
        assert_eq!(client.call(&["RPUSH", "l", "a", "b"]).expect("an answer"), Answer::Integer(2));
        server.kill();
        let server = Server::start(directory.path(), &arguments);
        let expected = if survives { Answer::Bulk("\u{1}\u{2}é\n".into()) } else { Answer::Null };
        assert_eq!(server.client().call(&["GET", "k"]).expect("an answer"), expected, "{storage} {format}");
    }
}

#[test]
fn a_stop_while_a_long_log_is_loaded_is_a_clean_one() {
    const RECORDS: usize = 200_000;
    let directory = tempfile::tempdir().expect("a directory");
    let settings = ["--durability", "off", "--snapshot-after", "0"];
    let server = Server::start(directory.path(), &settings);
    let mut client = server.client();
    for _ in 0..RECORDS / 1000 {
        (0..1000).for_each(|_| client.send(&["INCR", "key"]).expect("sent"));
        (0..1000).for_each(|_| drop(client.read().expect("an answer")));
    }
    assert!(server.terminate().success());
    let port = crate::support::free_port();
    let mut loading = Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["serve", "--port", &port.to_string(), "--dir"])
        .arg(directory.path())
        .args(settings)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut said = BufReader::new(loading.stderr.take().expect("it is piped")).lines();
    let mut next = || said.next().expect("a line").expect("text");
    assert!(next().starts_with("Tidemark "), "the server's name comes first");
    while !next().starts_with("talk to it") {}
    // It listens, even if loading is not finished.
    let answer = crate::support::Client::connect(port).expect("it listens").call(&["INFO", "persistence"]);
    assert!(matches!(answer, Ok(Answer::Bulk(info)) if info.contains("loading:")));
    let sent = Command::new("kill").args(["-TERM", &loading.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    assert!(loading.wait().expect("the process ends").success());
    let server = Server::start(directory.path(), &settings);
    let answer = server.client().call(&["GET", "key"]).expect("an answer");
    assert_eq!(answer, Answer::Bulk(RECORDS.to_string()));
}

#[test]
fn a_stop_gives_up_a_snapshot_that_is_being_taken_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = filled(directory.path(), &[]);
    // Every write of the snapshot now takes seconds: all of it would take much longer than the
    // server may wait.
    let mut strace = server.tamper_with_snapshots("pwrite64", "delay_enter=2000000");
    let mut waiting = server.client();
    waiting.send(&["SAVE"]).expect("sent");
    wait_until("the snapshot's file is there", || snapshots(directory.path()) > 0);
    assert!(server.terminate().success());
    // The client gets an answer only if the snapshot's thread ends before the connection does.
    if let Ok(answer) = waiting.read() {
        let given_up =
            "ERR the snapshot failed: it was given up because the server stops; the log has every change";
        assert_eq!(answer, Answer::Error(given_up.into()));
    }
    assert_eq!(snapshots(directory.path()), 0, "nothing is left of it");
    strace.wait().expect("strace ends with what it traced");
    check_filled(directory.path());
}

#[test]
fn shutdown_save_stops_with_a_snapshot() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = filled(directory.path(), &[]);
    let mut client = server.client();
    assert!(!client.call(&["BGSAVE"]).expect("an answer").is_error());
    assert!(client.call(&["SHUTDOWN", "SAVE"]).is_err(), "there is no answer to a stop that succeeds");
    assert!(server.child.wait().expect("the process ends").success());
    assert!(snapshots(directory.path()) > 0);
    check_filled(directory.path());
}

#[test]
fn a_second_signal_stops_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = filled(directory.path(), &["--shutdown-timeout", "3600"]);
    let mut said = BufReader::new(server.child.stderr.take().expect("a pipe")).lines();
    // The server would wait for this client to read its replies.
    let mut unread = server.client();
    for n in 0..20 {
        unread.send(&["GET", &format!("key:{n}")]).expect("sent");
    }
    // The kernel's buffers are full once a megabyte has waited in the server for a while.
    let mut observer = server.client();
    let mut stuck = 0;
    wait_until("the kernel's buffers are full", || {
        let Answer::Bulk(list) = observer.call(&["CLIENT", "LIST"]).expect("an answer") else {
            panic!("a list")
        };
        let waiting = |line: &str| line.split(" omem=").nth(1)?.split(' ').next()?.parse::<usize>().ok();
        let is_stuck = list.lines().filter_map(waiting).any(|bytes| bytes >= 1 << 20);
        stuck = if is_stuck { stuck + 1 } else { 0 };
        stuck == 100
    });
    server.signal("TERM");
    let is_stopping = |line: std::io::Result<String>| line.is_ok_and(|line| line.starts_with("stopping"));
    assert!(said.any(is_stopping), "the first signal stops gracefully, and says so");
    server.signal("TERM");
    assert_eq!(server.child.wait().expect("the process ends").code(), Some(130));
    check_filled(directory.path());
}
