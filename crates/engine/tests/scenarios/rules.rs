//! Rules of time series: destinations follow their source, whatever happens to either.

use crate::support::{
    Client, START_US, engine, engine_with_log, for_each_record, log, replayed, run_on_threads, shown,
    transaction,
};
use crate::watching::{Cut, answers, watch};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_engine::watch::{Past, PastError, Subscribed};
use tidemark_engine::{Engine, WatchedKeys};

/// Runs commands one after the other and compares the answers.
fn expect(engine: &Engine, dialogue: &[(&str, &str)]) {
    for (line, answer) in dialogue {
        assert_eq!(Client::new(engine).run(line), *answer, "{line}");
    }
}

/// Runs commands, none of which may fail.
pub(crate) fn run(engine: &Engine, lines: &[&str]) {
    for line in lines {
        let answer = Client::new(engine).run(line);
        assert!(!answer.starts_with('-'), "{line}: {answer}");
    }
}

/// Returns what `TS.INFO` says of the source and of the rules.
fn relations(engine: &Engine, key: &str) -> String {
    let info = Client::new(engine).run(&format!("TS.INFO {key}"));
    let from = info.find("+sourceKey").expect("the answer has the source");
    let to = info.find(" +ignoreMaxTimeDiff").expect("the answer has what follows the rules");
    info[from..to].to_owned()
}

/// Checks that a replay of the log gives the same state.
fn check_replay(engine: &Engine) {
    assert_eq!(replayed(engine).digest(), engine.digest());
}

#[test]
fn a_bucket_is_written_when_a_point_behind_it_comes() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10"]);
    expect(
        &engine,
        &[
            ("TS.ADD a 1 1", ":1"),
            ("TS.RANGE b - +", "*0"),
            ("TS.GET b", "*0"),
            ("TS.GET b LATEST", "*2 :0 +1"),
            ("TS.ADD a 5 2", ":5"),
            ("TS.RANGE b - + LATEST", "*1 *2 :0 +3"),
            ("TS.ADD a 12 3", ":12"),
            ("TS.RANGE b - +", "*1 *2 :0 +3"),
            ("TS.REVRANGE b - + LATEST", "*2 *2 :10 +3 *2 :0 +3"),
            ("TS.RANGE b 11 20 LATEST", "*0"),
            ("TS.RANGE b - + LATEST AGGREGATION count 100", "*1 *2 :0 +2"),
            ("TS.ADD a 35 4", ":35"),
            ("TS.RANGE b - +", "*2 *2 :0 +3 *2 :10 +3"),
            ("TS.ADD a 6 10", ":6"),
            ("TS.ADD a 25 5", ":25"),
            ("TS.RANGE b - +", "*3 *2 :0 +13 *2 :10 +3 *2 :20 +5"),
            ("TS.ADD a 6 20 ON_DUPLICATE last", ":6"),
            ("TS.ADD a 35 40 ON_DUPLICATE last", ":35"),
            ("TS.RANGE b - + LATEST", "*4 *2 :0 +23 *2 :10 +3 *2 :20 +5 *2 :30 +40"),
        ],
    );
    check_replay(&engine);
}

#[test]
fn removed_points_leave_the_destination_and_open_buckets_again() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10"]);
    run(&engine, &["TS.MADD a 1 1 a 5 2 a 6 20 a 12 3 a 25 5 a 35 40 a 40 1"]);
    expect(
        &engine,
        &[
            ("TS.RANGE b - +", "*4 *2 :0 +23 *2 :10 +3 *2 :20 +5 *2 :30 +40"),
            ("TS.DEL a 6 6", ":1"),
            ("TS.DEL a 10 19", ":1"),
            ("TS.RANGE b - +", "*3 *2 :0 +3 *2 :20 +5 *2 :30 +40"),
            ("TS.DEL a 26 100", ":2"),
            ("TS.RANGE b - +", "*1 *2 :0 +3"),
            ("TS.GET b LATEST", "*2 :20 +5"),
            ("TS.ADD a 31 1", ":31"),
            ("TS.RANGE b - +", "*2 *2 :0 +3 *2 :20 +5"),
            ("TS.DEL a 0 100", ":4"),
            ("TS.RANGE b - + LATEST", "*0"),
        ],
    );
    check_replay(&engine);
}

