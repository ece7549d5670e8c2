//! Watched reads: what they emit and when. Their emissions match the log.

use crate::support;
use crate::support::{Client, START_US, engine, engine_with_log, log, replayed, shown, transaction};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tidemark_engine::tracking::Broadcast;
use tidemark_engine::watch::{
    Acknowledged, Acknowledgement, Audience, Emission, Filter, Gone, Guarantee, Named, Past, PastError,
    Query, QueryLimits, Read, Resumed, RetentionLimits, SharedQuery, Subscribed,
};
use tidemark_engine::{Call, Engine, Protocol, Reply, Terms, command, encoded};
use tidemark_log::{Durability, Log, Lsn, MemoryStorage, Options, Record};

/// The only listener of most tests.
pub(crate) const LISTENER: usize = 0;

/// Parses a read and the operators after `|`.
pub(crate) fn read(line: &str) -> Read {
    let words = support::words(line);
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let at = words.iter().position(|word| *word == b"|").unwrap_or(words.len());
    let filter = Filter::parse(&words[at..]).expect("operators");
    Read::new(0, Protocol::Resp3, &words[..at], filter).expect("a read")
}

pub(crate) fn watch(engine: &Engine, line: &str) -> Subscribed {
    engine.subscribe(read(line), LISTENER, START_US).expect("a beginning")
}

fn emissions(query: &Query) -> Vec<Emission> {
    let mut into = Vec::new();
    query.emissions_after(0, usize::MAX, &mut into).expect("all are retained");
    into
}

/// The emissions of a query, as text.
pub(crate) fn answers(subscribed: &Subscribed) -> Vec<String> {
    emissions(&subscribed.query).iter().map(|emission| shown(&emission.answer)).collect()
}

#[test]
fn a_read_is_answered_and_then_emits_whatever_changes() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET k 1");
    let get = watch(&engine, "GET k");
    assert_eq!((shown(&get.answer).as_str(), get.number, get.lsn), ("$1 1", 0, Lsn(2)));
    assert_eq!(get.query.id(), Lsn(2), "the record of the watch is the second of the log");
    for line in ["SET k 2", "SET other 1", "INCR k", "SET k 3", "APPEND k x", "DEL k", "DEL k", "RPUSH k a"] {
        client.run(line);
    }
    // A change that leaves the answer as it was emits nothing.
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(answers(&get), ["$1 2", "$1 3", "$2 3x", "_", wrong_type]);
    let places: Vec<(u64, u64)> =
        emissions(&get.query).iter().map(|emission| (emission.number, emission.lsn.0)).collect();
    assert_eq!(places, [(1, 3), (2, 5), (3, 7), (4, 8), (5, 9)]);
}

#[test]
fn every_way_to_change_a_key_emits() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    for line in [
        "SET k 0 PX 100",
        "EXPIRE k 1",
        "MSET k 1 l 2",
        "RENAME l k",
        "FLUSHDB",
        "SET k 3",
        "MOVE k 1",
        "SWAPDB 0 1",
        "COPY k l",
        "FLUSHALL",
    ] {
        assert!(!client.run(line).starts_with('-'), "{line}");
    }
    assert_eq!(answers(&get), ["$1 0", "$1 1", "$1 2", "_", "$1 3", "_", "$1 3", "_"]);
    client.run("SET k 4 PX 100");
    client.sleep_ms(200);
    engine.expire_due(client.now_us, 10);
    assert_eq!(answers(&get)[8..], ["$1 4", "_"]);
    client.run("SET k 5 PX 100");
    client.sleep_ms(200);
    // SETNX finds the key expired before it runs. The expiry and the write are one record.
    client.run("SETNX k 6");
    assert_eq!(answers(&get)[10..], ["$1 5", "$1 6"]);
    client.run("EXPIREAT k 1");
    assert_eq!(answers(&get)[12..], ["_"]);
}

#[test]
fn only_changes_within_what_is_read_are_emitted() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("ZADD z 1 a 2 b 3 c");
    client.run("HSET h f 1 g 2");
    let top = watch(&engine, "ZRANGE z 0 1");
    let field = watch(&engine, "HGET h f");
    let length = watch(&engine, "HLEN h");
    for line in ["ZADD z 9 d", "ZADD z 0 e", "HSET h g 3", "HSET h f 4", "HDEL h g", "ZREM z c"] {
        client.run(line);
    }
    assert_eq!(answers(&top), ["*2 $1 e $1 a"]);
    assert_eq!(answers(&field), ["$1 4"]);
    assert_eq!(answers(&length), [":1"]);
}

/// How many answers a command evaluates again, and how many it spares.
fn looked_at(engine: &Engine, line: &str) -> (u64, u64) {
    let before = engine.evaluation_figures();
    let answer = Client::new(engine).run(line);
    assert!(!answer.starts_with('-'), "{line}: {answer}");
    let after = engine.evaluation_figures();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn reads_are_answered_anew_only_if_a_change_can_concern_them() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("HSET h f 1 g 2");
    client.run("SADD s a b");
    client.run("RPUSH l a b c d e f");
    client.run("SET t 0123456789");
    for rank in 0..200 {
        client.run(&format!("ZADD z {rank} m{rank:03}"));
    }
    for line in ["HGET h f", "HMGET h g f", "HEXISTS h f", "HLEN h", "HKEYS h", "HSCAN h 0 MATCH f*"] {
        watch(&engine, line);
    }
    for line in ["SISMEMBER s a", "SMISMEMBER s a b", "LRANGE l 0 2", "LINDEX l -1", "LLEN l"] {
        watch(&engine, line);
    }
    for line in ["GETRANGE t 2 4", "GETBIT t 70", "BITCOUNT t 0 4", "GET t"] {
        watch(&engine, line);
    }
    for line in ["ZRANGE z 0 9 REV", "ZRANK z m100", "ZSCORE z m050", "ZCOUNT z (10 20", "ZCARD z"] {
        watch(&engine, line);
    }
    for (line, looked, spared) in [
        ("HSET h g 3", 1, 5),
        ("HSET h f 3", 3, 3),
        ("HSET h other 3", 2, 4),
        ("HDEL h other", 2, 4),
        ("SADD s c", 0, 2),
        ("SREM s b", 1, 1),
        ("RPUSH l g", 2, 1),
        ("LSET l 4 x", 0, 3),
        ("LSET l 1 x", 1, 2),
        ("LPOP l", 2, 1),
        ("SETRANGE t 5 abc", 1, 3),
        ("SETBIT t 70 1", 2, 2),
        ("APPEND t more", 1, 3),
        ("ZADD z 5.5 m005", 0, 5),
        ("ZADD z 15.5 m005", 1, 4),
        ("ZADD z 150.5 m005", 2, 3),
        ("ZADD z 195 m050", 3, 2),
        ("ZREM z m000", 2, 3),
        ("ZREM z m199", 2, 3),
        ("PEXPIRE h 100000", 6, 0),
        ("DEL z", 5, 0),
        ("RENAME h z", 11, 0),
    ] {
        assert_eq!(looked_at(&engine, line), (looked, spared), "{line}");
    }
}

