//! Watched ranges of time series: the first emission is an answer, later ones are what has changed. A
//! client that applies them has what a read answers, to the bit.

use crate::support;
use crate::support::commands::Random;
use crate::support::{Client, START_US, engine, run_on_threads, shown, transaction};
use crate::watching::{Cut, LISTENER, answers, made_anew, watch};
use std::collections::BTreeMap;
use tidemark_engine::watch::{Emission, Filter, Read, Subscribed};
use tidemark_engine::{Call, Engine, Protocol, Reply, command, encoded};
use tidemark_log::Lsn;

/// Rows by time.
type Rows = BTreeMap<i64, Vec<u8>>;

/// All of a series but its rows, and its rows.
type Series = (Vec<Vec<u8>>, Rows);

/// An answer as a client keeps it.
#[derive(Debug, Clone)]
enum Folded {
    /// An error.
    Other(Vec<u8>),
    Rows(Rows),
    Series(BTreeMap<Vec<u8>, Series>),
}

/// A client that watches a range.
pub(crate) struct Folding {
    pub(crate) line: String,
    protocol: Protocol,
    pub(crate) subscribed: Subscribed,
    seen: u64,
    answer: Folded,
}

fn slices(bytes: &[u8]) -> Vec<&[u8]> {
    let elements = encoded::elements(bytes, 0).unwrap_or_else(|| panic!("no aggregate: {}", shown(bytes)));
    elements.into_iter().map(|(from, to)| &bytes[from..to]).collect()
}

fn integer(bytes: &[u8]) -> i64 {
    std::str::from_utf8(&bytes[1..bytes.len() - 2]).expect("text").parse().expect("a number")
}

fn content(bulk: &[u8]) -> Vec<u8> {
    let start = bulk.iter().position(|byte| *byte == b'\n').expect("a head") + 1;
    bulk[start..bulk.len() - 2].to_vec()
}

fn bulk(content: &[u8]) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp3);
    reply.bulk(content);
    reply.bytes().to_vec()
}

/// Applies rows: one that is only a time has left.
fn apply_rows(rows: &mut Rows, change: &[u8]) {
    for row in slices(change) {
        let elements = slices(row);
        let time = integer(elements[0]);
        if elements.len() == 1 {
            assert!(rows.remove(&time).is_some(), "the row at {time} leaves, and was not there");
        } else {
            assert_ne!(rows.insert(time, row.to_vec()).as_deref(), Some(row), "a row that has not changed");
        }
    }
}

impl Folded {
    fn of(bytes: &[u8], protocol: Protocol, is_of_several: bool) -> Self {
        if bytes[0] == b'-' {
            return Self::Other(bytes.to_vec());
        }
        let mut folded = BTreeMap::new();
        if !is_of_several {
            apply_rows(&mut folded, bytes);
            return Self::Rows(folded);
        }
        let elements = slices(bytes);
        let entries: Vec<(&[u8], Vec<&[u8]>)> = match protocol {
            Protocol::Resp3 => elements.chunks(2).map(|pair| (pair[0], slices(pair[1]))).collect(),
            Protocol::Resp2 => elements
                .into_iter()
                .map(|entry| {
                    let parts = slices(entry);
                    (parts[0], parts[1..].to_vec())
                })
                .collect(),
        };
        Self::Series(entries.into_iter().map(|(name, parts)| (content(name), whole(&parts))).collect())
    }

    fn apply(&mut self, change: &[u8]) {
        match self {
            Self::Other(error) => panic!("a change of {}", shown(error)),
            Self::Rows(rows) => apply_rows(rows, change),
            Self::Series(series) => {
                for entry in slices(change) {
                    let parts = slices(entry);
                    let name = content(parts[0]);
                    match &content(parts[1])[..] {
                        b"gone" => assert!(series.remove(&name).is_some(), "it was there"),
                        b"whole" => drop(series.insert(name, whole(&parts[2..]))),
                        b"change" => {
                            apply_rows(&mut series.get_mut(&name).expect("it is there").1, parts[2]);
                        }
                        other => panic!("{}", String::from_utf8_lossy(other)),
                    }
                }
            }
        }
    }

