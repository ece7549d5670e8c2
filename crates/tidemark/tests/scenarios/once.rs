//! `ONCE` through `kill -9`: clients repeat what was not answered, and everything is executed once.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Numbers that a client has under way at a time.
const UNDER_WAY: u64 = 16;

/// A client that repeats each number until it has the answer. It outlives servers.
struct Writer {
    name: String,
    /// The last number.
    last: u64,
    /// Numbers without an answer.
    open: BTreeSet<u64>,
    answers: BTreeMap<u64, i64>,
    /// Numbers that were sent more than once.
    repeated: u64,
}

impl Writer {
    fn new(number: usize) -> Self {
        let name = format!("writer:{number}");
        Self { name, last: 0, open: BTreeSet::new(), answers: BTreeMap::new(), repeated: 0 }
    }

    /// Sends what has no answer, new numbers if there are none, and the newest number that has one.
    /// Returns whether all were answered without an error.
    fn send_batch(&mut self, client: &mut Client) -> io::Result<bool> {
        self.repeated += self.open.len() as u64;
        if self.open.is_empty() {
            self.open.extend(self.last + 1..=self.last + UNDER_WAY);
            self.last += UNDER_WAY;
        }
        let again = self.answers.keys().next_back().copied();
        let sent: Vec<u64> = self.open.iter().copied().chain(again).collect();
        for number in &sent {
            client.send(&self.command(*number).iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        let mut is_answered = true;
        for number in sent {
            let Some(answer) = increment(client.read()?) else {
                is_answered = false;
                continue;
            };
            self.open.remove(&number);
            if let Some(before) = self.answers.insert(number, answer) {
                assert_eq!(answer, before, "{} got another answer to {number}", self.name);
            }
        }
        Ok(is_answered)
    }

    fn command(&self, number: u64) -> Vec<String> {
        let key = format!("counter:{}", self.name);
        let number = number.to_string();
        ["ONCE", &self.name, &number, "INCR", &key].map(str::to_owned).into()
    }

    /// Compares the counter, and the answers that a server still has, with the answers so far.
    fn check(&mut self, client: &mut Client) {
        while !self.open.is_empty() {
            self.send_batch(client).expect("the server answers");
        }
        let counter = client.call(&["GET", &format!("counter:{}", self.name)]).expect("an answer").integer();
        assert_eq!(counter, self.last as i64, "{}: each number counts once", self.name);
        let answers: BTreeSet<i64> = self.answers.values().copied().collect();
        assert_eq!((answers.len() as u64, answers.last().copied()), (self.last, Some(counter)));
        for (number, answer) in self.answers.iter().rev().take(100) {
            let words = self.command(*number);
            let again = client.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(again.expect("an answer"), Answer::Integer(*answer), "{}: {number}", self.name);
        }
    }
}

/// Returns the answer of an increment, or nothing for an error that says that it has not run.
fn increment(answer: Answer) -> Option<i64> {
    match answer {
        Answer::Integer(integer) => Some(integer),
        Answer::Error(error) => {
            let refused = ["MOVED", "CLUSTERDOWN", "TRYAGAIN", "LOADING", "MISCONF"];
            assert!(refused.iter().any(|code| error.starts_with(code)), "{error}");
            None
        }
        other => panic!("an increment is answered {other:?}"),
    }
}

#[test]
fn numbered_commands_are_executed_once_through_kills_of_a_server() {
    const ROUNDS: u64 = 15;
    let directory = tempfile::tempdir().expect("a directory");
    let mut writers: Vec<Writer> = (0..4).map(Writer::new).collect();
    for round in 0..ROUNDS {
        // A small limit, so that sessions are in snapshots too.
        let flags = ["--durability", "always", "--snapshot-after", "2000"];
        let server = Server::start(directory.path(), &flags);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let (port, over) = (server.port, &over);
                scope.spawn(move || {
                    let Ok(mut client) = Client::connect(port) else { return };
                    while !over.load(Ordering::Relaxed) && writer.send_batch(&mut client).is_ok() {}
                });
            }
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 120));
            server.kill();
            over.store(true, Ordering::Relaxed);
        });
    }
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let mut client = server.client();
    writers.iter_mut().for_each(|writer| writer.check(&mut client));
    let (numbers, repeated) = (writers.iter().map(|writer| writer.last).sum::<u64>(), repeated(&writers));
    assert!(numbers > ROUNDS * UNDER_WAY && repeated > 0, "{numbers} numbers, {repeated} repeated");
    println!("{ROUNDS} kills, {numbers} numbers, of which {repeated} were repeated");
}

#[test]
fn numbered_commands_are_executed_once_through_kills_of_leaders() {
    let mut cluster = Cluster::found();
    let mut writers: Vec<Writer> = (0..3).map(Writer::new).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in &mut writers {
            let (ports, over) = (cluster.clients, &over);
            scope.spawn(move || {
                for port in ports.iter().cycle() {
                    // Until this member has died, or another one leads.
                    let _ = Client::connect(*port).and_then(|mut client| {
                        while writer.send_batch(&mut client)? && !over.load(Ordering::Relaxed) {}
                        Ok(())
                    });
                    if over.load(Ordering::Relaxed) && writer.open.is_empty() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
        for _ in 0..4 {
            let leader = cluster.leader();
            std::thread::sleep(Duration::from_millis(100));
            cluster.kill(leader);
            cluster.set_at_others(leader, "without", "1");
            cluster.run(leader);
        }
        over.store(true, Ordering::Relaxed);
    });
    cluster.settled();
    let leader = cluster.leader();
    let mut client = Client::connect(cluster.clients[leader]).expect("the leader accepts");
    writers.iter_mut().for_each(|writer| writer.check(&mut client));
    let (numbers, repeated) = (writers.iter().map(|writer| writer.last).sum::<u64>(), repeated(&writers));
    assert!(numbers > 10 * UNDER_WAY && repeated > 0, "{numbers} numbers, {repeated} repeated");
    println!("4 kills, {numbers} numbers, of which {repeated} were repeated");
}

fn repeated(writers: &[Writer]) -> u64 {
    writers.iter().map(|writer| writer.repeated).sum()
}
