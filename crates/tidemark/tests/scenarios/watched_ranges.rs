//! Watched ranges of time series, through `kill -9` of the server: a client that applies what comes has what
//! the read answers.

use crate::support::{Answer, Client, Server};
use std::collections::BTreeMap;

const READ: [&str; 6] = ["TS.REVRANGE", "k", "-", "+", "COUNT", "5"];

/// A row: a time, and a value unless it has left.
fn rows(answer: Answer) -> Vec<(i64, Option<Answer>)> {
    let of_row = |row: Answer| {
        let mut row = row.array().into_iter();
        (row.next().expect("a time").integer(), row.next())
    };
    answer.array().into_iter().map(of_row).collect()
}

/// What a client keeps: the rows by time, and the place up to which it has them.
struct Kept {
    rows: BTreeMap<i64, Answer>,
    sub_id: String,
    lsn: i64,
    seq: i64,
}

impl Kept {
    /// Watches a read on a connection of its own.
    fn begin(client: &mut Client, read: &[&str]) -> Self {
        let name = format!("{}.WATCH", read[0]);
        let watch: Vec<&str> = [name.as_str()].into_iter().chain(read[1..].iter().copied()).collect();
        let answer = client.call(&watch).expect("an answer").array();
        let [_, Answer::Bulk(sub_id), _, lsn, _, seq, _, value] = &answer[..] else { panic!("{answer:?}") };
        let (sub_id, lsn, seq) = (sub_id.clone(), lsn.integer(), seq.integer());
        let rows =
            rows(value.clone()).into_iter().map(|(time, value)| (time, value.expect("a value"))).collect();
        Self { rows, sub_id, lsn, seq }
    }

    /// Applies the next frame.
    fn follow(&mut self, client: &mut Client) {
        let frame = client.read().expect("a frame").array();
        let [Answer::Bulk(kind), _, lsn, seq, content] = &frame[..] else { panic!("{frame:?}") };
        assert_eq!((kind.as_str(), seq.integer()), ("change", self.seq + 1), "{frame:?}");
        (self.lsn, self.seq) = (lsn.integer(), seq.integer());
        for (time, value) in rows(content.clone()) {
            match value {
                Some(value) => drop(self.rows.insert(time, value)),
                None => assert!(self.rows.remove(&time).is_some(), "the row at {time} was there"),
            }
        }
    }

    /// Checks that it has what the read answers.
    fn check(&self, writer: &mut Client) {
        let fresh = rows(writer.call(&READ).expect("an answer"));
        let kept: Vec<(i64, Option<Answer>)> =
            self.rows.iter().rev().map(|(time, value)| (*time, Some(value.clone()))).collect();
        assert_eq!(kept, fresh);
    }
}

#[test]
fn a_client_that_applies_changes_has_the_answer_after_every_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path(), &["--durability", "always"]);
    let mut writer = server.client();
    writer.call(&["TS.CREATE", "k", "DUPLICATE_POLICY", "LAST", "RETENTION", "400"]).expect("an answer");
    for time in 0..8 {
        writer.call(&["TS.ADD", "k", &(time * 10).to_string(), "1.5"]).expect("an answer");
    }
    let mut watcher = server.client();
    let mut kept = Kept::begin(&mut watcher, &READ);
    let mut newest = 70;
    for life in 0..4 {
        for step in 0..20 {
            let late = (newest - 20).to_string();
            newest += 10;
            let time = newest.to_string();
            let write: &[&str] = match step % 4 {
                0 | 1 => &["TS.ADD", "k", &time, "2.25"],
                2 => &["TS.MADD", "k", &late, "7", "k", &time, "NaN"],
                _ => &["TS.DEL", "k", &late, &late],
            };
            writer.call(write).expect("an answer");
            kept.follow(&mut watcher);
        }
        kept.check(&mut writer);
        // What the client misses while it is away, and the server is killed, follows.
        drop(watcher);
        newest += 500;
        writer.call(&["TS.ADD", "k", &newest.to_string(), "3"]).expect("an answer");
        if life % 2 == 1 {
            assert_eq!(writer.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
        }
        server.kill();
        server = Server::start(directory.path(), &["--durability", "always"]);
        (writer, watcher) = (server.client(), server.client());
        let resumed = watcher.call(&["EMITRECONNECT", "k", &kept.sub_id, &kept.lsn.to_string()]);
        let resumed = resumed.expect("an answer").array();
        assert_eq!(resumed[1].integer(), kept.seq + 1, "{resumed:?}");
        kept.follow(&mut watcher);
        kept.check(&mut writer);
    }
}

#[test]
fn points_leave_a_range_that_slides_after_every_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path(), &["--durability", "always"]);
    let (mut writer, mut watcher) = (server.client(), server.client());
    writer.call(&["TS.CREATE", "k", "DUPLICATE_POLICY", "LAST"]).expect("an answer");
    // The first point of a series sends the whole answer, if it is in the range already.
    writer.call(&["TS.ADD", "k", "1", "1"]).expect("an answer");
    let mut kept = Kept::begin(&mut watcher, &["TS.RANGE", "k", "-2s", "now", "AGGREGATION", "last", "100"]);
    for life in 0..3 {
        for value in ["1", "2", "3"] {
            writer.call(&["TS.ADD", "k", "*", value]).expect("an answer");
        }
        if life == 1 {
            assert_eq!(writer.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
        }
        // The bucket comes when it is over.
        while kept.rows.is_empty() {
            kept.follow(&mut watcher);
        }
        drop(watcher);
        server.kill();
        server = Server::start(directory.path(), &["--durability", "always"]);
        (writer, watcher) = (server.client(), server.client());
        watcher.call(&["EMITRECONNECT", "k", &kept.sub_id, &kept.lsn.to_string()]).expect("an answer");
        while !kept.rows.is_empty() {
            kept.follow(&mut watcher);
        }
    }
}

