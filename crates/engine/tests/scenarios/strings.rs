//! Strings, as Redis 7 answers.

use crate::support::{Client, engine, replayed};

#[test]
fn a_value_is_stored_as_it_was_sent() {
    let engine = engine();
    let client = Client::new(&engine);
    for value in ["007", "3.14", "+5", "1e3", "-0", "9223372036854775808", "00", "-1", "0"] {
        client.expect(&[(&format!("SET k {value}"), "+OK"), ("GET k", &format!("${} {value}", value.len()))]);
    }
}

#[test]
fn set_has_every_option_of_redis() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("SET k 1 XX", "$-1"),
        ("SET k 1 NX", "+OK"),
        ("SET k 2 NX", "$-1"),
        ("SET k 3 GET", "$1 1"),
        ("SET k 4 XX GET", "$1 3"),
        ("SET k 5 NX GET", "$1 4"),
        ("GET k", "$1 4"),
        ("SET new 1 GET", "$-1"),
        ("SET k v EX 10", "+OK"),
        ("TTL k", ":10"),
        ("SET k v2 KEEPTTL", "+OK"),
        ("PTTL k", ":10000"),
        ("SET k v3", "+OK"),
        ("TTL k", ":-1"),
        ("SET k v PXAT 1767225601000", "+OK"),
        ("PTTL k", ":1000"),
        ("SET k v EX 10 PX 10", "-ERR syntax error"),
        ("SET k v EX", "-ERR syntax error"),
        ("SET k v NX XX", "-ERR syntax error"),
        ("SET k v EX 0", "-ERR invalid expire time in 'set' command"),
        ("SET k v EX 9223372036854775807", "-ERR invalid expire time in 'set' command"),
        ("SET k v EX x", "-ERR value is not an integer or out of range"),
        ("SET k v WRONG", "-ERR syntax error"),
    ]);
    client.sleep_ms(1000);
    client.expect(&[("GET k", "$-1"), ("EXISTS k", ":0"), ("SET k v XX", "$-1")]);
}

#[test]
fn an_option_may_stand_twice_and_the_last_time_counts() {
    let engine = engine();
    Client::new(&engine).expect(&[
        ("SET k v EX 10 EX 20", "+OK"),
        ("TTL k", ":20"),
        ("SET k v EX x EX 30", "+OK"),
        ("TTL k", ":30"),
        ("SET k v KEEPTTL KEEPTTL", "+OK"),
        ("TTL k", ":30"),
        ("SET k v XX XX GET GET", "$1 v"),
        ("SET k v EX 10 PX 20", "-ERR syntax error"),
        ("SET k v EX 10 KEEPTTL", "-ERR syntax error"),
        ("SET k v KEEPTTL EX 10", "-ERR syntax error"),
        ("SET k v EX 10 EX", "-ERR syntax error"),
        ("GETEX k EX 10 EX 20", "$1 v"),
        ("TTL k", ":20"),
        ("GETEX k PERSIST PERSIST", "$1 v"),
        ("TTL k", ":-1"),
        ("GETEX k EX 10 PERSIST", "-ERR syntax error"),
        ("GETEX k PERSIST EX 10", "-ERR syntax error"),
        ("GETEX k EX 10 EXAT 10", "-ERR syntax error"),
    ]);
}

#[test]
fn durable_asks_for_the_sync() {
    let engine = engine();
    let client = Client::new(&engine);
    let (answer, executed) = client.execute("SET k v DURABLE");
    assert_eq!(answer, "+OK");
    assert!(executed.durable && executed.lsn.is_some());
    assert!(client.execute("SET k v SYNC").1.durable);
    assert!(!client.execute("SET k v").1.durable);
}

#[test]
fn counters_are_exact_up_to_their_limits() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("INCR n", ":1"),
        ("INCRBY n 9223372036854775806", ":9223372036854775807"),
        ("INCR n", "-ERR increment or decrement would overflow"),
        ("DECRBY n -9223372036854775808", "-ERR decrement would overflow"),
        ("SET s abc", "+OK"),
        ("INCR s", "-ERR value is not an integer or out of range"),
        ("SET p +5", "+OK"),
        ("INCR p", "-ERR value is not an integer or out of range"),
        ("INCRBYFLOAT f 10.5", "$4 10.5"),
        ("INCRBYFLOAT f 0.1", "$4 10.6"),
        ("INCRBYFLOAT f -10.6", "$1 0"),
        ("OBJECT ENCODING f", "$6 embstr"),
        ("INCRBYFLOAT f 0x10", "$2 16"),
        ("INCR f", ":17"),
        ("INCRBYFLOAT f inf", "-ERR increment would produce NaN or Infinity"),
        ("INCRBYFLOAT f x", "-ERR value is not a valid float"),
    ]);
}

#[test]
fn parts_of_strings() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("APPEND k Hello", ":5"),
        ("APPEND k \" World\"", ":11"),
        ("STRLEN k", ":11"),
        ("GETRANGE k 0 4", "$5 Hello"),
        ("GETRANGE k -5 -1", "$5 World"),
        ("GETRANGE k 5 2", "$0"),
        ("GETRANGE k -2 -5", "$0"),
        ("GETRANGE k -100 100", "$11 Hello World"),
        ("SETRANGE k 6 Redis", ":11"),
        ("GET k", "$11 Hello Redis"),
        ("SETRANGE k -1 x", "-ERR offset is out of range"),
        ("SETRANGE k 536870912 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        ("SETRANGE none 5 \"\"", ":0"),
        ("EXISTS none", ":0"),
        ("LCS k k LEN", ":11"),
        ("MSET {a}1 ohmytext {a}2 mynewtext", "+OK"),
        ("LCS {a}1 {a}2", "$6 mytext"),
        (
            "LCS {a}1 {a}2 IDX MINMATCHLEN 4 WITHMATCHLEN",
            "*4 $7 matches *1 *3 *2 :4 :7 *2 :5 :8 :4 $3 len :6",
        ),
    ]);
}

#[test]
fn several_keys_change_at_one_moment_or_not_at_all() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("MSET a 1 b 2 c 3", "+OK"),
        ("MGET a none c", "*3 $1 1 $-1 $1 3"),
        ("MSETNX c 9 d 9", ":0"),
        ("EXISTS a b c d a", ":4"),
        ("MSETNX d 4 e 5", ":1"),
        ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn an_expired_key_is_gone_for_reads_and_writes_alike_and_on_every_replay() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[("SET k 5 PX 100", "+OK"), ("SET other 1 PX 100", "+OK"), ("SET last 1 PX 100", "+OK")]);
    client.sleep_ms(100);
    client.expect(&[
        ("GET k", "$-1"),
        ("INCR k", ":1"),
        ("TTL k", ":-1"),
        ("PERSIST other", ":0"),
        ("DEL other", ":0"),
        ("RENAME other x", "-ERR no such key"),
        ("DBSIZE", ":2"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
    assert_eq!(engine.expire_due(client.now_us, 100), None);
    client.expect(&[("DBSIZE", ":1"), ("KEYS *", "*1 $1 k")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn getex_and_getdel() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("SET k v", "+OK"),
        ("GETEX k EX 10", "$1 v"),
        ("TTL k", ":10"),
        ("GETEX k PERSIST", "$1 v"),
        ("TTL k", ":-1"),
        ("GETEX k EX 1 PX 1", "-ERR syntax error"),
        ("GETDEL k", "$1 v"),
        ("GETDEL k", "$-1"),
        ("GETEX k", "$-1"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