#[test]
fn a_read_of_many_elements_of_one_key_costs_nothing_where_others_change() {
    let engine = engine();
    let subscribed: Vec<Subscribed> =
        (0..1000).map(|field| watch(&engine, &format!("HGET h f{field}"))).collect();
    assert_eq!(looked_at(&engine, "HSET h f7 1 f9 2"), (2, 998));
    for gone in &subscribed[..500] {
        engine.leave(&gone.query, LISTENER, START_US);
    }
    engine.limit_retention(RetentionLimits { age_us: 0, ..RetentionLimits::default() });
    engine.forget_watched(START_US + 1);
    assert_eq!(engine.query_figures().0, 500);
    assert_eq!(looked_at(&engine, "HSET h f7 2 f499 2 f500 2"), (1, 499));
    assert_eq!(answers(&subscribed[500]), ["$1 2"]);
    assert_eq!(looked_at(&engine, "RENAME h other"), (500, 0));
    assert_eq!(looked_at(&engine, "SADD h f600"), (500, 0), "a key of another type is answered otherwise");
}

#[test]
fn a_transaction_emits_once_whatever_it_did_between() {
    let engine = engine();
    let (get, both) = (watch(&engine, "GET a"), watch(&engine, "MGET a b"));
    transaction(&engine, None, &["SET a 1", "SET b 1", "SET a 2", "SET b 2"]);
    assert_eq!(answers(&get), ["$1 2"]);
    assert_eq!(answers(&both), ["*2 $1 2 $1 2"]);
    assert_eq!(emissions(&get.query)[0].lsn, emissions(&both.query)[0].lsn);
    transaction(&engine, None, &["SET a 3", "SET a 2"]);
    assert_eq!(answers(&get).len(), 1, "behind the transaction all is as before");
}

#[test]
fn reads_of_keys_in_several_shards_are_emitted_with_every_one_of_them() {
    let engine = engine();
    let client = Client::new(&engine);
    let union = watch(&engine, "SUNION a b c d e f g");
    for key in ["g", "a", "d", "b"] {
        client.run(&format!("SADD {key} {key}"));
    }
    assert_eq!(answers(&union), ["~1 $1 g", "~2 $1 a $1 g", "~3 $1 a $1 d $1 g", "~4 $1 a $1 b $1 d $1 g"]);
}

#[test]
fn reads_over_the_keyspace_emit_for_every_matching_key() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET user:1 x");
    let scan = watch(&engine, "SCAN 0 MATCH user:*");
    let size = watch(&engine, "DBSIZE");
    assert_eq!(shown(&scan.answer), "*2 $1 0 *1 $6 user:1");
    for line in ["SET user:2 x", "SET other x", "SET user:2 y", "DEL user:1"] {
        client.run(line);
    }
    assert_eq!(answers(&scan), ["*2 $1 0 *2 $6 user:1 $6 user:2", "*2 $1 0 *1 $6 user:2"]);
    assert_eq!(answers(&size), [":2", ":3", ":2"]);
}

#[test]
fn a_client_served_from_a_key_causes_its_own_emission() {
    let engine = engine();
    let length = watch(&engine, "LLEN jobs");
    let (client, call) = (Client::new(&engine), ["BLPOP", "jobs", "0"].map(str::as_bytes));
    let command = command::resolve(&call).expect("a command");
    let call = Call { command, args: &call, db: 0, now_us: START_US };
    let executed = engine.execute(&call, &mut Reply::default());
    let waiter = executed.into_blocked().expect("it waits").wait(|_| (), |_| ());
    client.run("RPUSH jobs one");
    assert!(waiter.is_served());
    assert_eq!(answers(&length), [":1", ":0"], "the push and the pop behind it are two records");
}

#[test]
fn equal_subscriptions_share_one_query_and_their_beginnings_differ() {
    let engine = engine();
    let client = Client::new(&engine);
    let first = watch(&engine, "GET k");
    client.run("SET k 1");
    let second = watch(&engine, "get k");
    assert!(SharedQuery::ptr_eq(&first.query, &second.query));
    assert_eq!((first.number, second.number), (0, 1));
    assert_eq!(shown(&second.answer), "$1 1");
    assert_eq!(engine.query_figures().0, 1);
    let other = engine.subscribe(
        Read::new(0, Protocol::Resp2, &[b"get".as_slice(), b"k"], Filter::default()).expect("a read"),
        LISTENER,
        START_US,
    );
    assert!(!SharedQuery::ptr_eq(&first.query, &other.expect("a beginning").query), "another protocol");
}

#[test]
fn operators_stand_between_answers_and_emissions() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("SET price 10");
    let (high, third) = (watch(&engine, "GET price | HIGH"), watch(&engine, "GET price | every 3"));
    let average = watch(&engine, "GET price | WINDOW 2 AVG");
    assert_eq!(
        (shown(&high.answer), shown(&third.answer), shown(&average.answer)),
        ("$2 10".into(), "_".into(), ",10".into())
    );
    for price in [9, 12, 11, 15] {
        client.run(&format!("SET price {price}"));
    }
    assert_eq!(answers(&high), ["$2 12", "$2 15"]);
    assert_eq!(answers(&third), ["$2 12"], "the first answer counts");
    assert_eq!(answers(&average), [",9.5", ",10.5", ",11.5", ",13"]);
    let before: Vec<String> = emissions(&high.query)
        .iter()
        .map(|emission| shown(emission.before.as_ref().expect("its emissions are answers")))
        .collect();
    assert_eq!(before, ["$2 10", "$2 12"]);
    assert_eq!(shown(&watch(&engine, "GET price | HIGH").answer), "$2 15", "what passed last");
    let replica = replayed(&engine);
    for subscribed in [&high, &third, &average] {
        let query = replica.query(subscribed.query.id()).expect("it is in the log");
        assert_eq!(emissions(&query), emissions(&subscribed.query));
    }
}

#[test]
fn a_read_that_fails_is_not_watched() {
    let engine = engine();
    Client::new(&engine).run("RPUSH list a");
    let error = engine.subscribe(read("GET list"), LISTENER, START_US).expect_err("a wrong type");
    assert!(error.to_string().starts_with("WRONGTYPE"), "{error}");
    assert_eq!(engine.query_figures().0, 0);
    assert_eq!(engine.log().appended(), Lsn(1), "nothing was logged");
    engine.limit_queries(QueryLimits { queries: 1, ..QueryLimits::default() });
    watch(&engine, "GET a");
    watch(&engine, "GET a");
    let error = engine.subscribe(read("GET b"), LISTENER, START_US).expect_err("one too many");
    assert!(error.to_string().contains("watch-max-queries"), "{error}");
    engine.limit_queries(QueryLimits { bytes: 1000, ..QueryLimits::default() });
    Client::new(&engine).run(&format!("SET a {}", "x".repeat(1000)));
    let error = engine.subscribe(read("GET b"), LISTENER, START_US).expect_err("too much");
    assert!(error.to_string().contains("watch-max-bytes"), "{error}");
    Client::new(&engine).run("SET a x");
    watch(&engine, "GET b");
}

