//! Batches of points: each point is as if it came alone, and full blocks are compressed by a thread.

use crate::support::{Client, engine, replayed, shown};
use proptest::prelude::*;
use std::time::{Duration, Instant};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};

/// Series of all kinds that a batch can meet, and a key that is none.
const KEYS: [&str; 8] = ["plain", "last", "sum", "ignoring", "short", "ruled", "text", "none"];

fn filled() -> Engine {
    let engine = engine();
    for line in [
        "TS.CREATE plain",
        "TS.CREATE last DUPLICATE_POLICY last UNIT ns",
        "TS.CREATE sum DUPLICATE_POLICY sum ENCODING UNCOMPRESSED",
        "TS.CREATE ignoring DUPLICATE_POLICY last IGNORE 5 1",
        "TS.CREATE short RETENTION 20",
        "TS.CREATE ruled DUPLICATE_POLICY last",
        "TS.CREATE ruled:avg",
        "TS.CREATERULE ruled ruled:avg AGGREGATION avg 10",
    ] {
        assert_eq!(Client::new(&engine).run(line), "+OK", "{line}");
    }
    Client::new(&engine).run("SET text x");
    engine
}

fn word<'a>(usual: &'static str, rare: &'static [&'static str]) -> impl Strategy<Value = String> + use<'a> {
    prop_oneof![8 => usual, 1 => proptest::sample::select(rare).prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn points_of_a_batch_are_answered_and_kept_as_if_each_came_alone(
        runs in proptest::collection::vec(
            (
                proptest::sample::select(&KEYS),
                proptest::collection::vec(
                    (word("[1-9][0-9]?", &["*", "x", "-1", "0"]), word("-?[0-9][.][0-9]{1,2}", &["nan", "y", "1e400", "7"])),
                    1..12,
                ),
            ),
            1..6,
        ),
        creates: bool,
    ) {
        let (together, alone) = (filled(), filled());
        let points: Vec<String> = runs
            .iter()
            .flat_map(|(key, points)| points.iter().map(move |(time, value)| format!("{key} {time} {value}")))
            .collect();
        let create = if creates { " CREATE" } else { "" };
        let answer = Client::new(&together).run(&format!("TS.MADD {}{create}", points.join(" ")));
        let answers = points.iter().map(|point| {
            let answer = Client::new(&alone).run(&format!("TS.MADD {point}{create}"));
            answer.strip_prefix("*1 ").expect("one answer").to_owned()
        });
        let answers: Vec<String> = answers.collect();
        prop_assert_eq!(answer, format!("*{} {}", points.len(), answers.join(" ")));
        prop_assert_eq!(together.digest(), alone.digest());
        prop_assert_eq!(replayed(&together).digest(), alone.digest());
    }
}

/// Adds `count` points from `first` on, one for each time, by `TS.APPEND`.
fn append(engine: &Engine, key: &str, first: i64, count: i64) {
    let times: Vec<u8> = (first..first + count).flat_map(i64::to_le_bytes).collect();
    let values: Vec<u8> =
        (first..first + count).flat_map(|time| ((time % 100) as f64 / 4.0).to_le_bytes()).collect();
    let args: [&[u8]; 4] = [b"TS.APPEND", key.as_bytes(), &times, &values];
    let command = command::resolve(&args).expect("a command");
    let mut reply = Reply::new(Protocol::Resp2);
    engine.execute(&Call { command, args: &args, db: 0, now_us: 1 }, &mut reply);
    assert_eq!(shown(reply.bytes()), format!(":{count}"));
}

/// Bytes of a point in memory.
fn bytes_per_point(engine: &Engine, key: &str) -> u64 {
    let info = Client::new(engine).run(&format!("TS.INFO {key}"));
    let number = |name: &str| -> u64 {
        let (_, rest) = info.split_once(name).expect("TS.INFO has it");
        let rest = rest.trim_start_matches([' ', ':']);
        rest.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
    };
    number("memoryUsage") / number("totalSamples")
}

