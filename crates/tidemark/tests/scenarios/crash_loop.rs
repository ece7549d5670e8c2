//! `kill -9` at any time, under load, again and again: no acknowledged write is lost and none is
//! applied twice.

use crate::support::{Answer, Client, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What one writer knows for certain. It outlives the server.
#[derive(Default)]
struct Ledger {
    /// Last answer of `INCR`.
    counter: i64,
    /// Answered pushes; the elements are 0, 1, 2 …
    pushed: i64,
    /// Answered `SET`s of increasing values.
    value: i64,
    /// Total of answered writes.
    acknowledged: u64,
}

/// Writes until the server dies or the round ends. The last write of each writer, and only that,
/// may have happened without an answer.
fn write_until_killed(port: u16, writer: usize, ledger: &mut Ledger, over: &AtomicBool) {
    let Ok(mut client) = Client::connect(port) else { return };
    let (counter, list, register) =
        (format!("counter:{writer}"), format!("list:{writer}"), format!("register:{writer}"));
    while !over.load(Ordering::Relaxed) {
        let Ok(answer) = client.call(&["INCR", &counter]) else { return };
        assert_eq!(answer, Answer::Integer(ledger.counter + 1), "each increment counts once");
        ledger.counter += 1;
        let Ok(answer) = client.call(&["RPUSH", &list, &ledger.pushed.to_string()]) else { return };
        assert_eq!(answer, Answer::Integer(ledger.pushed + 1), "each push counts once");
        ledger.pushed += 1;
        let Ok(answer) = client.call(&["SET", &register, &(ledger.value + 1).to_string()]) else { return };
        assert_eq!(answer, Answer::Status("OK".into()));
        ledger.value += 1;
        ledger.acknowledged += 3;
    }
}

/// Compares the server's data with the ledger, and adopts a write whose answer had not arrived.
fn check(client: &mut Client, writer: usize, ledger: &mut Ledger) {
    let mut call = |args: &[&str]| client.call(args).expect("the restarted server answers");
    let counter = call(&["GET", &format!("counter:{writer}")]).integer();
    assert!(
        (ledger.counter..=ledger.counter + 1).contains(&counter),
        "counter {counter}, acknowledged {}",
        ledger.counter
    );
    let list = call(&["LRANGE", &format!("list:{writer}"), "0", "-1"]).array();
    let pushed = list.len() as i64;
    assert!(
        (ledger.pushed..=ledger.pushed + 1).contains(&pushed),
        "list {pushed}, acknowledged {}",
        ledger.pushed
    );
    for (index, element) in list.iter().enumerate() {
        assert_eq!(*element, Answer::Bulk(index.to_string()), "the list is in order, without gap or repeat");
    }
    let value = call(&["GET", &format!("register:{writer}")]).integer();
    assert!(
        (ledger.value..=ledger.value + 1).contains(&value),
        "value {value}, acknowledged {}",
        ledger.value
    );
    (ledger.counter, ledger.pushed, ledger.value) = (counter, pushed, value);
}

fn rounds() -> u64 {
    std::env::var("TIDEMARK_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

#[test]
fn no_acknowledged_write_is_lost_and_none_is_applied_twice() {
    const WRITERS: usize = 4;
    let directory = tempfile::tempdir().expect("a directory");
    let mut ledgers: Vec<Ledger> = (0..WRITERS).map(|_| Ledger::default()).collect();
    let mut slowest_start = Duration::ZERO;
    for round in 0..rounds() {
        let server = Server::start(directory.path(), &["--durability", "always"]);
        slowest_start = slowest_start.max(server.startup);
        let mut client = server.client();
        for (writer, ledger) in ledgers.iter_mut().enumerate() {
            check(&mut client, writer, ledger);
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (writer, ledger) in ledgers.iter_mut().enumerate() {
                let (port, over) = (server.port, &over);
                scope.spawn(move || write_until_killed(port, writer, ledger, over));
            }
            // A different delay each round; some kills come before the first write.
            std::thread::sleep(Duration::from_millis(round * 37 % 120));
            server.kill();
            over.store(true, Ordering::Relaxed);
        });
    }
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let mut client = server.client();
    for (writer, ledger) in ledgers.iter_mut().enumerate() {
        check(&mut client, writer, ledger);
    }
    let acknowledged: u64 = ledgers.iter().map(|ledger| ledger.acknowledged).sum();
    assert!(acknowledged > rounds(), "the writers got somewhere: {acknowledged}");
    println!("{} kills, {acknowledged} acknowledged writes, slowest start {slowest_start:?}", rounds());
}