#[test]
fn a_new_watch_sees_an_expired_key_as_absent() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("SET k 1 PX 100");
    let first = watch(&engine, "GET k");
    client.sleep_ms(200);
    let second = engine.subscribe(read("GET k"), LISTENER, client.now_us).expect("a beginning");
    assert_eq!((shown(&second.answer).as_str(), second.number), ("_", 1));
    assert_eq!(answers(&first), ["_"], "an earlier watcher is notified");
    assert_eq!(second.logged, Some(Lsn(3)));
}

#[test]
fn a_subscription_resumes_behind_any_record() {
    let engine = engine();
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    for line in ["SET k 1", "SET other 1", "SET k 2", "SET k 3"] {
        client.run(line);
    }
    // Records: 1 is the watch; 2, 4 and 5 change the key; 3 changes another key.
    for (lsn, number) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 3)] {
        match engine.resume(get.query.id(), Lsn(lsn), LISTENER) {
            Resumed::Behind { number: found, .. } => assert_eq!(found, number, "behind {lsn}"),
            other => panic!("behind {lsn}: {other:?}"),
        }
    }
    assert!(matches!(engine.resume(get.query.id(), Lsn(0), LISTENER), Resumed::Gone(Gone { floor: Lsn(1) })));
    assert!(matches!(engine.resume(get.query.id(), Lsn(6), LISTENER), Resumed::Beyond(Lsn(5))));
    assert!(matches!(engine.resume(Lsn(2), Lsn(1), LISTENER), Resumed::Unknown));
}

#[test]
fn a_subscription_does_not_resume_behind_a_record_that_a_crash_took_back() {
    let storage = MemoryStorage::with_crashes();
    let open = |storage: &MemoryStorage| {
        let options = Options { durability: Durability::Off, ..Options::default() };
        Arc::new(Log::open(Arc::new(storage.clone()), options).expect("opens").0)
    };
    let engine = support::engine_with_log(open(&storage));
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    client.run("SET k 1");
    name(&engine, b"bill", &get);
    engine.log().wait_durable(Lsn(3)).expect("memory does not fail");
    client.run("SET k taken-back");
    let notified = engine.log().appended();
    // Searches for a power failure that loses `notified`. Most of them lose all that was not written.
    let survivor = (0..1000)
        .map(|seed| storage.crash(seed))
        .find(|survivor| open(&survivor.fork()).appended() < notified);
    let again = support::engine_with_log(open(&survivor.expect("one of them does")));
    support::apply_from(&again, Lsn::FIRST, &again);
    let resume = |lsn| again.resume(get.query.id(), lsn, LISTENER);
    assert!(matches!(resume(notified), Resumed::Beyond(Lsn(3))));
    // The log continues past the lost LSN, which then belongs to another record.
    let client = Client::new(&again);
    (0..5).for_each(|number| drop(client.run(&format!("SET k {number}"))));
    assert!(again.log().appended() > notified);
    let head = again.log().appended();
    assert!(matches!(resume(notified), Resumed::Beyond(end) if end == head));
    assert_eq!(
        done(&again, b"bill", notified.0),
        Acknowledged::Beyond(head),
        "no subscriber could resume after it"
    );
    assert!(matches!(resume(Lsn(2)), Resumed::Behind { number: 1, .. }));
    assert!(matches!(resume(head), Resumed::Behind { number: 6, .. }));
}

#[test]
fn what_is_not_retained_is_said_to_be_gone_with_the_floor() {
    let engine = engine();
    let client = Client::new(&engine);
    engine.limit_retention(RetentionLimits { bytes: 300, ..RetentionLimits::default() });
    let (a, b) = (watch(&engine, "GET a"), watch(&engine, "GET b"));
    client.run("SET a 1");
    client.run("SET b 1");
    client.run("SET b 2");
    // Each emission takes about a hundred bytes. The oldest of all is evicted: that of `a`, at
    // record 3.
    assert!(matches!(engine.resume(a.query.id(), Lsn(2), LISTENER), Resumed::Gone(Gone { floor: Lsn(3) })));
    assert!(matches!(engine.resume(a.query.id(), Lsn(3), LISTENER), Resumed::Behind { number: 1, .. }));
    assert!(matches!(engine.resume(b.query.id(), Lsn(2), LISTENER), Resumed::Behind { number: 0, .. }));
    assert_eq!(a.query.emissions_after(0, 1, &mut Vec::new()), Err(Gone { floor: Lsn(3) }));
    assert_eq!(a.query.latest_after(1), Ok(None));
}

#[test]
fn queries_without_listeners_are_evicted_at_their_deadline() {
    let engine = engine();
    engine.limit_retention(RetentionLimits { age_us: 1_000_000, ..RetentionLimits::default() });
    let client = Client::new(&engine);
    let (get, size) = (watch(&engine, "GET k"), watch(&engine, "DBSIZE"));
    client.run("SET k 1");
    assert_eq!(engine.next_forgetting_us(), Some(START_US + 1_000_000), "the age of the emission");
    engine.leave(&get.query, LISTENER, START_US);
    engine.forget_watched(START_US + 1_000_000);
    assert_eq!(engine.query_figures().0, 2, "not yet");
    engine.forget_watched(START_US + 1_000_001);
    let (queries, bytes) = engine.query_figures();
    assert_eq!((queries, bytes), (1, 0), "a listener of the other is left");
    assert!(matches!(engine.resume(get.query.id(), Lsn(9), LISTENER), Resumed::Unknown));
    client.run("SET k 2");
    assert_eq!(get.query.count(), 1, "it is not looked at any more");
    engine.leave(&size.query, LISTENER, START_US);
    engine.forget_watched(START_US + 2_000_000);
    assert_eq!(engine.query_figures().0, 0);
    let again = watch(&engine, "GET k");
    assert!(again.query.id() > get.query.id() && again.number == 0, "a query of its own");
    let replica = replayed(&engine);
    assert_eq!(replica.query_figures().0, 1);
}

#[test]
fn a_new_listener_keeps_a_query_whatever_its_start() {
    let engine = engine();
    engine.limit_retention(RetentionLimits { age_us: 1_000_000, ..RetentionLimits::default() });
    let get = watch(&engine, "GET k");
    engine.leave(&get.query, LISTENER, START_US);
    assert!(engine.listen(get.query.id(), LISTENER).is_some());
    engine.forget_watched(START_US + 1_000_001);
    assert_eq!(engine.query_figures().0, 1);
    engine.leave(&get.query, LISTENER, START_US);
    engine.forget_watched(START_US + 1_000_001);
    assert!(engine.listen(get.query.id(), LISTENER).is_none(), "it has gone");
}