    /// Returns the answer that it stands for.
    fn bytes(&self, protocol: Protocol, newest_first: bool) -> Vec<u8> {
        let mut reply = Reply::new(protocol);
        let write_rows = |reply: &mut Reply, rows: &Rows| {
            reply.array(rows.len());
            if newest_first {
                rows.values().rev().for_each(|row| reply.encoded(row));
            } else {
                rows.values().for_each(|row| reply.encoded(row));
            }
        };
        match self {
            Self::Other(error) => reply.encoded(error),
            Self::Rows(rows) => write_rows(&mut reply, rows),
            Self::Series(series) => {
                match protocol {
                    Protocol::Resp3 => reply.map(series.len()),
                    Protocol::Resp2 => reply.array(series.len()),
                }
                for (name, (head, rows)) in series {
                    match protocol {
                        Protocol::Resp3 => {
                            reply.encoded(&bulk(name));
                            reply.array(head.len() + 1);
                        }
                        Protocol::Resp2 => {
                            reply.array(head.len() + 2);
                            reply.encoded(&bulk(name));
                        }
                    }
                    head.iter().for_each(|part| reply.encoded(part));
                    write_rows(&mut reply, rows);
                }
            }
        }
        reply.bytes().to_vec()
    }
}

fn whole(parts: &[&[u8]]) -> Series {
    let (last, head) = parts.split_last().expect("rows");
    let mut rows = BTreeMap::new();
    apply_rows(&mut rows, last);
    (head.iter().map(|part| part.to_vec()).collect(), rows)
}

/// Runs a read on its own, at a time.
fn fresh(engine: &Engine, line: &str, protocol: Protocol, now_us: u64) -> Vec<u8> {
    let words = support::words(line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let call = Call { command: command::resolve(&args).expect("a read"), args: &args, db: 0, now_us };
    let mut reply = Reply::new(protocol);
    engine.execute(&call, &mut reply);
    reply.bytes().to_vec()
}

impl Folding {
    /// Watches a read at a time; `None` if it is an error.
    pub(crate) fn begin(engine: &Engine, line: &str, protocol: Protocol, now_us: u64) -> Option<Self> {
        let words = support::words(line);
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let read = Read::new(0, protocol, &words, Filter::default()).expect("a read");
        assert!(read.emits_changes());
        let subscribed = engine.subscribe(read, LISTENER, now_us).ok()?;
        let answer = Folded::of(&subscribed.answer, protocol, line.starts_with("TS.M"));
        Some(Self { line: line.to_owned(), protocol, seen: subscribed.number, subscribed, answer })
    }

    /// Takes what has been emitted, and checks that it gives what a read answers.
    pub(crate) fn follow(&mut self, engine: &Engine, why: &str) {
        let mut next = Vec::new();
        self.subscribed.query.emissions_after(self.seen, usize::MAX, &mut next).expect("all are retained");
        for Emission { number, is_change, answer, .. } in next {
            self.seen = number;
            if is_change {
                self.answer.apply(&answer);
            } else {
                self.answer = Folded::of(&answer, self.protocol, self.line.starts_with("TS.M"));
            }
        }
        let folded = self.answer.bytes(self.protocol, self.line.contains("REV"));
        let as_of_us = self.subscribed.query.figures().as_of_us.unwrap_or(START_US);
        let read = fresh(engine, &self.line, self.protocol, as_of_us);
        let (line, folded, read) = (&self.line, shown(&folded), shown(&read));
        assert_eq!(folded, read, "{line}, behind {why}");
    }

    /// Makes the emissions again from the log, or from a snapshot, and checks that they are the same.
    pub(crate) fn make_anew(&self, engine: &Engine, cut: Option<&Cut>, why: &str) {
        let query = &self.subscribed.query;
        let behind = cut.map_or(Lsn::ZERO, |cut| cut.lsn);
        let mut live = Vec::new();
        query.emissions_after(0, usize::MAX, &mut live).expect("all are retained");
        live.retain(|emission| emission.lsn > behind);
        let (mut again, _) = made_anew(engine, query, cut);
        again.iter_mut().for_each(|emission| emission.durable = false);
        assert_eq!(again, live, "{why}: {} behind {behind}", self.line);
    }
}

pub(crate) fn emitted(subscribed: &Subscribed) -> Vec<(bool, String)> {
    let mut emissions = Vec::new();
    subscribed.query.emissions_after(0, usize::MAX, &mut emissions).expect("all are retained");
    emissions.iter().map(|emission| (emission.is_change, shown(&emission.answer))).collect()
}

#[test]
fn a_watched_range_emits_the_points_that_came_changed_and_left() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.CREATE k DUPLICATE_POLICY LAST RETENTION 100");
    client.run("TS.MADD k 0 1 k 50 2 k 60 3");
    let range = watch(&engine, "TS.RANGE k - +");
    for line in [
        "TS.ADD k 70 4",
        "TS.ADD k 10 5",
        "TS.ADD k 60 6",
        "TS.ADD k 60 6",
        "TS.ADD k 120 7",
        "TS.DEL k 50 70",
    ] {
        assert!(!client.run(line).starts_with('-'), "{line}");
    }
    let changes = [
        "*1 *2 :70 ,4",
        "*1 *2 :10 ,5",
        "*1 *2 :60 ,6",
        "*3 *1 :0 *1 :10 *2 :120 ,7",
        "*3 *1 :50 *1 :60 *1 :70",
    ];
    assert_eq!(
        emitted(&range)[..4],
        changes[..4].iter().map(|change| (true, (*change).to_owned())).collect::<Vec<_>>()
    );
    assert_eq!(emitted(&range).len(), 5);
}

