//! A consumer without state of its own, under `kill -9` of the server and crashes of its own: its
//! work for each change is done exactly once, in order.

use crate::support::{Answer, Client, Server};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

/// Current port of the server, and whether the test is over.
#[derive(Default)]
struct ServerPort {
    port: AtomicU16,
    is_over: AtomicBool,
}

impl ServerPort {
    fn connect(&self) -> Option<Client> {
        Client::connect(self.port.load(Ordering::Acquire)).ok()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// Sets the key to 1, 2, 3 … `last`, each until it is answered: a repeated write changes nothing.
fn write(place: &ServerPort, last: u64) {
    let (mut next, mut client) = (1, None);
    while next <= last {
        let Some(connected) = client.as_mut() else {
            client = place.connect();
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        match connected.call(&["SET", "k", &next.to_string()]) {
            Ok(answer) => {
                assert_eq!(answer, Answer::Status("OK".into()));
                next += 1;
            }
            Err(_) => client = None,
        }
    }
}

/// Runs the consumer once: it watches on one connection and does its work on another, until either
/// breaks or it crashes, at times, with an emission that it has not processed.
fn consume(place: &ServerPort, lives: u64) -> Option<()> {
    let (mut watcher, mut worker) = (place.connect()?, place.connect()?);
    watcher.call(&["GET.WATCH", "k", "|", "AS", "consumer"]).ok()?;
    for number in 1.. {
        let mut emission = watcher.read().ok()?.array();
        let [_, _, lsn, _, value] = emission.as_mut_slice() else {
            assert!(place.is_over(), "the name has ended: {emission:?}");
            return None;
        };
        let (lsn, Answer::Bulk(value)) = (lsn.integer().to_string(), &*value) else { panic!("a value") };
        if number % 40 == lives % 40 {
            return None;
        }
        for command in [
            &["MULTI"][..],
            &["RPUSH", "done", value],
            &["EMITACK", "k", "consumer", &lsn],
            &["INCR", "count"],
        ] {
            worker.call(command).ok()?;
        }
        match worker.call(&["EXEC"]).ok()? {
            // The work was done by an earlier run that did not receive the answer.
            Answer::Null => {}
            Answer::Array(answers) => assert_eq!(answers.len(), 3),
            other => panic!("{other:?}"),
        }
    }
    None
}

#[test]
fn whatever_is_killed_each_change_is_processed_once_and_in_order() {
    const LAST: u64 = 2000;
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--durability", "always", "--log-segment-bytes", "65536"];
    let place = ServerPort::default();
    let server = Server::start(directory.path(), &arguments);
    place.port.store(server.port, Ordering::Release);
    let mut client = server.client();
    let begun = client.call(&["GET.WATCH", "k", "|", "AS", "consumer"]).expect("an answer").array();
    let lsn = begun[3].integer().to_string();
    client.call(&["EMITACK", "k", "consumer", &lsn]).expect("an answer");
    drop(client);
    let server = std::thread::scope(|scope| {
        let mut server = server;
        let writer = scope.spawn(|| write(&place, LAST));
        scope.spawn(|| {
            for lives in 1.. {
                consume(&place, lives);
                if place.is_over() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut kills = 0;
        let mut done = 0;
        while !writer.is_finished() || done < LAST || kills < 5 {
            std::thread::sleep(Duration::from_millis(100 + 37 * (kills % 5)));
            if !writer.is_finished() || kills < 5 {
                server.kill();
                server = Server::start(directory.path(), &arguments);
                place.port.store(server.port, Ordering::Release);
                kills += 1;
            }
            done = server.client().call(&["LLEN", "done"]).expect("an answer").integer() as u64;
        }
        place.is_over.store(true, Ordering::Release);
        // Ends the consumer, which waits for an emission that will not come.
        server.client().call(&["UNWATCH", "NAMED", "consumer"]).expect("an answer");
        assert!(kills >= 5);
        server
    });
    server.kill();
    let server = Server::start(directory.path(), &arguments);
    let done = server.client().call(&["LRANGE", "done", "0", "-1"]).expect("an answer").array();
    let expected: Vec<Answer> = (1..=LAST).map(|number| Answer::Bulk(number.to_string())).collect();
    assert_eq!(done, expected, "each once, in order");
    assert_eq!(server.client().call(&["GET", "count"]).expect("an answer"), Answer::Bulk(LAST.to_string()));
}
