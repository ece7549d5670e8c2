//! Fields of hashes that expire, as Redis 7.4 and 8 answer, and as the log has them.

use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, engine, replayed, transaction};
use crate::watching::{answers, answers_of_past, watch};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tidemark_engine::record::level;
use tidemark_engine::{DUE_WORK, Engine, WatchedKeys};
use tidemark_log::MemoryStorage;

const START_MS: u64 = START_US / 1000;

/// Does what is due by a time, in milliseconds since the start.
fn drive(engine: &Engine, at_ms: u64) {
    DUE_WORK.iter().for_each(|work| {
        (work.run)(engine, START_US + at_ms * 1000, 1000);
    });
}

#[test]
fn times_are_set_shown_and_removed() {
    let engine = engine();
    let client = Client::new(&engine);
    let at = START_MS + 5000;
    client.expect(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 10 FIELDS 2 a nothing", "*2 :1 :-2"),
        ("HTTL h FIELDS 3 a b nothing", "*3 :10 :-1 :-2"),
        ("HPTTL h FIELDS 1 a", "*1 :10000"),
        ("HPEXPIRE h 4999 FIELDS 1 a", "*1 :1"),
        ("HTTL h FIELDS 1 a", "*1 :5"),
        (&format!("HPEXPIREAT h {at} FIELDS 1 b"), "*1 :1"),
        ("HPEXPIRETIME h FIELDS 1 b", &format!("*1 :{at}")),
        ("HEXPIRETIME h FIELDS 2 b c", &format!("*2 :{} :-1", at / 1000)),
        (&format!("HEXPIREAT h {} FIELDS 1 c", at / 1000), "*1 :1"),
        ("HPTTL h FIELDS 1 c", "*1 :5000"),
        ("HPERSIST h FIELDS 3 a nothing a", "*3 :1 :-2 :-1"),
        ("HTTL none FIELDS 2 a b", "*2 :-2 :-2"),
        ("HEXPIRE none 1 FIELDS 1 a", "*1 :-2"),
        ("HPERSIST none FIELDS 1 a", "*1 :-2"),
        ("HLEN h", ":3"),
        ("TTL h", ":-1"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn conditions_compare_with_the_time_before() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HSET h a 1 b 2", ":2"),
        ("HEXPIRE h 10 XX FIELDS 1 a", "*1 :0"),
        ("HEXPIRE h 10 GT FIELDS 1 a", "*1 :0"),
        ("HEXPIRE h 10 nx FIELDS 1 a", "*1 :1"),
        ("HEXPIRE h 10 NX FIELDS 1 a", "*1 :0"),
        ("HEXPIRE h 10 GT FIELDS 1 a", "*1 :0"),
        ("HEXPIRE h 11 GT FIELDS 1 a", "*1 :1"),
        ("HEXPIRE h 11 LT FIELDS 1 a", "*1 :0"),
        ("HEXPIRE h 9 LT FIELDS 2 a b", "*2 :1 :1"),
        ("HEXPIRE h 30 XX FIELDS 2 a b", "*2 :1 :1"),
        // A condition that is not met does not delete.
        ("HEXPIRE h 0 NX FIELDS 1 a", "*1 :0"),
        ("HEXPIRE h 0 FIELDS 3 a a b", "*3 :2 :-2 :2"),
        ("EXISTS h", ":0"),
    ]);
}