#[test]
fn what_is_no_change_of_points_emits_the_answer() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.CREATE k");
    client.run("TS.MADD k 0 1 k 50 2 k 60 3 k 70 4");
    let range = watch(&engine, "TS.RANGE k - +");
    for line in ["EXPIRE k 1000", "TS.ALTER k LABELS a b", "PERSIST k", "DEL k", "TS.ADD k 9 9", "SET k 1"] {
        client.run(line);
    }
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let emitted = emitted(&range);
    assert!(emitted.iter().all(|(is_change, _)| !is_change), "{emitted:?}");
    assert_eq!((emitted[1].1.as_str(), emitted[2].1.as_str(), emitted.len()), ("*1 *2 :9 ,9", wrong_type, 3));
}

#[test]
fn operators_act_on_answers() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.ADD k 1 1");
    let range = watch(&engine, "TS.RANGE k - + | EVERY 2");
    for time in 2..6 {
        client.run(&format!("TS.ADD k {time} 1"));
    }
    assert!(!range.query.read().emits_changes());
    assert_eq!(answers(&range).len(), 2);
    assert_eq!(answers(&range)[1], "*4 *2 :1 ,1 *2 :2 ,1 *2 :3 ,1 *2 :4 ,1");
}

#[test]
fn a_transaction_emits_one_change() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.CREATE k DUPLICATE_POLICY LAST");
    (0..20).for_each(|time| drop(client.run(&format!("TS.ADD k {time} 1"))));
    let range = watch(&engine, "TS.RANGE k - +");
    let lines =
        ["TS.ADD k 20 1", "TS.ADD k 20 2", "TS.ADD k 5 3", "TS.ADD k 5 1", "TS.DEL k 7 7", "TS.ADD k 21 1"];
    transaction(&engine, None, &lines);
    assert_eq!(emitted(&range), [(true, "*3 *1 :7 *2 :20 ,2 *2 :21 ,1".to_owned())]);
}

#[test]
fn a_subscriber_that_leaves_out_changes_gets_the_answer() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.ADD k 1 1");
    let range = watch(&engine, "TS.RANGE k - +");
    assert_eq!(engine.latest_whole(&range.query), None, "there was no emission");
    client.run("TS.ADD k 2 1");
    client.run("TS.ADD k 3 1");
    let whole = engine.latest_whole(&range.query).expect("it is awake");
    assert_eq!((whole.number, whole.lsn, whole.is_change), (2, Lsn(4), false));
    assert_eq!(shown(&whole.answer), "*3 *2 :1 ,1 *2 :2 ,1 *2 :3 ,1");
}

/// How many reads a command evaluates.
fn evaluated(engine: &Engine, line: &str) -> u64 {
    let (before, _) = engine.evaluation_figures();
    let answer = Client::new(engine).run(line);
    assert!(!answer.starts_with('-'), "{line}: {answer}");
    engine.evaluation_figures().0 - before
}

