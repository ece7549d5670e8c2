//! Blocks that are damaged while their points are only in block files: reads and changes that need them
//! are refused, and nothing is changed by half.

use super::{block_files, fill, filled, memory, open, run, snapshot};
use crate::support::{self, Client, START_US};
use std::sync::Arc;
use tidemark_engine::watch::{Filter, Past, PastError, Query, Read, Resumed};
use tidemark_engine::{Engine, Protocol};
use tidemark_log::{Lsn, MemoryStorage, Retention, Storage};

const UNREADABLE: &str = "-ERR a block of a series is damaged or cannot be read: ";

/// A block file with other bytes than were written.
struct Damaged {
    storage: Arc<dyn Storage>,
    name: String,
    whole: Vec<u8>,
}

impl Damaged {
    /// Changes all blocks of the newest file.
    fn newest(memory: &MemoryStorage, storage: &Arc<dyn Storage>) -> Self {
        let name = block_files(storage).pop().expect("a block file");
        let whole = memory.read(&name).expect("the file");
        let damaged = Self { storage: Arc::clone(storage), name, whole };
        let mut bytes = damaged.whole.clone();
        bytes.iter_mut().skip(32).for_each(|byte| *byte ^= 1);
        damaged.write(&bytes);
        damaged
    }

    fn write(&self, bytes: &[u8]) {
        let file = self.storage.open(&self.name).expect("the file");
        assert_eq!(file.write_at(bytes, 0).expect("memory takes it"), bytes.len());
    }

    fn repair(self) {
        self.write(&self.whole);
    }
}

fn drop_points(engine: &Engine) {
    snapshot(engine).expect("a snapshot");
    engine.limit_series_memory(0);
    engine.drop_points(|| ());
}

/// Runs lines that need a damaged block: each is answered with the error, which names the series and the
/// file, and changes nothing.
fn all_refused(engine: &Engine, damaged: Damaged, series: &str, lines: &[&str]) {
    let head = engine.log().appended();
    for line in lines {
        let answer = run(engine, line);
        assert!(answer.starts_with(UNREADABLE), "{line}: {answer:.200}");
        assert!(answer.contains(&format!("series '{series}': the points from ")), "{line}: {answer:.300}");
        assert!(answer.contains(&damaged.name) && answer.contains("at byte"), "{line}: {answer:.300}");
        assert!(!answer.contains('*'), "nothing behind the error: {answer:.300}");
    }
    assert_eq!(engine.log().appended(), head, "nothing is logged");
    damaged.repair();
}

#[test]
fn a_block_that_is_damaged_later_is_reported_and_not_served() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 3_000);
    snapshot(&engine).expect("a snapshot");
    engine.limit_series_memory(0);
    engine.drop_points(|| ());
    let digest = engine.digest();
    let name = block_files(&storage).remove(0);
    let whole = memory.read(&name).expect("the file");
    let overwrite = |bytes: &[u8]| {
        let file = storage.open(&name).expect("the file");
        assert_eq!(file.write_at(bytes, 0).expect("memory takes it"), bytes.len());
    };
    let mut damaged = whole.clone();
    damaged.iter_mut().skip(32).for_each(|byte| *byte ^= 1);
    overwrite(&damaged);
    for line in [
        "TS.RANGE a - +",
        "TS.RANGE a 500 600",
        "TS.REVRANGE a - 10000 COUNT 2",
        "TS.RANGE a - + AGGREGATION avg 10",
        "TS.DEL a 50 60",
        // The point behind the range is in a block as well.
        "TS.RANGE a 10240 20470 AGGREGATION twa 20480",
    ] {
        let answer = run(&engine, line);
        assert!(
            answer.starts_with("-ERR a block of a series is damaged or cannot be read: "),
            "{line}: {answer:.200}"
        );
        assert!(
            answer.contains("series 'a': the points from 0 to 10230") || line.contains("10"),
            "{line}: {answer:.300}"
        );
        assert!(answer.contains(&name) && answer.contains("at byte"), "{line}: {answer:.300}");
        assert!(!answer.contains('*'), "nothing behind the error: {answer:.300}");
    }
    let late = run(&engine, "TS.ADD a 505 1");
    assert!(
        late.starts_with(
            "-ERR a block of a series is damaged or cannot be read: series 'a': the points from 0 to 10230"
        ),
        "{late}"
    );
    let many = run(&engine, "TS.MADD a 30000 1 a 505 1");
    assert!(many.starts_with("*2 :30000 -ERR a block of a series is damaged"), "{many}");
    assert_eq!(run(&engine, "TS.DEL a 30000 30000"), ":1 ");
    assert_eq!(run(&engine, "TS.GET a"), "*2 :29990 +784 ", "it is in memory");
    let count = run(&engine, "TS.RANGE a - + AGGREGATION count 1000000");
    assert_eq!(count, "*1 *2 :0 +3000 ", "summaries of blocks are in memory");
    overwrite(&whole);
    assert_eq!(engine.digest(), digest, "nothing has changed");
}

