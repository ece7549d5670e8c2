//! Lenses: series seen through transforms.

use crate::rules::run;
use crate::series::{expect, wire};
use crate::support::{Client, START_US, engine, replayed, run_on_threads, shown, transaction};
use crate::watching::{answers, watch};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use tidemark_engine::{Delivery, Engine, Protocol, Reply, Waiter};
use tidemark_log::Lsn;

#[test]
fn a_lens_shows_its_source_through_its_transforms() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD kitchen 1000 0", ":1000"),
            ("TS.ADD kitchen 2000 100", ":2000"),
            ("LENS.CREATE f kitchen celsius_to_fahrenheit", "+OK"),
            ("TYPE f", "+lens"),
            ("TS.GET f", "*2 :2000 +212"),
            ("TS.RANGE f - +", "*2 *2 :1000 +32 *2 :2000 +212"),
            ("TS.REVRANGE f - + COUNT 1", "*1 *2 :2000 +212"),
            ("TS.RANGE f 1500 +", "*1 *2 :2000 +212"),
            ("TS.RANGE f - + AGGREGATION avg,count 5000", "*1 *3 :0 +122 +2"),
            ("TS.RANGE f - + FILTER_BY_TS 1000 3000", "*1 *2 :1000 +32"),
            ("TS.RANGE f - + FILTER_BY_VALUE 100 300", "*1 *2 :2000 +212"),
            ("TS.NRANGE 2 kitchen f - +", "*2 *2 :1000 *2 +0 +32 *2 :2000 *2 +100 +212"),
            // Always current.
            ("TS.ADD kitchen 3000 -40", ":3000"),
            ("TS.GET f", "*2 :3000 +-40"),
            ("TS.DEL kitchen 3000 3000", ":1"),
            ("TS.GET f", "*2 :2000 +212"),
        ],
    );
}

#[test]
fn points_of_a_lens_are_read_from_a_time_on() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.MADD k 1 1 k 2 3 k 3 6 CREATE", "*3 :1 :2 :3"),
            ("LENS.CREATE deltas k delta shift 10", "+OK"),
            ("TS.READ deltas -", "*2 *2 :12 +2 *2 :13 +3"),
            ("TS.READ deltas - MAX_COUNT 1", "*1 *2 :12 +2"),
            ("TS.READ deltas +", "*1 *2 :13 +3"),
            ("TS.READ deltas 13", "*1 *2 :13 +3"),
            ("TS.READ deltas $", "*0"),
            ("TS.READ deltas 12 BLOCK 0 2 MAX_COUNT 2", "*2 *2 :12 +2 *2 :13 +3"),
            ("DEL k", ":1"),
            ("TS.READ deltas -", "-ERR LENS: there is no 'k' for the lens to see"),
            ("TS.READ deltas - BLOCK 0 1", "-ERR LENS: there is no 'k' for the lens to see"),
        ],
    );
}

/// A client that waits by a command, and its answer, once it has one.
struct Reading<'e> {
    engine: &'e Engine,
    waiter: Arc<Waiter>,
    delivered: Receiver<Delivery>,
}

impl<'e> Reading<'e> {
    fn begin(engine: &'e Engine, line: &str) -> Self {
        let (sender, delivered) = std::sync::mpsc::channel();
        let (answer, executed) = Client::new(engine).execute(line);
        assert_eq!(answer, "", "{line} waits");
        let blocked = executed.into_blocked().expect("it waits");
        let waiter = blocked.wait(move |delivery| sender.send(delivery).expect("is received"), |_| ());
        Self { engine, waiter, delivered }
    }

    /// Its answer, if it waits no longer: the answer shows the newest record, and leaves when that is
    /// durable.
    fn answer(&self) -> Option<String> {
        let delivery = self.delivered.try_recv().ok()?;
        assert_eq!(delivery.lsn, Some(self.engine.log().appended()));
        Some(shown(&delivery.reply))
    }

    /// The answer when its time is over.
    fn answer_late(&self) -> (String, Lsn) {
        assert!(self.engine.stop_waiting(&self.waiter), "it waits");
        let mut reply = Reply::new(Protocol::Resp2);
        let lsn = self.engine.answer_late(&self.waiter, START_US, &mut reply);
        (shown(reply.bytes()), lsn)
    }
}