#[test]
fn reads_of_the_series_with_some_labels_are_evaluated_only_for_these_series() {
    let engine = engine();
    let client = Client::new(&engine);
    for line in [
        "TS.CREATE hall DUPLICATE_POLICY LAST LABELS room hall unit c",
        "TS.CREATE attic LABELS room attic unit c",
        "TS.CREATE none",
    ] {
        client.run(line);
    }
    for line in [
        "TS.MRANGE - + FILTER room=hall",
        "TS.MREVRANGE - 50 FILTER unit=~c room!=attic",
        "TS.MGET FILTER room=(hall,cellar)",
        "TS.MRANGE - + LATEST FILTER unit=c room=~h.* GROUPBY room REDUCE max",
        "TS.QUERYINDEX room=hall",
        "TS.QUERYLABELS VALUES unit FILTER room=hall",
    ] {
        watch(&engine, line);
    }
    for (line, expected) in [
        ("SET x 1", 0),
        ("INCR x", 0),
        ("DEL x", 0),
        ("HSET h f 1", 0),
        ("TS.ADD attic 1 1", 0),
        ("TS.MADD attic 2 1 none 2 1", 0),
        ("TS.INCRBY none 1 TIMESTAMP 3", 0),
        ("TS.ALTER attic LABELS room attic", 0),
        ("TS.CREATE other LABELS room yard", 0),
        ("RENAME none again", 0),
        ("COPY again third", 0),
        ("DEL again third", 0),
        // The first point is more than a change of points; labels do not depend on points.
        ("TS.ADD hall 1 1", 6),
        ("TS.ADD hall 2 1", 4),
        ("TS.ADD hall 60 1", 3),
        ("TS.CREATE hall2 LABELS room hall unit c", 6),
        ("TS.ADD hall3 1 1 LABELS room hall", 4),
        ("TS.ALTER attic LABELS room hall unit k", 4),
        ("TS.ALTER attic LABELS", 4),
        ("SET attic 1", 0),
        ("RENAME hall2 moved", 6),
        ("MOVE moved 1", 6),
        ("COPY hall x", 6),
        ("SET x 2", 6),
        ("EXPIRE hall3 100", 4),
        ("EXPIRE attic 100", 0),
        ("DEL hall hall3", 6),
        ("SET hall 2", 0),
        ("FLUSHDB", 6),
        ("TS.ADD hall 1 1", 0),
        ("SWAPDB 0 1", 6),
        ("TS.ADD moved 5 1", 6),
        ("TS.ADD moved 6 1", 4),
    ] {
        assert_eq!(evaluated(&engine, line), expected, "{line}");
    }
}

