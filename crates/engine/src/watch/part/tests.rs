//! Compares emissions with predicates to those of reads that are evaluated after every change of
//! their keys.

use super::*;
use crate::Call;
use crate::Engine;
use crate::Protocol;
use crate::Reply;
use crate::command;
use crate::watch::{Emission, Filter, Read};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use tidemark_log::{Log, Lsn, MemoryStorage, Options, Record};

const START_US: u64 = 1_767_225_600_000_000;

/// Returns, in place of the table, the part that a read uses.
type Judge = fn(&Read) -> Part;

const ALWAYS: Judge = |_| Part::Everything;

#[derive(Debug, Clone)]
enum Step {
    Commands(Vec<String>),
    Sleep(u16),
    Expire,
}

/// Keys of each type, so that most commands find their type; some commands exchange keys.
const KEYS: [&str; 11] = ["h", "i", "s", "r", "z", "y", "x", "l", "k", "t", "u"];

fn of(keys: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    select(keys)
}

fn hashes() -> impl Strategy<Value = String> {
    let (key, field) = (|| of(&["h", "i"]), || 0..6_u8);
    prop_oneof![
        4 => (key(), field(), 0..3_u8).prop_map(|(key, field, value)| format!("HSET {key} f{field} {value}")),
        1 => (key(), field(), field()).prop_map(|(key, one, other)| format!("HSET {key} f{one} 7 f{other} 8")),
        1 => (key(), field()).prop_map(|(key, field)| format!("HSETNX {key} f{field} 9")),
        2 => (key(), field(), field()).prop_map(|(key, one, other)| format!("HDEL {key} f{one} f{other}")),
        1 => (key(), field()).prop_map(|(key, field)| format!("HINCRBY {key} f{field} 1")),
        1 => (key(), field()).prop_map(|(key, field)| format!("HINCRBYFLOAT {key} f{field} 0.5")),
    ]
}

fn sets() -> impl Strategy<Value = String> {
    let (key, member) = (|| of(&["s", "r"]), || 0..6_u8);
    prop_oneof![
        3 => (key(), member(), member()).prop_map(|(key, one, other)| format!("SADD {key} m{one} m{other}")),
        1 => (key(), member()).prop_map(|(key, member)| format!("SREM {key} m{member}")),
        1 => (key(), key(), member()).prop_map(|(from, to, member)| format!("SMOVE {from} {to} m{member}")),
        1 => key().prop_map(|key| format!("SPOP {key}")),
        1 => (key(), 0..4_u8).prop_map(|(key, count)| format!("SPOP {key} {count}")),
        1 => (key(), key()).prop_map(|(to, from)| format!("SUNIONSTORE {to} {from} s")),
    ]
}

fn score() -> impl Strategy<Value = &'static str> {
    select(&["-inf", "-1", "-0", "0", "1", "1", "1.5", "2", "2", "3", "4", "5", "inf"][..])
}

/// A member and its score; in `x` nearly always the same score, so that ranges of members are
/// defined.
fn scored(key: &'static str) -> BoxedStrategy<(&'static str, String)> {
    let score =
        if key == "x" { prop_oneof![20 => Just("0"), 1 => Just("1")].boxed() } else { score().boxed() };
    (score, 0..9_u8).prop_map(move |(score, member)| (key, format!("{score} m{member}"))).boxed()
}