#[test]
fn a_reader_of_a_lens_waits_until_its_sources_give_it_points() {
    let engine = engine();
    run(
        &engine,
        &["TS.ADD a 1 1", "TS.ADD b 1 10", "LENS.CREATE sum a + b ASOF 3", "LENS.CREATE late sum shift 100"],
    );
    let one = Reading::begin(&engine, "TS.READ late $ BLOCK 0 1");
    let two = Reading::begin(&engine, "TS.READ late $ BLOCK 0 2");
    let first = Reading::begin(&engine, "TS.READ late - BLOCK 0 3 MAX_COUNT 3");
    run(&engine, &["TS.ADD b 2 20"]);
    assert_eq!(one.answer(), None, "the lens has no point for those of its second source");
    run(&engine, &["TS.ADD a 3 3"]);
    assert_eq!(one.answer().as_deref(), Some("*1 *2 :103 +23"));
    // No point of the second source is new enough, and then one is, late.
    run(&engine, &["TS.ADD a 9 9"]);
    assert_eq!(two.answer(), None);
    run(&engine, &["TS.ADD b 7 70"]);
    assert_eq!(two.answer().as_deref(), Some("*2 *2 :103 +23 *2 :109 +79"));
    assert_eq!(first.answer().as_deref(), Some("*3 *2 :101 +11 *2 :103 +23 *2 :109 +79"));
    // What is pipelined, and what a batch has.
    let piped = Reading::begin(&engine, "TS.READ late $ BLOCK 0 2");
    run(&engine, &["TS.MADD b 10 0 a 10 1 a 11 2"]);
    assert_eq!(piped.answer().as_deref(), Some("*2 *2 :110 +1 *2 :111 +2"));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_reader_of_a_lens_waits_as_long_as_the_keys_are_there() {
    let engine = engine();
    let read = "TS.READ l $ BLOCK 0 1";
    let missing = "-ERR LENS: there is no 'a' for the lens to see";
    for (changes, expected) in [
        (&["DEL a"][..], Some(missing)),
        (&["RENAME a b"], Some(missing)),
        (&["MOVE a 1"], Some(missing)),
        (&["SET a text"], Some("-ERR LENS: 'a' is neither a series nor a lens")),
        (&["LENS.DROP l"], Some("*0")),
        (&["RENAME l m"], Some("*0")),
        (&["FLUSHDB"], Some("*0")),
        (&["SWAPDB 0 1"], Some("*0")),
        (&["TS.CREATE other", "RENAME other a"], None),
        (&["TS.ADD other 9 9", "RENAME other a"], Some("*1 *2 :9 +18")),
        (&["TS.ADD other 9 9", "LENS.CREATE m other affine 1 1", "RENAME m a"], Some("*1 *2 :9 +20")),
        (&["TS.ADD other 9 9", "LENS.CREATE m other", "RENAME m l"], Some("*1 *2 :9 +9")),
        (&["TS.ADD other 9 9", "COPY other a REPLACE"], Some("*1 *2 :9 +18")),
        (&["TS.DEL a 0 9", "TS.ADD a 1 1", "EXPIRE a 100", "TS.ADD a 2 5"], Some("*1 *2 :2 +10")),
    ] {
        run(&engine, &["FLUSHALL"]);
        run(&engine, &["TS.ADD a 1 1"]);
        run(&engine, &["LENS.CREATE l a affine 2 0"]);
        let reading = Reading::begin(&engine, read);
        run(&engine, changes);
        assert_eq!(reading.answer().as_deref(), expected, "{changes:?}");
        let _ = engine.stop_waiting(&reading.waiter);
        assert_eq!(replayed(&engine).digest(), engine.digest(), "{changes:?}");
    }
}

#[test]
fn a_reader_of_a_lens_is_answered_when_its_source_expires() {
    let engine = engine();
    run(&engine, &["TS.ADD a 1 1", "LENS.CREATE l a abs", "PEXPIRE a 10"]);
    let reading = Reading::begin(&engine, "TS.READ l $ BLOCK 0 1");
    engine.expire_due(START_US + 20_000, 100);
    assert_eq!(reading.answer().as_deref(), Some("-ERR LENS: there is no 'a' for the lens to see"));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_reader_of_a_lens_sees_what_a_transaction_leaves() {
    let engine = engine();
    run(&engine, &["TS.ADD a 1 1", "TS.ADD b 1 1", "LENS.CREATE l a + b ASOF 1"]);
    let read = |line: &str| transaction(&engine, None, &[line]);
    assert!(read("TS.READ l $ BLOCK 0 1").contains("is not allowed inside MULTI"));
    assert_eq!(read("TS.READ l - BLOCK 0 1"), "*1 *1 *2 :1 +2");
    let reading = Reading::begin(&engine, "TS.READ l $ BLOCK 0 1");
    // The source goes and is made anew, and a point goes again.
    transaction(&engine, None, &["DEL a", "TS.ADD a 1 1", "TS.ADD b 2 2", "TS.ADD a 2 2", "TS.DEL a 2 2"]);
    assert_eq!(reading.answer(), None);
    transaction(&engine, None, &["DEL b", "TS.ADD a 3 3", "TS.ADD b 3 4"]);
    assert_eq!(reading.answer().as_deref(), Some("*1 *2 :3 +7"));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_reader_of_a_lens_whose_time_is_over_gets_what_there_is() {
    let engine = engine();
    run(&engine, &["TS.ADD a 1 1", "LENS.CREATE l a affine 2 0", "LENS.CREATE m l affine 2 0"]);
    let reading = Reading::begin(&engine, "TS.READ m 1 BLOCK 10 9");
    run(&engine, &["TS.ADD a 2 2"]);
    assert_eq!(reading.answer(), None);
    assert_eq!(reading.answer_late(), ("*2 *2 :1 +4 *2 :2 +8".to_owned(), engine.log().appended()));
    let reading = Reading::begin(&engine, "TS.READ m $ BLOCK 10 1");
    run(&engine, &["SET unrelated x"]);
    assert_eq!(reading.answer_late().0, "*0");
}

#[test]
fn a_client_that_waits_for_a_missing_key_reads_a_lens_that_is_made_there() {
    let engine = engine();
    run(&engine, &["TS.ADD a 5 5"]);
    let reading = Reading::begin(&engine, "TS.READ l 6 BLOCK 0 1");
    run(&engine, &["LENS.CREATE l a abs"]);
    assert_eq!(reading.answer(), None);
    run(&engine, &["TS.ADD a 6 -6"]);
    assert_eq!(reading.answer().as_deref(), Some("*1 *2 :6 +6"));
}

#[test]
fn a_reader_of_a_lens_does_not_hold_up_writers_of_its_sources() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.ADD dead 1 1", "LENS.CREATE l a + dead ASOF 1"]);
    let reading = Reading::begin(&engine, "TS.READ l $ BLOCK 0 1");
    let mut answer = None;
    for batch in 0..40 {
        let points: Vec<String> =
            (0..1_000).map(|point| format!("a {} 1", 10 + batch * 1_000 + point)).collect();
        run(&engine, &[&format!("TS.MADD {}", points.join(" "))]);
        answer = reading.answer();
        if answer.is_some() {
            assert_eq!(batch, 32, "it takes more than 32,768 points to see that there is none");
            break;
        }
    }
    assert_eq!(answer.as_deref(), Some("*0"));
}

#[test]
fn readers_of_lenses_and_writers_on_several_threads_do_not_block_each_other() {
    let engine = engine();
    run(&engine, &["TS.CREATE a", "TS.CREATE b", "LENS.CREATE l a + b ASOF 100000", "LENS.CREATE m l abs"]);
    let readings: Vec<Reading<'_>> =
        (1..=50).map(|count| Reading::begin(&engine, &format!("TS.READ m - BLOCK 0 {count}"))).collect();
    run(&engine, &["TS.ADD b 0 1"]);
    run_on_threads(&engine, |thread, step| format!("TS.ADD a {} 1 ON_DUPLICATE last", step * 4 + thread));
    for (index, reading) in readings.iter().enumerate() {
        let delivery = reading.delivered.try_recv().expect("there were enough points");
        let answer = shown(&delivery.reply);
        assert!(answer.starts_with('*') && !answer.starts_with("*0"), "{index}: {answer}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn durations_are_limited_by_the_unit_of_the_source() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.CREATE eras UNIT s", "+OK"),
            ("TS.CREATE blinks UNIT ns", "+OK"),
            ("LENS.CREATE later eras shift 200000d", "+OK"),
            ("TS.ADD eras 1 5", ":1"),
            ("TS.GET later", "*2 :17280000001 +5"),
        ],
    );
    let refused = Client::new(&engine).run("LENS.CREATE later-blinks blinks shift 200000d");
    assert!(refused.contains("shift needs a duration"), "{refused}");
}

#[test]
fn a_lens_sees_other_lenses_and_several_series() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD errors 1000 1", ":1000"),
            ("TS.ADD errors 61000 6", ":61000"),
            ("TS.ADD requests 500 100", ":500"),
            ("TS.ADD requests 31000 200", ":31000"),
            ("LENS.CREATE share errors / requests ASOF 30s", "+OK"),
            ("LENS.CREATE percent share affine 100 0", "+OK"),
            ("TS.RANGE percent - +", "*2 *2 :1000 +1 *2 :61000 +3"),
            ("LENS.CREATE both errors expr x+2*y WITH share ASOF 1m shift 1", "+OK"),
            ("TS.RANGE both - +", "*2 *2 :1001 +1.02 *2 :61001 +6.06"),
            ("LENS.CREATE rate errors rate", "+OK"),
            ("TS.RANGE rate - +", "*1 *2 :61000 +8.333333333333333E-2"),
            ("LENS.COMPOSE hourly rate percent", "+OK"),
            ("TS.RANGE hourly - +", "*1 *2 :61000 +8.333333333333332"),
            ("LENS.LIST", "*5 $both $hourly $percent $rate $share"),
            ("LENS.LIST SOURCE requests", "*1 $share"),
        ],
    );
    assert_eq!(
        Client::new(&engine).run("LENS.INFO share"),
        "*8 +source $6 errors +unit +ms +labels *0 +transforms *1 *4 +transform $19 / requests ASOF 30s +reads \
         $58 the point, and the other key's newest, at most 30000 older"
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_a_lens_cannot_see_is_named() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD a 1 1", ":1"),
            ("SET text x", "+OK"),
            ("LENS.CREATE l none abs", "-ERR LENS: there is no 'none' for the lens to see"),
            ("LENS.CREATE l text abs", "-ERR LENS: 'text' is neither a series nor a lens"),
            ("LENS.CREATE l l abs", "-ERR LENS: the lens would see itself, by 'l'"),
            ("LENS.CREATE l a + l ASOF 1", "-ERR LENS: the lens would see itself, by 'l'"),
            ("LENS.CREATE l a + none ASOF 1", "-ERR LENS: there is no 'none' for the lens to see"),
            ("LENS.CREATE a a abs", "-ERR LENS: the key 'a' exists already"),
            (
                "LENS.CREATE l a expr x+",
                "-ERR LENS: the expression is not valid: a value is missing at column 3",
            ),
            (
                "LENS.CREATE l a celcius_to_kelvin",
                "-ERR LENS: unknown transform 'celcius_to_kelvin'; did you mean 'celsius_to_kelvin'?",
            ),
            ("LENS.CREATE l a", "+OK"),
            ("LENS.CREATE m l abs", "+OK"),
            ("TS.GET m", "*2 :1 +1"),
            ("TS.ADD m 2 2", "-ERR TSDB: the key is not a TSDB key"),
            ("TS.GET text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("TS.GET none", "-ERR TSDB: the key does not exist"),
            ("DEL a", ":1"),
            ("TS.GET m", "-ERR LENS: there is no 'a' for the lens to see"),
            ("LENS.CREATE a m abs", "-ERR LENS: the lens would see itself, by 'a'"),
            // By names, whatever is there.
            ("TS.ADD a 5 -5", ":5"),
            ("TS.GET m", "*2 :5 +5"),
            ("RENAME a b", "+OK"),
            ("RENAME m a", "+OK"),
            (
                "TS.GET l",
                "-ERR LENS: more than 16 lenses over each other, up to 'a', or one that sees itself",
            ),
            ("LENS.DROP l text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("LENS.DROP l none", "-ERR LENS: there is no lens 'none'"),
            ("LENS.DROP l a l", ":2"),
            ("LENS.LIST", "*0"),
            ("TS.ADD s 1 1 UNIT s", ":1"),
            ("LENS.CREATE l b / s ASOF 5", "-ERR LENS: the times of 's' are in s, those of the source in ms"),
            (
                "LENS.CREATE l s resample 1500ms",
                "-ERR LENS: resample needs a step: a duration above 0, in the series' unit or with its own, such as 1m, not '1500ms'",
            ),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_read_beyond_the_limits_of_a_transform_is_refused() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD k 0 0", ":0"),
            ("TS.ADD k 1000000000000 1", ":1000000000000"),
            ("LENS.CREATE fine k resample 1 linear", "+OK"),
            ("TS.RANGE fine - +", "-ERR LENS: the step makes more than 4194304 points; read a shorter range"),
            (
                "TS.RANGE fine 500000000000 500000000001",
                "*2 *2 :500000000000 +5E-1 *2 :500000000001 +5.00000000001E-1",
            ),
            ("TS.GET fine", "*2 :1000000000000 +1"),
        ],
    );
}

