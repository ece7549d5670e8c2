//! Counters of the real program, killed under load: each promise is checked against ledgers that
//! outlive the server.

use crate::support::{Answer, Client, Server, call, info_number};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WRITERS: usize = 4;
const KILLS: u64 = 8;
const CAP: i64 = 40;
const BLOCK: i64 = 16;

/// Starts a server with two threads: a commit that blocks one of them does not keep the other from
/// answering.
fn start(directory: &Path) -> Server {
    Server::start(directory, &["--durability", "always", "--threads", "2"])
}

/// Returns a number from the state of a counter.
fn state(client: &mut Client, key: &str, name: &str) -> i64 {
    let fields = call(client, &["COUNTER.STATE", key]).array();
    let at = fields.iter().position(|field| *field == Answer::Bulk(name.into())).expect("a field");
    fields[at + 1].integer()
}

/// Returns the LSN of the newest record: within one run of a server it counts the records.
fn appended(client: &mut Client) -> i64 {
    info_number(client, "persistence", "log_appended_lsn")
}

/// Moves units until the server is gone; returns the acknowledged units. One more unit may have
/// moved without an answer.
fn write(port: u16, request: &[&str], over: &AtomicBool) -> i64 {
    let (mut acknowledged, Ok(mut client)) = (0, Client::connect(port)) else { return 0 };
    while !over.load(Ordering::Relaxed) {
        match client.call(request) {
            Ok(Answer::Integer(_)) => acknowledged += 1,
            Ok(Answer::Array(answer)) if answer[0] == Answer::Integer(1) => acknowledged += 1,
            Ok(Answer::Array(_)) => {}
            Ok(other) => panic!("{request:?}: {other:?}"),
            Err(_) => break,
        }
    }
    acknowledged
}

/// Runs writers that repeat a request until `end` has ended the server; returns the units that were
/// acknowledged.
fn load(server: Server, request: &[&str], pause: Duration, end: impl FnOnce(Server)) -> i64 {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (port, over) = (server.port, &over);
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(move || write(port, request, over))).collect();
        std::thread::sleep(pause);
        end(server);
        over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("the writer ends well")).sum()
    })
}

/// Returns a different delay for each round.
fn moment(round: u64) -> Duration {
    Duration::from_millis(60 + round * 37 % 120)
}

#[test]
fn a_killed_server_takes_no_more_than_its_cap_from_a_relaxed_counter() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut before, mut acknowledged_in_all) = (0, 0);
    for round in 0..KILLS {
        let server = start(directory.path());
        let mut client = server.client();
        if round == 0 {
            call(&mut client, &["COUNTER.CREATE", "hits", "RELAXED", &CAP.to_string()]);
        }
        let acknowledged = load(server, &["COUNTER.ADD", "hits", "1"], moment(round), Server::kill);
        let server = start(directory.path());
        let after = call(&mut server.client(), &["COUNTER.GET", "hits"]).integer();
        let possible = before + acknowledged - CAP..=before + acknowledged + WRITERS as i64;
        assert!(possible.contains(&after), "{after} of {before} and {acknowledged}");
        server.kill();
        (before, acknowledged_in_all) = (after, acknowledged_in_all + acknowledged);
    }
    assert!(acknowledged_in_all > CAP * 10, "the writers got somewhere: {acknowledged_in_all}");
}