#[test]
fn what_is_wrong_is_said_as_redis_says_it() {
    let engine = engine();
    let client = Client::new(&engine);
    let misplaced = "-ERR Mandatory argument FIELDS is missing or not at the right position";
    let unequal = "-ERR The `numfields` parameter must match the number of arguments";
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    client.expect(&[
        ("SET s 1", "+OK"),
        ("HSET h a 1", ":1"),
        ("HEXPIRE s x FIELDS 1 a", wrong_type),
        ("HTTL s x 1 a", wrong_type),
        ("HPERSIST s FIELDS 1 a", wrong_type),
        ("HGETEX s FIELDS 1 a", wrong_type),
        ("HGETDEL s FIELDS 1 a", wrong_type),
        ("HSETEX s FIELDS 1 a 1", wrong_type),
        ("HEXPIRE h 1 FIELDS 1", "-ERR wrong number of arguments for 'hexpire' command"),
        ("HEXPIRE h x FIELDS 1 a", "-ERR value is not an integer or out of range"),
        ("HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0"),
        ("HEXPIRE h 70368744178 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command"),
        ("HPEXPIREAT h 70368744177664 FIELDS 1 a", "-ERR invalid expire time in 'hpexpireat' command"),
        ("HPEXPIREAT h 70368744177663 FIELDS 1 a", "*1 :1"),
        ("HPEXPIRE h 70368744177663 FIELDS 1 a", "-ERR invalid expire time in 'hpexpire' command"),
        ("HEXPIRE h 1 x FIELDS 1 a", misplaced),
        ("HEXPIRE h 1 NX 1 a b", misplaced),
        ("HEXPIRE h 1 FIELDS 0 a", "-ERR Parameter `numFields` should be greater than 0"),
        ("HEXPIRE h 1 FIELDS x a", "-ERR Parameter `numFields` should be greater than 0"),
        ("HEXPIRE h 1 FIELDS 2 a", unequal),
        ("HEXPIRE h 1 NX FIELDS 1", unequal),
        ("HTTL h 1 1 a", misplaced),
        ("HTTL h FIELDS 0 a", "-ERR Number of fields must be a positive integer"),
        ("HTTL h FIELDS 1 a b", unequal),
        ("HGETDEL h FIELDS x a", "-ERR Number of fields must be a positive integer"),
        ("HGETEX h EX -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0"),
        ("HGETEX h EX 70368744178 FIELDS 1 a", "-ERR invalid expire time in 'hgetex' command"),
        ("HGETEX h EX 10 FIELDS", "-ERR Number of fields must be a positive integer"),
        ("HGETEX h KEEPTTL FIELDS 1 a", misplaced),
        ("HSETEX h FIELDS 2 a 1", "-ERR wrong number of arguments for 'hsetex' command"),
        ("HSETEX h FIELDS x a 1", "-ERR invalid number of fields"),
        ("HSETEX h FNX FXX FIELDS 1 a 1", "-ERR Only one of FXX or FNX arguments can be specified"),
        (
            "HSETEX h EX 1 KEEPTTL FIELDS 1 a 1",
            "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
        ),
        ("HSETEX h NX FIELDS 1 a 1", "-ERR unknown argument: NX"),
        ("HSETEX h FNX KEEPTTL x 1 a", "-ERR unknown argument: x"),
        ("HGET h a", "$1 1"),
    ]);
}

#[test]
fn hset_ends_a_time_and_hincrby_keeps_it() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 10 FIELDS 3 a b c", "*3 :1 :1 :1"),
        ("HINCRBY h a 5", ":6"),
        ("HINCRBYFLOAT h b 0.5", "$3 2.5"),
        ("HSET h c 4", ":0"),
        ("HTTL h FIELDS 3 a b c", "*3 :10 :10 :-1"),
        ("HDEL h a", ":1"),
        ("HSET h a 1", ":1"),
        ("HTTL h FIELDS 1 a", "*1 :-1"),
        ("HSETNX h b 7", ":0"),
        ("HTTL h FIELDS 1 b", "*1 :10"),
        ("OBJECT ENCODING h", "$10 listpackex"),
        ("HPERSIST h FIELDS 1 b", "*1 :1"),
        ("OBJECT ENCODING h", "$8 listpack"),
    ]);
}