#[test]
fn a_lens_follows_its_key_as_any_value_does() {
    let engine = engine();
    expect(
        &engine,
        &[
            ("TS.ADD a 1 1", ":1"),
            ("LENS.CREATE l a affine 2 0", "+OK"),
            ("COPY l copy", ":1"),
            ("TS.GET copy", "*2 :1 +2"),
            ("RENAME l moved", "+OK"),
            ("TS.GET moved", "*2 :1 +2"),
            ("MOVE moved 1", ":1"),
            ("EXPIRE copy 100", ":1"),
            ("PERSIST copy", ":1"),
            ("OBJECT ENCODING copy", "$raw"),
        ],
    );
    let other = Client { db: 1, ..Client::new(&engine) };
    assert_eq!(other.run("TS.GET moved"), wire("-ERR LENS: there is no 'a' for the lens to see"));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    /// A lens through a linear transform shows what reading the source and computing it would.
    #[test]
    fn every_read_of_a_lens_is_that_of_a_series_with_its_points(
        points in proptest::collection::btree_map(0_i64..5_000, -100_i32..100, 1..2_500),
        reads in proptest::collection::vec((0_i64..5_000, 0_i64..2_000, 1_i64..700), 1..5),
    ) {
        let engine = engine();
        let client = Client::new(&engine);
        client.run("TS.CREATE seen");
        client.run("TS.CREATE copied");
        for (time, value) in &points {
            client.run(&format!("TS.ADD seen {time} {value}"));
            client.run(&format!("TS.ADD copied {time} {}", f64::from(*value) * 2.0 + 1.0));
        }
        client.run("LENS.CREATE lens seen affine 2 1");
        for (from, length, step) in reads {
            let to = from + length;
            for read in [
                format!("RANGE KEY {from} {to}"),
                format!("REVRANGE KEY {from} {to} COUNT {step}"),
                format!("RANGE KEY {from} {to} AGGREGATION avg,max,twa,first {step} EMPTY"),
                format!("REVRANGE KEY - {to} AGGREGATION std.p,last {step}"),
                format!("RANGE KEY - + FILTER_BY_VALUE -50 {step}"),
                "GET KEY".to_owned(),
            ] {
                let lens = client.run(&format!("TS.{}", read.replace("KEY", "lens")));
                let copied = client.run(&format!("TS.{}", read.replace("KEY", "copied")));
                prop_assert_eq!(lens, copied, "{}", read);
            }
        }
    }
}