fn sorted_sets() -> impl Strategy<Value = String> {
    let key = || of(&["z", "y", "x"]);
    let member = || 0..9_u8;
    prop_oneof![
        8 => key().prop_flat_map(scored).prop_map(|(key, pair)| format!("ZADD {key} {pair}")),
        2 => key().prop_flat_map(|key| (scored(key), scored(key)))
            .prop_map(|((key, one), (_, other))| format!("ZADD {key} {one} {other}")),
        2 => (key().prop_flat_map(scored), select(&["NX", "XX", "GT", "LT", "INCR"][..]))
            .prop_map(|((key, pair), option)| format!("ZADD {key} {option} {pair}")),
        1 => (key(), member()).prop_map(|(key, member)| format!("ZINCRBY {key} 1 m{member}")),
        2 => (key(), member(), member()).prop_map(|(key, one, other)| format!("ZREM {key} m{one} m{other}")),
        1 => (key(), select(&["ZPOPMIN", "ZPOPMAX"][..]), 1..3_u8)
            .prop_map(|(key, name, count)| format!("{name} {key} {count}")),
        1 => key().prop_map(|key| format!("ZMPOP 2 y {key} MIN")),
        1 => (key(), -4..4_i8, -4..4_i8).prop_map(|(key, start, stop)| format!("ZREMRANGEBYRANK {key} {start} {stop}")),
        1 => (key(), score_end(), score_end()).prop_map(|(key, min, max)| format!("ZREMRANGEBYSCORE {key} {min} {max}")),
        1 => (lex_end(), lex_end()).prop_map(|(min, max)| format!("ZREMRANGEBYLEX x {min} {max}")),
        1 => (key(), key()).prop_map(|(to, from)| format!("ZUNIONSTORE {to} 2 {from} y")),
        // Enough members for the large encoding, and more than a change names.
        1 => key().prop_map(|key| {
            let members = (0..140).map(|n| format!(" {} n{n:03}", if key == "x" { 0 } else { n / 40 }));
            format!("ZADD {key}{}", members.collect::<String>())
        }),
    ]
}

fn lists() -> impl Strategy<Value = String> {
    let key = || of(&["l", "k"]);
    prop_oneof![
        2 => (key(), 0..4_u8).prop_map(|(key, value)| format!("RPUSH {key} {value} x")),
        2 => (key(), 0..4_u8).prop_map(|(key, value)| format!("LPUSH {key} {value}")),
        1 => (key(), 1..3_u8).prop_map(|(key, count)| format!("RPOP {key} {count}")),
        1 => key().prop_map(|key| format!("RPOP {key}")),
        1 => (key(), 1..3_u8).prop_map(|(key, count)| format!("LPOP {key} {count}")),
        1 => (key(), -5..5_i8, 0..4_u8).prop_map(|(key, at, value)| format!("LSET {key} {at} {value}")),
        1 => key().prop_map(|key| format!("LTRIM {key} 0 5")),
        1 => (key(), 0..4_u8).prop_map(|(key, value)| format!("LINSERT {key} BEFORE {value} y")),
        1 => (key(), key()).prop_map(|(from, to)| format!("LMOVE {from} {to} LEFT RIGHT")),
    ]
}

fn strings() -> impl Strategy<Value = String> {
    let key = || of(&["t", "u"]);
    prop_oneof![
        1 => (key(), 0..3_u8).prop_map(|(key, value)| format!("SET {key} {value}abc")),
        1 => (key(), 1..20_u16).prop_map(|(key, ms)| format!("SET {key} 12345 PX {ms}")),
        2 => (key(), 0..3_u8).prop_map(|(key, value)| format!("APPEND {key} {value}")),
        3 => (key(), 0..12_u8, 0..3_u8).prop_map(|(key, at, value)| format!("SETRANGE {key} {at} {value}{value}")),
        3 => (key(), 0..90_u8, 0..2_u8).prop_map(|(key, at, bit)| format!("SETBIT {key} {at} {bit}")),
        1 => (key(), 0..90_u8).prop_map(|(key, at)| format!("BITFIELD {key} SET u5 {at} 21")),
    ]
}

fn anything() -> impl Strategy<Value = String> {
    let key = || of(&KEYS);
    prop_oneof![
        2 => key().prop_map(|key| format!("DEL {key}")),
        2 => (key(), 1..30_u16).prop_map(|(key, ms)| format!("PEXPIRE {key} {ms}")),
        1 => (key(), key()).prop_map(|(from, to)| format!("RENAME {from} {to}")),
        1 => (key(), key()).prop_map(|(from, to)| format!("COPY {from} {to} REPLACE")),
        1 => key().prop_map(|key| format!("MOVE {key} 1")),
        1 => Just("SWAPDB 0 1".to_owned()),
        1 => Just("FLUSHDB".to_owned()),
    ]
}