#[test]
fn every_aggregation_gives_what_a_range_gives() {
    let engine = engine();
    let aggregations = [
        "avg",
        "sum",
        "min",
        "max",
        "range",
        "count",
        "first",
        "last",
        "std.p",
        "std.s",
        "var.p",
        "var.s",
        "twa",
        "countall",
        "increase",
        "rate",
        "quantile:0.9",
    ];
    run(&engine, &["TS.CREATE a DUPLICATE_POLICY last"]);
    for (index, aggregation) in aggregations.iter().enumerate() {
        run(&engine, &[&format!("TS.CREATE d{index}")]);
        run(&engine, &[&format!("TS.CREATERULE a d{index} AGGREGATION {aggregation} 10 3")]);
    }
    let same = |when: &str| {
        for (index, aggregation) in aggregations.iter().enumerate() {
            let expected =
                Client::new(&engine).run(&format!("TS.RANGE a - + ALIGN 3 AGGREGATION {aggregation} 10"));
            let written = Client::new(&engine).run(&format!("TS.RANGE d{index} - + LATEST"));
            assert_eq!(written, expected, "{aggregation} {when}");
        }
    };
    run(&engine, &["TS.MADD a 1 1 a 5 1 a 10 2 a 12 4 a 19 -3 a 35 10 a 61 7 a 62 8"]);
    same("in time order");
    run(&engine, &["TS.MADD a 15 100 a 55 5 a 11 -7 a 20 4 a 36 4"]);
    same("after late points");
    run(&engine, &["TS.DEL a 12 20", "TS.ADD a 35 -1", "TS.DEL a 60 70"]);
    same("after removals");
    check_replay(&engine);
}

#[test]
fn a_rule_is_refused_in_the_words_of_redis() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATE c", "TS.CREATE ns UNIT ns", "SET s 1"]);
    expect(
        &engine,
        &[
            (
                "TS.CREATERULE a b AGGREGATION avg",
                "-ERR wrong number of arguments for 'ts.createrule' command",
            ),
            ("TS.CREATERULE a b foo avg 10", "-ERR wrong number of arguments for 'ts.createrule' command"),
            (
                "TS.CREATERULE a b AGGREGATION avg 10 5 6",
                "-ERR wrong number of arguments for 'ts.createrule' command",
            ),
            ("TS.CREATERULE a b AGGREGATION foo x", "-ERR TSDB: Couldn't parse AGGREGATION"),
            ("TS.CREATERULE a a AGGREGATION foo 10", "-ERR TSDB: Unknown aggregation type"),
            ("TS.CREATERULE a b AGGREGATION avg,max 10", "-ERR TSDB: Unknown aggregation type"),
            ("TS.CREATERULE a b AGGREGATION avg 0", "-ERR TSDB: bucketDuration must be greater than zero"),
            ("TS.CREATERULE n m AGGREGATION avg 10 x", "-ERR TSDB: Couldn't parse alignTimestamp"),
            ("TS.CREATERULE a b AGGREGATION avg 10 -1", "-ERR TSDB: Couldn't parse alignTimestamp"),
            (
                "TS.CREATERULE a a AGGREGATION avg 10",
                "-ERR TSDB: the source key and destination key should be different",
            ),
            ("TS.CREATERULE a n AGGREGATION avg 10", "-ERR TSDB: the key does not exist"),
            (
                "TS.CREATERULE a s AGGREGATION avg 10",
                "-WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (
                "TS.CREATERULE a ns AGGREGATION avg 10",
                "-ERR the source and the destination of a rule must have the same UNIT",
            ),
            ("TS.CREATERULE a b aggregation AVG 10 13", "+OK"),
            ("TS.CREATERULE c b AGGREGATION avg 10", "-ERR TSDB: the destination key already has a src rule"),
            (
                "TS.CREATERULE b a AGGREGATION avg 10",
                "-ERR the rule would close a circle: the source is compacted from the destination",
            ),
            ("TS.CREATERULE b c AGGREGATION max 100", "+OK"),
            (
                "TS.CREATERULE c a AGGREGATION max 100",
                "-ERR the rule would close a circle: the source is compacted from the destination",
            ),
            ("TS.DELETERULE a c", "-ERR TSDB: compaction rule does not exist"),
            ("TS.DELETERULE n b", "-ERR TSDB: the key does not exist"),
            ("TS.DELETERULE s b", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ],
    );
    assert_eq!(relations(&engine, "a"), "+sourceKey $-1 +rules *1 *4 $1 b :10 +AVG :13");
    assert_eq!(relations(&engine, "b"), "+sourceKey $1 a +rules *1 *4 $1 c :100 +MAX :0");
    run(&engine, &["TS.DELETERULE a b"]);
    assert_eq!(relations(&engine, "a"), "+sourceKey $-1 +rules *0");
    check_replay(&engine);
}