/// A query that a listener has joined exists for as long as the listener stays.
#[test]
fn no_listener_joins_a_query_under_removal() {
    const OTHER: usize = LISTENER + 1;
    let engine = engine();
    engine.limit_retention(RetentionLimits { age_us: 0, ..RetentionLimits::default() });
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20_000 {
                let get = watch(&engine, "GET k");
                engine.leave(&get.query, LISTENER, START_US + round);
                engine.forget_watched(START_US + round + 1);
            }
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            let read = engine.queries_of(0, b"k");
            let Some(id) = read.first().map(|query| query.id()) else { continue };
            let joined = match engine.resume_after(id, 0, OTHER) {
                Resumed::Behind { query, .. } => query,
                Resumed::Unknown => continue,
                other => panic!("{other:?}"),
            };
            (0..100).for_each(|_| std::hint::spin_loop());
            assert!(engine.query(id).is_some(), "it is kept while it has a listener");
            engine.leave(&joined, OTHER, START_US);
        }
    });
}

#[test]
fn a_query_comes_back_from_the_log_and_from_a_snapshot() {
    let engine = engine();
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    let second = watch(&engine, "GET k | EVERY 2");
    client.run("SET k 1");
    client.run("SET k 2");
    client.run("SET other 1");
    let mut snapshot = engine.snapshot();
    let cut = snapshot.lsn();
    let frames: Vec<Vec<u8>> = snapshot.query_frames().collect();
    client.run("SET k 3");
    let from_log = replayed(&engine);
    let query = from_log.query(get.query.id()).expect("it is in the log");
    assert_eq!(emissions(&query), emissions(&get.query));

    let from_snapshot = support::engine();
    let loader = from_snapshot.load(START_US);
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("loads");
    }
    loader.finish().expect("complete");
    frames.iter().for_each(|frame| from_snapshot.load_queries(cut, START_US, frame).expect("loads"));
    support::apply_from(&engine, cut.next(), &from_snapshot);
    let query = from_snapshot.query(get.query.id()).expect("it is in the snapshot");
    let mut into = Vec::new();
    query.emissions_after(2, 9, &mut into).expect("those behind the snapshot are there");
    assert_eq!(into, emissions(&get.query)[2..]);
    let last = emissions(&get.query)[1].lsn;
    assert!(last < cut);
    let gone = Gone { floor: last };
    assert_eq!(
        query.emissions_after(1, 9, &mut into),
        Err(gone),
        "a subscriber that has seen the last one has missed nothing"
    );
    let query = from_snapshot.query(second.query.id()).expect("it is in the snapshot");
    assert_eq!((query.count(), second.query.count()), (2, 2), "what operators remember is in the snapshot");
}

#[test]
fn a_snapshot_has_the_queries_of_its_cut_whatever_happens_meanwhile() {
    let engine = engine();
    let client = Client::new(&engine);
    let lines = ["GET k", "GET k | WINDOW 3 SUM", "GET k | DIFF", "GET gone", "KEYS *"];
    let watched: Vec<Subscribed> = lines.iter().map(|line| watch(&engine, line)).collect();
    client.run("SET k 1");
    client.run("SET k 2");
    let counts: Vec<u64> = watched.iter().map(|subscribed| subscribed.query.count()).collect();
    let mut snapshot = engine.snapshot();
    let cut = snapshot.lsn();
    client.run("SET k 3");
    client.run("SET k 4");
    let late = watch(&engine, "GET late");
    engine.limit_retention(RetentionLimits { bytes: 1 << 20, age_us: 1_000_000 });
    engine.leave(&watched[3].query, LISTENER, START_US);
    engine.forget_watched(START_US + 1_000_001);
    assert!(engine.query(watched[3].query.id()).is_none());
    let mut frames: Vec<Vec<u8>> = snapshot.query_frames().take(1).collect();
    client.run("SET k 5");
    frames.extend(snapshot.query_frames());

    let restored = support::engine();
    let loader = restored.load(START_US);
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("loads");
    }
    loader.finish().expect("complete");
    frames.iter().for_each(|frame| restored.load_queries(cut, START_US, frame).expect("loads"));
    for (subscribed, count) in watched.iter().zip(&counts) {
        assert_eq!(restored.query(subscribed.query.id()).map(|query| query.count()), Some(*count));
    }
    assert!(restored.query(late.query.id()).is_none(), "it began behind the cut");
    support::apply_from(&engine, cut.next(), &restored);
    assert!(restored.query(watched[3].query.id()).is_none(), "it left behind the cut");
    for (subscribed, count) in watched[..3].iter().zip(&counts) {
        let query = restored.query(subscribed.query.id()).expect("it is in the snapshot");
        let (mut again, mut live) = (Vec::new(), Vec::new());
        query.emissions_after(*count, 9, &mut again).expect("those behind the snapshot are there");
        subscribed
            .query
            .emissions_after(subscribed.query.count() - 1, 9, &mut live)
            .expect("the last is there");
        assert_eq!((again.len(), again.last()), (3, live.last()), "{:?}", subscribed.query.read());
    }
    drop(snapshot);
    let mut snapshot = engine.snapshot();
    let frames: Vec<Vec<u8>> = snapshot.query_frames().collect();
    let again = support::engine();
    frames.iter().for_each(|frame| again.load_queries(snapshot.lsn(), START_US, frame).expect("loads"));
    assert_eq!(again.query_figures().0, 5, "the next snapshot has those that there are then");
}

#[test]
fn reads_without_listeners_are_evicted_for_new_ones() {
    let engine = engine();
    engine.limit_queries(QueryLimits { queries: 200, bytes: 1 << 20 });
    let queries: Vec<SharedQuery> =
        (0..200).map(|number| watch(&engine, &format!("GET k{number}")).query).collect();
    let refused = engine.subscribe(read("GET other"), LISTENER, START_US).expect_err("all have a listener");
    assert!(refused.to_string().contains("watch-max-queries"), "{refused}");
    // The later queries are left first.
    (20..180).rev().for_each(|at| engine.leave(&queries[at], LISTENER, START_US + 1000 - at as u64));
    let other = watch(&engine, "GET other").query;
    let is_there = |query: &SharedQuery| engine.query(query.id()).is_some();
    let left: Vec<usize> = (0..200).filter(|at| is_there(&queries[*at])).collect();
    let expected: Vec<usize> = (0..80).chain(180..200).collect();
    assert_eq!(left, expected, "the hundred that were left first have gone");
    assert!(is_there(&other));
    assert_eq!(replayed(&engine).query_figures().0, 101, "the log knows");
}

