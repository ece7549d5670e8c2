//! A change that the log refuses must not count, neither for the client that requested it nor for
//! any later one.

use crate::support;
use crate::support::{Client, START_US, replayed};
use crate::watching::watch;
use std::sync::Arc;
use tidemark_engine::Engine;
use tidemark_log::{Log, MemoryStorage, Options};

/// An engine whose log accepts records of at most 1 KiB. Larger commands change memory and are then
/// refused.
fn engine() -> Engine {
    let options = Options { max_record_bytes: 1024, ..Options::default() };
    let (log, _) = Log::open(Arc::new(MemoryStorage::new()), options).expect("an empty log opens");
    support::engine_with_log(Arc::new(log))
}

#[test]
fn nothing_builds_on_a_change_that_was_not_logged() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[("SET k old", "+OK"), ("SET other 1", "+OK")]);
    let large = "x".repeat(2000);
    assert!(client.run(&format!("SET k {large} PX 1000")).starts_with("-MISCONF"));

    for line in ["APPEND k x", "INCR other", "DEL k"] {
        let answer = client.run(line);
        assert!(answer.starts_with("-MISCONF"), "{line}: {answer}");
    }
    client.sleep_ms(5000);
    let next = engine.expire_due(client.now_us, 100);
    assert!(next.is_some_and(|at| at > client.now_us / 1000), "expiry tries again later");

    let again = replayed(&engine);
    let client = Client { now_us: client.now_us, ..Client::new(&again) };
    client.expect(&[("GET k", "$3 old"), ("GET other", "$1 1"), ("TTL k", ":-1")]);
}

#[test]
fn a_range_that_slides_stands_still_behind_a_change_that_was_not_logged() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("TS.ADD k 1767225600000 1", ":1767225600000")]);
    let range = watch(&engine, "TS.RANGE k -5s +");
    assert!(client.run(&format!("SET k {}", "x".repeat(2000))).starts_with("-MISCONF"));
    let head = engine.log().appended();
    let later_us = START_US + 9_000_000;
    assert_eq!(engine.tick_due(later_us, 10), Some(later_us / 1000 + 1000), "it tries again later");
    assert_eq!((engine.log().appended(), range.query.count()), (head, 0));
}

#[test]
fn members_popped_in_one_transaction_share_one_limit() {
    let engine = support::engine();
    let client = Client::new(&engine);
    let member = |n: usize| format!("{n}{}", "m".repeat(1 << 20));
    for n in 0..200 {
        client.run(&format!("SADD s {}", member(n)));
    }
    assert!(client.run("SPOP s 199").starts_with("-ERR the members exceed 192 MiB together"));
    assert_eq!(client.run("SCARD s"), ":200");
    let args: Vec<Vec<&[u8]>> = (0..2).map(|_| vec![&b"SPOP"[..], b"s", b"99"]).collect();
    let calls: Vec<_> = args
        .iter()
        .map(|args| tidemark_engine::Call {
            command: tidemark_engine::command::resolve(args).expect("a command"),
            args,
            db: 0,
            now_us: START_US,
        })
        .collect();
    let mut reply = tidemark_engine::Reply::default();
    engine.execute_transaction(&calls, None, START_US, &mut reply);
    assert_eq!(client.run("SCARD s"), ":101", "the second had no room in the record");
    assert!(String::from_utf8_lossy(reply.bytes()).contains("pop fewer at a time"));
}