fn change() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => hashes(), 3 => sets(), 12 => sorted_sets(), 4 => lists(), 4 => strings(), 1 => anything(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => change().prop_map(|line| Step::Commands(vec![line])),
        2 => proptest::collection::vec(change(), 2..6).prop_map(Step::Commands),
        1 => (0..30_u16).prop_map(Step::Sleep),
        1 => Just(Step::Expire),
    ]
}

fn score_end() -> impl Strategy<Value = String> {
    (score(), any::<bool>())
        .prop_map(|(score, exclusive)| format!("{}{score}", if exclusive { "(" } else { "" }))
}

fn lex_end() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("-".to_owned()),
        Just("+".to_owned()),
        (select(&["[", "("][..]), 0..9_u8).prop_map(|(sign, member)| format!("{sign}m{member}")),
        (select(&["[", "("][..]), 0..140_u8).prop_map(|(sign, member)| format!("{sign}n{member:03}")),
    ]
}

fn limit() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (-1..4_i8, -1..4_i8).prop_map(|(offset, count)| format!(" LIMIT {offset} {count}")),
    ]
}

fn of_elements() -> impl Strategy<Value = String> {
    let field = || 0..6_u8;
    prop_oneof![
        3 => (of(&["h", "i", "s"]), field()).prop_map(|(key, field)| format!("HGET {key} f{field}")),
        1 => (field(), field()).prop_map(|(one, other)| format!("HMGET h f{one} f{other} f{one}")),
        1 => field().prop_map(|field| format!("HEXISTS h f{field}")),
        1 => field().prop_map(|field| format!("HSTRLEN h f{field}")),
        1 => Just("HLEN h".to_owned()),
        1 => Just("HKEYS h".to_owned()),
        1 => Just("HGETALL h".to_owned()),
        1 => Just("HSCAN h 0 MATCH f[0-2]".to_owned()),
        1 => (of(&["s", "h"]), field()).prop_map(|(key, member)| format!("SISMEMBER {key} m{member}")),
        1 => (field(), field()).prop_map(|(one, other)| format!("SMISMEMBER s m{one} m{other}")),
        1 => Just("SSCAN s 0 COUNT 3 MATCH m[0-2]".to_owned()),
        1 => Just("SCARD s".to_owned()),
        1 => (of(&["z", "y", "l"]), 0..9_u8).prop_map(|(key, member)| format!("ZSCORE {key} m{member}")),
        1 => (0..9_u8, 0..9_u8).prop_map(|(one, other)| format!("ZMSCORE z m{one} m{other}")),
        1 => Just("ZSCAN z 0 MATCH *1".to_owned()),
        1 => Just("ZSCAN z 0".to_owned()),
        1 => Just("ZCARD z".to_owned()),
    ]
}