#[test]
fn what_operators_and_lists_remember_is_counted() {
    for (line, change) in [("GET k | WINDOW 60000 SUM", "INCR k"), ("KEYS *", "SET key:# 1")] {
        let engine = engine();
        let client = Client::new(&engine);
        engine.limit_queries(QueryLimits { queries: 100, bytes: 50_000 });
        let query = watch(&engine, line).query;
        for number in 0..6000 {
            client.run(&change.replace('#', &number.to_string()));
        }
        let refused = engine.subscribe(read("GET other"), LISTENER, START_US).expect_err("it is too much");
        assert!(refused.to_string().contains("watch-max-bytes"), "{refused}");
        engine.limit_retention(RetentionLimits { bytes: 1 << 20, age_us: 1_000_000 });
        engine.leave(&query, LISTENER, START_US);
        engine.forget_watched(START_US + 1_000_001);
        watch(&engine, "GET other");
    }
}

/// Names a subscription that begins at the current position.
fn name(engine: &Engine, name: &[u8], subscribed: &Subscribed) {
    let Subscribed { query, number, lsn, .. } = subscribed;
    let guarantee = Guarantee::AtLeastOnce;
    let named = Named { query: query.clone(), base: *number, position: *lsn, has_begun: true, guarantee };
    engine.name_subscription(name, &named, START_US).expect("a new name");
}

fn done(engine: &Engine, name: &[u8], lsn: u64) -> Acknowledged {
    engine.acknowledge(Acknowledgement { name, lsn: Lsn(lsn) }, START_US).expect("the log takes it")
}

#[test]
fn a_name_keeps_its_read_and_its_position_never_goes_back() {
    let engine = engine();
    let client = Client::new(&engine);
    engine.limit_retention(RetentionLimits { bytes: 1 << 20, age_us: 1_000_000 });
    let get = watch(&engine, "GET k");
    name(&engine, b"bill", &get);
    client.run("SET k 1");
    client.run("SET k 2");
    assert_eq!(done(&engine, b"bill", 3), Acknowledged::Moved(Lsn(5)));
    assert_eq!(done(&engine, b"bill", 2), Acknowledged::Before(Lsn(3)));
    assert_eq!(done(&engine, b"bill", 3), Acknowledged::Before(Lsn(3)));
    assert_eq!(done(&engine, b"bill", 6), Acknowledged::Beyond(Lsn(5)));
    assert_eq!(done(&engine, b"other", 3), Acknowledged::Unknown);
    let claim = |from, lsn| {
        let done = Acknowledgement { name: b"bill", lsn: Lsn(lsn) };
        engine.claim(done, Lsn(from), START_US).expect("the log takes it")
    };
    assert_eq!(claim(2, 4), Acknowledged::Before(Lsn(3)), "another subscriber was given those up to there");
    assert_eq!(claim(3, 4), Acknowledged::Moved(Lsn(6)));
    engine.leave(&get.query, LISTENER, START_US);
    engine.forget_watched(START_US + 10_000_000);
    assert_eq!(engine.query_figures().0, 1, "it has a name");
    let replica = replayed(&engine);
    let named = replica.named(b"bill").expect("the log has it");
    assert_eq!((named.query.id(), named.base, named.position), (get.query.id(), 0, Lsn(4)));

    let end = |now_us| engine.end_named(b"bill", now_us).map(|ended| ended.map(|(record, _)| record));
    assert_eq!(end(START_US + 10_000_000).expect("the log takes it"), Some(Lsn(7)));
    assert_eq!(end(START_US).expect("there is nothing to do"), None);
    engine.forget_watched(START_US + 10_500_000);
    assert_eq!(engine.query_figures().0, 1, "as long as with a listener until then");
    engine.forget_watched(START_US + 11_000_001);
    assert_eq!(engine.query_figures().0, 0);
    let replica = replayed(&engine);
    assert!(replica.named(b"bill").is_none() && replica.query_figures().0 == 0);
}

#[test]
fn a_transaction_moves_positions_with_its_changes_or_changes_nothing() {
    let engine = engine();
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    name(&engine, b"one", &get);
    name(&engine, b"two", &get);
    client.run("SET k 1");
    let run = |done: &[(&[u8], u64)]| {
        let args = [b"INCR".as_slice(), b"n"];
        let command = command::resolve(&args).expect("a command");
        let call = Call { command, args: &args, db: 0, now_us: START_US };
        let done: Vec<Acknowledgement<'_>> =
            done.iter().map(|(name, lsn)| Acknowledgement { name, lsn: Lsn(*lsn) }).collect();
        let mut reply = Reply::new(Protocol::Resp3);
        let executed =
            engine.execute_transaction_as(&[call], None, &done, START_US, Terms::default(), &mut reply);
        (executed.lsn, shown(reply.bytes()))
    };
    assert_eq!(run(&[(b"one", 4)]), (Some(Lsn(5)), "*1 :1".to_owned()));
    assert_eq!(run(&[(b"two", 4), (b"one", 4)]), (None, "_".to_owned()), "one of them was there");
    assert_eq!(run(&[(b"two", 99)]).1, "-INVALID_SEQUENCE the log ends at LSN 5");
    assert_eq!(run(&[(b"three", 4)]).1, "-SUBSCRIPTION_NOT_FOUND there is no subscription of that name");
    assert_eq!(run(&[(b"two", 4), (b"one", 5)]), (Some(Lsn(6)), "*1 :2".to_owned()));
    for engine in [&engine, &replayed(&engine)] {
        let position = |name| engine.named(name).map(|named| named.position);
        assert_eq!((position(b"one"), position(b"two")), (Some(Lsn(5)), Some(Lsn(4))));
        assert_eq!(Client::new(engine).run("GET n"), "$1 2");
    }
}

#[test]
fn a_snapshot_has_the_names_of_its_cut() {
    let engine = engine();
    let get = watch(&engine, "GET k");
    name(&engine, b"kept", &get);
    name(&engine, b"ended", &get);
    let mut snapshot = engine.snapshot();
    done(&engine, b"kept", 3);
    engine.end_named(b"ended", START_US).expect("the log takes it");
    name(&engine, b"late", &get);
    let restored = support::engine();
    for frame in snapshot.query_frames().collect::<Vec<_>>() {
        restored.load_queries(snapshot.lsn(), START_US, &frame).expect("loads");
    }
    snapshot.name_frames().for_each(|frame| restored.load_names(&frame).expect("loads"));
    let positions = |engine: &Engine| -> Vec<(String, u64)> {
        let all = engine.all_named().into_iter();
        all.map(|(name, named)| (String::from_utf8_lossy(&name).into_owned(), named.position.0)).collect()
    };
    assert_eq!(positions(&restored), [("ended".to_owned(), 1), ("kept".to_owned(), 1)]);
    support::apply_from(&engine, snapshot.lsn().next(), &restored);
    assert_eq!(positions(&restored), positions(&engine));
    assert_eq!(positions(&restored), [("kept".to_owned(), 3), ("late".to_owned(), 1)]);
}

