//! Leases of the real program, killed under load: granted leases stay granted until their end,
//! returned ones stay returned, and no name comes twice.

use crate::support::{Answer, Client, Server, call};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const WRITERS: usize = 4;
const KILLS: u64 = 6;
const LIMIT: usize = 40;

fn start(directory: &Path) -> Server {
    Server::start(directory, &["--durability", "always", "--threads", "2"])
}

/// Returns the lease that an answer of `LIMIT.ACQUIRE` grants, if any.
fn granted(answer: Answer) -> Option<i64> {
    let answer: Vec<i64> = answer.array().iter().map(Answer::integer).collect();
    assert_eq!(answer[0] == 1, answer[5] > 0, "a lease is granted or not: {answer:?}");
    (answer[0] == 1).then_some(answer[5])
}

/// Returns the end of each lease, in milliseconds since 1970.
fn leases(client: &mut Client, key: &str) -> BTreeMap<i64, i64> {
    let mut flat = call(client, &["LIMIT.LEASES", key, "COUNT", "100000"]).array().into_iter();
    let mut leases = BTreeMap::new();
    while let Some(id) = flat.next() {
        let lease = flat.next().expect("what it holds").array();
        leases.insert(id.integer(), lease[1].integer());
    }
    leases
}

/// What a writer knows when its server is gone.
#[derive(Default)]
struct Ledger {
    /// Granted leases that were not released.
    held: BTreeSet<i64>,
    /// All lease names that it got.
    named: Vec<i64>,
    /// Lease whose release was sent and not answered.
    in_doubt: Option<i64>,
}

/// Takes leases and releases most of them, in a pattern that differs between writers, until the
/// server is gone.
fn write(port: u16, writer: usize, mut held: BTreeSet<i64>) -> Ledger {
    let mut ledger = Ledger::default();
    let Ok(mut client) = Client::connect(port) else { return Ledger { held, ..ledger } };
    for turn in writer.. {
        if turn % 5 < 3 {
            let Ok(answer) = client.call(&["LIMIT.ACQUIRE", "jobs"]) else { break };
            if let Some(id) = granted(answer) {
                held.insert(id);
                ledger.named.push(id);
            }
        } else if let Some(id) = held.pop_first() {
            match client.call(&["LIMIT.RELEASE", "jobs", &id.to_string()]) {
                Ok(answer) => assert_eq!(answer.integer(), 1, "{id} was held"),
                Err(_) => {
                    ledger.in_doubt = Some(id);
                    break;
                }
            }
        }
    }
    Ledger { held, ..ledger }
}

#[test]
fn a_killed_server_keeps_every_lease_that_is_held_and_none_that_was_given_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut held, mut named) = (vec![BTreeSet::new(); WRITERS], BTreeSet::new());
    for round in 0..KILLS {
        let server = start(directory.path());
        if round == 0 {
            let definition = ["CONCURRENCY", &LIMIT.to_string(), "TTL", "3600000"];
            call(&mut server.client(), &[&["LIMIT.CREATE", "jobs"], &definition[..]].concat());
        }
        let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
            let port = server.port;
            let writers: Vec<_> = held
                .drain(..)
                .enumerate()
                .map(|(writer, held)| scope.spawn(move || write(port, writer, held)))
                .collect();
            std::thread::sleep(Duration::from_millis(60 + round * 37 % 120));
            server.kill();
            writers.into_iter().map(|writer| writer.join().expect("the writer ends well")).collect()
        });

        let server = start(directory.path());
        let mut client = server.client();
        let mut there: BTreeSet<i64> = leases(&mut client, "jobs").into_keys().collect();
        assert!(there.len() <= LIMIT, "{} are held", there.len());
        for ledger in ledgers {
            assert!(there.is_superset(&ledger.held), "{:?} of {there:?}", ledger.held);
            there.retain(|id| !ledger.held.contains(id));
            // A lease whose release was not answered may be there or not.
            if let Some(id) = ledger.in_doubt
                && there.remove(&id)
            {
                call(&mut client, &["LIMIT.RELEASE", "jobs", &id.to_string()]);
            }
            assert!(!ledger.named.is_empty() || round > 0, "the writers got somewhere");
            for id in ledger.named {
                assert!(named.insert(id), "{id} comes twice");
            }
            held.push(ledger.held);
        }
        assert!(
            there.len() <= WRITERS,
            "one of each writer may have been granted without an answer: {there:?}"
        );
        for id in there {
            assert!(named.insert(id), "{id} was given back, and is there");
            call(&mut client, &["LIMIT.RELEASE", "jobs", &id.to_string()]);
        }
        // All remaining leases are granted, under names that no writer has seen before.
        let taken: Vec<i64> =
            std::iter::from_fn(|| granted(call(&mut client, &["LIMIT.ACQUIRE", "jobs"]))).collect();
        assert_eq!(taken.len() + held.iter().map(BTreeSet::len).sum::<usize>(), LIMIT);
        for id in taken {
            assert!(named.insert(id), "{id} comes twice");
            assert_eq!(call(&mut client, &["LIMIT.RELEASE", "jobs", &id.to_string()]).integer(), 1);
        }
        server.kill();
    }
}

#[test]
fn leases_end_by_the_clock_whether_the_server_runs_or_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let mut client = server.client();
    call(&mut client, &["LIMIT.CREATE", "jobs", "CONCURRENCY", "2", "TTL", "3600000"]);
    let long = granted(call(&mut client, &["LIMIT.ACQUIRE", "jobs"])).expect("a lease");
    let short = granted(call(&mut client, &["LIMIT.ACQUIRE", "jobs", "TTL", "700"])).expect("another");
    let made = ["LIMIT.ACQUIRE", "made", "CONCURRENCY", "1", "TTL", "700"];
    let alone = granted(call(&mut client, &made)).expect("a lease of a limiter that the call makes");
    let (before, made_before) = (leases(&mut client, "jobs"), leases(&mut client, "made"));
    server.kill();

    let end = Duration::from_millis(before[&short].max(made_before[&alone]) as u64);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time behind 1970");
    std::thread::sleep(end.saturating_sub(now));

    let server = start(directory.path());
    let mut client = server.client();
    assert_eq!(leases(&mut client, "jobs"), BTreeMap::from([(long, before[&long])]));
    assert_eq!(call(&mut client, &["EXISTS", "made"]).integer(), 0);
    let next =
        granted(call(&mut client, &["LIMIT.ACQUIRE", "jobs"])).expect("the place of the one that has ended");
    assert!(next > short);
    assert_eq!(granted(call(&mut client, &["LIMIT.ACQUIRE", "jobs"])), None);
    assert_eq!(call(&mut client, &["LIMIT.RENEW", "jobs", &short.to_string()]).integer(), 0);
    // The same after a start from a snapshot.
    let before = leases(&mut client, "jobs");
    call(&mut client, &["SAVE"]);
    server.kill();
    let server = start(directory.path());
    let mut client = server.client();
    assert_eq!(leases(&mut client, "jobs"), before);
    assert_eq!(
        call(&mut client, &["LIMIT.RELEASE", "jobs", &long.to_string(), &next.to_string()]).integer(),
        2
    );
}