#[test]
fn ten_thousand_reads_may_select_series_by_a_label_and_few_by_no_value() {
    let engine = engine();
    let client = Client::new(&engine);
    for window in 0..10_000 {
        watch(&engine, &format!("TS.MRANGE - + COUNT {} FILTER sensor=s{}", window + 1, window / 100));
    }
    client.run("TS.CREATE k LABELS sensor s7");
    assert_eq!(evaluated(&engine, "TS.ADD k 1 1"), 100);
    assert_eq!(evaluated(&engine, "TS.CREATE l LABELS sensor s999"), 0);
    let refused = (0..300).find_map(|window| {
        let line = format!("TS.MRANGE - + COUNT {} FILTER sensor=~s.*", window + 1);
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let read = Read::new(0, Protocol::Resp3, &words, Filter::default()).expect("a read");
        engine.subscribe(read, LISTENER, START_US).err().map(|error| (window, error.to_string()))
    });
    let expected = "ERR 256 other reads of the same keys are watched already".to_owned();
    assert_eq!(refused, Some((256, expected)));
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Options of a range.
fn options(random: &mut Random) -> String {
    let mut options: Vec<String> = Vec::new();
    if random.once_in(3) {
        options.push(format!(" COUNT {}", 1 + random.below(6)));
    }
    if random.once_in(5) {
        options.push(" FILTER_BY_VALUE 2 7".to_owned());
    }
    if random.once_in(8) {
        options.push(" FILTER_BY_TS 3 17 20 44 61".to_owned());
    }
    if random.once_in(6) {
        options.push(" LATEST".to_owned());
    }
    if random.once_in(2) {
        if random.once_in(3) {
            options.push(random.pick(&[" ALIGN 3", " ALIGN 7"]).to_owned());
        }
        let aggregators = random.pick(&[
            "avg",
            "sum,count",
            "min,max,first,last",
            "twa",
            "rate,increase",
            "std.p,var.s",
            "countNaN,countAll",
            "quantile:0.5",
            "range",
            "last",
        ]);
        options.push(format!(" AGGREGATION {aggregators} {}", random.pick(&["1", "5", "10", "40"])));
        options.push(
            random.pick(&["", "", " BUCKETTIMESTAMP end", " BUCKETTIMESTAMP mid", " EMPTY"]).to_owned(),
        );
    }
    options.concat()
}

/// The options for two keys, whose aggregators are given one by one.
fn of_two(options: &str) -> String {
    let words: Vec<&str> = options.split(' ').collect();
    let at = words.iter().position(|word| *word == "AGGREGATION").map(|at| at + 1);
    let twice = |(index, word): (usize, &&str)| {
        if Some(index) == at { format!("{word} {word}") } else { (*word).to_owned() }
    };
    words.iter().enumerate().map(twice).collect::<Vec<_>>().join(" ")
}

fn random_read(random: &mut Random) -> String {
    let is_reversed = random.once_in(2);
    let from = random.pick(&["-", "-", "0", "15", "33"]);
    let to = random.pick(&["+", "+", "40", "77"]);
    let options = options(random);
    let rev = if is_reversed { "REV" } else { "" };
    match random.below(6) {
        0 | 1 => {
            let key = random.pick(&["a", "b", "c", "d", "lens"]);
            format!("TS.{rev}RANGE {key} {from} {to}{options}")
        }
        2 => format!("TS.N{rev}RANGE 2 a b {from} {to}{}", of_two(&options)),
        _ => {
            let labels = random.pick(&["", "", " WITHLABELS", " SELECTED_LABELS l m"]);
            let (excludes, group) = match random.below(6) {
                0 => (" EXCLUDEEMPTY", ""),
                1 if !options.contains(',') => ("", " GROUPBY m REDUCE sum"),
                2 if !options.contains(',') => ("", " GROUPBY l REDUCE std.s"),
                3 if !options.contains(',') => ("", " GROUPBY m REDUCE max"),
                _ => ("", ""),
            };
            let filter = random.pick(&["l=x", "l=(x,y)", "l=~.+", "l=x m!="]);
            format!("TS.M{rev}RANGE {from} {to}{labels}{options}{excludes} FILTER {filter}{group}")
        }
    }
}

fn random_write(random: &mut Random) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let time = random.below(90);
    let value = random.pick(&["1", "2", "3.5", "7", "NaN", "-0", "0", "0.1"]);
    match random.below(44) {
        40 => {
            random.pick(&["SET x 1", "MOVE b 1", "MOVE c 1", "COPY a d DB 1 REPLACE", "SADD y 1"]).to_owned()
        }
        41 => format!("TS.ALTER {key} LABELS l x m {}", random.pick(&["z", "a"])),
        42 => format!("TS.CREATE {key} LABELS m {other} l x"),
        43 => format!("TS.ADD {key} {time} {value} LABELS l x m {other}"),
        0..=15 => format!("TS.ADD {key} {time} {value} ON_DUPLICATE LAST"),
        16..=19 => format!("TS.MADD {key} {time} {value} {other} {} {value} {key} {} 2", time + 1, time + 3),
        20 | 21 => format!("TS.ADD {key} {time} {value} ON_DUPLICATE SUM LABELS l x m {other}"),
        22 => format!("TS.INCRBY {key} 2 TIMESTAMP {}", time + 60),
        23..=25 => format!("TS.DEL {key} {time} {}", time + random.below(20)),
        26 => format!("TS.ALTER {key} RETENTION {}", random.pick(&["0", "20", "50"])),
        27 => format!("TS.ALTER {key} LABELS l {} m {other}", random.pick(&["x", "y"])),
        28 => format!("TS.ALTER {key} LABELS"),
        29 => format!("TS.CREATERULE {key} {other} AGGREGATION {} 10", random.pick(&["avg", "max", "count"])),
        30 => format!("TS.DELETERULE {key} {other}"),
        31 => format!("DEL {key}"),
        32 => format!("RENAME {key} {other}"),
        33 => format!("COPY {key} {other} REPLACE"),
        34 => format!(
            "TS.CREATE {key} DUPLICATE_POLICY LAST RETENTION {} LABELS l x m z",
            random.pick(&["0", "30"])
        ),
        35 => format!("EXPIRE {key} {}", random.pick(&["1000", "-1"])),
        36 => random
            .pick(&[
                "SET d 1",
                "SWAPDB 0 1",
                "FLUSHDB",
                "DEL lens",
                "PERSIST a",
                "LENS.DROP seen",
                "RENAME seen lens",
                "COPY lens seen REPLACE",
            ])
            .to_owned(),
        37 | 38 => {
            let lens = random.pick(&["lens", "seen"]);
            let transform = random.pick(&["abs", "affine 2 1", "delta", "moving avg 3"]);
            let labels = random.pick(&["", " LABELS l x m z", " LABELS l x", " LABELS l y m a"]);
            format!("LENS.CREATE {lens} {key} {transform}{labels}")
        }
        _ => format!("TS.CREATE {key} LABELS l y"),
    }
}

