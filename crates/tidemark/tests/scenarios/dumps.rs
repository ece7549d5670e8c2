//! Payloads of `DUMP` go from Debian's `redis-server` to Tidemark and back: values survive both ways, and
//! the bytes of HyperLogLogs are the same on both.

use crate::commands::{Generator, Line, Times};
use crate::support::Server;
use crate::support::redis::{Redis, contents, line_that_both_know, setting};
use crate::support::wire::{Pipeline, Value};

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
    let (mut sent, mut moved, mut streams) = (0, 0, 0);
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
            let first = payload(&mut theirs, &key);
            restore(&mut ours, &key, &first);
            assert_eq!(contents(&mut ours, &key), before, "{} at Tidemark", key.escape_ascii());
            let second = payload(&mut ours, &key);
            restore(&mut theirs, b"back", &second);
            assert_eq!(contents(&mut theirs, b"back"), before, "{} at Redis", key.escape_ascii());
            theirs.call(&[b"DEL", b"back"]).expect("an answer");
            moved += 1;
            streams += u32::from(before.0 == "stream");
        }
    }
    assert!(moved > 100, "only {moved} values moved");
    assert!(streams > 20, "only {streams} streams moved");
    println!("{sent} commands, {moved} values there and back, {streams} of them streams, seed {seed}");
}

/// A stream of many blocks with three groups: one that has read nothing, one whose consumers have pending entries,
/// of which some are deleted, and one that is ahead.
fn long_stream(server: &mut Pipeline) {
    let mut call = |line: String| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let answer = server.call(&words).expect("an answer");
        assert!(!matches!(answer, Value::Error(_)), "{line}: {answer:?}");
    };
    for number in 0..1_000 {
        let other = if number % 7 == 0 { " more -129 text -0".repeat(3) } else { String::new() };
        call(format!("XADD s {}-{} name value:{number} count {number}{other}", 5 + number / 3, number % 3));
    }
    call("XGROUP CREATE s none 0".into());
    call("XGROUP CREATE s some 0".into());
    call("XGROUP CREATE s ahead 100-1 ENTRIESREAD 77".into());
    call("XGROUP CREATECONSUMER s some idle".into());
    for (consumer, count) in [("a", 150), ("b", 70), ("a", 10), ("c", 300)] {
        call(format!("XREADGROUP GROUP some {consumer} COUNT {count} STREAMS s >"));
    }
    call("XCLAIM s some b 0 7-0 7-1 7-2 RETRYCOUNT 9".into());
    for ms in (6..300).step_by(2) {
        call(format!("XACK s some {ms}-0 {ms}-2"));
        call(format!("XDEL s {ms}-1 {}-2", ms + 1));
    }
    call("XTRIM s MAXLEN 700".into());
    call("XSETID s 999-5 ENTRIESADDED 5000 MAXDELETEDID 900-0".into());
}

#[test]
fn streams_go_to_redis_and_come_back_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    for turn in 0..2 {
        let (from, to) = if turn == 0 { (&mut theirs, &mut ours) } else { (&mut ours, &mut theirs) };
        from.call(&[b"DEL", b"s"]).expect("an answer");
        long_stream(from);
        let before = contents(from, b"s");
        let first = payload(from, b"s");
        restore(to, b"s", &first);
        assert_eq!(contents(to, b"s"), before);
        // No integer of the payload is one that only its server writes.
        let second = payload(to, b"s");
        restore(from, b"s", &second);
        assert_eq!(contents(from, b"s"), before);
        for words in [
            &[&b"XADD"[..], b"s", b"1000-1", b"a", b"1"][..],
            &[b"XREADGROUP", b"GROUP", b"ahead", b"new", b"STREAMS", b"s", b">"],
            &[b"XPENDING", b"s", b"some"],
            &[b"XLEN", b"s"],
        ] {
            assert_eq!(from.call(words).expect("an answer"), to.call(words).expect("an answer"));
        }
    }
}

/// Of a damaged payload, what Redis refuses with `sanitize-dump-payload yes` is refused with the same error; what it
/// takes may be refused as well, because Redis does not check everything even then.
#[test]
fn damaged_streams_are_refused_as_by_redis() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    theirs.call(&[b"CONFIG", b"SET", b"sanitize-dump-payload", b"yes"]).expect("an answer");
    for line in
        ["XADD s 1-1 a 1", "XADD s 1-2 a 2", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >"]
    {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        theirs.call(&words).expect("an answer");
    }
    let whole = payload(&mut theirs, b"s");
    let content = tidemark_engine::rdb::open(&whole).expect("a payload").to_vec();
    let (mut refused, mut taken) = (0, 0);
    for at in 0..content.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff, content[at] ^ 1, content[at].wrapping_add(1)] {
            let mut damaged = content.clone();
            damaged[at] = byte;
            tidemark_engine::rdb::seal(&mut damaged);
            let words = [&b"RESTORE"[..], b"r", b"0", &damaged, b"REPLACE"];
            let expected = theirs.call(&words).expect("an answer of Redis, which lives");
            let got = ours.call(&words).expect("an answer");
            if matches!(expected, Value::Error(_)) {
                assert_eq!(got, expected, "{}", damaged.escape_ascii());
                refused += 1;
            } else if matches!(got, Value::Error(_)) {
                assert_eq!(got, Value::Error("ERR Bad data format".into()), "{}", damaged.escape_ascii());
            } else {
                // Not the first ID that the payload records, which Redis believes.
                for read in ["XLEN r", "XRANGE r - +", "XPENDING r g", "XPENDING r h"] {
                    let words: Vec<&[u8]> = read.split(' ').map(str::as_bytes).collect();
                    let here = ours.call(&words).expect("an answer");
                    let there = theirs.call(&words).expect("an answer");
                    assert_eq!(here, there, "{read}: {}", damaged.escape_ascii());
                }
                taken += 1;
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} refused and {taken} taken");
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