#[test]
fn values_are_taken_and_set_with_their_times() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HSETEX h FXX FIELDS 1 a 1", ":0"),
        ("HSETEX h FNX EX 10 FIELDS 2 a 1 b 2", ":1"),
        ("HSETEX h FNX EX 10 FIELDS 2 b 1 c 2", ":0"),
        ("HSETEX h FXX FIELDS 2 b 1 c 2", ":0"),
        ("HTTL h FIELDS 3 a b c", "*3 :10 :10 :-2"),
        ("HSETEX h KEEPTTL FIELDS 2 a 3 c 4", ":1"),
        ("HSETEX h FXX FIELDS 1 b 5", ":1"),
        ("HTTL h FIELDS 3 a b c", "*3 :10 :-1 :-1"),
        ("HGETEX h FIELDS 3 a b nothing", "*3 $1 3 $1 5 $-1"),
        ("HGETEX h PERSIST FIELDS 2 a b", "*2 $1 3 $1 5"),
        ("HTTL h FIELDS 2 a b", "*2 :-1 :-1"),
        ("HGETEX h PX 1500 FIELDS 1 a", "*1 $1 3"),
        ("HPTTL h FIELDS 1 a", "*1 :1500"),
        ("HGETDEL h FIELDS 3 a a nothing", "*3 $1 3 $-1 $-1"),
        ("HGETEX h EX 0 FIELDS 2 b b", "*2 $1 5 $-1"),
        ("HSETEX h PXAT 1 FIELDS 2 d 1 e 2", ":1"),
        ("HGETALL h", "*2 $1 c $1 4"),
        ("HGETDEL h FIELDS 1 c", "*1 $1 4"),
        ("EXISTS h", ":0"),
        ("HGETDEL h FIELDS 1 c", "*1 $-1"),
        ("HGETEX h FIELDS 1 c", "*1 $-1"),
        ("HSETEX h PXAT 1 FIELDS 1 d 1", ":1"),
        ("EXISTS h", ":0"),
    ]);
    assert!(client.execute("HGETEX h FIELDS 1 a").1.lsn.is_none(), "what changes nothing is not logged");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn hscan_leaves_values_out() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("HSET h a 1 b 2", ":2"),
        ("HSCAN h 0 NOVALUES", "*2 $1 0 *2 $1 a $1 b"),
        ("HSCAN h 0 MATCH b novalues COUNT 5", "*2 $1 0 *1 $1 b"),
        ("HSCAN h 0 NOVALUES MATCH novalues", "*2 $1 0 *0"),
        ("HSCAN h 0 COUNT NOVALUES", "-ERR value is not an integer or out of range"),
        ("HSCAN h 0 NOVALUES COUNT", "-ERR syntax error"),
    ]);
}

#[test]
fn a_read_meets_no_field_whose_time_has_come() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("HSET h a 1 b 2", ":2"),
        ("HPEXPIRE h 100 FIELDS 1 a", "*1 :1"),
        ("HSET last a 1", ":1"),
        ("HPEXPIRE last 100 FIELDS 1 a", "*1 :1"),
        ("HSET other a 1", ":1"),
        ("HPEXPIRE other 200 FIELDS 1 a", "*1 :1"),
    ]);
    client.sleep_ms(99);
    client.expect(&[("HGET h a", "$1 1"), ("HPTTL h FIELDS 1 a", "*1 :1"), ("EXISTS last", ":1")]);
    client.sleep_ms(1);
    let before = engine.log().appended();
    client.expect(&[
        ("HGET h a", "$-1"),
        ("HLEN h", ":1"),
        ("HTTL h FIELDS 2 a b", "*2 :-2 :-1"),
        ("EXISTS last", ":0"),
        ("TYPE last", "+none"),
        ("HGET other a", "$1 1"),
    ]);
    assert_eq!(engine.log().appended().0 - before.0, 2, "one record for each hash");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn housekeeping_removes_fields_in_the_order_of_their_times() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("HSET h keep 1");
    (0..1000).for_each(|n| drop(client.run(&format!("HSETEX h PX {} FIELDS 1 f{n} {n}", 100 + n % 10))));
    let next = |engine: &Engine| DUE_WORK.iter().filter_map(|work| (work.next)(engine)).min();
    assert_eq!(next(&engine), Some(START_MS + 100));
    drive(&engine, 99);
    assert_eq!(client.run("HLEN h"), ":1001");
    drive(&engine, 104);
    assert_eq!(client.run("HLEN h"), ":501");
    assert_eq!(next(&engine), Some(START_MS + 105));
    drive(&engine, 200);
    assert_eq!((client.run("HKEYS h").as_str(), next(&engine)), ("*1 $4 keep", None));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn fields_with_the_same_time_all_go() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let fields: Vec<String> = (0..3000).map(|n| format!("f{n} {n}")).collect();
    client.run(&format!("HSETEX h PX 50 FIELDS 3000 {}", fields.join(" ")));
    client.run("HSET h keep 1");
    client.run("HPERSIST h FIELDS 1 f7");
    client.sleep_ms(50);
    assert_eq!(client.run("HLEN h"), ":2");
    assert_eq!(client.run("HMGET h f7 keep f8"), "*3 $1 7 $1 1 $-1");
}