/// The entries of the next change.
fn next_change(client: &mut Client) -> Vec<Answer> {
    let frame = client.read().expect("a frame").array();
    let [Answer::Bulk(kind), _, _, _, entries] = &frame[..] else { panic!("{frame:?}") };
    assert_eq!(kind, "change", "{frame:?}");
    entries.clone().array()
}

/// The name of an entry, and the word behind it.
fn of_entry(entry: &Answer) -> (String, String) {
    let [Answer::Bulk(name), Answer::Bulk(word), ..] = &entry.clone().array()[..] else {
        panic!("{entry:?}")
    };
    (name.clone(), word.clone())
}

#[test]
fn series_that_begin_to_match_appear_and_other_keys_are_not_heard_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path(), &["--durability", "always"]);
    let (mut writer, mut watcher) = (server.client(), server.client());
    writer.call(&["TS.ADD", "hall", "1", "1", "LABELS", "floor", "1"]).expect("an answer");
    for life in 0..2 {
        let watched = watcher.call(&["TS.MRANGE.WATCH", "-", "+", "FILTER", "floor=1"]).expect("an answer");
        assert_eq!(watched.array().len(), 8);
        let (time, attic) = ((10 + life).to_string(), format!("attic{life}"));
        for (write, expected) in [
            (vec!["SET", "text", "1"], vec![]),
            (vec!["TS.ADD", &attic, "5", "2", "LABELS", "floor", "2"], vec![]),
            (vec!["TS.ADD", "hall", &time, "3"], vec![("hall", "change")]),
            (vec!["TS.ALTER", &attic, "LABELS", "floor", "1"], vec![(attic.as_str(), "whole")]),
            (vec!["TS.ADD", &attic, "6", "2"], vec![(attic.as_str(), "change")]),
            (vec!["DEL", &attic], vec![(attic.as_str(), "gone")]),
        ] {
            writer.call(&write).expect("an answer");
            if !expected.is_empty() {
                let entries: Vec<_> = next_change(&mut watcher).iter().map(of_entry).collect();
                let expected: Vec<_> =
                    expected.into_iter().map(|(name, word)| (name.to_owned(), word.to_owned())).collect();
                assert_eq!(entries, expected, "{write:?}");
            }
        }
        server.kill();
        server = Server::start(directory.path(), &["--durability", "always"]);
        (writer, watcher) = (server.client(), server.client());
    }
}

/// The next frame of a watch: whether it is a change, its number, and what it carries.
fn next_frame(client: &mut Client) -> (bool, i64, Answer) {
    let frame = client.read().expect("a frame").array();
    let [Answer::Bulk(kind), _, _, seq, content] = &frame[..] else { panic!("{frame:?}") };
    (kind == "change", seq.integer(), content.clone())
}

#[test]
fn a_labelled_lens_is_watched_by_its_labels_after_every_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path(), &["--durability", "always"]);
    let (mut writer, mut watcher) = (server.client(), server.client());
    writer.call(&["TS.ADD", "hall", "1", "1", "LABELS", "floor", "1"]).expect("an answer");
    writer.call(&["TS.ADD", "source", "1", "1"]).expect("an answer");
    let read = ["TS.MRANGE", "-", "+", "FILTER", "floor=1"];
    for life in 0..3 {
        let watch = [&["TS.MRANGE.WATCH"], &read[1..]].concat();
        let watched = watcher.call(&watch).expect("an answer").array();
        let first = watched[5].integer();
        let (time, later) = ((10 + 2 * life).to_string(), (11 + 2 * life).to_string());
        let create = ["LENS.CREATE", "seen", "source", "affine", "2", "0", "LABELS", "floor", "1"];
        if life == 0 {
            writer.call(&create).expect("an answer");
            // The lens comes: the whole answer is sent.
            let (is_change, seq, answer) = next_frame(&mut watcher);
            assert_eq!((is_change, seq), (false, first + 1));
            assert_eq!(answer, writer.call(&read).expect("an answer"));
        } else {
            assert_eq!(watched[7], writer.call(&read).expect("an answer"), "the lens is there again");
        }
        writer.call(&["TS.ADD", "text", "1", "1"]).expect("an answer");
        for (key, shown) in [("hall", "hall"), ("source", "seen")] {
            writer.call(&["TS.ADD", key, &time, "4"]).expect("an answer");
            let (is_change, _, entries) = next_frame(&mut watcher);
            let entries: Vec<_> = entries.array().iter().map(of_entry).collect();
            assert_eq!((is_change, entries), (true, vec![(shown.to_owned(), "change".to_owned())]));
        }
        writer.call(&["DEL", "source"]).expect("an answer");
        let (is_change, _, error) = next_frame(&mut watcher);
        let missing = "ERR LENS: 'seen': there is no 'source' for the lens to see";
        assert_eq!((is_change, error), (false, Answer::Error(missing.into())));
        writer.call(&["TS.ADD", "source", &later, "4"]).expect("an answer");
        let (is_change, _, answer) = next_frame(&mut watcher);
        assert_eq!((is_change, answer), (false, writer.call(&read).expect("an answer")));
        if life == 1 {
            assert_eq!(writer.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
        }
        server.kill();
        server = Server::start(directory.path(), &["--durability", "always"]);
        (writer, watcher) = (server.client(), server.client());
    }
    assert_eq!(writer.call(&["LENS.DROP", "seen"]).expect("an answer"), Answer::Integer(1));
    assert_eq!(
        writer.call(&["TS.QUERYINDEX", "floor=1"]).expect("an answer"),
        Answer::Array(vec![Answer::Bulk("hall".into())])
    );
}