/// Clients follow random reads through random writes, transactions among them. Then the emissions are made
/// again from the log, and from snapshots in between.
#[test]
fn clients_that_apply_changes_have_what_a_read_answers_and_a_replay_emits_the_same() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let engine = engine();
        let client = Client::new(&engine);
        for line in [
            "TS.CREATE a DUPLICATE_POLICY LAST LABELS l x m z",
            "TS.CREATE b LABELS l x",
            "TS.CREATE c LABELS l y",
        ] {
            client.run(line);
        }
        client.run("LENS.CREATE lens a abs");
        client.run("LENS.CREATE seen b delta LABELS l x m z");
        let (mut folding, mut cuts): (Vec<Folding>, Vec<Option<Cut>>) = (Vec::new(), vec![None]);
        for step in 0..150 {
            if folding.len() < 12 && random.once_in(5) {
                let protocol = if random.once_in(2) { Protocol::Resp2 } else { Protocol::Resp3 };
                folding.extend(Folding::begin(&engine, &random_read(&mut random), protocol, START_US));
            }
            if random.once_in(60) {
                cuts.push(Some(Cut::of(&engine)));
            }
            let why = if random.once_in(6) {
                let lines: Vec<String> =
                    (0..2 + random.below(4)).map(|_| random_write(&mut random)).collect();
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                transaction(&engine, None, &lines);
                lines.join("; ")
            } else {
                let line = random_write(&mut random);
                format!("{line}: {}", client.run(&line))
            };
            folding
                .iter_mut()
                .for_each(|one| one.follow(&engine, &format!("seed {seed}, step {step}: {why}")));
        }
        for one in &folding {
            for cut in &cuts {
                one.make_anew(&engine, cut.as_ref(), &format!("seed {seed}"));
            }
        }
    }
}

/// Ranges of one series that has blocks, late points and a retention: their rows are followed, so nearly
/// all emissions are changes.
#[test]
fn rows_are_followed_through_blocks_late_points_and_retention() {
    const OPTIONS: [&str; 12] = [
        "",
        " COUNT 1",
        " COUNT 7",
        " COUNT 100",
        " FILTER_BY_VALUE 2 5",
        " COUNT 5 FILTER_BY_VALUE 3 4",
        " AGGREGATION avg,count 100",
        " COUNT 3 AGGREGATION min,max 50",
        " ALIGN 7 AGGREGATION std.p,sum,last 64 BUCKETTIMESTAMP end",
        " COUNT 2 FILTER_BY_VALUE 2 4 AGGREGATION quantile:0.9,countNaN 30",
        " AGGREGATION range,first 1000 BUCKETTIMESTAMP mid",
        " COUNT 4 FILTER_BY_TS 100 900 901 902 1500 2000 2001 3000",
    ];
    for seed in 0..6 {
        let mut random = Random::new(1000 + seed);
        let engine = engine();
        let client = Client::new(&engine);
        client.run("TS.CREATE k DUPLICATE_POLICY LAST");
        (0..1500).for_each(|at| drop(client.run(&format!("TS.ADD k {} {}", 2 * at, at % 7))));
        (0..300).for_each(|at| drop(client.run(&format!("TS.ADD other {} {}", 7 * at, at % 5))));
        let mut folding: Vec<Folding> = Vec::new();
        for options in OPTIONS {
            for (rev, from, to) in
                [("", "-", "+"), ("REV", "-", "+"), ("", "500", "2600"), ("REV", "450", "2999")]
            {
                let line = format!("TS.{rev}RANGE k {from} {to}{options}");
                folding.extend(Folding::begin(&engine, &line, Protocol::Resp3, START_US));
                let line = format!("TS.N{rev}RANGE 2 k other {from} {to}{}", of_two(options));
                folding.extend(Folding::begin(&engine, &line, Protocol::Resp3, START_US));
            }
        }
        assert_eq!(folding.len(), 8 * OPTIONS.len());
        let mut newest = 2998;
        for step in 0..60 {
            let (at, value) = (random.below(newest), random.pick(&["1", "3.5", "4", "NaN", "-0"]));
            let line = match random.below(12) {
                0..=3 => {
                    newest += 1 + random.below(40);
                    format!("TS.ADD k {newest} {value}")
                }
                4..=6 => format!("TS.ADD k {at} {value}"),
                7 => format!("TS.MADD k {at} 2 k {} 3 k {newest} 4 k {} 1", at + 1, newest + 2),
                11 => format!("TS.ADD other {at} {value} ON_DUPLICATE LAST"),
                8 => format!("TS.DEL k {at} {}", at + random.below(120)),
                9 => format!("TS.DEL k {} {newest}", newest - random.below(30)),
                10 if step == 40 => "TS.ALTER k RETENTION 2500".to_owned(),
                _ => format!("TS.INCRBY k 1 TIMESTAMP {}", newest + 3),
            };
            newest += if line.contains("MADD") { 2 } else { 3 * u64::from(line.contains("INCRBY")) };
            client.run(&line);
            folding
                .iter_mut()
                .for_each(|one| one.follow(&engine, &format!("seed {seed}, step {step}: {line}")));
        }
        for one in &folding {
            let emitted = emitted(&one.subscribed);
            let answers = emitted.iter().filter(|(is_change, _)| !is_change).count();
            assert!(answers <= 2, "{}: {answers} of {} emissions are answers", one.line, emitted.len());
        }
    }
}

