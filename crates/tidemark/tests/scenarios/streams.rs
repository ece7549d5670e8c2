//! Streams through `kill -9` and a change of leader: what was acknowledged is there, IDs do not go back, and
//! what a consumer has got stays pending until it acknowledges it.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, Server, call, wait_until};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Bulk(text) => text.clone(),
        other => panic!("not an ID: {other:?}"),
    }
}

/// An ID as numbers, which are ordered as the IDs are.
fn numbers(id: &str) -> (u64, u64) {
    let (ms, seq) = id.split_once('-').expect("two numbers");
    (ms.parse().expect("a number"), seq.parse().expect("a number"))
}

/// The IDs of the entries in the answer of `XRANGE`, or of a stream in that of `XREADGROUP`.
fn ids(entries: Answer) -> Vec<String> {
    entries.array().into_iter().map(|entry| text(&entry.array()[0])).collect()
}

/// Takes entries for a consumer, and returns their IDs.
fn take(client: &mut Client, consumer: &str, count: &str, from: &str) -> Vec<String> {
    let words = ["XREADGROUP", "GROUP", "workers", consumer, "COUNT", count, "STREAMS", "jobs", from];
    let mut streams = call(client, &words).array();
    let Some(stream) = streams.pop() else { return Vec::new() };
    ids(stream.array().pop().expect("a key and entries"))
}

#[test]
fn nothing_acknowledged_is_lost_and_no_id_comes_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path(), &["--durability", "always"]);
    let mut client = server.client();
    call(&mut client, &["XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM"]);
    let (mut added, mut done, mut taken) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for round in 0..6_usize {
        for number in 0..150 {
            let number = number.to_string();
            added.push(text(&call(&mut client, &["XADD", "jobs", "*", "number", &number])));
        }
        for id in take(&mut client, "anna", "90", ">") {
            assert!(taken.insert(id.clone()), "{id} is delivered twice");
            if taken.len() % 3 == 0 {
                assert_eq!(call(&mut client, &["XACK", "jobs", "workers", &id]).integer(), 1);
                done.insert(id);
            }
        }
        if round == 3 {
            call(&mut client, &["SAVE"]);
        }
        server.kill();
        server = Server::start(directory.path(), &["--durability", "always"]);
        client = server.client();
        assert_eq!(ids(call(&mut client, &["XRANGE", "jobs", "-", "+"])), added, "round {round}");
        let pending: Vec<String> = taken.difference(&done).cloned().collect();
        let mut found = take(&mut client, "anna", "10000", "0");
        found.sort_unstable();
        assert_eq!(found, pending, "round {round}");
    }
    let ordered: Vec<_> = added.iter().map(|id| numbers(id)).collect();
    assert!(ordered.is_sorted_by(|one, other| one < other), "IDs ascend across restarts");
    // All entries go, and the IDs with them do not come back.
    let last = added.last().cloned().expect("entries were added");
    assert_eq!(call(&mut client, &["XTRIM", "jobs", "MAXLEN", "0"]).integer(), 900);
    server.kill();
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let mut client = server.client();
    assert_eq!(call(&mut client, &["XLEN", "jobs"]).integer(), 0);
    let again = client.call(&["XADD", "jobs", &last, "number", "1"]).expect("an answer");
    assert!(again.is_error(), "{last} is used");
    let next = text(&call(&mut client, &["XADD", "jobs", "*", "number", "1"]));
    assert!(numbers(&next) > numbers(&last), "{next} comes after {last}");
}

/// What producers and consumers of a busy group have seen, while its server is killed and started again.
#[derive(Default)]
struct Work {
    port: AtomicU16,
    /// Whether producers have stopped.
    is_complete: AtomicBool,
    /// IDs that producers were told.
    added: Mutex<BTreeSet<String>>,
    /// IDs that consumers got as new ones.
    taken: Mutex<BTreeSet<String>>,
    /// IDs that consumers got, as new ones or as their own pending ones.
    seen: Mutex<BTreeSet<String>>,
}

impl Work {
    fn connect(&self) -> Client {
        let mut client = None;
        wait_until("the server accepts", || {
            client = Client::connect(self.port.load(Ordering::Relaxed)).ok();
            client.is_some()
        });
        client.expect("it is connected")
    }

