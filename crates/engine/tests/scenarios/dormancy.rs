//! Dormant reads: they cost writers nothing, and their emissions are replayed from the log.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, shown};
use crate::watching::{Cut, LISTENER, answers, read, run, step, watch};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tidemark_engine::tracking::Broadcast;
use tidemark_engine::watch::{
    Audience, Emission, Past, PastError, Query, Resumed, RetentionLimits, SharedQuery, Waking, WriteBudget,
};
use tidemark_engine::{CommandError, Engine, Reply};
use tidemark_log::Lsn;

/// Reads without a subscriber have a budget of zero. All other reads have no limit.
const NOTHING_UNHEARD: WriteBudget = WriteBudget { unheard_us: 0, ..WriteBudget::UNLIMITED };
/// All reads have a budget of zero.
const NOTHING: WriteBudget = WriteBudget { write_us: 0, heard_us: 0, unheard_us: 0 };

/// Replays a query to the end of the log, from a cut or from the log's beginning.
fn past_at_end(engine: &Engine, query: &Query, cut: Option<&Cut>) -> (Past, Vec<Emission>) {
    let from = cut.map_or(Lsn(1), |cut| cut.lsn.next());
    let load = |mut past: Past| {
        if let Some(cut) = cut {
            cut.load(&mut past);
        }
        past
    };
    let mut past = load(Past::new(engine.log(), query, 1 << 20));
    loop {
        let (mut made, mut widened) = (Vec::new(), false);
        support::for_each_record(engine, from, |record| {
            if widened {
                return;
            }
            match past.apply(record) {
                Ok(emission) => made.extend(emission),
                Err(PastError::Widened) => widened = true,
                Err(error) => panic!("record {}: {error}", record.lsn),
            }
        });
        if !widened {
            return (past, made);
        }
        let mut widening = past.widen();
        support::for_each_record(engine, from, |record| widening.note(record).expect("a record"));
        past = load(widening.finish());
    }
}

/// Wakes a query. Returns its emissions since the cut.
fn wake(engine: &Engine, query: &SharedQuery, cut: Option<&Cut>) -> Vec<Emission> {
    let (mut past, made) = past_at_end(engine, query, cut);
    let waking = engine.wake(query, &mut past, START_US, |_, _| Ok::<_, CommandError>(true));
    assert!(matches!(waking, Ok(Waking::Awake)), "{waking:?}");
    made
}

#[test]
fn a_read_without_listeners_costs_writers_nothing_beyond_its_budget() {
    let engine = engine();
    engine.limit_writes(NOTHING_UNHEARD);
    let client = Client::new(&engine);
    let (get, keys) = (watch(&engine, "GET k"), watch(&engine, "KEYS *"));
    client.run("SET k 1");
    assert_eq!((answers(&get), answers(&keys)), (vec!["$1 1".to_owned()], vec!["*1 $1 k".to_owned()]));
    for query in [&get.query, &keys.query] {
        engine.leave(query, LISTENER, START_US);
        assert!(!query.is_dormant(), "no write has come yet");
    }
    client.run("SET k 2");
    assert!(get.query.is_dormant() && keys.query.is_dormant());
    let (before, dormant) = (engine.evaluation_figures(), engine.dormant_queries());
    for number in 0..100 {
        client.run(&format!("SET k{number} 1"));
        client.run("INCR k");
    }
    assert_eq!((engine.evaluation_figures(), dormant), (before, 2));
    assert!(engine.queries_of(0, b"k").is_empty(), "no shard knows of it");
    assert_eq!(engine.query_figures().0, 2, "their subscribers can come back");
}

#[test]
fn a_subscriber_that_comes_back_gets_what_a_dormant_read_would_have_emitted() {
    let engine = engine();
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    client.run("SET k 1");
    engine.limit_writes(NOTHING_UNHEARD);
    engine.leave(&get.query, LISTENER, START_US);
    for line in ["SET k 2", "SET other 1", "SET k 3", "SET k 3", "DEL k"] {
        client.run(line);
    }
    let (id, first) = (get.query.id(), emissions_lsn(&get.query));
    assert!(matches!(engine.resume(id, first, LISTENER), Resumed::Gone(_)), "it is to be made from the log");
    assert!(matches!(engine.resume_after(id, 1, LISTENER), Resumed::Gone(_)));
    assert_eq!(engine.progress(&get.query), None);
    let made = wake(&engine, &get.query, None);
    let notified: Vec<(u64, String)> =
        made.iter().map(|emission| (emission.number, shown(&emission.answer))).collect();
    let expected = [(1, "$1 1"), (2, "$1 2"), (3, "$1 3"), (4, "_")];
    assert_eq!(notified, expected.map(|(number, answer)| (number, answer.to_owned())));
    let Resumed::Behind { number, .. } = engine.resume(id, made[3].lsn, LISTENER) else {
        panic!("it goes on behind the last of them");
    };
    assert_eq!((number, engine.dormant_queries()), (4, 0));
    client.run("SET k 4");
    let mut behind = Vec::new();
    get.query.emissions_after(4, 9, &mut behind).expect("it is retained");
    assert_eq!(
        (behind.len(), behind[0].number, shown(behind[0].before.as_ref().expect("an answer")).as_str()),
        (1, 5, "_")
    );
}