/// Ranges of the series with some labels, which come, go and change their labels meanwhile: all emissions
/// are changes, also those of groups.
#[test]
fn rows_of_the_series_with_some_labels_are_followed() {
    const READS: [&str; 14] = [
        "TS.MRANGE - + FILTER room=hall",
        "TS.MREVRANGE - + WITHLABELS COUNT 3 FILTER room=hall",
        "TS.MRANGE 200 900 SELECTED_LABELS unit none FILTER room=~h.*",
        "TS.MRANGE - + AGGREGATION avg,count 50 FILTER room=hall",
        "TS.MREVRANGE 100 950 COUNT 2 AGGREGATION min,max 40 BUCKETTIMESTAMP end EXCLUDEEMPTY FILTER room=hall",
        "TS.MRANGE 300 700 EXCLUDEEMPTY FILTER_BY_VALUE 3 4 FILTER room=hall",
        "TS.MRANGE - + FILTER room=hall GROUPBY unit REDUCE sum",
        "TS.MREVRANGE - + WITHLABELS COUNT 4 FILTER room=hall GROUPBY unit REDUCE max",
        "TS.MRANGE 200 900 SELECTED_LABELS room unit FILTER room=hall GROUPBY room REDUCE std.p",
        "TS.MRANGE - + COUNT 5 AGGREGATION sum 30 FILTER room=hall GROUPBY room REDUCE avg",
        "TS.MREVRANGE - + ALIGN 7 AGGREGATION last 64 BUCKETTIMESTAMP mid FILTER room=(hall,attic) GROUPBY unit REDUCE range",
        "TS.MRANGE - + FILTER_BY_VALUE 2 5 COUNT 3 FILTER room=hall unit!=c GROUPBY unit REDUCE count",
        "TS.MRANGE - + FILTER_BY_TS 100 200 300 400 500 600 FILTER unit=(c,f) GROUPBY unit REDUCE min",
        "TS.MRANGE - + FILTER room=hall unit=",
    ];
    for seed in 0..5 {
        let mut random = Random::new(2000 + seed);
        let engine = engine();
        let client = Client::new(&engine);
        for (key, labels) in
            [("a", "room hall unit c"), ("b", "room hall unit f"), ("c", "room attic unit c")]
        {
            client.run(&format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS {labels}"));
            (0..400).for_each(|at| drop(client.run(&format!("TS.ADD {key} {} {}", 2 * at, at % 7))));
        }
        let mut folding: Vec<Folding> = Vec::new();
        for line in READS {
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                folding.extend(Folding::begin(&engine, line, protocol, START_US));
            }
        }
        assert_eq!(folding.len(), 2 * READS.len());
        let mut cuts = vec![None];
        for step in 0..120 {
            if step % 50 == 20 {
                cuts.push(Some(Cut::of(&engine)));
            }
            let (key, other) = (random.pick(&["a", "b", "c", "d"]), random.pick(&["a", "b", "c", "d"]));
            let (at, value) = (random.below(1000), random.pick(&["1", "3.5", "4", "NaN", "-0"]));
            let labels =
                random.pick(&["room hall unit c", "room hall unit f", "room hall", "room attic unit c"]);
            let line = match random.below(16) {
                0..=5 => format!("TS.ADD {key} {at} {value} ON_DUPLICATE LAST"),
                6 | 7 => format!("TS.MADD {key} {at} 2 {other} {at} 3 {key} {} 1", at + 1),
                8 | 9 => format!("TS.DEL {key} {at} {}", at + random.below(60)),
                10 => format!("TS.ALTER {key} LABELS {labels}"),
                11 => format!("TS.ADD {key} {at} {value} LABELS {labels}"),
                12 => format!("DEL {key}"),
                13 => format!("RENAME {key} {other}"),
                14 => format!("TS.ALTER {key} RETENTION {}", random.pick(&["0", "600", "300"])),
                _ => format!("SET {} 1", random.pick(&["x", "y", "d"])),
            };
            let answer = client.run(&line);
            let why = format!("seed {seed}, step {step}: {line}: {answer}");
            folding.iter_mut().for_each(|one| one.follow(&engine, &why));
        }
        for one in &folding {
            let emitted = emitted(&one.subscribed);
            assert!(!emitted.is_empty() && emitted.iter().all(|(is_change, _)| *is_change), "{}", one.line);
            for cut in &cuts {
                one.make_anew(&engine, cut.as_ref(), &format!("seed {seed}"));
            }
        }
    }
}