#[test]
fn both_ends_follow_a_key_that_is_renamed_and_forget_one_that_goes() {
    const RULED: [&str; 4] =
        ["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10", "TS.MADD a 1 1 a 12 2"];
    let (free, of_source) = ("+sourceKey $-1 +rules *0", "+sourceKey $-1 +rules *1 *4 $1 b :10 +SUM :0");
    // What is done, and what the keys `a` and `b` say of each other then; `-` if the key is gone.
    for (lines, a, b) in [
        (&["DEL b"][..], free, "-"),
        (&["UNLINK a"], "-", free),
        (&["SET b x"], free, "-"),
        (&["SET a x"], "-", free),
        (&["MOVE a 1"], "-", free),
        (&["MOVE b 1"], free, "-"),
        (&["COPY a x", "COPY b y"], of_source, "+sourceKey $1 a +rules *0"),
        (&["TS.CREATE x", "COPY x b REPLACE"], free, free),
        (&["RENAME a x"], "-", "+sourceKey $1 x +rules *0"),
        (&["RENAME b x"], "+sourceKey $-1 +rules *1 *4 $1 x :10 +SUM :0", "-"),
        (&["RENAME a b"], "-", free),
        (&["RENAME b a"], free, "-"),
        (&["TS.CREATE x", "RENAME x a"], free, free),
        (&["PEXPIRE a 1000"], of_source, "+sourceKey $1 a +rules *0"),
        (&["PEXPIRE a 0"], "-", free),
        (&["TS.ALTER a RETENTION 5"], of_source, "+sourceKey $1 a +rules *0"),
        (&["FLUSHDB", "TS.CREATE a", "TS.CREATE b"], free, free),
        (&["SWAPDB 0 1", "SWAPDB 1 0", "TS.ADD a 25 1"], of_source, "+sourceKey $1 a +rules *0"),
    ] {
        let engine = engine();
        run(&engine, &RULED);
        run(&engine, lines);
        for (key, expected) in [("a", a), ("b", b)] {
            if expected == "-" {
                assert_ne!(Client::new(&engine).run(&format!("TYPE {key}")), "+TSDB-TYPE", "{lines:?}");
            } else {
                assert_eq!(relations(&engine, key), expected, "{key} after {lines:?}");
            }
        }
        check_replay(&engine);
        // A source goes on, whatever has become of its destination.
        if a != "-" {
            run(&engine, &["TS.ADD a 100 1", "TS.ADD a 200 1"]);
            check_replay(&engine);
        }
    }
}

#[test]
fn an_expired_end_leaves_no_half_of_a_rule() {
    for (expired, left) in [("a", "b"), ("b", "a")] {
        for is_met in [false, true] {
            let engine = engine();
            run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10"]);
            run(&engine, &["TS.MADD a 1 1 a 12 2", &format!("PEXPIRE {expired} 10")]);
            let later = START_US + 20_000;
            if is_met {
                // A write of the source meets an expired destination; of the destination, an expired source.
                let client = Client { now_us: later, ..Client::new(&engine) };
                assert!(client.run(&format!("TS.ADD {left} 35 1")).starts_with(':'));
                assert!(client.run("TS.GET b LATEST").starts_with(if expired == "a" { "*2" } else { "-" }));
            }
            engine.expire_due(later, 100);
            assert_eq!(relations(&engine, left), "+sourceKey $-1 +rules *0", "{expired} {is_met}");
            check_replay(&engine);
        }
    }
}