    /// Adds entries until it is told to stop.
    fn produce(&self) {
        let mut client = self.connect();
        while !self.is_complete.load(Ordering::Relaxed) {
            match client.call(&["XADD", "jobs", "*", "state", "open"]) {
                Ok(Answer::Bulk(id)) => drop(self.added.lock().expect("no one panics").insert(id)),
                Ok(Answer::Error(_)) | Err(_) => client = self.connect(),
                Ok(other) => panic!("{other:?}"),
            }
        }
    }

    /// Takes entries and acknowledges them, until there are no more. After each connection, begins with
    /// those that it got and has not acknowledged.
    fn consume(&self, name: &str) {
        let mut client = self.connect();
        let mut from = "0";
        loop {
            let is_complete = self.is_complete.load(Ordering::Relaxed);
            let read =
                ["XREADGROUP", "GROUP", "workers", name, "COUNT", "7", "BLOCK", "20", "STREAMS", "jobs"];
            let found = match client.call(&[&read[..], &[from]].concat()) {
                Ok(Answer::Null) => Vec::new(),
                Ok(Answer::Array(mut streams)) => {
                    ids(streams.pop().expect("a stream").array().pop().expect("entries"))
                }
                Ok(_) | Err(_) => {
                    (client, from) = (self.connect(), "0");
                    continue;
                }
            };
            for id in &found {
                self.seen.lock().expect("no one panics").insert(id.clone());
                if from == ">" {
                    assert!(
                        self.taken.lock().expect("no one panics").insert(id.clone()),
                        "{id} is taken twice"
                    );
                }
                let _ = client.call(&["XACK", "jobs", "workers", id]);
            }
            if found.is_empty() && from == ">" && is_complete {
                return;
            }
            if found.is_empty() {
                from = ">";
            }
        }
    }
}

#[test]
fn a_busy_group_gives_each_entry_to_one_consumer_through_kills() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = ["--durability", "always"];
    let first = Server::start(directory.path(), &flags);
    call(&mut first.client(), &["XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM"]);
    let work = Work { port: first.port.into(), ..Work::default() };
    let mut running = Some(first);
    std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(|| work.produce())));
        for name in ["anna", "bert", "cleo", "dora"] {
            let work = &work;
            scope.spawn(move || work.consume(name));
        }
        for round in 1..=3 {
            wait_until("consumers go on", || work.seen.lock().expect("no one panics").len() > round * 100);
            running.take().expect("it runs").kill();
            let server = Server::start(directory.path(), &flags);
            work.port.store(server.port, Ordering::Relaxed);
            running = Some(server);
        }
        wait_until("consumers go on", || work.seen.lock().expect("no one panics").len() > 400);
        work.is_complete.store(true, Ordering::Relaxed);
    });
    let (added, seen) = (work.added.into_inner(), work.seen.into_inner());
    let (added, seen) = (added.expect("no one panics"), seen.expect("no one panics"));
    let lost: Vec<_> = added.difference(&seen).collect();
    assert!(lost.is_empty(), "of {} entries, no consumer got {lost:?}", added.len());
    let server = running.expect("it runs");
    let mut client = server.client();
    assert_eq!(call(&mut client, &["XPENDING", "jobs", "workers"]).array()[0], Answer::Integer(0));
}

/// Runs a command at the leader, until it is answered.
fn at_leader(cluster: &Cluster, words: &[&str]) -> Answer {
    let mut answer = None;
    wait_until("the leader answers", || {
        answer = Client::connect(cluster.clients[cluster.leader()])
            .and_then(|mut client| client.call(words))
            .ok()
            .filter(|answer| !answer.is_error());
        answer.is_some()
    });
    answer.expect("it is there")
}

#[test]
fn the_next_leader_continues_the_ids_of_a_clock_that_was_ahead() {
    let mut cluster = Cluster::found();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let hour_ahead = (now.as_millis() + 3_600_000).to_string();
    at_leader(&cluster, &["XGROUP", "CREATE", "jobs", "workers", "$", "MKSTREAM"]);
    let last = text(&at_leader(&cluster, &["XADD", "jobs", &format!("{hour_ahead}-7"), "number", "1"]));
    let taken = ["XREADGROUP", "GROUP", "workers", "anna", "STREAMS", "jobs"];
    at_leader(&cluster, &[&taken[..], &[">"]].concat());
    // The last ID is in no entry any more.
    assert_eq!(at_leader(&cluster, &["XDEL", "jobs", &last]).integer(), 1);
    let pending = at_leader(&cluster, &["XPENDING", "jobs", "workers"]);
    let leader = cluster.leader();
    cluster.kill(leader);
    cluster.set_at_others(leader, "another", "1");
    let next = text(&at_leader(&cluster, &["XADD", "jobs", "*", "number", "2"]));
    assert!(numbers(&next) > numbers(&last), "{next} comes after {last}");
    assert_eq!(at_leader(&cluster, &["XPENDING", "jobs", "workers"]), pending);
    cluster.run(leader);
    drop(cluster.settled());
}