#[test]
fn a_range_goes_on_with_changes_as_if_it_had_never_been_dormant() {
    let (engine, always) = (engine(), support::engine());
    let lines = [
        "TS.RANGE k - +",
        "TS.REVRANGE k - + COUNT 3",
        "TS.RANGE k - + AGGREGATION avg,count 10",
        "TS.NRANGE 1 k - +",
    ];
    let clients = [Client::new(&engine), Client::new(&always)];
    let run = |line: &str| clients.iter().for_each(|client| drop(client.run(line)));
    (0..8).for_each(|at| run(&format!("TS.ADD k {at} 1 ON_DUPLICATE LAST")));
    let watched = lines.map(|line| (watch(&engine, line), watch(&always, line)));
    engine.limit_writes(NOTHING);
    for line in [
        "TS.ADD k 20 2",
        "TS.DEL k 3 4",
        "TS.ADD k 5 9 ON_DUPLICATE LAST",
        "DEL k",
        "TS.MADD k 1 1 k 2 2 CREATE",
    ] {
        run(line);
    }
    assert_eq!(engine.dormant_queries(), lines.len());
    engine.limit_writes(WriteBudget::UNLIMITED);
    let made = watched.each_ref().map(|(dormant, _)| wake(&engine, &dormant.query, None));
    ["TS.ADD k 30 3", "TS.ADD k 1 5 ON_DUPLICATE LAST"].into_iter().for_each(run);
    for ((dormant, awake), made) in watched.iter().zip(made) {
        let mut later = Vec::new();
        dormant.query.emissions_after(made.len() as u64, 9, &mut later).expect("they are retained");
        let seen: Vec<(u64, bool, String)> = made.iter().chain(&later).map(content).collect();
        let mut expected = Vec::new();
        awake.query.emissions_after(0, 99, &mut expected).expect("all are retained");
        assert_eq!(seen, expected.iter().map(content).collect::<Vec<_>>(), "{:?}", awake.query.read());
    }
}

/// What a subscriber sees of an emission.
fn content(emission: &Emission) -> (u64, bool, String) {
    (emission.number, emission.is_change, shown(&emission.answer))
}

/// The LSN of the first emission.
fn emissions_lsn(query: &Query) -> Lsn {
    let mut first = Vec::new();
    query.emissions_after(0, 1, &mut first).expect("it is retained");
    first[0].lsn
}

#[test]
fn operators_and_lists_go_on_as_if_they_had_never_been_dormant() {
    let (engine, always) = (engine(), support::engine());
    let lines = ["GET k | WINDOW 3 SUM", "GET k | HIGH", "GET k | EVERY 3", "KEYS k*", "MGET k l", "DBSIZE"];
    let watched = lines.map(|line| (watch(&engine, line), watch(&always, line)));
    let clients = [Client::new(&engine), Client::new(&always)];
    let run = |line: &str| clients.iter().for_each(|client| drop(client.run(line)));
    for round in 0..4 {
        if round == 1 {
            engine.limit_writes(NOTHING);
        }
        for number in 0..5 {
            run(&format!("SET k {}", (number * 7 + round) % 11));
            run(&format!("SET k{round}{number} 1"));
            run(&format!("DEL k{round}{}", number / 2));
            run("INCR l");
        }
    }
    assert_eq!(engine.dormant_queries(), lines.len());
    engine.limit_writes(WriteBudget::UNLIMITED);
    for (dormant, _) in &watched {
        wake(&engine, &dormant.query, None);
    }
    run("SET k 99");
    run("SET k 98");
    for (line, (woken, same)) in lines.iter().zip(&watched) {
        let last = |query: &Query| query.shown_at(query.count()).map(|answer| shown(&answer));
        assert_eq!(woken.query.count(), same.query.count(), "{line}");
        assert_eq!(last(&woken.query), last(&same.query), "{line}");
    }
}