#[test]
fn a_killed_server_never_admits_more_than_the_limit_of_an_exact_counter() {
    const LIMIT: i64 = 3000;
    let directory = tempfile::tempdir().expect("a directory");
    let (mut acknowledged, mut position, mut kills) = (0, 0, 0);
    for round in 0..KILLS {
        let server = start(directory.path());
        let mut client = server.client();
        if round == 0 {
            let terms = ["LIMIT", &LIMIT.to_string(), "EXACT", &BLOCK.to_string()];
            call(&mut client, &[&["COUNTER.CREATE", "seats"], &terms[..]].concat());
        }
        let granted = load(server, &["COUNTER.TAKE", "seats"], moment(round), Server::kill);
        (acknowledged, kills) = (acknowledged + granted, kills + 1);
        let server = start(directory.path());
        let after = call(&mut server.client(), &["COUNTER.GET", "seats"]).integer();
        // Granted units are never granted again; a crash costs what was reserved and unused.
        let possible = position + granted..=position + granted + BLOCK - 1 + WRITERS as i64;
        assert!(possible.contains(&after), "{after} of {position} and {granted}");
        server.kill();
        position = after;
    }
    // The rest is granted to the last unit.
    let server = start(directory.path());
    let mut client = server.client();
    while call(&mut client, &["COUNTER.TAKE", "seats"]).array()[0] == Answer::Integer(1) {
        acknowledged += 1;
    }
    assert_eq!(state(&mut client, "seats", "available"), 0);
    assert!(acknowledged <= LIMIT, "{acknowledged} of {LIMIT} were granted");
    let lost = kills * (BLOCK - 1 + WRITERS as i64);
    assert!(acknowledged >= LIMIT - lost, "{acknowledged} of {LIMIT} were granted after {kills} kills");
}

#[test]
fn a_server_that_is_stopped_keeps_every_unit() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    call(
        &mut client,
        &["COUNTER.CREATE", "relaxed", "LIMIT", "5000", "RELAXED", "1000", "MAXAGE", "3600000"],
    );
    call(&mut client, &["COUNTER.CREATE", "exact", "LIMIT", "5000", "EXACT", "100", "MAXAGE", "3600000"]);
    for _ in 0..7 {
        call(&mut client, &["COUNTER.TAKE", "relaxed", "3"]);
        call(&mut client, &["COUNTER.TAKE", "exact", "3"]);
        call(&mut client, &["COUNTER.ADD", "plain", "-5"]);
    }
    assert_eq!(state(&mut client, "relaxed", "committed"), 0, "it waits for more");
    assert_ne!(state(&mut client, "exact", "reserved"), 0, "it has reserved more than it granted");
    assert!(server.terminate().success());
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    for (key, position) in [("relaxed", 21), ("exact", 21), ("plain", -35)] {
        assert_eq!(state(&mut client, key, "position"), position, "{key}");
        assert_eq!(state(&mut client, key, "committed"), position, "{key}");
    }
}

#[test]
fn what_was_answered_before_a_stop_under_load_is_there_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let acknowledged = load(start(directory.path()), &["COUNTER.ADD", "hits", "1"], moment(3), |server| {
        assert!(server.terminate().success());
    });
    let server = start(directory.path());
    let after = call(&mut server.client(), &["COUNTER.GET", "hits"]).integer();
    assert!((acknowledged..=acknowledged + WRITERS as i64).contains(&after), "{after} of {acknowledged}");
}

#[test]
fn ups_and_downs_that_cancel_are_no_records() {
    const ROUNDS: i64 = 500;
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let mut client = server.client();
    call(&mut client, &["COUNTER.CREATE", "churn", "LIMIT", "10", "RELAXED", "8", "HIGH", "8", "LOW", "8"]);
    let before = appended(&mut client);
    for _ in 0..ROUNDS {
        call(&mut client, &["COUNTER.TAKE", "churn", "2"]);
        call(&mut client, &["COUNTER.REFUND", "churn", "2"]);
    }
    // Uncommitted units are committed at their maximum age, and no more often.
    let records = appended(&mut client) - before;
    assert!(records <= ROUNDS / 10, "{records} records of {} moves", 2 * ROUNDS);
    assert_eq!(call(&mut client, &["COUNTER.GET", "churn"]).integer(), 0);
}

#[test]
fn a_limiter_goes_on_after_a_kill_where_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let throttle = ["CL.THROTTLE", "user", "4", "1", "3600"];
    let server = start(directory.path());
    let mut client = server.client();
    for _ in 0..3 {
        assert_eq!(call(&mut client, &throttle).array()[0].integer(), 0);
    }
    server.kill();
    let server = start(directory.path());
    let mut client = server.client();
    let limited: Vec<i64> = (0..4).map(|_| call(&mut client, &throttle).array()[0].integer()).collect();
    assert_eq!(limited, [0, 0, 1, 1]);
}