#[test]
fn rules_on_rules_carry_late_points_through() {
    let engine = engine();
    run(&engine, &["TS.CREATE a DUPLICATE_POLICY last", "TS.CREATE b", "TS.CREATE c", "TS.CREATE d"]);
    run(&engine, &["TS.CREATERULE a b AGGREGATION sum 10", "TS.CREATERULE b c AGGREGATION max 100"]);
    run(&engine, &["TS.CREATERULE a d AGGREGATION count 100"]);
    for time in 0..40 {
        run(&engine, &[&format!("TS.ADD a {} {}", time * 7, time)]);
    }
    let range = |key: &str| Client::new(&engine).run(&format!("TS.RANGE {key} - +"));
    assert_eq!(range("c"), "*2 *2 :0 +27 *2 :100 +53");
    assert_eq!(range("d"), "*2 *2 :0 +15 *2 :100 +14");
    run(&engine, &["TS.ADD a 50 1000"]);
    assert_eq!(range("c"), "*2 *2 :0 +1008 *2 :100 +53");
    run(&engine, &["TS.DEL a 0 250", "TS.ADD a 300 1"]);
    assert_eq!(range("c"), "*0");
    assert_eq!(range("d"), "*1 *2 :200 +4");
    check_replay(&engine);
}

#[test]
fn what_was_compacted_stays_when_the_retention_drops_the_points() {
    let engine = engine();
    run(&engine, &["TS.CREATE a RETENTION 25", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10"]);
    run(&engine, &["TS.MADD a 1 1 a 2 2 a 12 4 a 14 8 a 38 1"]);
    let range = |key: &str| Client::new(&engine).run(&format!("TS.RANGE {key} - +"));
    assert_eq!(range("a"), "*2 *2 :14 +8 *2 :38 +1");
    assert_eq!(range("b"), "*2 *2 :0 +3 *2 :10 +12");
    // The bucket at 10 has lost a point, and keeps its sum.
    run(&engine, &["TS.ADD a 15 100", "TS.ADD a 21 5"]);
    assert_eq!(range("b"), "*3 *2 :0 +3 *2 :10 +12 *2 :20 +5");
    let refusal = "-ERR TSDB: When a series has compactions, deleting samples or compaction buckets beyond the series \
                   retention period is not possible";
    assert_eq!(Client::new(&engine).run("TS.DEL a 14 14"), refusal);
    // A point that closes a bucket drops its points, and they are in the sum.
    run(&engine, &["TS.ADD a 100 1"]);
    assert_eq!(range("b"), "*4 *2 :0 +3 *2 :10 +12 *2 :20 +5 *2 :30 +1");
    check_replay(&engine);
}

#[test]
fn a_bucket_longer_than_the_retention_has_the_points_that_the_source_still_has() {
    let engine = engine();
    run(&engine, &["TS.CREATE a RETENTION 25", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 100"]);
    run(&engine, &["TS.MADD a 1 1 a 20 2 a 50 4 a 70 8 a 95 16"]);
    expect(
        &engine,
        &[
            ("TS.GET b LATEST", "*2 :0 +24"),
            // The point that closes the bucket drops some of its points, which are in the sum.
            ("TS.ADD a 105 32", ":105"),
            ("TS.RANGE b - +", "*1 *2 :0 +24"),
            ("TS.GET b LATEST", "*2 :100 +32"),
            // What the retention has divided is not computed from the rest.
            ("TS.ADD a 96 100", ":96"),
            ("TS.RANGE b - +", "*1 *2 :0 +24"),
            // A shorter retention divides the open bucket as well.
            ("TS.ADD a 120 1", ":120"),
            ("TS.GET b LATEST", "*2 :100 +33"),
            ("TS.ALTER a RETENTION 10", "+OK"),
            ("TS.GET b LATEST", "*2 :100 +1"),
            ("TS.ADD a 300 1", ":300"),
            ("TS.RANGE b - +", "*2 *2 :0 +24 *2 :100 +1"),
        ],
    );
    check_replay(&engine);
}

#[test]
fn a_transaction_that_watches_a_destination_runs_unless_a_bucket_is_written() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10", "TS.ADD a 1 1"]);
    let answer_after = |change: &str| {
        let mut watched = WatchedKeys::new();
        engine.watch(&mut watched, 0, b"b", START_US);
        run(&engine, &[change]);
        let answer = transaction(&engine, Some(&watched), &["TS.GET b LATEST"]);
        engine.unwatch(&watched);
        answer
    };
    for (change, answer) in [
        // As in Redis, the open bucket is the source's.
        ("TS.ADD a 2 2", "*1 *2 :0 +3"),
        ("TS.ADD a 12 2", "*-1"),
        ("TS.ADD a 13 5", "*1 *2 :10 +7"),
        ("TS.ADD a 3 5", "*-1"),
        ("TS.DEL a 13 13", "*1 *2 :10 +2"),
        ("TS.DEL a 12 12", "*-1"),
    ] {
        assert_eq!(answer_after(change), answer, "{change}");
    }
}

#[test]
fn backfill_compacts_what_is_there_and_a_plain_rule_begins_with_what_comes() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATE c", "TS.MADD a 1 1 a 2 2 a 13 3 a 31 4"]);
    run(&engine, &["TS.CREATERULE a b AGGREGATION sum 10 BACKFILL", "TS.CREATERULE a c AGGREGATION sum 10"]);
    let range = |key: &str| Client::new(&engine).run(&format!("TS.RANGE {key} - + LATEST"));
    assert_eq!(range("b"), "*3 *2 :0 +3 *2 :10 +3 *2 :30 +4");
    assert_eq!(range("c"), "*1 *2 :30 +4");
    run(&engine, &["TS.MADD a 3 3 a 45 1"]);
    assert_eq!(range("b"), "*4 *2 :0 +6 *2 :10 +3 *2 :30 +4 *2 :40 +1");
    assert_eq!(range("c"), "*3 *2 :0 +6 *2 :30 +4 *2 :40 +1");
    check_replay(&engine);
}

#[test]
fn a_transaction_sees_its_own_compactions_and_is_one_record() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b"]);
    let answer = transaction(
        &engine,
        None,
        &[
            "TS.CREATERULE a b AGGREGATION sum 10",
            "TS.MADD a 1 1 a 12 2",
            "RENAME b c",
            "TS.ADD a 25 1",
            "TS.RANGE c - +",
        ],
    );
    assert_eq!(answer, "*5 +OK *2 :1 :12 +OK :25 *2 *2 :0 +1 *2 :10 +2");
    let answer = transaction(&engine, None, &["TS.ADD a 31 1", "DEL a", "TS.GET c LATEST"]);
    assert_eq!(answer, "*3 :31 :1 *2 :20 +1");
    check_replay(&engine);
}

#[test]
fn watched_reads_of_a_destination_emit_with_the_record_of_the_source() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10", "TS.ADD a 1 1"]);
    let closed = watch(&engine, "TS.RANGE b - +");
    let latest = watch(&engine, "TS.GET b LATEST");
    run(&engine, &["TS.ADD a 2 2", "TS.ADD a 12 1", "TS.ADD a 3 3", "DEL a"]);
    assert_eq!(answers(&closed), ["*1 *2 :0 ,3", "*1 *2 :0 ,6"]);
    assert_eq!(answers(&latest), ["*2 :0 ,3", "*2 :10 ,1", "*2 :0 ,6"]);
}