#[test]
fn a_change_that_rules_follow_is_refused_before_it_changes_anything() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 3_000);
    for (rule, aggregation) in [("a d", "avg 100"), ("a twa", "twa 15000"), ("d e", "max 1000")] {
        for key in rule.split(' ').filter(|key| *key != "a") {
            run(&engine, &format!("TS.CREATE {key}"));
        }
        let (source, destination) = rule.split_once(' ').expect("two keys");
        let line = format!("TS.CREATERULE {source} {destination} AGGREGATION {aggregation} BACKFILL");
        assert_eq!(run(&engine, &line), "+OK ");
    }
    drop_points(&engine);
    let digest = engine.digest();
    let damaged = Damaged::newest(&memory, &storage);
    assert_eq!(run(&engine, "TS.ADD a 29995 1"), ":29995 ", "it is in open buckets");
    all_refused(
        &engine,
        damaged,
        "a",
        &[
            "TS.ADD a 505 1",
            "TS.ADD a 500 1 ON_DUPLICATE last",
            "TS.DEL a 500 600",
            "TS.DEL a 0 29990",
            "TS.INCRBY a 1 TIMESTAMP 40000",
            "TS.ADD a 40000 1",
            "TS.APPEND a \u{5}\0\0\0\0\0\0\0 \0\0\0\0\0\0\0\0",
            "TS.CREATERULE a b AGGREGATION sum 77 BACKFILL",
        ],
    );
    assert_eq!(run(&engine, "TS.DEL a 29995 29995"), ":1 ");
    assert_eq!(engine.digest(), digest);
    // Then all of them are taken, as by an engine that has all points in memory.
    engine.log().wait_durable(engine.log().appended()).expect("memory does not fail");
    let fork: Arc<dyn Storage> = Arc::new(memory.fork());
    let twin = open(&fork, Retention::default()).expect("starts");
    assert_eq!(twin.digest(), digest);
    for line in ["TS.ADD a 505 1", "TS.DEL a 500 600", "TS.ADD a 40000 1", "TS.DEL a 0 29990"] {
        assert_eq!(run(&engine, line), run(&twin, line), "{line}");
    }
    assert_eq!(engine.digest(), twin.digest());
}

#[test]
fn a_destination_that_cannot_be_read_refuses_what_its_source_gets() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 3_000);
    snapshot(&engine).expect("a snapshot");
    run(&engine, "TS.CREATE d");
    run(&engine, "TS.CREATE e");
    fill(&engine, "d", 0, 2_000);
    for rule in ["a d AGGREGATION avg 10", "b e AGGREGATION avg 10"] {
        assert_eq!(run(&engine, &format!("TS.CREATERULE {rule}")), "+OK ");
    }
    drop_points(&engine);
    let digest = engine.digest();
    let damaged = Damaged::newest(&memory, &storage);
    // A bucket that is over has a point at 500 in the destination.
    let error = engine.try_digest().expect_err("it needs all blocks").to_string();
    assert!(error.contains("series 'd': the points from "), "{error}");
    all_refused(&engine, damaged, "d", &["TS.ADD a 505 1", "TS.DEL a 500 500", "TS.DEL a 500 29990"]);
    assert_eq!(engine.digest(), digest);
    let damaged = Damaged::newest(&memory, &storage);
    assert_eq!(run(&engine, "TS.ADD b 505 1"), ":505 ", "its destination has no points there");
    assert_eq!(run(&engine, "TS.ADD a 30000 1"), ":30000 ", "the destination's end is in memory");
    damaged.repair();
}