/// An audience that records each notified listener, and the query.
#[derive(Default, Clone)]
struct Notified(Arc<Mutex<Vec<(usize, Lsn)>>>);

impl Audience for Notified {
    fn notify(&self, listener: usize, query: &SharedQuery) {
        self.0.lock().expect("no thread panics").push((listener, query.id()));
    }

    fn broadcast(&self, _: &Arc<Broadcast>) {}
}

#[test]
fn a_listener_is_notified_once_until_it_reads() {
    let (engine, notified) = (engine(), Notified::default());
    engine.set_audience(Box::new(notified.clone()));
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    engine.subscribe(read("GET k"), 1, START_US).expect("a beginning");
    client.run("SET k 1");
    client.run("SET k 2");
    let take = || std::mem::take(&mut *notified.0.lock().expect("no thread panics"));
    assert_eq!(take(), [(0, Lsn(1)), (1, Lsn(1))]);
    get.query.look(1);
    client.run("SET k 3");
    assert_eq!(take(), [(1, Lsn(1))]);
    engine.leave(&get.query, 1, START_US);
    get.query.look(0);
    client.run("SET k 4");
    assert_eq!(take(), [(0, Lsn(1))]);
}

/// Returns the answers that a query's past emits from the whole log, as text.
pub(crate) fn answers_of_past(engine: &Engine, subscribed: &Subscribed) -> Vec<String> {
    let mut past = Past::new(engine.log(), &subscribed.query, 1 << 20);
    let mut emitted = Vec::new();
    support::for_each_record(engine, Lsn(1), |record| {
        emitted.extend(past.apply(record).expect("the keys that the read names are enough"));
    });
    emitted.iter().map(|emission| shown(&emission.answer)).collect()
}

/// Replays a query's emissions within a memory limit. Returns their number, or the error.
fn past_within(engine: &Engine, subscribed: &Subscribed, limit: usize) -> Result<u64, PastError> {
    let mut past = Past::new(engine.log(), &subscribed.query, limit);
    let mut outcome = Ok(());
    support::for_each_record(engine, Lsn(1), |record| {
        if outcome.is_ok() {
            outcome = past.apply(record).map(drop);
        }
    });
    outcome.map(|()| past.count())
}

#[test]
fn the_past_of_a_read_takes_no_more_than_it_may_however_it_grows() {
    let limit = 100_000;
    let large = "x".repeat(60_000);
    for lines in [
        vec![format!("SET a {large}"), format!("SET b {large}")],
        vec!["SETRANGE a 200000 x".to_owned()],
        vec!["SETBIT a 1600000 1".to_owned()],
        vec!["BITFIELD a SET u8 #200000 1".to_owned()],
        vec!["SET a x".to_owned(), "SETRANGE a 60000 x".to_owned(), "COPY a b".to_owned()],
        (0..40).map(|number| format!("RPUSH a {number}{}", "x".repeat(5000))).collect(),
    ] {
        let engine = engine();
        let both = watch(&engine, "EXISTS a b");
        let client = Client::new(&engine);
        for line in &lines {
            assert!(!client.run(line).starts_with('-'), "{line:.40}");
        }
        let outcome = past_within(&engine, &both, limit);
        assert!(matches!(outcome, Err(PastError::TooLarge { .. })), "{:.40}: {outcome:?}", lines[0]);
        assert_eq!(past_within(&engine, &both, 10 * limit), Ok(both.query.count()));
        // Memory that a replay allocates and frees again does not count against the limit.
        client.run("DEL a b");
    }
    let engine = engine();
    let get = watch(&engine, "STRLEN a");
    let client = Client::new(&engine);
    for number in 0..100 {
        client.run(&format!("SET a {}", "x".repeat(30_000 + number)));
        client.run(&format!("SET other{number} {large}"));
    }
    assert_eq!(
        past_within(&engine, &get, limit),
        Ok(100),
        "what was there before and what is of others is not counted"
    );
}

#[test]
fn the_past_of_a_read_begins_anew_over_what_its_keys_were_made_of() {
    let engine = engine();
    let client = Client::new(&engine);
    let get = watch(&engine, "GET k");
    for line in
        ["SET first 1", "SET other 1", "COPY first second", "COPY k away", "RENAME second k", "APPEND k 2"]
    {
        client.run(line);
    }
    assert_eq!(past_within(&engine, &get, 1 << 20), Err(PastError::Widened));
    let (again, counts) = made_anew(&engine, &get.query, None);
    assert_eq!(again.iter().map(|emission| shown(&emission.answer)).collect::<Vec<_>>(), ["$1 1", "$2 12"]);
    assert_eq!(counts.get(&Lsn(5)), Some(&1), "{counts:?}");
}

#[test]
fn the_past_of_a_read_ends_where_it_was_forgotten() {
    let engine = engine();
    engine.limit_retention(RetentionLimits { age_us: 1_000_000, ..RetentionLimits::default() });
    let get = watch(&engine, "GET k");
    Client::new(&engine).run("SET k 1");
    engine.leave(&get.query, LISTENER, START_US);
    engine.forget_watched(START_US + 2_000_000);
    assert_eq!(past_within(&engine, &get, 1 << 20), Err(PastError::Forgotten));
}

#[test]
fn a_full_log_takes_no_new_watch_and_nothing_is_emitted_that_was_not_logged() {
    let log = log();
    let engine = engine_with_log(Arc::clone(&log));
    let get = watch(&engine, "GET k");
    log.close().expect("memory does not fail");
    assert!(Client::new(&engine).run("SET k 1").starts_with("-MISCONF"));
    assert_eq!(answers(&get), [""; 0]);
    assert!(engine.subscribe(read("GET other"), LISTENER, START_US).is_err());
    assert!(engine.subscribe(read("GET k"), LISTENER, START_US).is_ok(), "it is in the log already");
}

// ---- against a model ----