#[test]
fn writers_in_all_directions_do_not_block_each_other() {
    const KEYS: usize = 6;
    let engine = engine_with_log(log());
    for key in 0..KEYS {
        run(&engine, &[&format!("TS.CREATE k{key} DUPLICATE_POLICY sum")]);
    }
    for key in 1..KEYS {
        run(&engine, &[&format!("TS.CREATERULE k{} k{key} AGGREGATION sum {}", key - 1, 10 * key)]);
    }
    run_on_threads(&engine, |thread, step| {
        let (key, other) = ((step + thread) % KEYS, (step * 5 + 3 * thread) % KEYS);
        match (step + 3 * thread) % 9 {
            0 => format!("TS.MADD k{key} {step} 1 k{other} {} 2", step / 2),
            1 => format!("RENAME k{key} x{thread}"),
            2 => format!("RENAME x{thread} k{key}"),
            3 => format!("TS.DEL k{key} {} {step}", step / 2),
            4 => format!("TS.NRANGE 2 k{key} k{other} - + LATEST"),
            5 => format!("TS.CREATERULE k{other} k{key} AGGREGATION sum 20"),
            6 => format!("TS.GET k{key} LATEST"),
            _ => format!("TS.ADD k{key} {step} 1"),
        }
    });
    check_replay(&engine);
}