/// Writers on several threads lock what their own keys need; the reads of labels still see every change once,
/// in the order of the log.
#[test]
fn reads_of_labels_follow_writers_on_several_threads() {
    let engine = engine();
    let client = Client::new(&engine);
    for key in KEYS {
        client.run(&format!("TS.CREATE {key} DUPLICATE_POLICY LAST LABELS l x m {key}"));
    }
    let mut folding: Vec<Folding> = [
        "TS.MRANGE - + FILTER l=x",
        "TS.MREVRANGE - + COUNT 4 FILTER l=(x,y)",
        "TS.MRANGE - + LATEST FILTER l=~.+",
        "TS.MRANGE - + AGGREGATION avg 10 FILTER l=x GROUPBY m REDUCE max",
    ]
    .into_iter()
    .filter_map(|line| Folding::begin(&engine, line, Protocol::Resp3, START_US))
    .collect();
    run_on_threads(&engine, |thread, step| {
        let mut random = Random::new((1000 * thread + step) as u64);
        if random.once_in(4) { format!("SET text{thread} {step}") } else { random_write(&mut random) }
    });
    assert_eq!(folding.len(), 4);
    for one in &mut folding {
        one.follow(&engine, "writers on several threads");
        let mut emissions = Vec::new();
        one.subscribed.query.emissions_after(0, usize::MAX, &mut emissions).expect("all are retained");
        assert!(emissions.len() > 10 && emissions.is_sorted_by(|one, other| one.lsn < other.lsn));
        one.make_anew(&engine, None, "writers on several threads");
    }
}

#[test]
fn series_and_groups_come_change_and_leave() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("TS.ADD a 1 1 LABELS room hall unit c");
    let series = watch(&engine, "TS.MRANGE - + FILTER room=hall");
    let groups = watch(&engine, "TS.MRANGE - + FILTER room=hall GROUPBY unit REDUCE sum");
    for line in [
        "TS.ADD a 2 2",
        "TS.ADD b 2 3 LABELS room hall unit c",
        "TS.ALTER b LABELS room hall unit f",
        "SET x 1",
        "EXPIRE a 100",
        "RENAME b c",
        "DEL a",
    ] {
        assert!(!client.run(line).starts_with('-'), "{line}");
    }
    let changes = |expected: &[&str]| -> Vec<(bool, String)> {
        expected.iter().map(|change| (true, (*change).to_owned())).collect()
    };
    assert_eq!(
        emitted(&series),
        changes(&[
            "*1 *3 $1 a $6 change *1 *2 :2 ,2",
            "*1 *5 $1 b $5 whole %0 %1 $11 aggregators *0 *1 *2 :2 ,3",
            "*2 *2 $1 b $4 gone *5 $1 c $5 whole %0 %1 $11 aggregators *0 *1 *2 :2 ,3",
            "*1 *2 $1 a $4 gone",
        ])
    );
    let whole = |value: &str, sources: &str, rows: &str| {
        format!("*6 $6 unit={value} $5 whole %0 %1 $8 reducers *1 $3 sum %1 $7 sources {sources} {rows}")
    };
    assert_eq!(
        emitted(&groups),
        changes(&[
            "*1 *3 $6 unit=c $6 change *1 *2 :2 ,2",
            &format!("*1 {}", whole("c", "*2 $1 a $1 b", "*2 *2 :1 ,1 *2 :2 ,5")),
            &format!(
                "*2 {} {}",
                whole("c", "*1 $1 a", "*2 *2 :1 ,1 *2 :2 ,2"),
                whole("f", "*1 $1 b", "*1 *2 :2 ,3")
            ),
            &format!("*1 {}", whole("f", "*1 $1 c", "*1 *2 :2 ,3")),
            "*1 *2 $6 unit=c $4 gone",
        ])
    );
}
