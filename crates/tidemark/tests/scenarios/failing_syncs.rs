//! A failed sync ends the acceptance of changes permanently, whether the log, a snapshot or the
//! directory was synced. No change is acknowledged after it, health and standard error report it,
//! and a restart has everything that was acknowledged before.

use crate::support::prizes::{create_prizes, draw_until_refused};
use crate::support::{Answer, Client, Server, free_port, readiness};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

fn runs() -> usize {
    std::env::var("TIDEMARK_SYNC_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// Starts a server whose system calls fail as the strace arguments say.
fn serve(directory: &Path, http: u16, strace: &[&str], settings: &[&str]) -> Server {
    let mut command = Command::new("strace");
    // With -D the server is the test's child and strace its grandchild, so killing the server ends
    // both.
    command.args(["-D", "-f", "-qq", "-o", "/dev/null"]).args(strace).arg(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--durability", "always", "--http", &format!("127.0.0.1:{http}"), "--dir"]);
    command.arg(directory).args(settings).stderr(Stdio::piped());
    Server::spawn(command)
}

/// Increments until an answer is missing or an error; returns the last acknowledged number.
fn increment_until_refused(client: &mut Client) -> i64 {
    let ballast = "x".repeat(4000);
    let mut acknowledged = 0;
    while let Ok(answer) = client.call(&["INCR", "counter"]) {
        if answer.is_error() {
            return acknowledged;
        }
        assert_eq!(answer, Answer::Integer(acknowledged + 1));
        acknowledged += 1;
        assert!(acknowledged < 100_000, "the sync fails at some time");
        if client.call(&["SET", "ballast", &ballast]).map_or(true, |answer| answer.is_error()) {
            return acknowledged;
        }
    }
    acknowledged
}

/// Checks what must hold after the failure, whatever its cause.
fn check_that_it_is_final(mut server: Server, directory: &Path, http: u16, acknowledged: i64) {
    let mut client = server.client();
    for command in [&["INCR", "counter"][..], &["SET", "other", "x"], &["DURABLE", "DEL", "counter"]] {
        match client.call(command).expect("an answer") {
            Answer::Error(text) => assert!(text.starts_with("MISCONF "), "{text}"),
            answer => panic!("a change was acknowledged after a failed sync: {answer:?}"),
        }
    }
    assert!(client.call(&["SAVE"]).expect("an answer").is_error(), "nor is a snapshot");
    // What is not on disk is not shown.
    match client.call(&["GET", "counter"]).expect("an answer") {
        Answer::Error(text) => assert!(text.starts_with("MISCONF the log has failed"), "{text}"),
        answer => {
            let read = answer.integer();
            assert!((acknowledged..=acknowledged + 1).contains(&read), "{read}, acknowledged {acknowledged}");
        }
    }
    let (status, text) = readiness(http);
    assert_eq!(status, 503, "{text}");

    let mut stderr = server.child.stderr.take().expect("a pipe");
    let status = server.terminate();
    assert_eq!(status.code(), Some(1), "the exit code says that the end was not clean");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    let line = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("Input/output error") && line.contains("changes are refused"), "{line}");
    assert!(!said.contains("stopped: every answered change is in the log"), "{said}");

    let server = Server::start(directory, &["--durability", "always"]);
    let found = server.client().call(&["GET", "counter"]).expect("an answer").integer();
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{found}, acknowledged {acknowledged}");
}

#[test]
fn of_the_log() {
    for run in 0..runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let http = free_port();
        let fault = format!("inject=fdatasync:error=EIO:when={}+", 12 + run * 7);
        let server = serve(directory.path(), http, &["-e", "trace=fdatasync", "-e", &fault], &[]);
        // The answer that waits for the failing sync is never OK: it is an error, or its connection
        // is closed.
        let acknowledged = increment_until_refused(&mut server.client());
        check_that_it_is_final(server, directory.path(), http, acknowledged);
    }
}

#[test]
fn of_the_log_gives_its_pending_prize_to_no_client() {
    for run in 0..runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let fault = format!("inject=fdatasync:error=EIO:when={}+", 12 + run * 7);
        let server = serve(directory.path(), free_port(), &["-e", "trace=fdatasync", "-e", &fault], &[]);
        let mut client = server.client();
        create_prizes(&mut client, 200);
        let (won, refusal) = draw_until_refused(&mut client);
        assert!(refusal.is_none_or(|text| text.starts_with("MISCONF ")), "the disk has failed");
        let mut client = server.client();
        for command in [&["POOL.DRAW", "prizes"][..], &["POOL.RESERVE", "prizes", "1000"]] {
            match client.call(command).expect("an answer") {
                Answer::Error(text) => assert!(text.starts_with("MISCONF "), "{text}"),
                answer => panic!("a client has won after a failed sync: {answer:?}"),
            }
        }
        server.kill();
        let server = Server::start(directory.path(), &["--durability", "always"]);
        let (rest, refusal) = draw_until_refused(&mut server.client());
        assert!(refusal.is_some_and(|text| text.starts_with("EMPTY ")), "until nothing is left");
        assert!(won.is_disjoint(&rest), "no prize is given twice");
        // One draw whose answer was an error may be in the log.
        assert!((199..=200).contains(&(won.len() + rest.len())), "{} and {}", won.len(), rest.len());
    }
}

#[test]
fn of_the_directory_when_the_log_goes_on_to_its_next_file() {
    for run in 0..runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let http = free_port();
        // The start syncs the directory twice: files left by an earlier process, and the name of
        // `END`.
        let fault = format!("inject=fsync:error=EIO:when={}+", 3 + run);
        let small = ["--log-segment-bytes", "65536"];
        let server = serve(directory.path(), http, &["-e", "trace=fsync", "-e", &fault], &small);
        let acknowledged = increment_until_refused(&mut server.client());
        assert!(acknowledged > 0, "syncs that succeed are acknowledged");
        check_that_it_is_final(server, directory.path(), http, acknowledged);
    }
}

fn failing_snapshot(call: &str) {
    for run in 0..runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let http = free_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        command.args(["serve", "--durability", "always", "--http", &format!("127.0.0.1:{http}"), "--dir"]);
        command.arg(directory.path()).stderr(Stdio::piped());
        let server = Server::spawn(command);
        let mut client = server.client();
        let before = 10 + run as i64;
        for number in 1..=before {
            assert_eq!(client.call(&["INCR", "counter"]).expect("an answer"), Answer::Integer(number));
        }
        let mut strace = server.tamper_with_snapshots(call, "error=EIO");
        let Answer::Error(refusal) = client.call(&["SAVE"]).expect("an answer") else {
            panic!("a snapshot that is not on disk is not acknowledged")
        };
        assert!(refusal.contains("Input/output error"), "{refusal}");
        let info = client.call(&["INFO", "persistence"]).expect("an answer");
        assert!(
            matches!(&info, Answer::Bulk(text) if text.contains("rdb_last_bgsave_status:err")),
            "{info:?}"
        );
        strace.kill().expect("strace ends");
        strace.wait().expect("strace ends");
        check_that_it_is_final(server, directory.path(), http, before);
    }
}

#[test]
fn of_a_snapshot() {
    failing_snapshot("fdatasync");
}

#[test]
fn of_the_directory_behind_a_snapshot() {
    failing_snapshot("fsync");
}
