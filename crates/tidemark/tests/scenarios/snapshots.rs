//! Snapshots of the running server: complete at one record, taken under load, and the log continues
//! after them.

use crate::support::{Answer, Client, Server};
use std::path::Path;
use std::sync::Arc;
use tidemark_log::{FileStorage, Lsn, SnapshotWriter};

const SMALL_SEGMENTS: [&str; 6] =
    ["--log-segment-bytes", "65536", "--snapshot-after", "0", "--enable-debug-command", "local"];

fn snapshots(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the data directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("snapshot-") && !name.ends_with(".unusable"))
        .collect();
    names.sort();
    names
}

fn fill(client: &mut Client, from: i64, to: i64) {
    for n in from..to {
        client
            .send(&["SET", &format!("key:{}", n % 500), &format!("value:{n}:{}", "x".repeat(100))])
            .expect("sent");
    }
    for _ in from..to {
        assert_eq!(client.read().expect("an answer"), Answer::Status("OK".into()));
    }
}

fn digest(client: &mut Client) -> Answer {
    let digest = client.call(&["DEBUG", "DIGEST"]).expect("an answer");
    assert!(matches!(&digest, Answer::Status(text) if text.len() == 40), "{digest:?}");
    digest
}

#[test]
fn a_restart_from_a_snapshot_and_the_log_behind_it_gives_the_same_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &SMALL_SEGMENTS);
    let mut client = server.client();
    fill(&mut client, 0, 2000);
    let ok = Answer::Status("OK".into());
    assert_eq!(client.call(&["SAVE"]).expect("an answer"), ok);
    fill(&mut client, 2000, 4000);
    assert_eq!(client.call(&["SAVE"]).expect("an answer"), ok);
    fill(&mut client, 4000, 5000);
    assert_eq!(client.call(&["SAVE"]).expect("an answer"), ok);
    assert_eq!(client.call(&["DURABLE", "LPUSH", "list", "a", "b"]).expect("an answer"), Answer::Integer(2));
    let before = digest(&mut client);
    assert_eq!(snapshots(directory.path()).len(), 2, "two snapshots are kept");
    server.kill();

    let server = Server::start(directory.path(), &SMALL_SEGMENTS);
    let mut client = server.client();
    assert_eq!(digest(&mut client), before);
    assert_eq!(client.call(&["LRANGE", "list", "0", "-1"]).expect("an answer").array().len(), 2);
}

/// Runs a server that takes some snapshots, and stops it; returns the digest of its data.
fn leave_snapshots(directory: &Path) -> Answer {
    let server = Server::start(directory, &SMALL_SEGMENTS);
    let mut client = server.client();
    for round in 0..3 {
        fill(&mut client, round * 1000, round * 1000 + 1000);
        assert_eq!(client.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
    }
    let before = digest(&mut client);
    assert!(server.terminate().success());
    before
}

/// Starts a server on a directory whose newest snapshot is unusable. The data must be the same, and
/// the bad snapshot is set aside, so the next snapshot does not evict the good one.
fn comes_up_from_the_older_one(directory: &Path, before: &Answer) {
    let [good, bad] = <[String; 2]>::try_from(snapshots(directory)).expect("two snapshots");
    let server = Server::start(directory, &SMALL_SEGMENTS);
    let mut client = server.client();
    assert_eq!(digest(&mut client), *before);
    assert_eq!(snapshots(directory), [good.as_str()]);
    assert!(directory.join(format!("{bad}.unusable")).exists());
    fill(&mut client, 0, 10);
    assert_eq!(client.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
    assert_eq!(snapshots(directory).first(), Some(&good));
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_older_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let before = leave_snapshots(directory.path());

    damage_newest(directory.path());
    comes_up_from_the_older_one(directory.path(), &before);
}

fn damage_newest(directory: &Path) {
    let newest = directory.join(snapshots(directory).last().expect("a snapshot"));
    let mut bytes = std::fs::read(&newest).expect("the snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, bytes).expect("the snapshot can be changed");
}

#[test]
fn the_log_behind_the_older_snapshot_stays_when_the_newer_one_was_damaged() {
    let directory = tempfile::tempdir().expect("a directory");
    leave_snapshots(directory.path());
    damage_newest(directory.path());
    // With one kept snapshot, the damaged one seems to cover the whole log.
    let mut arguments = SMALL_SEGMENTS.to_vec();
    arguments.extend(["--snapshot-keep", "1"]);
    let server = Server::start(directory.path(), &arguments);
    let mut client = server.client();
    fill(&mut client, 0, 5000);
    assert_eq!(
        client.call(&["DURABLE", "SET", "last", "1"]).expect("an answer"),
        Answer::Status("OK".into())
    );
    let before = digest(&mut client);
    server.kill();
    let server = Server::start(directory.path(), &arguments);
    assert_eq!(digest(&mut server.client()), before);
}

#[test]
fn a_snapshot_that_lacks_a_part_of_a_value_is_passed_over_for_the_older_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let before = leave_snapshots(directory.path());

    let newest = snapshots(directory.path()).pop().expect("a snapshot");
    let lsn = newest["snapshot-".len()..].trim_end_matches(".tide").parse().expect("its record");
    let storage = FileStorage::new(directory.path()).expect("the directory");
    let mut writer = SnapshotWriter::create(Arc::new(storage), Lsn(lsn)).expect("a file");
    // In database 0 a set, number 9, without a deadline, whose key is "k", of 3 elements; none of
    // them follows.
    writer.write_frame(0, &[0, 7, 5, 9, 0, 1, b'k', 3]).expect("written");
    writer.finish().expect("complete");

    comes_up_from_the_older_one(directory.path(), &before);
}

#[test]
fn kills_while_snapshots_are_taken_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut arguments = SMALL_SEGMENTS.to_vec();
    arguments.extend(["--durability", "always"]);
    let mut acknowledged = 0;
    for round in 0..20 {
        let server = Server::start(directory.path(), &arguments);
        let mut client = server.client();
        assert_eq!(client.call(&["GET", "counter"]).expect("an answer").integer(), acknowledged);
        fill(&mut client, round * 500, round * 500 + 500);
        assert!(!client.call(&["BGSAVE"]).expect("an answer").is_error());
        for _ in 0..round * 3 {
            acknowledged = client.call(&["INCR", "counter"]).expect("an answer").integer();
        }
        server.kill();
    }
    assert!(acknowledged > 0);
}