fn of_order() -> impl Strategy<Value = String> {
    let key = || of(&["z", "z", "y", "x"]);
    let scores = || select(&["", " WITHSCORES"][..]);
    prop_oneof![
        2 => (key(), 0..9_u8, select(&["ZRANK", "ZREVRANK"][..]), select(&["", " WITHSCORE"][..]))
            .prop_map(|(key, member, name, score)| format!("{name} {key} m{member}{score}")),
        4 => (key(), -5..5_i8, -5..5_i8, select(&["", " REV"][..]), scores())
            .prop_map(|(key, start, stop, reverse, scores)| format!("ZRANGE {key} {start} {stop}{reverse}{scores}")),
        1 => (key(), -5..5_i8, -5..5_i8).prop_map(|(key, start, stop)| format!("ZREVRANGE {key} {start} {stop}")),
        2 => (key(), score_end(), score_end()).prop_map(|(key, min, max)| format!("ZCOUNT {key} {min} {max}")),
        3 => (key(), score_end(), score_end(), scores(), limit(), select(&["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"][..]))
            .prop_map(|(key, min, max, scores, limit, name)| format!("{name} {key} {min} {max}{scores}{limit}")),
        2 => (key(), score_end(), score_end(), limit(), select(&["", " REV"][..]))
            .prop_map(|(key, min, max, limit, reverse)| format!("ZRANGE {key} {min} {max} BYSCORE{reverse}{limit}")),
        3 => (of(&["x", "x", "z"]), lex_end(), lex_end(), limit(), select(&["ZRANGEBYLEX", "ZREVRANGEBYLEX"][..]))
            .prop_map(|(key, min, max, limit, name)| format!("{name} {key} {min} {max}{limit}")),
        1 => (lex_end(), lex_end(), limit(), select(&["", " REV"][..]))
            .prop_map(|(min, max, limit, reverse)| format!("ZRANGE x {min} {max} BYLEX{reverse}{limit}")),
        2 => (lex_end(), lex_end()).prop_map(|(min, max)| format!("ZLEXCOUNT x {min} {max}")),
    ]
}

fn of_items() -> impl Strategy<Value = String> {
    let end = || -9..12_i8;
    prop_oneof![
        2 => (of(&["l", "k"]), -5..5_i8).prop_map(|(key, at)| format!("LINDEX {key} {at}")),
        3 => (of(&["l", "k"]), -5..5_i8, -5..5_i8).prop_map(|(key, start, stop)| format!("LRANGE {key} {start} {stop}")),
        3 => (of(&["t", "u"]), end(), end()).prop_map(|(key, start, end)| format!("GETRANGE {key} {start} {end}")),
        1 => (of(&["t", "u"]), 0..90_u8).prop_map(|(key, at)| format!("GETBIT {key} {at}")),
        1 => (end(), end(), select(&["", " BYTE", " BIT"][..]))
            .prop_map(|(start, end, unit)| format!("BITCOUNT t {start} {end}{unit}")),
        1 => (-70..90_i8, -70..90_i8).prop_map(|(start, end)| format!("BITCOUNT u {start} {end} BIT")),
        1 => Just("BITCOUNT t".to_owned()),
        1 => Just("STRLEN t".to_owned()),
        1 => Just("LLEN l".to_owned()),
    ]
}

fn reads() -> impl Strategy<Value = Vec<String>> {
    let read = prop_oneof![3 => of_elements(), 5 => of_order(), 2 => of_items()];
    proptest::collection::vec(read, 1..24)
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

fn read(line: &str) -> Read {
    Read::new(0, Protocol::Resp3, &words(line), Filter::default()).expect("a read that can be watched")
}

fn engine() -> Engine {
    let options = Options { segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() };
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log opens");
    Engine::new(Arc::new(log), 4, 42)
}

/// Creates an engine that applies the log of another.
fn beside(live: &Engine, judge: Option<Judge>) -> Engine {
    let engine = Engine::new(Arc::clone(live.log()), 4, 42);
    if let Some(judge) = judge {
        engine.judge_by(judge);
    }
    engine
}

/// Watches all reads, executes all steps, and takes a snapshot after one of them. Skips reads that
/// are refused because of their key's type or the order of their bounds.
fn run(engine: &Engine, reads: &[String], steps: &[Step], cut: usize) -> Option<Cut> {
    let (mut now_us, mut taken) = (START_US, None);
    for line in reads {
        engine.subscribe(read(line), 0, now_us).ok();
    }
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Commands(lines) => {
                let args: Vec<Vec<&[u8]>> = lines.iter().map(|line| words(line)).collect();
                let call =
                    |args| Call { command: command::resolve(args).expect("a command"), args, db: 0, now_us };
                let calls: Vec<Call<'_>> = args.iter().map(|args| call(args.as_slice())).collect();
                match &calls[..] {
                    [call] => drop(engine.execute(call, &mut Reply::default())),
                    calls => drop(engine.execute_transaction(calls, None, now_us, &mut Reply::default())),
                }
            }
            Step::Sleep(ms) => now_us += u64::from(*ms) * 1000,
            Step::Expire => drop(engine.expire_due(now_us, 100)),
        }
        if number == cut {
            taken = Some(Cut::of(engine));
        }
    }
    taken
}