#[test]
fn times_go_where_the_hash_goes() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("HSETEX h PX 100 FIELDS 1 a 1", ":1"),
        ("HSET h b 2", ":1"),
        ("COPY h copy", ":1"),
        ("RENAME h renamed", "+OK"),
        ("COPY copy moved", ":1"),
        ("MOVE moved 1", ":1"),
        ("HPTTL copy FIELDS 1 a", "*1 :100"),
        ("HPTTL renamed FIELDS 2 a b", "*2 :100 :-1"),
        // The old value is replaced with its times.
        ("HSETEX old PX 50 FIELDS 1 a 1", ":1"),
        ("SET old v", "+OK"),
        ("HSETEX gone PX 50 FIELDS 1 a 1", ":1"),
        ("DEL gone", ":1"),
        ("HSET gone a 1", ":1"),
    ]);
    client.sleep_ms(100);
    drive(&engine, 100);
    client.expect(&[
        ("HGETALL copy", "*2 $1 b $1 2"),
        ("HGETALL renamed", "*2 $1 b $1 2"),
        ("GET old", "$1 v"),
        ("HGETALL gone", "*2 $1 a $1 1"),
    ]);
    client.db = 1;
    assert_eq!(client.run("HGETALL moved"), "*2 $1 b $1 2");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_watched_read_loses_fields_by_a_record() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("HSETEX h PX 100 FIELDS 1 a 1");
    client.run("HSET h b 2");
    let (all, one) = (watch(&engine, "HGETALL h"), watch(&engine, "HGET h a"));
    let time = watch(&engine, "HPEXPIRETIME h FIELDS 1 a");
    client.run("HPEXPIRE h 150 FIELDS 1 a");
    client.run("HSET h b 3");
    drive(&engine, 150);
    client.run("HSET h a 5");
    assert_eq!(answers(&all).last().map(String::as_str), Some("%2 $1 a $1 5 $1 b $1 3"));
    assert_eq!(answers(&one), ["_", "$1 5"]);
    assert_eq!(answers(&time), [&format!("*1 :{}", START_MS + 150), "*1 :-2", "*1 :-1"]);
    for query in [&all, &one, &time] {
        assert_eq!(answers_of_past(&engine, query), answers(query));
    }
}