#[test]
fn an_expensive_read_with_a_listener_is_late_and_its_listener_is_notified() {
    struct Notified(Arc<Mutex<Vec<Lsn>>>);
    impl Audience for Notified {
        fn notify(&self, _: usize, query: &SharedQuery) {
            self.0.lock().expect("no panic").push(query.id());
        }
        fn broadcast(&self, _: &Arc<Broadcast>) {}
    }
    let engine = engine();
    let notified = Arc::new(Mutex::new(Vec::new()));
    engine.set_audience(Box::new(Notified(Arc::clone(&notified))));
    engine.limit_writes(NOTHING);
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    client.run("SET k 1");
    assert_eq!(*notified.lock().expect("no panic"), [get.query.id()], "it looks, and finds that it is late");
    assert!(get.query.is_dormant() && get.query.emissions_after(0, 9, &mut Vec::new()).is_err());
    let (mut past, made) = past_at_end(&engine, &get.query, None);
    assert_eq!(made.len(), 1);
    let waking = engine.wake(&get.query, &mut past, START_US, |_, _| Ok::<_, CommandError>(true));
    assert!(matches!(waking, Ok(Waking::TooCostly)), "writers could not answer it: {waking:?}");
    engine.limit_writes(WriteBudget::UNLIMITED);
    let waking = engine.wake(&get.query, &mut past, START_US, |_, _| Ok::<_, CommandError>(false));
    assert!(matches!(waking, Ok(Waking::NotYet)), "{waking:?}");
    assert!(get.query.is_dormant());
    let mut head = Lsn::ZERO;
    client.run("SET k 2");
    let waking = engine.wake(&get.query, &mut past, START_US, |past, end| {
        head = end;
        support::for_each_record(&engine, past.last().next(), |record| {
            past.apply(record).expect("applies");
        });
        Ok::<_, CommandError>(true)
    });
    assert!(matches!(waking, Ok(Waking::Awake)), "{waking:?}");
    assert_eq!((head, get.query.count()), (Lsn(3), 2));
}

#[test]
fn a_new_watch_of_a_dormant_read_begins_its_own_query() {
    let engine = engine();
    engine.limit_writes(NOTHING_UNHEARD);
    let client = Client::new(&engine);
    let old = watch(&engine, "GET k");
    engine.leave(&old.query, LISTENER, START_US);
    client.run("SET k 1");
    let new = watch(&engine, "GET k");
    assert!(new.query.id() > old.query.id());
    assert_eq!(watch(&engine, "GET k").query.id(), new.query.id(), "which others share");
    client.run("SET k 2");
    wake(&engine, &old.query, None);
    assert!(matches!(engine.resume_after(old.query.id(), 2, LISTENER), Resumed::Behind { .. }));
    client.run("SET k 3");
    assert_eq!((old.query.count(), new.query.count()), (3, 2), "both go on");
    let replica = replayed(&engine);
    assert_eq!(replica.query(old.query.id()).map(|query| query.count()), Some(3));
    assert_eq!(replica.query(new.query.id()).map(|query| query.count()), Some(2));
}

#[test]
fn a_dormant_read_comes_back_from_a_snapshot_dormant_and_its_waking_from_the_log() {
    let engine = engine();
    engine.limit_writes(NOTHING_UNHEARD);
    let client = Client::new(&engine);
    let (get, high) = (watch(&engine, "GET k"), watch(&engine, "GET k | HIGH"));
    client.run("SET k 1");
    let awake = Cut::of(&engine);
    for query in [&get.query, &high.query] {
        engine.leave(query, LISTENER, START_US);
    }
    client.run("SET k 7");
    client.run("SET k 3");
    let dormant = Cut::of(&engine);
    assert_eq!((awake.restored().dormant_queries(), dormant.restored().dormant_queries()), (0, 2));
    let mut past = Past::new(engine.log(), &get.query, 1 << 20);
    past.load(|load| dormant.keys.iter().try_for_each(|frame| load(frame))).expect("loads");
    let outcome: Result<(), _> =
        dormant.queries.iter().try_for_each(|frame| past.load_query(dormant.lsn, frame));
    assert_eq!(outcome, Err(PastError::Dormant), "its number is not known there");
    for query in [&get.query, &high.query] {
        wake(&engine, query, Some(&awake));
        assert!(matches!(engine.resume_after(query.id(), query.count(), LISTENER), Resumed::Behind { .. }));
    }
    client.run("SET k 8");
    for cut in [&awake, &dormant] {
        let again = cut.restored();
        support::apply_from(&engine, cut.lsn.next(), &again);
        assert_eq!(again.dormant_queries(), 0, "the log has their waking");
        for query in [&get.query, &high.query] {
            let same = again.query(query.id()).expect("it is there");
            assert_eq!(same.count(), query.count());
            assert_eq!(last(&same), last(query));
        }
    }
    assert_eq!((get.query.count(), high.query.count()), (4, 3), "1 7 3 8, and 1 7 8");
}

fn last(query: &Query) -> Option<Emission> {
    query.latest_after(query.count() - 1).expect("the last is retained")
}

