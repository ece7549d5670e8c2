//! Points in the log: runs of commands in one record, batches, and what a change stream shows.

use crate::support::{Client, START_US, engine, for_each_record, replayed, shown, transaction, words};
use crate::watching::{answers, answers_of_past, watch};
use proptest::prelude::*;
use tidemark_engine::change::{Change, Changes};
use tidemark_engine::record::kind;
use tidemark_engine::{Call, Engine, Protocol, Reply, command};
use tidemark_log::Lsn;

/// Runs lines as one run. Returns the replies and the record.
fn run_together(engine: &Engine, now_us: u64, lines: &[String]) -> (String, Option<Lsn>) {
    attempt(engine, now_us, lines).expect("the log takes it")
}

/// As [`run_together`]; `None` if the log takes nothing.
pub(crate) fn attempt(engine: &Engine, now_us: u64, lines: &[String]) -> Option<(String, Option<Lsn>)> {
    let words: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
    let args: Vec<Vec<&[u8]>> =
        words.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
    let call = |args| Call { command: command::resolve(args).expect("a command"), args, db: 0, now_us };
    let calls: Vec<Call<'_>> = args.iter().map(|args| call(args)).collect();
    let mut reply = Reply::new(Protocol::Resp2);
    let executed = engine.execute_run(&calls, &mut reply)?;
    assert!(!executed.blocks() && !executed.durable);
    Some((shown(reply.bytes()), executed.lsn))
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Kinds and sizes of the records of a log.
fn records(engine: &Engine) -> Vec<(u8, usize)> {
    let mut records = Vec::new();
    for_each_record(engine, Lsn::FIRST, |record| records.push((record.kind, record.payload.len())));
    records
}

/// The changes of a log as commands, one line for each.
fn changes(engine: &Engine) -> Vec<String> {
    let mut lines = Vec::new();
    let text = |words: &[&[u8]]| String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    for_each_record(engine, Lsn::FIRST, |record| {
        for change in Changes::of(record).into_iter().flatten() {
            match change.expect("a sound record") {
                Change::Command { args, .. } => lines.push(text(&args)),
                Change::Points(points) => {
                    for (command, args) in points.commands() {
                        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                        lines.push(format!("{} {}", command.name, text(&args)));
                    }
                }
                Change::Expired { keys, .. } => lines.push(format!("expired {}", text(&keys))),
                Change::Acknowledged { .. } => {}
            }
        }
    });
    lines
}

/// Applies a log's changes as commands to another engine.
fn repeated(engine: &Engine) -> Engine {
    let other = self::engine();
    for line in changes(engine) {
        Client::new(&other).run(&line);
    }
    other
}

#[test]
fn a_run_is_one_record_and_each_command_has_its_own_answer() {
    let engine = engine();
    Client::new(&engine).run("SET text x");
    let (replies, lsn) = run_together(
        &engine,
        START_US,
        &lines(&[
            "TS.ADD a 1 1 RETENTION 50 LABELS room hall",
            "TS.ADD b 1 2.5",
            "TS.ADD text 1 2",
            "TS.ADD a 1 2",
            "TS.ADD a 1 3 ON_DUPLICATE sum",
            "TS.ADD a x 3",
            "TS.ADD c * 7",
            "TS.ADD a 2 nan",
        ]),
    );
    let blocked = "-ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode, or \
                   either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM";
    assert_eq!(
        replies,
        format!(
            ":1 :1 -ERR TSDB: the key is not a TSDB key {blocked} :1 -ERR TSDB: invalid timestamp :1767225600000 :2"
        )
    );
    assert_eq!(lsn, Some(Lsn(2)));
    assert_eq!(
        records(&engine).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [kind::COMMAND, kind::POINTS]
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
    assert_eq!(
        changes(&engine),
        [
            "set text x",
            "ts.add a 1 1 RETENTION 50 LABELS room hall",
            "ts.add b 1 2.5",
            "ts.add a 1 3 ON_DUPLICATE sum",
            "ts.add c 1767225600000 7",
            "ts.add a 2 nan",
        ]
    );
    assert_eq!(repeated(&engine).digest(), engine.digest());
    assert_eq!(Client::new(&engine).run("TS.RANGE a - +"), "*2 *2 :1 +4 *2 :2 +NaN");
}

#[test]
fn a_run_that_changes_nothing_has_no_record() {
    let engine = engine();
    let (replies, lsn) = run_together(&engine, START_US, &lines(&["TS.ADD a x 1", "TS.ADD a 1 y"]));
    assert_eq!(replies, "-ERR TSDB: invalid timestamp -ERR TSDB: invalid value");
    assert_eq!((lsn, records(&engine).len()), (None, 0));
}

#[test]
fn points_take_few_bytes() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.CREATE one");
    let reading = |at: u64| 20.0 + ((at * 37) % 100) as f64 / 10.0;
    let within: Vec<String> =
        (0..64).map(|at| format!("TS.ADD one {} {}", 1_767_225_600_000 + at * 1000, reading(at))).collect();
    run_together(&engine, START_US, &within);
    let over: Vec<String> =
        (0..64).map(|at| format!("TS.ADD sensor:{:05} * {}", at * 911, reading(at))).collect();
    run_together(&engine, START_US, &over);
    run_together(&engine, START_US + 1_000_000, &over);
    let [_, (kind::POINTS, within), (kind::POINTS, _), (kind::POINTS, over)] = records(&engine)[..] else {
        panic!("{:?}", records(&engine));
    };
    // A record has 25 bytes beside its payload.
    let per_point = |bytes: usize| (bytes + 25) as f64 / 64.0;
    assert!(per_point(within) <= 6.0, "{}", per_point(within));
    assert!(per_point(over) <= 16.0, "{}", per_point(over));
}

#[test]
fn a_command_logs_the_points_that_it_has_added_and_no_others() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("TS.CREATE quiet DUPLICATE_POLICY last IGNORE 10 1", "+OK"),
        (
            "TS.MADD quiet 1 5 none 1 1 quiet 2 5 quiet 3 9",
            "*4 :1 -ERR TSDB: the key is not a TSDB key :1 :3",
        ),
        ("TS.ADD quiet 4 9", ":3"),
        ("TS.MADD quiet 20 1 new 5 5 quiet x 1 new 6 6 CREATE", "*4 :20 :5 -ERR TSDB: invalid timestamp :6"),
        ("TS.MADD new 1 2 KREATE", "-ERR wrong number of arguments for 'ts.madd' command"),
        ("TS.MADD CREATE new 1 2", "-ERR wrong number of arguments for 'ts.madd' command"),
        ("TS.MADD CREATE 1 2", "*1 -ERR TSDB: the key is not a TSDB key"),
        ("TS.MADD CREATE 1 2 create", "*1 :1"),
    ]);
    assert_eq!(
        changes(&engine),
        [
            "ts.create quiet DUPLICATE_POLICY last IGNORE 10 1",
            "ts.madd quiet 1 5 quiet 3 9",
            "ts.add quiet 20 1",
            "ts.add new 5 5",
            "ts.add new 6 6",
            "ts.add CREATE 1 2",
        ]
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
    assert_eq!(repeated(&engine).digest(), engine.digest());
}

