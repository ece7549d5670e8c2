//! `DUMP` and `RESTORE`: values as Redis's payloads.

use crate::support::commands::Line;
use crate::support::{Client, START_US, engine, replayed, shown};
use tidemark_engine::{Call, Engine, Protocol, Reply, command, rdb};

fn run(engine: &Engine, now_us: u64, words: &[&[u8]]) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp2);
    let command = command::resolve(words).expect("a command");
    engine.execute(&Call { command, args: words, db: 0, now_us }, &mut reply);
    reply.bytes().to_vec()
}

/// Returns the payload of a key.
fn dump(engine: &Engine, key: &str) -> Vec<u8> {
    let answer = run(engine, START_US, &[b"DUMP", key.as_bytes()]);
    let start = answer.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
    answer[start..answer.len() - 2].to_vec()
}

fn restore(engine: &Engine, words: &[&[u8]]) -> String {
    shown(&run(engine, START_US, &[&[&b"RESTORE"[..]], words].concat()))
}

/// Content with a valid footer.
fn payload(content: &[u8]) -> Vec<u8> {
    let mut payload = content.to_vec();
    rdb::seal(&mut payload);
    payload
}

fn line(text: &str) -> Line {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn each_type_is_dumped_and_restored() {
    let engine = engine();
    let client = Client::new(&engine);
    let long = "x".repeat(5000);
    for text in [
        "SET a 17",
        "SET b some-text",
        &format!("SET c {long}"),
        &format!("RPUSH d 1 two {long}"),
        "SADD e 1 2 300000",
        "SADD f 1 two",
        "HSET g field value number 5",
        &format!("HSET h field {long}"),
        "ZADD i 1 a 2.5 b -inf c 3 5",
        &format!("ZADD j 1.25 {long}"),
        "PFADD k a b c",
        "GEOADD l 13 38 Palermo",
    ] {
        let words = line(text);
        run(&engine, START_US, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        let (payload, copy) = (dump(&engine, key), format!("copy-{key}"));
        assert_eq!(restore(&engine, &[copy.as_bytes(), b"0", &payload]), "+OK", "{key}");
        for read in ["TYPE", "OBJECT ENCODING", "GET", "LRANGE", "SMEMBERS", "HGETALL", "ZRANGE"] {
            let rest = if read.ends_with("RANGE") { " 0 -1" } else { "" };
            if (key, read) == ("k", "OBJECT ENCODING") {
                // A string that has grown is raw, whatever its length; the copy has not.
                continue;
            }
            let [ours, theirs] = [key, &copy].map(|key| client.run(&format!("{read} {key}{rest}")));
            assert_eq!(ours, theirs, "{read} {key}");
        }
        assert_eq!(dump(&engine, &copy), payload, "{key}");
    }
    client.expect(&[("PFCOUNT copy-k", ":3"), ("ZSCORE copy-i c", "$4 -inf"), ("DUMP none", "$-1")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_time_to_live_is_relative_or_a_time() {
    let engine = engine();
    let mut client = Client::new(&engine);
    let payload = payload(b"\0\x01v");
    let at = (START_US / 1000 + 5000).to_string();
    assert_eq!(restore(&engine, &[b"a", b"7000", &payload]), "+OK");
    assert_eq!(restore(&engine, &[b"b", at.as_bytes(), &payload, b"ABSTTL"]), "+OK");
    assert_eq!(restore(&engine, &[b"c", b"0", &payload, b"absttl"]), "+OK");
    client.expect(&[("PTTL a", ":7000"), ("PTTL b", ":5000"), ("PTTL c", ":-1")]);
    // A time that has passed: what was there is gone, and nothing replaces it.
    assert_eq!(restore(&engine, &[b"d", b"1", &payload, b"ABSTTL"]), "+OK");
    assert_eq!(restore(&engine, &[b"a", b"1", &payload, b"ABSTTL", b"REPLACE"]), "+OK");
    client.expect(&[("EXISTS a d", ":0")]);
    let far = i64::MAX.to_string();
    assert_eq!(restore(&engine, &[b"e", far.as_bytes(), &payload]), "+OK");
    client.expect(&[("EXISTS e", ":1")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
    client.sleep_ms(5001);
    client.expect(&[("EXISTS b c", ":1")]);
}

#[test]
fn options_are_those_of_redis() {
    let engine = engine();
    let client = Client::new(&engine);
    let payload = payload(b"\0\x01v");
    client.expect(&[("RPUSH k a", ":1"), ("EXPIRE k 100", ":1")]);
    let busy = "-BUSYKEY Target key name already exists.";
    assert_eq!(restore(&engine, &[b"k", b"0", &payload]), busy);
    assert_eq!(restore(&engine, &[b"k", b"0", b"not even a payload"]), busy);
    assert_eq!(restore(&engine, &[b"k", b"0", &payload, b"REPLACE", b"IDLETIME", b"1000"]), "+OK");
    client.expect(&[("OBJECT IDLETIME k", ":1000"), ("TTL k", ":-1"), ("GET k", "$1 v")]);
    assert_eq!(restore(&engine, &[b"f", b"0", &payload, b"FREQ", b"100"]), "+OK");
    for (words, answer) in [
        (
            &[&b"x"[..], b"0", &payload, b"FREQ", b"256"][..],
            "-ERR Invalid FREQ value, must be >= 0 and <= 255",
        ),
        (&[b"x", b"0", &payload, b"IDLETIME", b"-1"], "-ERR Invalid IDLETIME value, must be >= 0"),
        (&[b"x", b"0", &payload, b"IDLETIME", b"x"], "-ERR value is not an integer or out of range"),
        (&[b"x", b"0", &payload, b"IDLETIME", b"1", b"FREQ", b"1"], "-ERR syntax error"),
        (&[b"x", b"0", &payload, b"IDLETIME"], "-ERR syntax error"),
        (&[b"x", b"0", &payload, b"KEEPTTL"], "-ERR syntax error"),
        (&[b"x", b"-1", &payload], "-ERR Invalid TTL value, must be >= 0"),
        (&[b"x", b"x", &payload], "-ERR value is not an integer or out of range"),
        (&[b"x", b"0", b""], "-ERR DUMP payload version or checksum are wrong"),
        (&[b"x", b"0", &payload[..payload.len() - 1]], "-ERR DUMP payload version or checksum are wrong"),
    ] {
        assert_eq!(restore(&engine, words), answer);
    }
    let refused = restore(&engine, &[b"x", b"0", &self::payload(b"\x06\x01")]);
    assert_eq!(refused, "-ERR Bad data format: a value of a module cannot be restored");
    client.expect(&[("EXISTS x", ":0")]);
    let answer = run(&engine, START_US, &[b"RESTORE-ASKING", b"x", b"0", &payload]);
    assert_eq!(shown(&answer), "+OK");
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// Returns the payload of a key.
fn dumped(engine: &Engine, key: &[u8]) -> Vec<u8> {
    let answer = run(engine, START_US, &[b"DUMP", key]);
    let start = answer.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
    answer[start..answer.len() - 2].to_vec()
}

#[test]
fn a_restored_stream_goes_on_where_it_was_and_is_replayed() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("XADD s 5-1 a 1", "$3 5-1"),
        ("XADD s 5-2 a 2", "$3 5-2"),
        ("XADD s 6-0 b 3", "$3 6-0"),
        ("XGROUP CREATE s g 0", "+OK"),
        ("XGROUP CREATECONSUMER s g idle", ":1"),
        (
            "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
            "*1 *2 $1 s *2 *2 $3 5-1 *2 $1 a $1 1 *2 $3 5-2 *2 $1 a $1 2",
        ),
        ("XDEL s 5-2", ":1"),
    ]);
    let payload = dumped(&engine, b"s");
    assert_eq!(restore(&engine, &[b"r", b"0", &payload]), "+OK");
    assert_eq!(dumped(&engine, b"r"), payload);
    for command in ["XINFO STREAM", "XRANGE", "XPENDING"] {
        let rest = match command {
            "XINFO STREAM" => "FULL",
            "XRANGE" => "- +",
            _ => "g",
        };
        let answers = ["s", "r"].map(|key| client.run(&format!("{command} {key} {rest}")));
        assert_eq!(answers[0], answers[1], "{command}");
    }
    client.expect(&[
        (
            "XADD r 5-9 a 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        ("XREADGROUP GROUP g idle STREAMS r >", "*1 *2 $1 r *1 *2 $3 6-0 *2 $1 b $1 3"),
        ("XACK r g 5-1 5-2 6-0", ":3"),
        ("XADD r 6-* a 1", "$3 6-1"),
    ]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn what_redis_does_not_have_is_not_dumped() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("COUNTER.CREATE c", ":1"),
        (
            "DUMP c",
            "-ERR a counter cannot be dumped: DUMP takes strings, lists, hashes, sets, sorted sets and streams",
        ),
    ]);
}