/// Changes to the keys `a` to `f`. Each test uses few keys, so that its steps meet.
fn change() -> impl Strategy<Value = String> {
    let key = || proptest::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
    let value = 0..4_u8;
    prop_oneof![
        (key(), value.clone()).prop_map(|(key, value)| format!("SET {key} {value}")),
        (key(), 1..50_u16).prop_map(|(key, ms)| format!("SET {key} t PX {ms}")),
        key().prop_map(|key| format!("DEL {key}")),
        (key(), key()).prop_map(|(from, to)| format!("RENAME {from} {to}")),
        (key(), value.clone()).prop_map(|(key, value)| format!("SADD {key} {value}")),
        (key(), value.clone()).prop_map(|(key, value)| format!("SREM {key} {value}")),
        (key(), value.clone()).prop_map(|(key, value)| format!("ZADD {key} {value} m{value}")),
        (key(), value.clone()).prop_map(|(key, value)| format!("HSET {key} f{value} {value}")),
        (key(), value.clone()).prop_map(|(key, value)| format!("HDEL {key} f{value}")),
        (key(), value).prop_map(|(key, value)| format!("RPUSH {key} {value}")),
        key().prop_map(|key| format!("LPOP {key}")),
        key().prop_map(|key| format!("SPOP {key}")),
        (key(), 1..50_u16).prop_map(|(key, ms)| format!("PEXPIRE {key} {ms}")),
        (key(), key()).prop_map(|(from, to)| format!("SUNIONSTORE {to} {from}")),
        (key(), key(), key()).prop_map(|(one, other, to)| format!("ZUNIONSTORE {to} 2 {one} {other}")),
        (key(), key()).prop_map(|(from, to)| format!("COPY {from} {to} REPLACE")),
        (key(), key()).prop_map(|(from, to)| format!("LMOVE {from} {to} LEFT RIGHT")),
        (key(), key()).prop_map(|(from, to)| format!("SMOVE {from} {to} 1")),
        (key(), key()).prop_map(|(from, to)| format!("BITOP OR {to} {from} {to}")),
        (key(), key()).prop_map(|(from, to)| format!("SORT {from} BY * GET # GET ? ALPHA STORE {to}")),
        (key(), key()).prop_map(|(one, other)| format!("MSET {one} 1 {other} 2")),
        (key(), key()).prop_map(|(one, other)| format!("MSETNX {one} 1 {other} 2")),
        (key(), key()).prop_map(|(one, other)| format!("UNLINK {one} {other}")),
        key().prop_map(|key| format!("MOVE {key} 1")),
        key().prop_map(|key| format!("COPY {key} {key} DB 1")),
        Just("FLUSHDB".to_owned()),
        Just("SWAPDB 0 1".to_owned()),
    ]
}

const READS: [&str; 26] = [
    "HGET b f1",
    "HMGET a f0 f2",
    "SISMEMBER a 1",
    "ZSCORE c m1",
    "ZRANK c m2",
    "ZRANGE c -1 -1",
    "LRANGE d 0 1",
    "GETRANGE a 0 1",
    "GET a | EVERY 2",
    "SCARD a | HIGH",
    "GET a",
    "GET b",
    "STRLEN a",
    "SMEMBERS a",
    "HGETALL b",
    "ZRANGE c 0 1 WITHSCORES",
    "LRANGE d 0 -1",
    "MGET a b c d e f",
    "SUNION a c e",
    "DBSIZE",
    "KEYS *",
    "KEYS [a-c]",
    "SCAN 0 TYPE list MATCH ?",
    "SCAN 0 TYPE set",
    "EXISTS a b c",
    "PEXPIRETIME a",
];

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Change(String),
    Transaction(Vec<String>),
    Watch(usize),
    Sleep(u16),
    Expire,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => change().prop_map(Step::Change),
        1 => proptest::collection::vec(change(), 1..5).prop_map(Step::Transaction),
        2 => (0..READS.len()).prop_map(Step::Watch),
        1 => (0..60_u16).prop_map(Step::Sleep),
        1 => Just(Step::Expire),
    ]
}

/// The model: runs the plain read after every record. An answer that differs from the previous one
/// is an emission, if it passes the operators.
///
/// The model reads at a time before every deadline, so that a key exists until a record removes it.
/// It keeps only the last answers, and how many or how great they were.
#[derive(Default)]
struct Model {
    watched: BTreeMap<Lsn, (String, String, Passing)>,
    emitted: BTreeMap<Lsn, Vec<(Lsn, String)>>,
}

impl Model {
    fn after(&mut self, engine: &Engine, record: &Record<'_>, begun: &BTreeMap<Lsn, String>) {
        let client = Client { now_us: 0, ..Client::resp3(engine) };
        for (id, (line, last, passing)) in &mut self.watched {
            let answer = in_order(&client, line);
            if answer == *last {
                continue;
            }
            if passing.passes(&answer) {
                self.emitted.entry(*id).or_default().push((record.lsn, answer.clone()));
            }
            *last = answer;
        }
        if let Some(line) = begun.get(&record.lsn) {
            let (line, operators) = line.split_once(" | ").unwrap_or((line, ""));
            let (answer, mut passing) = (in_order(&client, line), Passing::of(operators));
            passing.passes(&answer);
            self.watched.insert(record.lsn, (line.to_owned(), answer, passing));
        }
    }
}

/// The operators that the model knows.
enum Passing {
    All,
    EverySecond(u32),
    High(i64),
}

impl Passing {
    fn of(operators: &str) -> Self {
        match operators {
            "" => Self::All,
            "EVERY 2" => Self::EverySecond(0),
            "HIGH" => Self::High(i64::MIN),
            other => panic!("the model does not know {other}"),
        }
    }

    fn passes(&mut self, answer: &str) -> bool {
        match self {
            Self::All => true,
            Self::EverySecond(count) => {
                *count += 1;
                count.is_multiple_of(2)
            }
            Self::High(greatest) => {
                let Some(number) = answer.strip_prefix(':').and_then(|text| text.parse::<i64>().ok()) else {
                    return false;
                };
                let passes = number > *greatest;
                *greatest = number.max(*greatest);
                passes
            }
        }
    }
}

/// Returns the answer of a plain read, with its elements sorted if they come from a hash table.
fn in_order(client: &Client<'_>, line: &str) -> String {
    let line = if line.starts_with("SCAN") { format!("{line} COUNT 1000000") } else { line.to_owned() };
    let words = support::words(&line);
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let command = command::resolve(&args).expect("a read");
    let mut reply = Reply::new(Protocol::Resp3);
    let call = Call { command, args: &args, db: 0, now_us: client.now_us };
    client.engine.execute(&call, &mut reply);
    let bytes = reply.bytes();
    let together = match command.name {
        "smembers" | "sunion" | "keys" | "scan" => 1,
        "hgetall" => 2,
        _ => return shown(bytes),
    };
    let start =
        if command.name == "scan" { encoded::elements(bytes, 0).expect("two elements")[1].0 } else { 0 };
    let Some(elements) = encoded::elements(bytes, start).filter(|elements| !elements.is_empty()) else {
        return shown(bytes);
    };
    let mut units: Vec<&[u8]> =
        elements.chunks(together).map(|unit| &bytes[unit[0].0..unit[together - 1].1]).collect();
    units.sort_by_key(|unit| unit.iter().position(|byte| *byte == b'\n').map(|at| &unit[at..]));
    shown(&[&bytes[..elements[0].0], &units.concat()].concat())
}