#[test]
fn a_snapshot_of_a_long_stream_is_taken_while_it_grows_and_shrinks() {
    const ENTRIES: u64 = 30_000;
    let flags = ["--durability", "always", "--snapshot-after", "0", "--enable-debug-command", "local"];
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &flags);
    let mut client = server.client();
    let add = |client: &mut Client, range: std::ops::Range<u64>| {
        let lines: Vec<Vec<String>> = range
            .map(|number| {
                let line = format!("XADD jobs {number}-1 number {number} state open");
                line.split(' ').map(str::to_owned).collect()
            })
            .collect();
        let lines: Vec<Vec<&str>> =
            lines.iter().map(|line| line.iter().map(String::as_str).collect()).collect();
        client.send_together(&lines).expect("is sent");
        lines.iter().for_each(|line| assert!(!client.read().expect("an answer").is_error(), "{line:?}"));
    };
    (0..ENTRIES / 1000).for_each(|chunk| add(&mut client, chunk * 1000 + 1..(chunk + 1) * 1000 + 1));
    call(&mut client, &["XGROUP", "CREATE", "jobs", "workers", "0"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (mut writer, is_over) = (server.client(), &is_over);
        let changes = scope.spawn(move || {
            let mut next = ENTRIES + 1;
            while !is_over.load(Ordering::Relaxed) {
                add(&mut writer, next..next + 50);
                next += 50;
                take(&mut writer, "anna", "50", ">");
                call(&mut writer, &["XDEL", "jobs", &format!("{}-1", next / 2), &format!("{}-1", next - 9)]);
                call(&mut writer, &["XTRIM", "jobs", "MAXLEN", "~", "30000"]);
            }
            next
        });
        for _ in 0..4 {
            assert_eq!(call(&mut client, &["SAVE"]), Answer::Status("OK".into()));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(changes.join().expect("the writer ends") > ENTRIES + 50, "it has written meanwhile");
    });
    let digest = call(&mut client, &["DEBUG", "DIGEST"]);
    let before = ["XINFO", "STREAM", "jobs", "FULL", "COUNT", "50"];
    let shown = call(&mut client, &before);
    server.kill();
    let server = Server::start(directory.path(), &flags);
    let mut client = server.client();
    assert_eq!(call(&mut client, &["DEBUG", "DIGEST"]), digest);
    assert_eq!(call(&mut client, &before), shown);
}

#[test]
fn a_watched_read_of_a_stream_goes_on_after_a_kill_where_its_client_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let mut writer = server.client();
    call(&mut writer, &["XADD", "jobs", "1-0", "number", "1"]);
    let mut reader = server.client();
    let began = call(&mut reader, &["XREAD.WATCH", "STREAMS", "jobs", "1-0"]).array();
    let (subscription, lsn) = (text(&began[1]), began[3].integer());
    assert_eq!(began[7], Answer::Null, "nothing is behind the last entry: {began:?}");
    for number in ["2", "3"] {
        call(&mut writer, &["XADD", "jobs", &format!("{number}-0"), "number", number]);
    }
    server.kill();
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let mut writer = server.client();
    call(&mut writer, &["XADD", "jobs", "4-0", "number", "4"]);
    let mut reader = server.client();
    let resumed = call(&mut reader, &["EMITRECONNECT", "jobs", &subscription, &lsn.to_string()]);
    assert_eq!(resumed, Answer::Array(vec![Answer::Bulk("OK".into()), Answer::Integer(1)]));
    for (number, last) in [(1, 2), (2, 3), (3, 4)] {
        let mut emission = reader.read().expect("an emission").array();
        assert_eq!(emission[3], Answer::Integer(number), "{emission:?}");
        let mut streams = emission.pop().expect("an answer").array();
        let entries = ids(streams.pop().expect("a stream").array().pop().expect("entries"));
        let expected: Vec<String> = (2..=last).map(|number| format!("{number}-0")).collect();
        assert_eq!(entries, expected);
    }
}