#[test]
fn a_reader_waits_for_points_and_takes_none() {
    let engine = engine();
    run(
        &engine,
        &[
            "TS.CREATE a",
            "TS.MADD a 1 1 a 2 2",
            "TS.CREATE b",
            "TS.CREATERULE a b AGGREGATION sum 10",
            "SET s 1",
        ],
    );
    expect(
        &engine,
        &[
            ("TS.READ a 0", "*2 *2 :1 +1 *2 :2 +2"),
            ("TS.READ a + BLOCK 0 1", "*1 *2 :2 +2"),
            ("TS.READ a - MAX_COUNT 1", "*1 *2 :1 +1"),
            ("TS.READ a $", "*0"),
            ("TS.READ missing 0", "*0"),
            ("TS.READ a x", "-ERR TSDB: invalid timestamp"),
            ("TS.READ s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("TS.READ a 0 FOO", "-ERR wrong number of arguments for 'ts.read' command"),
        ],
    );
    let forbidden = "*1 -ERR TSDB: blocking TS.READ (with BLOCK) is not allowed inside MULTI, EVAL, or a \
                     deny-blocking context";
    assert_eq!(transaction(&engine, None, &["TS.READ a $ BLOCK 0 1"]), forbidden);
    let wait = |line: &str| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (answer, executed) = Client::new(&engine).execute(line);
        assert_eq!(answer, "", "{line}");
        let blocked = executed.into_blocked().expect("it waits");
        let waiter = blocked.wait(move |delivery| sender.send(delivery).expect("is received"), |_| ());
        (waiter, receiver)
    };
    let (_, two) = wait("TS.READ a $ BLOCK 0 2");
    let (_, one) = wait("TS.READ a $ BLOCK 0 1");
    let (_, compacted) = wait("TS.READ b 0 BLOCK 0 1");
    let (_, gone) = wait("TS.READ b $ BLOCK 0 9");
    let (late, _unused) = wait("TS.READ a 2 BLOCK 10 99");
    let delivered = |receiver: &std::sync::mpsc::Receiver<tidemark_engine::Delivery>| {
        receiver.try_recv().ok().map(|delivery| shown(&delivery.reply))
    };
    run(&engine, &["TS.ADD a 5 5"]);
    assert_eq!((delivered(&two), delivered(&one).as_deref()), (None, Some("*1 *2 :5 +5")));
    run(&engine, &["TS.ADD a 11 1"]);
    assert_eq!(delivered(&two).as_deref(), Some("*2 *2 :5 +5 *2 :11 +1"));
    assert_eq!(delivered(&compacted).as_deref(), Some("*1 *2 :0 +8"));
    assert_eq!(delivered(&gone), None);
    run(&engine, &["DEL b"]);
    assert_eq!(delivered(&gone).as_deref(), Some("*0"));
    assert!(engine.stop_waiting(&late));
    let mut reply = tidemark_engine::Reply::new(tidemark_engine::Protocol::Resp2);
    let shown_up_to = engine.answer_late(&late, START_US, &mut reply);
    assert_eq!(shown_up_to, engine.log().appended(), "the answer waits for the record of the last point");
    assert_eq!(shown(reply.bytes()), "*3 *2 :2 +2 *2 :5 +5 *2 :11 +1");
    check_replay(&engine);
}

/// A rule of the model: which buckets have been compacted or changed since it was made.
struct RuleModel {
    destination: usize,
    aggregation: &'static str,
    duration: i64,
    align: i64,
    touched: BTreeSet<i64>,
}

/// Series of the model, by index, and the rules of each.
#[derive(Default)]
struct Model {
    points: Vec<BTreeMap<i64, f64>>,
    rules: Vec<Vec<RuleModel>>,
}