/// Runs all steps, and calls `between` after each. Returns the reads that were watched, by their
/// IDs.
pub(crate) fn run<'e>(
    engine: &'e Engine,
    steps: &[Step],
    mut between: impl FnMut(&'e Engine, usize),
) -> BTreeMap<Lsn, String> {
    let mut client = Client::resp3(engine);
    let mut begun = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Change(line) => drop(client.run(line)),
            Step::Transaction(lines) => {
                let words: Vec<Vec<String>> = lines.iter().map(|line| support::words(line)).collect();
                let args: Vec<Vec<&[u8]>> =
                    words.iter().map(|words| words.iter().map(String::as_bytes).collect()).collect();
                let now_us = client.now_us;
                let call =
                    |args| Call { command: command::resolve(args).expect("a command"), args, db: 0, now_us };
                let calls: Vec<Call<'_>> = args.iter().map(|args| call(args.as_slice())).collect();
                engine.execute_transaction(&calls, None, client.now_us, &mut Reply::default());
            }
            Step::Watch(number) => {
                // A read that fails to begin, on a value of another type, is not watched.
                if let Ok(subscribed) = engine.subscribe(read(READS[*number]), LISTENER, client.now_us) {
                    begun.insert(subscribed.query.id(), READS[*number].to_owned());
                }
            }
            Step::Sleep(ms) => client.sleep_ms(u64::from(*ms)),
            Step::Expire => drop(engine.expire_due(client.now_us, 100)),
        }
        between(engine, number);
    }
    begun
}

/// A snapshot in memory.
pub(crate) struct Cut {
    pub(crate) lsn: Lsn,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) queries: Vec<Vec<u8>>,
}

impl Cut {
    pub(crate) fn of(engine: &Engine) -> Self {
        let mut snapshot = engine.snapshot();
        let queries = snapshot.query_frames().collect();
        let keys = std::iter::from_fn(|| snapshot.next_frame()).collect();
        snapshot.check().expect("it is whole");
        Self { lsn: snapshot.lsn(), keys, queries }
    }

    /// Returns an engine that starts from the cut.
    pub(crate) fn restored(&self) -> Engine {
        let engine = support::engine();
        let loader = engine.load(START_US);
        self.keys.iter().for_each(|frame| loader.load_frame(frame).expect("loads"));
        loader.finish().expect("complete");
        self.queries.iter().for_each(|frame| engine.load_queries(self.lsn, START_US, frame).expect("loads"));
        engine
    }

    pub(crate) fn load(&self, past: &mut Past) {
        self.try_load(past).expect("loads");
    }

    /// As [`Cut::load`]; fails if the read depends on more keys than the past knows.
    fn try_load(&self, past: &mut Past) -> Result<(), PastError> {
        past.load(|load| self.keys.iter().try_for_each(|frame| load(frame)))?;
        self.queries.iter().try_for_each(|frame| past.load_query(self.lsn, frame))
    }
}

/// Replays a query's emissions, from a cut or from the beginning of the log. Returns them and their
/// count up to each record.
pub(crate) fn made_anew(
    engine: &Engine,
    query: &Query,
    cut: Option<&Cut>,
) -> (Vec<Emission>, BTreeMap<Lsn, u64>) {
    let from = cut.map_or(Lsn(1), |cut| cut.lsn.next());
    let mut past = Past::new(engine.log(), query, 1 << 20);
    loop {
        let loaded = cut.map_or(Ok(()), |cut| cut.try_load(&mut past));
        let mut widened = matches!(loaded, Err(PastError::Widened));
        assert!(widened || loaded.is_ok(), "{loaded:?}");
        let (mut emitted, mut counts) = (Vec::new(), BTreeMap::from([(from.previous(), past.count())]));
        support::for_each_record(engine, from, |record| {
            if widened {
                return;
            }
            match past.apply(record) {
                Ok(emission) => emitted.extend(emission),
                Err(PastError::Widened) => widened = true,
                Err(error) => panic!("record {}: {error}", record.lsn),
            }
            counts.insert(record.lsn, past.count());
        });
        if !widened {
            return (emitted, counts);
        }
        // Emissions from before the widening stay correct: the second pass produces them again.
        let mut widening = past.widen();
        support::for_each_record(engine, from, |record| widening.note(record).expect("a record"));
        past = widening.finish();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    /// A subscriber receives the sequence that a model computes from the log. A second server with
    /// the same log emits the same bytes.
    #[test]
    fn emissions_are_those_that_a_model_computes_from_the_log(steps in proptest::collection::vec(step(), 1..120)) {
        let engine = engine();
        let begun = run(&engine, &steps, |_, _| ());
        let (model_engine, mut model) = (support::engine(), Model::default());
        let replica = support::engine();
        support::for_each_record(&engine, Lsn(1), |record| {
            let mut scratch = Reply::default();
            replica.apply(record, &mut scratch).expect("applies");
            // The engine of the model does not apply the records of watches.
            model_engine.continue_behind(record.lsn.previous());
            if record.kind <= 3 {
                model_engine.apply(record, &mut scratch).expect("applies");
            }
            model.after(&model_engine, record, &begun);
        });
        for id in begun.keys() {
            let query = engine.query(*id).expect("it was begun");
            let emitted = emissions(&query);
            let notified: Vec<(Lsn, String)> =
                emitted.iter().map(|emission| (emission.lsn, shown(&emission.answer))).collect();
            prop_assert_eq!(notified, model.emitted.remove(id).unwrap_or_default(), "{:?}", query.read());
            prop_assert!((1..).zip(&emitted).all(|(number, emission)| emission.number == number));
            let replicated = emissions(&replica.query(*id).expect("it is in the log"));
            prop_assert_eq!(&emitted, &replicated);
        }
        prop_assert_eq!(engine.digest(), replica.digest());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    /// Emissions that are no longer retained are replayed from any snapshot exactly as they were:
    /// the same numbers, records, times and bytes. A replay also restores their count up to any
    /// record, so that a subscription resumes after it.
    #[test]
    fn what_was_emitted_is_made_again_from_any_snapshot(
        steps in proptest::collection::vec(step(), 1..120),
        cuts in proptest::collection::btree_set(0..120_usize, 0..3),
    ) {
        let engine = engine();
        let mut snapshots = vec![None];
        let begun = run(&engine, &steps, |engine, step| {
            if cuts.contains(&step) {
                snapshots.push(Some(Cut::of(engine)));
            }
        });
        for id in begun.keys() {
            let query = engine.query(*id).expect("it was begun");
            let emitted = emissions(&query);
            for cut in &snapshots {
                let (again, counts) = made_anew(&engine, &query, cut.as_ref());
                let again: Vec<Emission> =
                    again.into_iter().map(|emission| Emission { durable: false, ..emission }).collect();
                let behind = cut.as_ref().map_or(Lsn::ZERO, |cut| cut.lsn);
                let expected: Vec<Emission> =
                    emitted.iter().filter(|emission| emission.lsn > behind).cloned().collect();
                prop_assert_eq!(again, expected, "{:?} behind {}", query.read(), behind);
                for (lsn, count) in counts {
                    let expected = emitted.iter().filter(|emission| emission.lsn <= lsn).count() as u64;
                    prop_assert_eq!(count, expected, "{:?} at {}", query.read(), lsn);
                }
            }
        }
    }
}