/// Runs `TS.APPEND` with columns and options.
fn append(engine: &Engine, key: &str, points: &[(i64, f64)], options: &str) -> String {
    let times: Vec<u8> = points.iter().flat_map(|(time, _)| time.to_le_bytes()).collect();
    let values: Vec<u8> = points.iter().flat_map(|(_, value)| value.to_le_bytes()).collect();
    append_bytes(engine, key, &times, &values, options)
}

fn append_bytes(engine: &Engine, key: &str, times: &[u8], values: &[u8], options: &str) -> String {
    let mut args: Vec<&[u8]> = vec![b"TS.APPEND", key.as_bytes(), times, values];
    args.extend(options.split_whitespace().map(str::as_bytes));
    let call =
        Call { command: command::resolve(&args).expect("a command"), args: &args, db: 0, now_us: START_US };
    let mut reply = Reply::new(Protocol::Resp2);
    engine.execute(&call, &mut reply);
    shown(reply.bytes())
}

#[test]
fn a_batch_is_taken_as_a_whole_or_refused() {
    let engine = engine();
    assert_eq!(
        append(&engine, "k", &[(10, 1.0), (20, -0.0), (30, f64::NAN)], "RETENTION 100 LABELS a b"),
        ":3"
    );
    let digest = engine.digest();
    let blocked = "update is not supported when DUPLICATE_POLICY is set to BLOCK mode, or either current or new value is \
                   NaN and DUPLICATE_POLICY is MAX/MIN/SUM";
    let bytes = "-ERR times and values must each have 8 bytes for a point, and as many points, at least one";
    for (times, values, error) in [
        (&[5_i64, 20][..], &[1.0, 2.0][..], format!("-ERR TSDB: point 2 at 20: Error at upsert, {blocked}")),
        (&[5, 5], &[1.0, 2.0], "-ERR times must rise and be nonnegative".to_owned()),
        (&[-1, 5], &[1.0, 2.0], "-ERR times must rise and be nonnegative".to_owned()),
        (&[5, 6], &[1.0, f64::INFINITY], "-ERR TSDB: invalid value".to_owned()),
        (&[5, 6], &[1.0], bytes.to_owned()),
        (&[], &[], bytes.to_owned()),
    ] {
        let times: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(append_bytes(&engine, "k", &times, &values, ""), error);
    }
    let many = vec![0; 8 * 65_537];
    assert_eq!(
        append_bytes(&engine, "n", &many, &many, ""),
        "-ERR a batch has at most 65536 points; send several"
    );
    assert_eq!(append_bytes(&engine, "n", b"1234567", b"12345678", ""), bytes);
    assert_eq!(
        append(&engine, "n", &[(1, 1.0)], "FOO"),
        "-ERR syntax error: 'FOO' is no option of the command"
    );
    Client::new(&engine).run("SET s x");
    assert_eq!(append(&engine, "s", &[(1, 1.0)], ""), "-ERR TSDB: the key is not a TSDB key");
    Client::new(&engine).run("DEL s");
    assert_eq!(engine.digest(), digest, "what is refused changes nothing");

    assert_eq!(append(&engine, "k", &[(15, 7.0), (20, 3.0), (200, 4.0)], "ON_DUPLICATE last"), ":3");
    assert_eq!(
        append(&engine, "k", &[(99, 1.0), (201, 1.0)], ""),
        "-ERR TSDB: point 1 at 99: Timestamp is older than retention"
    );
    assert_eq!(Client::new(&engine).run("TS.RANGE k - +"), "*1 *2 :200 +4");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn every_bit_of_a_batch_is_kept() {
    let engine = engine();
    let odd = [
        f64::from_bits(0x7ff8_0000_0000_1234),
        f64::from_bits(0xfff0_0000_0000_0001),
        -0.0,
        5e-324,
        f64::MAX,
    ];
    let points: Vec<(i64, f64)> = odd.iter().enumerate().map(|(at, value)| (at as i64, *value)).collect();
    append(&engine, "odd", &points, "");
    let many: Vec<(i64, f64)> = (0..5000).map(|at| (at * at, odd[at as usize % 5] + at as f64)).collect();
    append(&engine, "many", &many, "UNIT ns ENCODING UNCOMPRESSED");
    assert_eq!(replayed(&engine).digest(), engine.digest());
    assert_eq!(
        records(&engine).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [kind::POINTS, kind::POINTS]
    );
    let mut logged = Vec::new();
    for_each_record(&engine, Lsn::FIRST, |record| {
        for change in Changes::of(record).into_iter().flatten() {
            if let Change::Points(points) = change.expect("sound") {
                logged.extend(points.points().map(|(time, value)| (time, value.to_bits())));
            }
        }
    });
    let sent: Vec<(i64, u64)> =
        points.iter().chain(&many).map(|(time, value)| (*time, value.to_bits())).collect();
    assert_eq!(logged, sent);
}

/// A step of clients: lines that run together, or a line between runs.
#[derive(Debug, Clone)]
enum Step {
    Run(Vec<String>),
    Alone(String),
    /// Time passes, so that keys expire. Milliseconds.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key =
        || proptest::sample::select(vec!["plain", "last", "quiet", "short", "text", "going", "new1", "new2"]);
    let time = prop_oneof![
        8 => (0_u16..400).prop_map(|time| time.to_string()),
        2 => Just("*".to_owned()),
        1 => proptest::sample::select(vec!["x", "-1", "9223372036854775807", "9223372036854775808"]).prop_map(str::to_owned),
    ];
    let value = prop_oneof![
        8 => (-500_i32..500).prop_map(|value| (f64::from(value) / 4.0).to_string()),
        1 => proptest::sample::select(vec!["nan", "1e308", "-0", "x", "inf"]).prop_map(str::to_owned),
    ];
    let options = proptest::sample::select(vec![
        "",
        "",
        "",
        "",
        " ON_DUPLICATE last",
        " ON_DUPLICATE sum",
        " ON_DUPLICATE min",
        " RETENTION 100",
        " UNIT s",
        " LABELS a b",
        " ON_DUPLICATE first LABELS a c",
        " FOO",
        " RETENTION",
    ]);
    let add = (key(), time, value, options)
        .prop_map(|(key, time, value, options)| format!("TS.ADD {key} {time} {value}{options}"));
    let alone = prop_oneof![
        key().prop_map(|key| format!("DEL {key}")),
        (key(), 1_u16..50).prop_map(|(key, ms)| format!("PEXPIRE {key} {ms}")),
        (key(), 0_u16..400).prop_map(|(key, time)| format!("TS.DEL {key} {time} 200")),
        key().prop_map(|key| format!("TS.ALTER {key} IGNORE 20 2 DUPLICATE_POLICY last")),
        (key(), key()).prop_map(|(key, other)| format!("TS.MADD {key} 7 1 {other} 8 2 {key} 9 3 CREATE")),
        key().prop_map(|key| format!("SET {key} x")),
    ];
    let step = prop_oneof![
        6 => proptest::collection::vec(add, 1..12).prop_map(Step::Run),
        3 => alone.prop_map(Step::Alone),
        1 => (1_u64..40).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..20)
}

const READS: [&str; 5] = [
    "TS.GET plain",
    "TS.RANGE last - + AGGREGATION sum,count 50",
    "TS.REVRANGE quiet - + COUNT 3",
    "TS.MRANGE - + FILTER a=b",
    "EXISTS going new1",
];

fn prepared() -> Engine {
    let engine = engine();
    for line in [
        "TS.CREATE plain",
        "TS.CREATE last DUPLICATE_POLICY last LABELS a b",
        "TS.CREATE quiet DUPLICATE_POLICY last IGNORE 20 2",
        "TS.CREATE short RETENTION 100 DUPLICATE_POLICY sum",
        "SET text x",
        "TS.ADD going 1 1 LABELS a b",
        "PEXPIRE going 60",
    ] {
        Client::new(&engine).run(line);
    }
    engine
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// A run answers as its commands do one after the other and leaves the same state; it emits what a
    /// transaction of them emits.
    #[test]
    fn a_run_is_its_commands(steps in steps()) {
        let [alone, together, atomic] = [prepared(), prepared(), prepared()];
        let queries = [&together, &atomic].map(|engine| READS.map(|read| watch(engine, read)));
        let mut now_us = START_US;
        for step in &steps {
            match step {
                Step::Wait(ms) => now_us += ms * 1000,
                Step::Alone(line) => {
                    for engine in [&alone, &together, &atomic] {
                        Client { now_us, ..Client::new(engine) }.run(line);
                    }
                }
                Step::Run(lines) => {
                    let client = Client { now_us, ..Client::new(&alone) };
                    let replies: Vec<String> = lines.iter().map(|line| client.run(line)).collect();
                    let (run, _) = run_together(&together, now_us, lines);
                    prop_assert_eq!(run, replies.join(" "));
                    run_atomic(&atomic, now_us, lines);
                }
            }
        }
        prop_assert_eq!(alone.digest(), together.digest());
        prop_assert_eq!(replayed(&together).digest(), together.digest());
        for (of_run, of_transaction) in queries[0].iter().zip(&queries[1]) {
            prop_assert_eq!(answers(of_run), answers(of_transaction));
        }
    }
}

fn run_atomic(engine: &Engine, now_us: u64, lines: &[String]) {
    let words: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
    let args: Vec<Vec<&[u8]>> =
        words.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
    let call = |args| Call { command: command::resolve(args).expect("a command"), args, db: 0, now_us };
    let calls: Vec<Call<'_>> = args.iter().map(|args| call(args)).collect();
    engine.execute_transaction(&calls, None, now_us, &mut Reply::default());
}

#[test]
fn a_read_that_is_replayed_sees_the_points_of_its_keys() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.CREATE mine LABELS a b");
    let mine = watch(&engine, "TS.RANGE mine - +");
    let all = watch(&engine, "TS.MGET FILTER a=b");
    run_together(&engine, START_US, &lines(&["TS.ADD other 1 1", "TS.ADD mine 1 2", "TS.ADD other 2 2"]));
    run_together(&engine, START_US, &lines(&["TS.ADD other 3 1", "TS.ADD other 4 2"]));
    run_together(&engine, START_US, &lines(&["TS.ADD mine 2 1", "TS.ADD mine 3 2", "TS.ADD other 5 1"]));
    client.run("TS.MADD other 6 1 mine 4 5 other 7 1");
    append(&engine, "mine", &[(5, 0.5), (6, 0.25)], "");
    client.run("DEL mine");
    let answered = answers(&mine);
    assert_eq!(answered.len(), 5, "one for each record that changes it: {answered:?}");
    assert_eq!(answers_of_past(&engine, &mine), answered);
    assert_eq!(answers_of_past(&engine, &all), answers(&all));
}

#[test]
fn a_transaction_logs_commands_that_replay_like_points() {
    let engine = engine();
    let answer = transaction(&engine, None, &["TS.ADD k 1 1", "TS.MADD k 2 2 n 1 1 CREATE", "SET s x"]);
    assert_eq!(answer, "*3 :1 *2 :2 :1 +OK");
    assert_eq!(records(&engine).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind::TRANSACTION]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
