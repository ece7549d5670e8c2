//! Payloads of `DUMP` go from Debian's `redis-server` to Tidemark and back: values survive both ways, and
//! the bytes of HyperLogLogs are the same on both.

use crate::commands::{Generator, Line, Times};
use crate::support::Server;
use crate::support::redis::{Redis, line_that_both_know, setting};
use crate::support::wire::{Pipeline, Value};

/// What a key holds, in an order that does not depend on the server.
fn contents(server: &mut Pipeline, key: &[u8]) -> (String, Vec<Vec<u8>>) {
    let mut call = |words: &[&[u8]]| server.call(words).expect("an answer");
    let Value::Status(kind) = call(&[b"TYPE", key]) else { panic!("a type") };
    let answer = match kind.as_str() {
        "string" => call(&[b"GET", key]),
        "list" => call(&[b"LRANGE", key, b"0", b"-1"]),
        "set" => call(&[b"SMEMBERS", key]),
        "hash" => call(&[b"HGETALL", key]),
        "zset" => call(&[b"ZRANGE", key, b"0", b"-1"]),
        // They have no payload yet.
        "stream" => Value::Null,
        other => panic!("Redis has no {other}"),
    };
    let mut elements: Vec<Vec<u8>> = match &answer {
        Value::Bulk(bytes) => vec![bytes.clone()],
        other => other.elements().iter().map(|element| element.bytes().to_vec()).collect(),
    };
    match kind.as_str() {
        "set" => elements.sort_unstable(),
        "hash" => {
            let mut pairs: Vec<Vec<u8>> = elements.chunks(2).map(|pair| pair.join(&b"="[..])).collect();
            pairs.sort_unstable();
            elements = pairs;
        }
        // Scores, printed by each server with other digits.
        "zset" => {
            let ends = [&b"(0"[..], b"0", b"(1", b"5", b"-5", b"100"];
            for [min, max] in ends.map(|end| [&b"-inf"[..], end]) {
                let Value::Integer(count) = call(&[b"ZCOUNT", key, min, max]) else { panic!("a count") };
                elements.push(count.to_string().into_bytes());
            }
        }
        _ => {}
    }
    (kind, elements)
}

fn payload(server: &mut Pipeline, key: &[u8]) -> Vec<u8> {
    match server.call(&[b"DUMP", key]).expect("an answer") {
        Value::Bulk(payload) => payload,
        other => panic!("DUMP answers {other:?}"),
    }
}

fn restore(server: &mut Pipeline, key: &[u8], payload: &[u8]) {
    let answer = server.call(&[b"RESTORE", key, b"0", payload, b"REPLACE"]).expect("an answer");
    let shown = payload.escape_ascii().to_string();
    assert_eq!(answer, Value::Status("OK".into()), "RESTORE {} of {shown}", key.escape_ascii());
}

fn has_type_of_redis(line: &Line) -> bool {
    !["flushall", "flushdb", "select", "swapdb", "move", "restore"]
        .iter()
        .any(|name| line[0].eq_ignore_ascii_case(name.as_bytes()))
}

#[test]
fn values_go_to_redis_and_come_back() {
    let commands = setting("TIDEMARK_DUMPED_COMMANDS", 20_000);
    let seed = setting("TIDEMARK_DIFFERENTIAL_SEED", 1);
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let mut generator = Generator::new(seed, Times::FarOrPast, now.as_millis() as u64);
    let (mut sent, mut moved) = (0, 0);
    while sent < commands {
        for _ in 0..500 {
            let line = line_that_both_know(&mut generator);
            if has_type_of_redis(&line) {
                let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
                theirs.call(&words).expect("an answer");
                sent += 1;
            }
        }
        let Ok(keys) = theirs.call(&[b"KEYS", b"*:*"]) else { panic!("keys") };
        for key in keys.elements().iter().map(|key| key.bytes().to_vec()) {
            let before = contents(&mut theirs, &key);
            if before.0 == "stream" {
                continue;
            }
            let first = payload(&mut theirs, &key);
            restore(&mut ours, &key, &first);
            assert_eq!(contents(&mut ours, &key), before, "{} at Tidemark", key.escape_ascii());
            let second = payload(&mut ours, &key);
            restore(&mut theirs, b"back", &second);
            assert_eq!(contents(&mut theirs, b"back"), before, "{} at Redis", key.escape_ascii());
            theirs.call(&[b"DEL", b"back"]).expect("an answer");
            moved += 1;
        }
    }
    assert!(moved > 100, "only {moved} values moved");
    println!("{sent} commands, {moved} values there and back, seed {seed}");
}

#[test]
fn hyper_log_logs_have_the_bytes_of_redis() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let mut servers = [connect(server.port), connect(redis.port)];
    let mut call = |words: &[&[u8]]| {
        let [ours, theirs] = servers.each_mut().map(|server| server.call(words).expect("an answer"));
        assert_eq!(ours, theirs, "{}", words.join(&b' ').escape_ascii());
    };
    for number in 0..6000_u32 {
        let element = number.wrapping_mul(2_654_435_761).to_string();
        let key: &[u8] = if number % 3 == 0 { b"a" } else { b"b" };
        call(&[b"PFADD", key, element.as_bytes()]);
        if number % 97 == 0 {
            call(&[b"PFMERGE", b"c", b"a", b"b"]);
            call(&[b"PFCOUNT", b"a", b"b"]);
            for key in [&b"a"[..], b"b", b"c"] {
                call(&[b"GET", key]);
                call(&[b"PFDEBUG", b"ENCODING", key]);
            }
        }
    }
    for key in [&b"a"[..], b"b", b"c"] {
        call(&[b"PFDEBUG", b"GETREG", key]);
        call(&[b"GET", key]);
    }
}