impl RuleModel {
    fn start_of(&self, time: i64) -> i64 {
        time - (time - self.align).rem_euclid(self.duration)
    }

    /// Returns the destination's points, computed from nothing but the source's.
    fn expected(&self, points: &BTreeMap<i64, f64>) -> BTreeMap<i64, f64> {
        let Some((newest, _)) = points.last_key_value() else { return BTreeMap::new() };
        let open = self.start_of(*newest);
        let closed = self.touched.iter().filter(|start| **start < open);
        let of_bucket = |start: &i64| {
            let values: Vec<f64> =
                points.range(*start..start + self.duration).map(|(_, value)| *value).collect();
            let (first, last) = (*values.first()?, *values.last()?);
            let sum: f64 = values.iter().sum();
            let result = match self.aggregation {
                "sum" => sum,
                "count" => values.len() as f64,
                "avg" => sum / values.len() as f64,
                "min" => values.iter().copied().fold(f64::INFINITY, f64::min),
                "max" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                "first" => first,
                _ => last,
            };
            Some((*start.max(&0), result))
        };
        closed.filter_map(of_bucket).collect()
    }
}

impl Model {
    /// Carries the change of a series to those that it is compacted into.
    fn settle(&mut self, index: usize, changed: &BTreeSet<i64>) {
        for at in 0..self.rules[index].len() {
            let newest = self.points[index].keys().next_back().copied();
            let rule = &mut self.rules[index][at];
            let starts: Vec<i64> =
                changed.iter().copied().chain(newest).map(|time| rule.start_of(time)).collect();
            rule.touched.extend(starts);
            let (destination, expected) = (rule.destination, rule.expected(&self.points[index]));
            let before = std::mem::replace(&mut self.points[destination], expected);
            let after = &self.points[destination];
            let times: BTreeSet<i64> = before.keys().chain(after.keys()).copied().collect();
            let is_changed = |time: &i64| before.get(time) != after.get(time);
            let changed: BTreeSet<i64> = times.into_iter().filter(is_changed).collect();
            if !changed.is_empty() {
                self.settle(destination, &changed);
            }
        }
    }
}

/// Random changes of a tree of series, compared with [`Model`] after each.
fn compare_with_model(seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as i64 % below
    };
    let engine = engine();
    let mut model = Model::default();
    let mut names: Vec<String> = Vec::new();
    for index in 0..7 {
        names.push(format!("k{index}"));
        run(&engine, &[&format!("TS.CREATE k{index} DUPLICATE_POLICY last")]);
        model.points.push(BTreeMap::new());
        model.rules.push(Vec::new());
    }
    let watched = watch(&engine, "TS.RANGE k1 - +");
    let (mut now, mut next_rule) = (0, 1);
    for step in 0..100 {
        let mut changed = BTreeSet::new();
        match random(12) {
            0 if next_rule < names.len() => {
                // A source that is a destination itself, half of the time.
                let source = if random(2) == 0 { 0 } else { random(next_rule as i64) as usize };
                let (destination, is_backfilled) = (next_rule, random(2) == 0);
                next_rule += 1;
                let aggregation = ["sum", "count", "avg", "min", "max", "first", "last"][random(7) as usize];
                let (duration, align) = (random(60) + 1, random(40));
                let mut rule =
                    RuleModel { destination, aggregation, duration, align, touched: BTreeSet::new() };
                if is_backfilled {
                    rule.touched = model.points[source].keys().map(|time| rule.start_of(*time)).collect();
                }
                let backfill = if is_backfilled { " BACKFILL" } else { "" };
                let (from, to) = (&names[source], &names[destination]);
                run(
                    &engine,
                    &[&format!(
                        "TS.CREATERULE {from} {to} AGGREGATION {aggregation} {duration} {align}{backfill}"
                    )],
                );
                model.rules[source].push(rule);
                model.settle(source, &BTreeSet::new());
            }
            1 => {
                let from = random(now + 10);
                let to = from + random(1 + now / 3);
                run(&engine, &[&format!("TS.DEL {} {from} {to}", names[0])]);
                changed = model.points[0].range(from..=to).map(|(time, _)| *time).collect();
                model.points[0].retain(|time, _| !(from..=to).contains(time));
            }
            2 => {
                let index = random(names.len() as i64) as usize;
                let name = format!("r{step}");
                run(&engine, &[&format!("RENAME {} {name}", names[index])]);
                names[index] = name;
            }
            3 => {
                // Late points, and second ones.
                let time = random(now + 1);
                let value = random(100);
                run(&engine, &[&format!("TS.ADD {} {time} {value}", names[0])]);
                model.points[0].insert(time, value as f64);
                changed.insert(time);
            }
            _ => {
                let mut line = "TS.MADD".to_owned();
                for _ in 0..=random(40) {
                    now += random(9) + 1;
                    let value = random(100);
                    line = format!("{line} {} {now} {value}", names[0]);
                    model.points[0].insert(now, value as f64);
                    changed.insert(now);
                }
                run(&engine, &[&line]);
            }
        }
        if !changed.is_empty() {
            model.settle(0, &changed);
        }
        for (name, points) in names.iter().zip(&model.points) {
            let shown: Vec<String> =
                points.iter().map(|(time, value)| format!("*2 :{time} ,{value}")).collect();
            let expected =
                std::iter::once(format!("*{}", shown.len())).chain(shown).collect::<Vec<_>>().join(" ");
            let answer = Client::resp3(&engine).run(&format!("TS.RANGE {name} - +"));
            assert_eq!(answer, expected, "{name} after step {step} of seed {seed}");
        }
        if random(20) == 0 {
            check_replay(&engine);
        }
    }
    if names[1] == "k1"
        && let Some(last) = answers(&watched).last()
    {
        assert_eq!(*last, Client::resp3(&engine).run("TS.RANGE k1 - +"));
    }
    check_replay(&engine);
}