#[test]
fn a_watched_lens_emits_when_what_it_sees_changes() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.ADD a 1 1");
    client.run("TS.ADD b 1 10");
    client.run("LENS.CREATE sum a + b ASOF 100");
    client.run("LENS.CREATE double sum affine 2 0");
    let query = watch(&engine, "TS.GET double");
    for (line, expected) in [
        ("TS.ADD a 2 2", Some("*2 :2 ,24")),
        ("TS.ADD b 2 20", Some("*2 :2 ,44")),
        // Nothing changes for the lens.
        ("TS.ADD b 3 30", None),
        ("SET c x", None),
        ("RENAME b d", Some("-ERR LENS: there is no 'b' for the lens to see")),
        ("TS.ADD b 1 0", Some("*2 :2 ,4")),
        ("DEL double", Some("-ERR TSDB: the key does not exist")),
        ("LENS.CREATE double a", Some("*2 :2 ,2")),
        ("TS.ADD b 1 7 ON_DUPLICATE last", None),
        ("TS.ADD a 3 3", Some("*2 :3 ,3")),
        ("FLUSHDB", Some("-ERR TSDB: the key does not exist")),
        ("TS.ADD a 3 3", None),
        ("LENS.CREATE double a", Some("*2 :3 ,3")),
    ] {
        let before = answers(&query).len();
        let answer = client.run(line);
        assert!(!answer.starts_with('-'), "{line}: {answer}");
        let answers = answers(&query);
        let emitted = answers.get(before).map(String::as_str);
        assert_eq!(emitted, expected, "{line}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn writers_and_readers_of_lenses_in_all_directions_do_not_block_each_other() {
    const KEYS: usize = 6;
    let engine = engine();
    for key in 0..KEYS {
        Client::new(&engine).run(&format!("TS.ADD k{key} 1 {key}"));
    }
    run_on_threads(&engine, |thread, step| {
        let (key, other) = ((step + thread) % KEYS, (step * 5 + 3 * thread) % KEYS);
        match (step + 3 * thread) % 9 {
            0 => format!("LENS.CREATE l{other} k{key} + k{other} ASOF 5"),
            1 => format!("RENAME k{key} x{thread}"),
            2 => format!("RENAME x{thread} k{key}"),
            3 => format!("LENS.CREATE l{key} l{other} abs"),
            4 => format!("TS.NRANGE 2 l{key} k{other} - +"),
            5 => format!("DEL l{key}"),
            6 => format!("TS.GET l{other}"),
            7 => format!("RENAME l{key} l{other}"),
            _ => format!("TS.MADD k{key} {step} 1 k{other} {step} 2"),
        }
    });
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