#[test]
fn what_a_read_has_retained_is_let_go_when_it_goes_on_elsewhere() {
    let engine = engine();
    let client = Client::new(&engine);
    let (get, other) = (watch(&engine, "GET k"), watch(&engine, "GET other"));
    for number in 0..10 {
        client.run(&format!("SET k {number}"));
        client.run(&format!("SET other {number}"));
    }
    let both = engine.query_figures().1;
    engine.leave(&get.query, LISTENER, START_US);
    engine.limit_writes(NOTHING_UNHEARD);
    client.run("SET k 10");
    let mut retained = Vec::new();
    get.query
        .emissions_after(0, 99, &mut retained)
        .expect("what it has emitted is retained while it is dormant");
    assert_eq!((retained.len(), engine.query_figures().1), (10, both));
    wake(&engine, &get.query, None);
    assert_eq!(engine.query_figures().1, both / 2);
    // Entries of released emissions are still in the retention order.
    engine.limit_retention(RetentionLimits { age_us: 1, ..RetentionLimits::default() });
    engine.resume_after(get.query.id(), 11, LISTENER);
    client.run("SET k 11");
    engine.forget_watched(START_US + 10);
    assert_eq!(engine.query_figures(), (2, 0));
    assert_eq!((get.query.count(), other.query.count()), (12, 10));
}

#[test]
fn a_dormant_read_is_forgotten_when_its_time_has_come() {
    let engine = engine();
    engine.limit_writes(NOTHING_UNHEARD);
    engine.limit_retention(RetentionLimits { age_us: 1_000_000, ..RetentionLimits::default() });
    let get = watch(&engine, "GET k");
    engine.leave(&get.query, LISTENER, START_US);
    Client::new(&engine).run("SET k 1");
    assert_eq!(engine.dormant_queries(), 1);
    engine.forget_watched(START_US + 2_000_000);
    assert_eq!((engine.query_figures().0, engine.dormant_queries()), (0, 0));
    assert_eq!(replayed(&engine).query_figures().0, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    /// Reads may become dormant and be woken at any time, from any snapshot. They end in the same
    /// state as reads that never become dormant.
    #[test]
    fn dormancy_changes_no_number_no_record_and_no_answer(
        steps in proptest::collection::vec(step(), 1..100),
        dormant in proptest::collection::btree_set(0..100_usize, 0..6),
        woken in proptest::collection::btree_set(0..100_usize, 0..4),
    ) {
        let engine = engine();
        let (mut cuts, mut failed) = (vec![], None);
        let begun = run(&engine, &steps, |engine, number| {
            // With a budget of zero, no query can be woken.
            let is_without = dormant.contains(&number) && !woken.contains(&number);
            engine.limit_writes(if is_without { NOTHING } else { WriteBudget::UNLIMITED });
            if woken.contains(&number) {
                for query in engine.all_queries() {
                    if query.is_dormant() {
                        // The newest cut in which the query is not dormant, chosen as a server
                        // does.
                        let usable = |cut: &&Cut| query.id() > cut.lsn || knows(cut, &query);
                        let cut = cuts.iter().rev().find(usable).filter(|cut| query.id() <= cut.lsn);
                        wake(engine, &query, cut);
                        if query.is_dormant() {
                            failed = Some(query.id());
                        }
                    }
                }
                cuts.push(Cut::of(engine));
            }
        });
        prop_assert_eq!(failed, None);
        engine.limit_writes(WriteBudget::UNLIMITED);
        let replica = support::engine();
        support::for_each_record(&engine, Lsn(1), |record| {
            replica.apply(record, &mut Reply::default()).expect("applies");
        });
        for id in begun.keys() {
            let (query, same) = (engine.query(*id).expect("begun"), replica.query(*id).expect("in the log"));
            if query.is_dormant() {
                wake(&engine, &query, None);
            }
            prop_assert_eq!(query.count(), same.count(), "{:?}", query.read());
            prop_assert_eq!(
                query.shown_at(query.count()).map(|answer| shown(&answer)),
                same.shown_at(same.count()).map(|answer| shown(&answer))
            );
        }
        prop_assert_eq!(engine.dormant_queries(), 0);
    }
}

/// Whether a cut has the emission count of a query.
fn knows(cut: &Cut, query: &Query) -> bool {
    let counts = cut
        .queries
        .iter()
        .map(|frame| tidemark_engine::watch::count_in_frame(frame, query.id()).expect("a frame"));
    counts.flatten().next().is_some()
}

#[test]
fn a_dormant_read_is_not_watched_under_its_read() {
    let engine = engine();
    engine.limit_writes(NOTHING);
    let get = watch(&engine, "GET k");
    Client::new(&engine).run("SET k 1");
    let known = engine.query_of(&read("GET k")).expect("it can be resumed");
    assert!(known.id() == get.query.id() && known.is_dormant());
}