#[test]
fn destinations_are_what_an_ordered_map_computes() {
    (1..=4).for_each(compare_with_model);
}

/// Replays what a watched read has emitted since a snapshot, from the keys that its answers depend on.
fn emitted_anew(engine: &Engine, watched: &Subscribed, cut: &Cut) -> Vec<String> {
    let mut past = Past::new(engine.log(), &watched.query, 1 << 20);
    loop {
        let mut emitted = Vec::new();
        let mut follow = || -> Result<(), PastError> {
            past.load(|load| cut.keys.iter().try_for_each(|frame| load(frame)))?;
            cut.queries.iter().try_for_each(|frame| past.load_query(cut.lsn, frame))?;
            let mut result = Ok(());
            for_each_record(engine, cut.lsn.next(), |record| {
                if result.is_ok() {
                    result = past.apply(record).map(|emission| emitted.extend(emission));
                }
            });
            result
        };
        match follow() {
            Ok(()) => return emitted.iter().map(|emission| shown(&emission.answer)).collect(),
            Err(PastError::Widened) => {
                let mut widening = past.widen();
                for_each_record(engine, cut.lsn.next(), |record| widening.note(record).expect("a record"));
                past = widening.finish();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn emissions_are_replayed_over_the_keys_that_are_linked() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "TS.CREATE c", "TS.CREATE d", "SET other 1"]);
    run(&engine, &["TS.CREATERULE a b AGGREGATION sum 10", "TS.CREATERULE b c AGGREGATION sum 20"]);
    run(&engine, &["TS.MADD a 1 1 a 12 2 a 25 3"]);
    let closed = watch(&engine, "TS.RANGE c - +");
    let latest = watch(&engine, "TS.GET b LATEST");
    let cut = Cut::of(&engine);
    run(
        &engine,
        &[
            "TS.MADD a 26 4 a 41 5 a 55 6",
            "RENAME a z",
            "TS.ADD z 3 7",
            "TS.CREATERULE c d AGGREGATION max 40",
        ],
    );
    run(&engine, &["SET other 2", "TS.MADD z 90 1 z 130 1", "DEL b", "TS.ADD z 200 1"]);
    for watched in [&closed, &latest] {
        let emitted = answers(watched);
        assert!(emitted.len() > 2, "{emitted:?}");
        assert_eq!(emitted_anew(&engine, watched, &cut), emitted);
    }
    check_replay(&engine);
}
