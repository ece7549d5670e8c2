//! Watched ranges that end at a time relative to now: they slide by logged ticks, while they are watched.

use crate::support;
use crate::support::commands::Random;
use crate::support::{Client, START_US, engine, replayed, shown};
use crate::watched_ranges::{Folding, emitted};
use crate::watching::{Cut, LISTENER, read, watch};
use tidemark_engine::watch::{Past, SharedQuery, Waking, WriteBudget};
use tidemark_engine::{CommandError, Engine, Protocol};

const START_MS: u64 = START_US / 1000;
const SECOND_US: u64 = 1_000_000;

/// Adds a point some milliseconds behind the start.
fn add(client: &Client<'_>, behind_ms: u64, value: u64) {
    let line = format!("TS.ADD k {} {value}", START_MS + behind_ms);
    assert!(!client.run(&line).starts_with('-'), "{line}");
}

/// The emissions, with the milliseconds of the start taken from times.
fn short(emitted: Vec<(bool, String)>) -> Vec<(bool, String)> {
    emitted.into_iter().map(|(is_change, rows)| (is_change, shortened(&rows))).collect()
}

fn shortened(rows: &str) -> String {
    let word = |word: &str| {
        let time = word.strip_prefix(':').and_then(|time| time.parse::<u64>().ok());
        time.map_or_else(|| word.to_owned(), |time| format!(":{}", time - START_MS))
    };
    rows.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn changes(changes: &[&str]) -> Vec<(bool, String)> {
    changes.iter().map(|change| (true, (*change).to_owned())).collect()
}

#[test]
fn points_leave_a_watched_range_when_their_time_is_over() {
    let engine = engine();
    let client = Client::new(&engine);
    [0, 500, 1500, 2100].into_iter().enumerate().for_each(|(at, ms)| add(&client, ms, at as u64));
    let now_us = START_US + 2_400_000;
    let range = engine.subscribe(read("TS.RANGE k -2s +"), LISTENER, now_us).expect("it can be watched");
    assert_eq!(shortened(&shown(&range.answer)), "*4 *2 :0 ,0 *2 :500 ,1 *2 :1500 ,2 *2 :2100 ,3");
    assert_eq!(range.query.figures().as_of_us, Some(START_US + 2_000_000), "it moves in whole seconds");
    assert_eq!(engine.tick_due(now_us, 10), Some(START_MS + 3000));
    add(&client, 2500, 4);
    assert_eq!(engine.tick_due(START_US + 3_000_000, 10), Some(START_MS + 4000));
    assert_eq!(engine.tick_due(START_US + 3_999_999, 10), Some(START_MS + 4000), "there is nothing to do");
    assert_eq!(engine.tick_due(START_US + 9_300_000, 10), Some(START_MS + 10_000));
    assert_eq!(
        short(emitted(&range)),
        changes(&["*1 *2 :2500 ,4", "*2 *1 :0 *1 :500", "*3 *1 :1500 *1 :2100 *1 :2500"])
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_range_by_buckets_moves_by_a_bucket_so_that_none_is_cut() {
    let engine = engine();
    let client = Client::new(&engine);
    (0..12).for_each(|at| add(&client, at * 5_000, at));
    let now_us = START_US + 57_000_000;
    let line = "TS.RANGE k -30s + AGGREGATION sum 10000";
    let range = engine.subscribe(read(line), LISTENER, now_us).expect("it can be watched");
    assert_eq!(shortened(&shown(&range.answer)), "*4 *2 :20000 ,9 *2 :30000 ,13 *2 :40000 ,17 *2 :50000 ,21");
    assert_eq!(engine.tick_due(now_us, 10), Some(START_MS + 60_000));
    add(&client, 58_000, 5);
    engine.tick_due(START_US + 60_000_000, 10);
    add(&client, 60_000, 7);
    assert_eq!(short(emitted(&range)), changes(&["*1 *2 :50000 ,26", "*1 *1 :20000", "*1 *2 :60000 ,7"]));
}

#[test]
fn an_end_that_is_now_lets_points_in_when_their_time_has_come() {
    let engine = engine();
    let client = Client::new(&engine);
    (0..6).for_each(|at| add(&client, at * 1_000, at));
    let range = watch(&engine, "TS.REVRANGE k 0 -2s COUNT 2");
    assert_eq!(shown(&range.answer), "*0");
    for second in 2..5 {
        engine.tick_due(START_US + second * SECOND_US, 10);
    }
    let expected = ["*1 *2 :0 ,0", "*1 *2 :1000 ,1", "*2 *2 :2000 ,2 *1 :0"];
    assert_eq!(short(emitted(&range)), changes(&expected));
}

#[test]
fn time_stands_still_without_a_listener_and_moves_on_for_the_next() {
    let engine = engine();
    let client = Client::new(&engine);
    add(&client, 0, 1);
    let range = watch(&engine, "TS.RANGE k -5s +");
    engine.tick_due(START_US, 10);
    engine.leave(&range.query, LISTENER, START_US);
    let head = engine.log().appended();
    assert_eq!(engine.tick_due(START_US + 60 * SECOND_US, 10), None, "nobody listens");
    assert_eq!(engine.log().appended(), head);
    let later = START_US + 60 * SECOND_US;
    let again = engine.subscribe(read("TS.RANGE k -5s +"), LISTENER, later).expect("it can be watched");
    assert_eq!((again.query.id(), shown(&again.answer).as_str()), (range.query.id(), "*0"));
    assert_eq!(engine.next_tick(), Some(0), "from now on it moves");
    assert_eq!(engine.tick_due(later, 10), Some(later / 1000 + 1000));
}

#[test]
fn ranges_that_do_not_depend_on_the_time_do_not_tick() {
    let engine = engine();
    let client = Client::new(&engine);
    add(&client, 0, 1);
    for line in ["TS.RANGE k - +", "TS.RANGE k 0 99", "TS.GET k", "DBSIZE"] {
        watch(&engine, line);
    }
    assert_eq!((engine.next_tick(), engine.tick_due(START_US + SECOND_US, 10)), (None, None));
}

#[test]
fn nothing_is_logged_while_no_point_leaves_or_comes() {
    let engine = engine();
    let client = Client::new(&engine);
    add(&client, 0, 1);
    let range = watch(&engine, "TS.RANGE k -5s +");
    let head = engine.log().appended();
    let tick = |second: u64| engine.tick_due(START_US + second * SECOND_US, 10);
    assert_eq!((tick(5), engine.log().appended()), (Some(START_MS + 6000), head));
    assert_eq!((tick(6), engine.log().appended()), (Some(START_MS + 7000), head.next()));
    assert_eq!((tick(99), engine.log().appended()), (Some(START_MS + 100_000), head.next()));
    // A late point comes as of the last tick, and leaves by the next.
    add(&client, 1_500, 2);
    tick(100);
    assert_eq!(short(emitted(&range)), changes(&["*1 *1 :0", "*1 *2 :1500 ,2", "*1 *1 :1500"]));
}

#[test]
fn operators_act_on_answers_of_ranges_that_slide() {
    let engine = engine();
    let client = Client::new(&engine);
    (0..3).for_each(|at| add(&client, at * 1_000, at));
    let range = watch(&engine, "TS.RANGE k -2s + | EVERY 2");
    for second in 3..7 {
        engine.tick_due(START_US + second * SECOND_US, 10);
    }
    let expected = ["*2 *2 :1000 ,1 *2 :2000 ,2", "*0"];
    assert_eq!(short(emitted(&range)), expected.map(|rows| (false, rows.to_owned())));
}

/// Brings a dormant range back to where its past is.
pub(crate) fn wake(engine: &Engine, query: &SharedQuery, cut: &Cut, now_us: u64) {
    let mut past = Past::new(engine.log(), query, 1 << 20);
    cut.load(&mut past);
    support::for_each_record(engine, cut.lsn.next(), |record| {
        past.apply(record).expect("the key that the read names is enough");
    });
    let waking = engine.wake(query, &mut past, now_us, |_, _| Ok::<_, CommandError>(true));
    assert!(matches!(waking, Ok(Waking::Awake)), "{waking:?}");
}

#[test]
fn a_dormant_range_goes_on_as_of_the_time_of_its_last_tick() {
    for line in [
        "TS.RANGE k -5s +",
        "TS.RANGE k -5s + | EVERY 3",
        "TS.NRANGE 1 k -5s now",
        "TS.MRANGE -5s + FILTER l=v",
    ] {
        let engine = engine();
        let client = Client::new(&engine);
        client.run("TS.CREATE k LABELS l v");
        (0..9).for_each(|at| add(&client, at * 1_000, at));
        let range = watch(&engine, line);
        let cut = Cut::of(&engine);
        engine.tick_due(START_US + 3 * SECOND_US, 10);
        engine.limit_writes(WriteBudget { write_us: 0, heard_us: 0, unheard_us: 0 });
        add(&client, 9_000, 9);
        assert!(range.query.is_dormant(), "{line}");
        for second in [8, 9] {
            engine.tick_due(START_US + second * SECOND_US, 10);
            add(&client, second * 1_000 + 7, 1);
        }
        engine.limit_writes(WriteBudget::UNLIMITED);
        // A restart while it is dormant knows the time from the record that wakes it.
        let dormant = Cut::of(&engine);
        wake(&engine, &range.query, &cut, START_US + 9 * SECOND_US);
        assert_eq!(range.query.figures().as_of_us, Some(START_US + 9 * SECOND_US), "{line}");
        engine.tick_due(START_US + 11 * SECOND_US, 10);
        add(&client, 11_000, 2);
        let again = dormant.restored();
        support::apply_from(&engine, dormant.lsn.next(), &again);
        let there = again.query(range.query.id()).expect("it is still watched");
        assert_eq!(there.figures().as_of_us, Some(START_US + 11 * SECOND_US), "{line}");
        assert_eq!(there.count(), range.query.count(), "{line}");
    }
}

const READS: [&str; 20] = [
    "TS.RANGE k -10s +",
    "TS.RANGE k -10s now",
    "TS.REVRANGE k -20s + COUNT 3",
    "TS.RANGE k -20s -5s COUNT 4",
    "TS.RANGE k - -3s",
    "TS.REVRANGE k -8s now FILTER_BY_VALUE 2 5",
    "TS.RANGE k -30s + AGGREGATION avg,count 5000",
    "TS.REVRANGE k -7s now COUNT 2 AGGREGATION min,max 2000",
    "TS.RANGE k -30s -1s ALIGN 1 AGGREGATION sum 3000 BUCKETTIMESTAMP end",
    "TS.RANGE k -30s + ALIGN start AGGREGATION sum 3000",
    "TS.RANGE k -30s now AGGREGATION twa 4000 EMPTY",
    "TS.RANGE lens -15s +",
    "TS.NRANGE 2 k other -9s +",
    "TS.MRANGE -12s + FILTER room=hall",
    "TS.MREVRANGE -12s now AGGREGATION max 4000 FILTER room=hall GROUPBY room REDUCE sum",
    "TS.REVRANGE k -1m + COUNT 100 AGGREGATION last 86400000",
    "TS.MREVRANGE -9s now COUNT 3 FILTER room=hall",
    "TS.MRANGE -8s -1s EXCLUDEEMPTY FILTER room=~h.*",
    "TS.MRANGE -20s + AGGREGATION avg,count 3000 FILTER room=hall",
    "TS.MRANGE -11s now COUNT 4 FILTER room=hall GROUPBY room REDUCE max",
];

/// Clients follow ranges through writes at random times, and ticks. Then the emissions are made again from
/// the log, and from snapshots in between.
#[test]
fn clients_that_apply_changes_have_what_a_read_as_of_the_last_tick_answers() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let engine = engine();
        let mut client = Client::new(&engine);
        for line in [
            "TS.CREATE k DUPLICATE_POLICY LAST LABELS room hall",
            "TS.CREATE other DUPLICATE_POLICY LAST LABELS room hall",
            "LENS.CREATE lens k affine 2 1",
            "LENS.CREATE seen other abs LABELS room hall",
        ] {
            client.run(line);
        }
        let (mut folding, mut cuts): (Vec<Folding>, Vec<Option<Cut>>) = (Vec::new(), vec![None]);
        for step in 0..240 {
            client.now_us += random.below(2_500) * 1_000 + random.below(1_000);
            if step % 4 == 0 && folding.len() < READS.len() {
                let protocol = if random.once_in(2) { Protocol::Resp2 } else { Protocol::Resp3 };
                folding.extend(Folding::begin(&engine, READS[folding.len()], protocol, client.now_us));
            }
            if random.once_in(50) {
                cuts.push(Some(Cut::of(&engine)));
            }
            if random.once_in(2) {
                engine.tick_due(client.now_us, 100);
            }
            let key = random.pick(&["k", "k", "other"]);
            let at = client.now_us / 1000 + 2_000 - random.below(22_000);
            let line = match random.below(12) {
                0..=7 => format!("TS.ADD {key} {at} {}", random.pick(&["1", "3.5", "NaN", "7"])),
                8 => format!("TS.MADD k {at} 1 other {at} 2 k {} 3", at + 10),
                9 => format!("TS.DEL {key} {at} {}", at + random.below(5_000)),
                10 if random.once_in(4) => random
                    .pick(&[
                        "DEL other",
                        "TS.ALTER k RETENTION 25000",
                        "EXPIRE k 1000",
                        "TS.ALTER other LABELS room attic",
                        "TS.ALTER other LABELS room hall",
                        "TS.CREATE third UNIT us LABELS room hall",
                        "DEL third",
                        "RENAME other third",
                        "SET third 1",
                        "LENS.DROP seen",
                        "LENS.CREATE seen k affine 2 1 LABELS room hall",
                        "LENS.CREATE seen other delta LABELS room hall",
                        "RENAME seen third",
                    ])
                    .to_owned(),
                _ => format!("TS.INCRBY {key} 1 TIMESTAMP {}", client.now_us / 1000 + 3_000),
            };
            let why = format!("seed {seed}, step {step}: {line}: {}", client.run(&line));
            folding.iter_mut().for_each(|one| one.follow(&engine, &why));
        }
        assert_eq!(folding.len(), READS.len());
        for one in &folding {
            for cut in &cuts {
                one.make_anew(&engine, cut.as_ref(), &format!("seed {seed}"));
            }
        }
    }
}