struct Cut {
    lsn: Lsn,
    keys: Vec<Vec<u8>>,
    queries: Vec<Vec<u8>>,
}

impl Cut {
    fn of(engine: &Engine) -> Self {
        let mut snapshot = engine.snapshot();
        let queries = snapshot.query_frames().collect();
        let keys = std::iter::from_fn(|| snapshot.next_frame()).collect();
        Self { lsn: snapshot.lsn(), keys, queries }
    }

    fn load(&self, engine: &Engine) {
        let loader = engine.load(START_US);
        self.keys.iter().for_each(|frame| loader.load_frame(frame).expect("loads"));
        loader.finish().expect("it is whole");
        engine.continue_behind(self.lsn);
        self.queries.iter().for_each(|frame| engine.load_queries(self.lsn, START_US, frame).expect("loads"));
    }
}

/// Applies the records of a log from `first` on.
fn apply(from: &Engine, first: Lsn, to: &Engine) {
    from.log().wait_durable(from.log().appended()).expect("memory does not fail");
    let (mut replay, mut scratch) = (from.log().replay(first).expect("it is there"), Reply::default());
    while let Some(batch) = replay.next_batch().expect("it is sound") {
        batch.into_iter().for_each(|record: Record<'_>| to.apply(&record, &mut scratch).expect("applies"));
    }
}

fn emissions(engine: &Engine, line: &str) -> Vec<Emission> {
    let mut emissions = Vec::new();
    if let Some(query) = engine.query_of(&read(line)) {
        // After a snapshot, earlier emissions are not retained.
        let first = (0..=query.count())
            .find(|after| query.emissions_after(*after, usize::MAX, &mut emissions).is_ok());
        assert!(first.is_some(), "what comes behind the last is there");
    }
    emissions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    /// A process that evaluates every read after every change of its keys has the same emissions,
    /// byte for byte. So has one that replays the log, and one that loads a snapshot and replays
    /// the log after it.
    #[test]
    fn predicates_change_no_emission(
        reads in reads(),
        steps in proptest::collection::vec(step(), 1..80),
        cut in 0..80_usize,
    ) {
        let live = engine();
        let (always, replica) = (beside(&live, Some(ALWAYS)), beside(&live, None));
        let cut = run(&live, &reads, &steps, cut);
        apply(&live, Lsn(1), &always);
        apply(&live, Lsn(1), &replica);
        let restored = beside(&live, None);
        if let Some(cut) = &cut {
            cut.load(&restored);
            apply(&live, cut.lsn.next(), &restored);
        }
        for line in &reads {
            let expected = emissions(&always, line);
            prop_assert_eq!(&emissions(&live, line), &expected, "{}", line);
            prop_assert_eq!(&emissions(&replica, line), &expected, "{} from the log", line);
            if let Some(cut) = &cut {
                let behind: Vec<_> = expected.into_iter().filter(|emission| emission.lsn > cut.lsn).collect();
                prop_assert_eq!(&emissions(&restored, line), &behind, "{} behind {}", line, cut.lsn);
            }
        }
        let (evaluated, spared) = live.evaluation_figures();
        let (needless, none) = always.evaluation_figures();
        prop_assert!(evaluated <= needless && none == 0, "{} and {} of {}", evaluated, spared, needless);
    }
}

#[test]
fn only_reads_of_one_key_or_of_selected_series_look_at_a_part_of_them() {
    let args: [&[u8]; 4] = [b"", b"key", b"[1", b"[2"];
    let numbers: [&[u8]; 4] = [b"", b"key", b"1", b"2"];
    let looks =
        |row: &&command::Command| [args, numbers].iter().any(|args| (row.part)(args) != Part::Everything);
    let names: Vec<&str> = command::all()
        .filter(looks)
        .map(|row| {
            let is_known = row.keys == command::KeySpec::ONE || row.selection.is_some();
            assert!(is_known && row.is(command::flags::READONLY), "{}", row.name);
            row.name
        })
        .collect();
    assert_eq!(
        names,
        [
            "strlen",
            "getrange",
            "substr",
            "getbit",
            "bitcount",
            "llen",
            "lindex",
            "lrange",
            "hget",
            "hmget",
            "hexists",
            "hlen",
            "hkeys",
            "hstrlen",
            "hscan",
            "hexpiretime",
            "hpexpiretime",
            "sismember",
            "smismember",
            "sscan",
            "zcard",
            "zscore",
            "zmscore",
            "zrank",
            "zrevrank",
            "zcount",
            "zlexcount",
            "zrange",
            "zrevrange",
            "zrangebyscore",
            "zrevrangebyscore",
            "zrangebylex",
            "zrevrangebylex",
            "zscan",
            "geopos",
            "geohash",
            "geodist",
            "ts.get",
            "ts.range",
            "ts.revrange",
            "ts.mget",
            "ts.mrange",
            "ts.mrevrange",
            "ts.queryindex",
            "ts.querylabels",
        ]
    );
}

/// Wrong predicates, each of which misses something that the test must find.
const WRONG: [(&str, Judge); 9] = [
    ("no field is looked at", |read| match read.part() {
        Part::Elements { of, with_values, .. } => Part::Elements { of, from: read.args().len(), with_values },
        part => part,
    }),
    ("only the first field is looked at", |read| match (read.part(), read.args().nth(2)) {
        (Part::Elements { of: Type::Hash, with_values: true, from }, Some(_)) if read.args().len() > 3 => {
            Part::Elements { of: Type::Hash, from: from + 2, with_values: true }
        }
        (part, _) => part,
    }),
    ("values are passed over", |read| match read.part() {
        Part::Elements { of, from, .. } => Part::Elements { of, from, with_values: false },
        part => part,
    }),
    ("a scan looks at names", |read| match read.part() {
        Part::Matching { of, pattern, .. } => Part::Matching { of, pattern, with_values: false },
        part => part,
    }),
    ("an element less is looked at", |read| match read.part() {
        Part::Span { of, first, last } => Part::Span { of, first, last: last - 1 },
        part => part,
    }),
    ("an element less is looked at in front", |read| match read.part() {
        Part::Span { of, first, last } => Part::Span { of, first: first + 1, last },
        part => part,
    }),
    ("the window ends too early", |read| match read.part() {
        Part::Window(window) => Part::Window(window.shortened()),
        part => part,
    }),
    ("the window begins at the other end", |read| match read.part() {
        Part::Window(window) => Part::Window(window.reversed()),
        part => part,
    }),
    ("places are counted from the other end", |read| match read.part() {
        Part::Rank(place) => Part::Rank(place.reversed()),
        part => part,
    }),
];

#[test]
fn a_wrong_predicate_is_found_out() {
    for (what, judge) in WRONG {
        let mut runner = TestRunner::deterministic();
        let strategy = (reads(), proptest::collection::vec(step(), 1..80));
        let is_found = (0..300).any(|_| {
            let (reads, steps) = strategy.new_tree(&mut runner).expect("a case").current();
            let live = engine();
            let wrong = beside(&live, Some(judge));
            run(&live, &reads, &steps, usize::MAX);
            apply(&live, Lsn(1), &wrong);
            reads.iter().any(|line| emissions(&live, line) != emissions(&wrong, line))
        });
        assert!(is_found, "{what}");
    }
}