#[test]
fn a_lens_a_latest_bucket_and_several_series_name_the_series_that_cannot_be_read() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 3_000);
    for line in [
        "TS.ALTER a LABELS is a",
        "LENS.CREATE l a AFFINE 2 1",
        "LENS.CREATE m l MOVING avg 5000",
        "TS.CREATE d",
        "TS.CREATERULE a d AGGREGATION twa 40000",
    ] {
        assert_eq!(run(&engine, line), "+OK ", "{line}");
    }
    drop_points(&engine);
    let digest = engine.digest();
    let damaged = Damaged::newest(&memory, &storage);
    all_refused(
        &engine,
        damaged,
        "a",
        &[
            "TS.MRANGE - + FILTER is=a",
            "TS.MREVRANGE - + FILTER is=a GROUPBY is REDUCE sum",
            "TS.MRANGE - + AGGREGATION std.p 100 EXCLUDEEMPTY FILTER is=a",
        ],
    );
    for (key, line) in [
        ("l", "TS.RANGE l - +"),
        ("m", "TS.RANGE m 500 600 AGGREGATION avg 50"),
        ("d", "TS.GET d LATEST"),
        ("d", "TS.RANGE d - + LATEST"),
        ("a", "TS.READ a -"),
        ("a", "TS.READ a 500 BLOCK 0 9000"),
    ] {
        all_refused(&engine, Damaged::newest(&memory, &storage), key, &[line]);
    }
    assert_eq!(engine.digest(), digest);
}

#[test]
fn a_client_that_waits_for_points_is_answered_with_the_error() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 3_000);
    drop_points(&engine);
    let (sender, receiver) = std::sync::mpsc::channel();
    let (_, executed) = Client::new(&engine).execute("TS.READ a 500 BLOCK 0 2953");
    let blocked = executed.into_blocked().expect("it waits");
    let _waiter = blocked.wait(move |delivery| sender.send(delivery).expect("is received"), |_| ());
    let damaged = Damaged::newest(&memory, &storage);
    assert_eq!(run(&engine, "TS.ADD a 30000 1"), ":30000 ");
    let delivery = receiver.try_recv().expect("an answer");
    let answer = String::from_utf8_lossy(&delivery.reply).into_owned();
    assert!(answer.starts_with(&format!("{UNREADABLE}series 'a': ")), "{answer}");
    damaged.repair();
    assert_eq!(run(&engine, "TS.READ a 30000"), "*1 *2 :30000 +1 ");
}

fn read(line: &str) -> Read {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    Read::new(0, Protocol::Resp2, &words, Filter::default()).expect("watchable")
}

/// The emissions of a read, from the beginning of the log.
fn replayed(engine: &Engine, query: &Query) -> Vec<(u64, Lsn, Vec<u8>)> {
    let mut past = Past::new(engine.log(), query, 1 << 24);
    let mut emissions = Vec::new();
    support::for_each_record(engine, Lsn::FIRST, |record| match past.apply(record) {
        Ok(emission) => {
            emissions.extend(emission.map(|made| (made.number, made.lsn, made.answer.to_vec())));
        }
        Err(PastError::Widened) => panic!("the read names all keys that it needs"),
        Err(error) => panic!("record {}: {error}", record.lsn),
    });
    emissions
}

#[test]
fn a_watched_read_emits_no_error_and_goes_on_from_the_log() {
    let (memory, storage) = memory();
    let engine = filled(&storage, 3_000);
    let whole = read("TS.RANGE a 0 1000000 AGGREGATION std.p 100000");
    let watched = engine.subscribe(whole, 0, START_US).expect("a beginning");
    run(&engine, "TS.ADD a 30000 1");
    assert_eq!(watched.query.count(), 1);
    drop_points(&engine);
    let damaged = Damaged::newest(&memory, &storage);
    let again = read("TS.RANGE a 0 20000");
    let refused = engine.subscribe(again, 0, START_US).expect_err("nothing is watched").to_string();
    assert!(refused.contains("cannot be read"), "{refused}");
    for time in [30_010, 30_020] {
        assert_eq!(run(&engine, &format!("TS.ADD a {time} 1")), format!(":{time} "));
    }
    assert!(watched.query.is_dormant(), "it cannot be answered");
    let last = watched.query.id();
    assert!(matches!(engine.resume(last, engine.log().appended(), 0), Resumed::Gone(_)));
    let numbers: Vec<u64> = replayed(&engine, &watched.query).iter().map(|made| made.0).collect();
    assert_eq!(numbers, [1, 2, 3], "the log has the points");
    damaged.repair();
}
