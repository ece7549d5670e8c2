//! Rules of time series: destinations follow their source, whatever happens to either.

use crate::support::{Client, START_US, engine, engine_with_log, log, replayed, transaction};
use crate::watching::{answers, watch};
use std::sync::Arc;
use tidemark_engine::Engine;

/// Runs commands one after the other and compares the answers.
fn expect(engine: &Engine, dialogue: &[(&str, &str)]) {
    for (line, answer) in dialogue {
        assert_eq!(Client::new(engine).run(line), *answer, "{line}");
    }
}

/// Runs commands, none of which may fail.
fn run(engine: &Engine, lines: &[&str]) {
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
    let engine = Arc::new(engine_with_log(log()));
    const KEYS: usize = 6;
    for key in 0..KEYS {
        run(&engine, &[&format!("TS.CREATE k{key} DUPLICATE_POLICY sum")]);
    }
    for key in 1..KEYS {
        run(&engine, &[&format!("TS.CREATERULE k{} k{key} AGGREGATION sum {}", key - 1, 10 * key)]);
    }
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let engine = &engine;
            scope.spawn(move || {
                for step in 0..120_usize {
                    let (key, other) = ((step + thread) % KEYS, (step * 5 + 3 * thread) % KEYS);
                    let line = match (step + 3 * thread) % 9 {
                        0 => format!("TS.MADD k{key} {step} 1 k{other} {} 2", step / 2),
                        1 => format!("RENAME k{key} x{thread}"),
                        2 => format!("RENAME x{thread} k{key}"),
                        3 => format!("TS.DEL k{key} {} {step}", step / 2),
                        4 => format!("TS.NRANGE 2 k{key} k{other} - + LATEST"),
                        5 => format!("TS.CREATERULE k{other} k{key} AGGREGATION sum 20"),
                        6 => format!("TS.GET k{key} LATEST"),
                        _ => format!("TS.ADD k{key} {step} 1"),
                    };
                    Client::new(engine).run(&line);
                }
            });
        }
    });
    check_replay(&engine);
}