#[test]
fn transactions_and_scripts_meet_no_field_whose_time_has_come() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("HSETEX h PX 1 FIELDS 1 a 1");
    client.run("HSETEX undeclared PX 1 FIELDS 1 a 1");
    client.run("HSET undeclared b 1");
    // Transactions of tests run at the start: the field is there.
    assert_eq!(transaction(&engine, None, &["HLEN h", "HINCRBY h a 1"]), "*2 :1 :2");
    client.sleep_ms(1);
    client.expect(&[
        ("EVAL \"return redis.call('HLEN', KEYS[1])\" 1 h", ":0"),
        ("EVAL \"return redis.call('HLEN', 'undeclared')\" 0", ":1"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_removed_field_breaks_a_watch() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("HSETEX h PX 1 FIELDS 1 a 1");
    client.run("HSET h b 1");
    let mut watched = WatchedKeys::new();
    engine.watch(&mut watched, 0, b"h", START_US);
    drive(&engine, 1);
    assert_eq!(transaction(&engine, Some(&watched), &["HLEN h"]), "*-1");
    engine.unwatch(&watched);
    // What was due before the watch is removed before it.
    client.run("HSETEX h PXAT 1 FIELDS 1 a 1");
    let mut watched = WatchedKeys::new();
    engine.watch(&mut watched, 0, b"h", START_US + 2000);
    assert_eq!(transaction(&engine, Some(&watched), &["HLEN h"]), "*1 :1");
}

#[test]
fn a_follower_has_what_the_leader_s_records_say() {
    let (leader, follower) = (GroupMember::new(), GroupMember::new());
    leader.lead(START_US);
    let mut client = Client::new(&leader.engine);
    client.run("HSETEX h PX 100 FIELDS 2 a 1 b 2");
    client.run("HSET h c 3");
    replicate(&leader, &[&follower]);
    drive(&follower.engine, 500);
    assert_eq!(follower.engine.digest(), leader.engine.digest(), "it removes nothing itself");
    client.sleep_ms(100);
    assert_eq!(client.run("HLEN h"), ":1");
    replicate(&leader, &[&follower]);
    assert_eq!(follower.engine.digest(), leader.engine.digest());
}

#[test]
fn a_group_whose_members_may_not_know_times_has_none() {
    let leader = GroupMember::of_first_level(MemoryStorage::new());
    leader.lead(START_US);
    leader.engine.raise_level(level::FUNCTIONS);
    let client = Client::new(&leader.engine);
    client.run("HSET h a 1");
    for (line, name) in [
        ("HEXPIRE h 1 FIELDS 1 a", "hexpire"),
        ("HSETEX h EX 1 FIELDS 1 a 1", "hsetex"),
        ("DELEX h", "delex"),
    ] {
        let answer = client.run(line);
        assert!(answer.contains(&format!("'{name}' needs records of level 6")), "{line}: {answer}");
    }
    assert_eq!(client.run("HTTL h FIELDS 1 a"), "*1 :-1", "an answer needs no record");
    leader.engine.raise_level(level::FIELD_TIMES);
    assert_eq!(client.run("HEXPIRE h 1 FIELDS 1 a"), "*1 :1");
}

#[test]
fn a_payload_that_older_builds_refuse_needs_their_level() {
    for (write, look, seen) in [
        ("HSETEX key EX 1 FIELDS 1 a 1", "HTTL key FIELDS 1 a", "*1 :1"),
        ("XADD key 1-1 a 1", "XLEN key", ":1"),
    ] {
        let origin = engine();
        Client::new(&origin).run(write);
        let payload = run_bytes(&origin, &[b"DUMP", b"key"]);
        let leader = GroupMember::of_first_level(MemoryStorage::new());
        leader.lead(START_US);
        leader.engine.raise_level(level::FUNCTIONS);
        let restore: [&[u8]; 4] = [b"RESTORE", b"key", b"0", &payload];
        let refused = run_bytes(&leader.engine, &restore);
        let refused = String::from_utf8_lossy(&refused);
        assert!(refused.contains("level 6"), "{write}: {refused}");
        leader.engine.raise_level(level::FIELD_TIMES);
        run_bytes(&leader.engine, &restore);
        assert_eq!(Client::new(&leader.engine).run(look), seen);
    }
}

/// Runs a command of bytes at the start. Returns the bytes of a bulk string, or the whole answer.
fn run_bytes(engine: &Engine, args: &[&[u8]]) -> Vec<u8> {
    let command = tidemark_engine::command::resolve(args).expect("a command");
    let mut reply = tidemark_engine::Reply::default();
    engine.execute(&tidemark_engine::Call { command, args, db: 0, now_us: START_US }, &mut reply);
    let bytes = reply.bytes();
    let line = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if bytes.starts_with(b"$") { bytes[line..bytes.len() - 2].to_vec() } else { bytes.to_vec() }
}

#[test]
fn dumps_have_redis_s_bytes_and_keep_times() {
    let origin = engine();
    let client = Client::new(&origin);
    client.run("HSET h a 1 b 2");
    client.run("HPEXPIREAT h 1900000000000 FIELDS 1 b");
    let payload = run_bytes(&origin, &[b"DUMP", b"h"]);
    // As Redis 7.4.1 answers, whose listpack is in the order of the times.
    assert_eq!(payload, hex(DUMP_OF_LISTPACK));
    run_bytes(&origin, &[b"HSET", b"t", b"f", LONG]);
    client.run("HPEXPIREAT t 1900000000000 FIELDS 1 f");
    assert_eq!(run_bytes(&origin, &[b"DUMP", b"t"]), hex(DUMP_OF_TABLE));
    client.run(&format!("HSET long a {}", "v".repeat(70)));
    client.run("HSET long b 2");
    client.run("HPEXPIREAT long 1900000000000 FIELDS 1 b");
    client.run("HPEXPIREAT long 1900000000007 FIELDS 1 a");
    for key in ["h", "long"] {
        let payload = run_bytes(&origin, &[b"DUMP", key.as_bytes()]);
        assert_eq!(run_bytes(&origin, &[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]), b"+OK\r\n");
        let shown = |key: &str| client.run(&format!("HPEXPIRETIME {key} FIELDS 2 a b"));
        assert_eq!(shown("copy"), shown(key));
        assert_eq!(client.run("HGET copy a"), client.run(&format!("HGET {key} a")));
    }
    assert_eq!(replayed(&origin).digest(), origin.digest());
}

/// `HSET h a 1 b 2`, `HPEXPIREAT h 1900000000000 FIELDS 1 b` and `DUMP h` of Redis 7.4.1.
const DUMP_OF_LISTPACK: &str =
    "190038d360ba0100001d1d00000006008162020201f40038d360ba0100000981610201010001ff0c00889be635b6ca2339";

/// The same of a field with `LONG` and this time.
const DUMP_OF_TABLE: &str = "180038d360ba010000010101664049306131423263334434653546366737483869394a6b4c6d4e6f507152735475567758795a21402324255e262a28295f2b2d3d5b5d7b7d3b3a2c2e3c3e2f3f7c7e6051774572547955690c00f3c87d9c53c3a3c2";

/// What no compression shortens.
const LONG: &[u8] = br"0a1B2c3D4e5F6g7H8i9JkLmNoPqRsTuVwXyZ!@#$%^&*()_+-=[]{};:,.<>/?|~`QwErTyUi";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("digits"))
        .collect()
}

