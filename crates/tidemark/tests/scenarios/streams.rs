//! Streams through `kill -9`: what was acknowledged is there, IDs do not go back, and what a consumer has
//! got stays pending until it acknowledges it.

use crate::support::{Answer, Client, Server, call};
use std::collections::BTreeSet;

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