#[test]
fn a_thread_compresses_what_commands_have_filled() {
    let (engine, without_thread) = (engine(), engine());
    std::thread::scope(|scope| {
        scope.spawn(|| engine.seal_series());
        for round in 0..40 {
            for engine in [&engine, &without_thread] {
                append(engine, "appended", 10_000 * round, 10_000);
                let points: Vec<String> =
                    (0..1_000).map(|at| format!("added {} {at}", 1_000 * round + at)).collect();
                Client::new(engine).run(&format!("TS.MADD {} CREATE", points.join(" ")));
                let client = Client::new(engine);
                match round {
                    // The thread may meet the series under its old name, and under none.
                    20 => drop(client.run("RENAME appended moved")),
                    21 => drop(client.run("RENAME moved appended")),
                    30 => drop(client.run("DEL added")),
                    // Late points lie over blocks that wait.
                    _ => drop(
                        client.run(&format!("TS.ADD appended {} 9 ON_DUPLICATE last", 10_000 * round + 77)),
                    ),
                }
            }
        }
        let deadline = Instant::now() + Duration::from_mins(1);
        while bytes_per_point(&engine, "appended") > 4 || bytes_per_point(&engine, "added") > 6 {
            assert!(Instant::now() < deadline, "{}", Client::new(&engine).run("TS.INFO appended"));
            std::thread::yield_now();
        }
        engine.stop_sealing();
    });
    assert_eq!(engine.digest(), without_thread.digest());
    assert_eq!(replayed(&engine).digest(), engine.digest());
    append(&engine, "after", 0, 10_000);
    assert!(bytes_per_point(&engine, "after") < 6, "without the thread, the command compresses");
}

#[test]
fn a_thread_compresses_the_newest_points_of_series_that_get_few() {
    let (engine, without_thread) = (engine(), engine());
    let add = |engine: &Engine, round: u64| {
        for series in 0..50 {
            let points: Vec<String> =
                (0..30).map(|at| format!("slow{series} {} {at}", 300 * round + at)).collect();
            Client::new(engine).run(&format!("TS.MADD {} CREATE", points.join(" ")));
        }
    };
    // Those of before the thread, as a start finds them, and those that come while it runs.
    for round in 0..10 {
        add(&engine, round);
        add(&without_thread, round);
    }
    assert!(bytes_per_point(&engine, "slow7") >= 16, "nothing compresses them");
    let deadline = Instant::now() + Duration::from_mins(1);
    std::thread::scope(|scope| {
        scope.spawn(|| engine.seal_series());
        for rounds in [10..11, 11..30] {
            for round in rounds {
                add(&engine, round);
                add(&without_thread, round);
            }
            let is_large = |series: u64| bytes_per_point(&engine, &format!("slow{series}")) > 6;
            while (0..50).any(is_large) {
                assert!(Instant::now() < deadline, "{}", Client::new(&engine).run("TS.INFO slow7"));
                std::thread::yield_now();
            }
        }
        engine.stop_sealing();
    });
    assert_eq!(engine.digest(), without_thread.digest());
    assert_eq!(replayed(&engine).digest(), engine.digest());
    for line in
        ["TS.RANGE slow7 0 900000", "TS.REVRANGE slow7 50 8000", "TS.RANGE slow7 0 9000 AGGREGATION avg 70"]
    {
        assert_eq!(Client::new(&engine).run(line), Client::new(&without_thread).run(line), "{line}");
    }
}

#[test]
fn an_uncompressed_series_stays_so() {
    let engine = engine();
    Client::new(&engine).run("TS.CREATE raw ENCODING UNCOMPRESSED");
    append(&engine, "raw", 0, 1_500);
    engine.seal_heads(|| ());
    assert!(bytes_per_point(&engine, "raw") >= 16);
}