#[test]
fn strings_are_set_and_deleted_by_what_they_are() {
    let engine = engine();
    let client = Client::new(&engine);
    let digest = "b6acb9d84a38ff74";
    client.expect(&[
        ("SET k v IFEQ v", "$-1"),
        ("SET k v IFNE v", "+OK"),
        ("SET k w IFEQ x", "$-1"),
        ("SET k w IFEQ v GET", "$1 v"),
        ("SET k \"Hello world\" IFEQ w EX 10", "+OK"),
        ("TTL k", ":10"),
        ("DIGEST k", &format!("$16 {digest}")),
        ("DIGEST none", "$-1"),
        ("SET k x IFDNE B6ACB9D84A38FF74", "$-1"),
        ("SET k x IFDEQ 1", "-ERR digest must be exactly 16 hexadecimal characters"),
        (&format!("SET k x IFDEQ {digest} KEEPTTL"), "+OK"),
        ("TTL k", ":10"),
        ("SET k y NX IFEQ x", "-ERR syntax error"),
        ("SET k y IFEQ x XX", "-ERR syntax error"),
        ("SET k y IFEQ", "-ERR syntax error"),
        ("GETEX k IFEQ x", "-ERR syntax error"),
        ("DELEX k IFEQ y", ":0"),
        ("DELEX k IFNE x", ":0"),
        ("DELEX k IFXX x", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"),
        ("DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command"),
        ("DELEX k IFEQ x", ":1"),
        ("DELEX k IFNE x", ":0"),
        ("RPUSH l a", ":1"),
        ("SET l v IFEQ a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("DELEX l IFEQ a", "-ERR Key should be of string type if conditions are specified"),
        ("DELEX l", ":1"),
        ("DELEX l", ":0"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// A hash as a map of values with times.
#[derive(Debug, Default)]
struct Model(BTreeMap<u8, (u64, Option<u64>)>);

impl Model {
    fn expire(&mut self, now_ms: u64) {
        self.0.retain(|_, (_, at_ms)| at_ms.is_none_or(|at_ms| at_ms > now_ms));
    }

    /// HPEXPIREAT of one field.
    fn set_time(&mut self, field: u8, at_ms: u64, condition: &str, now_ms: u64) -> i64 {
        let Some((_, time)) = self.0.get_mut(&field) else { return -2 };
        let is_met = match condition {
            "NX" => time.is_none(),
            "XX" => time.is_some(),
            "GT" => time.is_some_and(|time| time < at_ms),
            "LT" => time.is_none_or(|time| time > at_ms),
            _ => true,
        };
        if !is_met {
            return 0;
        }
        if at_ms <= now_ms {
            self.0.remove(&field);
            return 2;
        }
        *time = Some(at_ms);
        1
    }
}

#[derive(Debug, Clone)]
enum Step {
    Set(u8, u64),
    Increment(u8),
    Delete(u8),
    SetTime(u8, u64, &'static str),
    Persist(u8),
    SetWithTime(u8, u64, u64),
    SetKeeping(u8, u64),
    Take(u8),
    TakeWithTime(u8, u64),
    Copy,
    Sleep(u64),
    Drive,
    /// Makes the hash a large one.
    Grow,
}

fn step() -> impl Strategy<Value = Step> {
    let field = || 0_u8..8;
    let condition = || prop::sample::select(vec!["", "NX", "XX", "GT", "LT"]);
    prop_oneof![
        4 => (field(), 0_u64..9).prop_map(|(field, value)| Step::Set(field, value)),
        2 => field().prop_map(Step::Increment),
        1 => field().prop_map(Step::Delete),
        6 => (field(), 0_u64..60, condition()).prop_map(|(field, at, when)| Step::SetTime(field, at, when)),
        2 => field().prop_map(Step::Persist),
        3 => (field(), 0_u64..9, 0_u64..60).prop_map(|(field, value, at)| Step::SetWithTime(field, value, at)),
        2 => (field(), 0_u64..9).prop_map(|(field, value)| Step::SetKeeping(field, value)),
        1 => field().prop_map(Step::Take),
        1 => (field(), 0_u64..60).prop_map(|(field, at)| Step::TakeWithTime(field, at)),
        1 => Just(Step::Copy),
        4 => (0_u64..20).prop_map(Step::Sleep),
        1 => Just(Step::Drive),
        1 => Just(Step::Grow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_hash_with_times_is_a_map_with_times(steps in prop::collection::vec(step(), 0..80)) {
        let engine = engine();
        let mut client = Client::new(&engine);
        let (mut model, mut now_ms) = (Model::default(), START_MS);
        for step in steps {
            model.expire(now_ms);
            let shown = |value: Option<u64>| value.map_or("$-1".to_owned(), |value| format!("$1 {value}"));
            match step {
                Step::Set(field, value) => {
                    let is_new = model.0.insert(field, (value, None)).is_none();
                    prop_assert_eq!(client.run(&format!("HSET h {field} {value}")), format!(":{}", u8::from(is_new)));
                }
                Step::Increment(field) => {
                    let value = &mut model.0.entry(field).or_default().0;
                    *value = (*value + 1) % 9;
                    let by = if *value == 0 { -8 } else { 1 };
                    prop_assert_eq!(client.run(&format!("HINCRBY h {field} {by}")), format!(":{}", *value));
                }
                Step::Delete(field) => {
                    let is_there = model.0.remove(&field).is_some();
                    prop_assert_eq!(client.run(&format!("HDEL h {field}")), format!(":{}", u8::from(is_there)));
                }
                Step::SetTime(field, after_ms, condition) => {
                    let at_ms = START_MS + after_ms;
                    let result = model.set_time(field, at_ms, condition, now_ms);
                    let answer = client.run(&format!("HPEXPIREAT h {at_ms} {condition} FIELDS 1 {field}"));
                    prop_assert_eq!(answer, format!("*1 :{result}"));
                }
                Step::Persist(field) => {
                    let time = model.0.get_mut(&field).map(|(_, time)| time.take());
                    let result = match time { None => -2, Some(None) => -1, Some(Some(_)) => 1 };
                    prop_assert_eq!(client.run(&format!("HPERSIST h FIELDS 1 {field}")), format!("*1 :{result}"));
                }
                Step::SetWithTime(field, value, after_ms) => {
                    let at_ms = START_MS + after_ms.max(1);
                    model.0.entry(field).or_default().0 = value;
                    model.set_time(field, at_ms, "", now_ms);
                    prop_assert_eq!(client.run(&format!("HSETEX h PXAT {at_ms} FIELDS 1 {field} {value}")), ":1");
                }
                Step::SetKeeping(field, value) => {
                    model.0.entry(field).or_default().0 = value;
                    prop_assert_eq!(client.run(&format!("HSETEX h KEEPTTL FIELDS 1 {field} {value}")), ":1");
                }
                Step::Take(field) => {
                    let value = model.0.remove(&field).map(|(value, _)| value);
                    prop_assert_eq!(client.run(&format!("HGETDEL h FIELDS 1 {field}")), format!("*1 {}", shown(value)));
                }
                Step::TakeWithTime(field, after_ms) => {
                    let (at_ms, value) = (START_MS + after_ms, model.0.get(&field).map(|(value, _)| *value));
                    model.set_time(field, at_ms, "", now_ms);
                    let answer = client.run(&format!("HGETEX h PXAT {at_ms} FIELDS 1 {field}"));
                    prop_assert_eq!(answer, format!("*1 {}", shown(value)));
                }
                Step::Copy => {
                    client.run("COPY h other REPLACE");
                    client.run("RENAME other h");
                }
                Step::Sleep(ms) => {
                    now_ms += ms;
                    client.sleep_ms(ms);
                }
                Step::Drive => drive(&engine, now_ms - START_MS),
                Step::Grow => {
                    let long = "v".repeat(100);
                    client.run(&format!("HSET h long {long}"));
                    client.run("HDEL h long");
                }
            }
            model.expire(now_ms);
            for field in 0..8 {
                let (value, time) = model.0.get(&field).map_or((None, None), |(value, time)| (Some(*value), *time));
                prop_assert_eq!(client.run(&format!("HGET h {field}")), shown(value));
                let shown = if value.is_none() { -2 } else { time.map_or(-1, |time| time as i64) };
                prop_assert_eq!(client.run(&format!("HPEXPIRETIME h FIELDS 1 {field}")), format!("*1 :{shown}"));
            }
            prop_assert_eq!(client.run("HLEN h"), format!(":{}", model.0.len()));
            prop_assert_eq!(client.run("EXISTS h"), format!(":{}", u8::from(!model.0.is_empty())));
        }
        prop_assert_eq!(replayed(&engine).digest(), engine.digest());
    }
}
