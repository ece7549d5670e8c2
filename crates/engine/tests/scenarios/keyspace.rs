//! Keys of any type, databases, transactions and the whole state.

use crate::support;
use crate::support::{Client, START_US, engine, replayed, shown, transaction, words};
use tidemark_engine::record::encode_command;
use tidemark_engine::{Call, Protocol, Reply, WatchedKeys, command};
use tidemark_log::{Lsn, Record};

#[test]
fn names_and_lifetimes() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("SET a 1", "+OK"),
        ("EXPIRE a 10", ":1"),
        ("EXPIRE a 20 NX", ":0"),
        ("EXPIRE a 5 GT", ":0"),
        ("EXPIRE a 5 LT", ":1"),
        ("EXPIRE a 50 XX", ":1"),
        ("EXPIRE a 50 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("EXPIRE a 50 QQ", "-ERR Unsupported option QQ"),
        ("EXPIRE a x QQ", "-ERR Unsupported option QQ"),
        ("EXPIRE a x NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("EXPIRE a x NX NX", "-ERR value is not an integer or out of range"),
        ("EXPIRE none 50", ":0"),
        ("RENAME a b", "+OK"),
        ("TTL b", ":50"),
        ("EXPIRETIME b", ":1767225650"),
        ("COPY b c", ":1"),
        ("COPY b c", ":0"),
        ("COPY b c REPLACE", ":1"),
        ("COPY b b", "-ERR source and destination objects are the same"),
        ("TTL c", ":50"),
        ("RENAMENX b c", ":0"),
        ("MOVE b 3", ":1"),
        ("EXISTS b", ":0"),
        ("TYPE c", "+string"),
        ("TYPE b", "+none"),
        ("EXPIRE c -1", ":1"),
        ("EXISTS c", ":0"),
    ]);
    client.db = 3;
    client.expect(&[
        ("TTL b", ":50"),
        ("OBJECT ENCODING b", "$3 int"),
        ("SWAPDB 3 4", "+OK"),
        ("EXISTS b", ":0"),
    ]);
    client.db = 4;
    client.expect(&[("EXISTS b", ":1"), ("RANDOMKEY", "$1 b"), ("FLUSHDB", "+OK"), ("DBSIZE", ":0")]);
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn idle_time_counts_from_the_last_access() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[("SET text value", "+OK"), ("SET number 42", "+OK"), ("RPUSH list a", ":1")]);
    client.expect(&[
        ("APPEND text more", ":9"),
        ("OBJECT IDLETIME text", ":0"),
        ("OBJECT IDLETIME none", "$-1"),
    ]);
    client.sleep_ms(10_000);
    let all_idle =
        [("OBJECT IDLETIME text", ":10"), ("OBJECT IDLETIME number", ":10"), ("OBJECT IDLETIME list", ":10")];
    client.expect(&all_idle);
    // Commands that only inspect a key do not count as uses of it.
    client.expect(&[("EXISTS text", ":1"), ("TYPE number", "+string"), ("TTL list", ":-1")]);
    client.expect(&[("OBJECT ENCODING list", "$9 quicklist"), ("OBJECT REFCOUNT text", ":1")]);
    client.expect(&all_idle);
    for (access, key) in [
        ("GET text", "text"),
        ("SET number 43", "number"),
        ("LRANGE list 0 -1", "list"),
        ("TOUCH text", "text"),
        ("INCR number", "number"),
        ("LPUSH list b", "list"),
        ("APPEND text more", "text"),
        ("EXPIRE number 1000", "number"),
    ] {
        client.sleep_ms(10_000);
        assert_ne!(client.run(&format!("OBJECT IDLETIME {key}")), ":0", "before {access}");
        client.run(access);
        assert_eq!(client.run(&format!("OBJECT IDLETIME {key}")), ":0", "after {access}");
    }
    client.sleep_ms(10_000);
    client.expect(&[("COPY list copy", ":1"), ("OBJECT IDLETIME copy", ":0")]);
    client.sleep_ms(10_000);
    client.expect(&[("RENAME copy moved", "+OK"), ("OBJECT IDLETIME moved", ":0")]);
}

#[test]
fn idle_time_of_what_a_snapshot_brought_counts_from_its_loading() {
    let engine = engine();
    Client::new(&engine).expect(&[("SET key value", "+OK")]);
    let restored = support::engine();
    let mut client = Client::new(&restored);
    let mut snapshot = engine.snapshot();
    let loader = restored.load(START_US + 5_000_000);
    while let Some(frame) = snapshot.next_frame() {
        loader.load_frame(&frame).expect("a frame loads");
    }
    loader.finish().expect("nothing is missing");
    client.sleep_ms(12_000);
    client.expect(&[("OBJECT IDLETIME key", ":7")]);
}

#[test]
fn a_scan_returns_every_key_once() {
    let engine = engine();
    let client = Client::new(&engine);
    for n in 0..1000 {
        client.run(&format!("SET key:{n} {n}"));
    }
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let answer = client.run(&format!("SCAN {cursor} COUNT 7 MATCH key:*"));
        let parts: Vec<&str> = answer.split(' ').collect();
        seen.extend(parts.iter().filter(|part| part.starts_with("key:")).map(|part| (*part).to_owned()));
        cursor = parts[2].to_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 1000);
    client.expect(&[
        ("SCAN 0 COUNT 100000 TYPE list", "*2 $1 0 *0"),
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN -+1", "-ERR invalid cursor"),
        ("SCAN 18446744073709551616", "-ERR invalid cursor"),
        ("SCAN -1", "*2 $1 0 *0"),
        ("SCAN 0 COUNT 0", "-ERR syntax error"),
        ("SCAN 18446744073709551615", "*2 $1 0 *0"),
        ("SCAN 18446744073709551616", "-ERR invalid cursor"),
        ("SCAN -18446744073709551615 COUNT 100000 TYPE list", "*2 $1 0 *0"),
        ("SCAN -18446744073709551616", "-ERR invalid cursor"),
        ("SCAN +16383", "*2 $1 0 *0"),
        ("SCAN -+1", "-ERR invalid cursor"),
        ("SCAN -", "-ERR invalid cursor"),
        ("SCAN 0x10", "-ERR invalid cursor"),
    ]);
}

/// Runs a command while another thread holds a shard. Returns its answer if it does not need that
/// shard.
fn answer_beside(engine: &tidemark_engine::Engine, held: usize, line: &str) -> Option<String> {
    let (answered, answer) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let guard = engine.keyspace().lock(held);
        scope.spawn(move || answered.send(Client::new(engine).run(line)));
        let answer = answer.recv_timeout(std::time::Duration::from_secs(10)).ok();
        drop(guard);
        answer
    })
}

#[test]
fn a_scan_locks_the_shards_that_it_visits_and_no_others() {
    let engine = engine();
    let client = Client::new(&engine);
    (0..100).for_each(|n| drop(client.run(&format!("SET key:{n} {n}"))));
    // The low bits of a cursor name a shard, here the second. That shard has enough keys that the
    // scan does not reach the third.
    let answer = answer_beside(&engine, 0, "SCAN 1 COUNT 1").expect("an answer without the first shard");
    assert!(answer.starts_with("*2 $") && !answer.ends_with("*0"), "{answer}");
    assert_eq!(
        transaction(&engine, None, &["SET key:1 2", "SCAN 0 COUNT 1000 MATCH none"]),
        "*2 +OK *2 $1 0 *0"
    );
}

#[test]
fn a_random_key_is_one_of_the_keys() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("RANDOMKEY", "$-1"), ("SET a 1", "+OK"), ("SET b 1 PX 10", "+OK"), ("SET c 1", "+OK")]);
    let mut late = Client::new(&engine);
    late.sleep_ms(10);
    let mut seen: Vec<String> = (0..200).map(|_| late.run("RANDOMKEY")).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["$1 a", "$1 c"]);
    late.expect(&[("DEL a c", ":2"), ("RANDOMKEY", "$-1")]);
}

#[test]
fn an_argument_longer_than_a_value_may_be_is_refused() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("RPUSH l a", ":1"), ("SET k v", "+OK"), ("HSET h f v", ":1")]);
    let digest = engine.digest();
    // The vector is never written to, so it takes no memory.
    let long = vec![0; tidemark_engine::keyspace::MAX_BYTES + 1];
    for line in [
        "SET k",
        "SET ! v",
        "SETEX k 9",
        "MSET k",
        "GETSET k",
        "SETNX new",
        "APPEND new",
        "LPUSH l",
        "RPUSHX l",
        "LSET l 0",
        "LINSERT l BEFORE a",
        "LMOVE l ! LEFT RIGHT",
        "HSET h f",
        "HSET h ! v",
        "HSETNX h",
        "SADD s",
        "ZADD z 1",
        "RENAME k",
        "COPY k",
        "SETBIT ! 1 1",
        "SUNIONSTORE ! s",
        "BITOP NOT ! k",
    ] {
        // The long argument replaces the exclamation mark, or is appended.
        let words = words(line);
        let mut args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        match args.iter().position(|arg| *arg == b"!") {
            Some(at) => args[at] = &long,
            None => args.push(&long),
        }
        if line == "HSETNX h" {
            args.push(b"v");
        }
        let call = Call {
            command: command::resolve(&args).expect("a command"),
            args: &args,
            db: 0,
            now_us: support::START_US,
        };
        let mut reply = Reply::new(Protocol::Resp2);
        engine.execute(&call, &mut reply);
        let answer = shown(reply.bytes());
        assert_eq!(answer, "-ERR string exceeds maximum allowed size (proto-max-bulk-len)", "{line}");
    }
    assert_eq!(engine.digest(), digest);
}

#[test]
fn a_transaction_is_one_record_and_fails_command_by_command() {
    let engine = engine();
    let before = engine.log().appended();
    let answer = transaction(&engine, None, &["SET a 1", "INCR a", "INCRBYFLOAT a x", "SET b x", "GET b"]);
    assert_eq!(answer, "*5 +OK :2 -ERR value is not a valid float +OK $1 x");
    assert_eq!(engine.log().appended(), tidemark_log::Lsn(before.0 + 1));
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn a_watched_key_that_changes_or_expires_aborts_the_transaction() {
    let engine = engine();
    let client = Client::new(&engine);
    let watching = |key: &[u8]| {
        let mut watched = WatchedKeys::new();
        engine.watch(&mut watched, 0, key, support::START_US);
        watched
    };
    let watched = watching(b"k");
    assert_eq!(transaction(&engine, Some(&watched), &["SET k 1"]), "*1 +OK");
    let watched = watching(b"k");
    client.run("SET k 2");
    assert_eq!(transaction(&engine, Some(&watched), &["SET k 3"]), "*-1");
    let watched = watching(b"absent");
    client.run("DEL absent");
    assert_eq!(transaction(&engine, Some(&watched), &["GET k"]), "*1 $1 2");
    let watched = watching(b"k");
    client.run("FLUSHALL");
    assert_eq!(transaction(&engine, Some(&watched), &["GET k"]), "*-1");
    engine.unwatch(&watched);
}

#[test]
fn many_keys_are_watched_as_well_as_few() {
    let engine = engine();
    let client = Client::new(&engine);
    let watching = || {
        let mut watched = WatchedKeys::new();
        for n in (0..50_000).chain(0..50_000) {
            engine.watch(&mut watched, 0, format!("key:{n}").as_bytes(), support::START_US);
        }
        watched
    };
    let watched = watching();
    assert_eq!(transaction(&engine, Some(&watched), &["SET key:0 1"]), "*1 +OK");
    engine.unwatch(&watched);
    let watched = watching();
    client.run("SET key:49999 1");
    assert_eq!(transaction(&engine, Some(&watched), &["SET key:0 1"]), "*-1");
    engine.unwatch(&watched);
}

/// An engine that has loaded the frames of a snapshot.
fn loaded(frames: &[Vec<u8>]) -> tidemark_engine::Engine {
    let engine = support::engine();
    let loader = engine.load(START_US);
    frames.iter().for_each(|frame| loader.load_frame(frame).expect("a frame loads"));
    loader.finish().expect("nothing is missing");
    engine
}

/// Loads the frames of a snapshot, then applies the log after it. Returns the digest.
fn restored(engine: &tidemark_engine::Engine, lsn: tidemark_log::Lsn, frames: &[Vec<u8>]) -> u128 {
    let replica = loaded(frames);
    support::apply_from(engine, lsn.next(), &replica);
    replica.digest()
}

#[test]
fn a_snapshot_is_the_state_at_its_cut_whatever_happens_meanwhile() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for n in 0..2000 {
        client.db = (n % 3) as u8;
        client.run(&format!("SET key:{n} value:{n} EX {}", n + 10));
    }
    client.db = 0;
    let at_cut = engine.digest();
    let mut snapshot = engine.snapshot();
    let (lsn, mut frames) = (snapshot.lsn(), Vec::new());
    let disturbances = [
        "APPEND key:0 more",
        "DEL key:3",
        "SET key:6 1",
        "PERSIST key:9",
        "RENAME key:12 key:15",
        "SWAPDB 1 2",
        "FLUSHDB",
        "SET born after",
        "SWAPDB 0 1",
        "FLUSHALL",
        "SET key:0 again",
    ];
    let mut next = disturbances.iter();
    client.run(next.next().expect("one"));
    client.run(next.next().expect("one"));
    while let Some(frame) = snapshot.next_frame() {
        frames.push(frame);
        for line in next.by_ref().take(3) {
            client.run(line);
        }
    }
    drop(snapshot);
    next.for_each(|line| {
        client.run(line);
    });
    assert_eq!(loaded(&frames).digest(), at_cut);
    assert_eq!(restored(&engine, lsn, &frames), engine.digest());
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// An engine with large collections of every type in one shard, one of each type for each of
/// `names`.
fn with_large_values(names: &[&str]) -> tidemark_engine::Engine {
    let engine = engine();
    let client = Client::new(&engine);
    for name in names {
        for chunk in 0..8 {
            let numbers = chunk * 150..(chunk + 1) * 150;
            let members: Vec<String> = numbers.clone().map(|n| format!("{}{n}", "m".repeat(60))).collect();
            let members = members.join(" ");
            let scored: Vec<String> = numbers.clone().map(|n| format!("{} member{n}", n % 700)).collect();
            client.run(&format!("RPUSH {{t}}list:{name} {members} {members} {members} {members}"));
            client.run(&format!("SADD {{t}}set:{name} {members}"));
            client.run(&format!("HSET {{t}}hash:{name} {members}"));
            client.run(&format!("ZADD {{t}}zset:{name} {}", scored.join(" ")));
        }
    }
    engine
}

#[test]
fn a_large_value_is_in_a_snapshot_whatever_happens_to_its_key() {
    for disturbance in [
        "DEL K",
        "UNLINK K",
        "SET K string",
        "SADD other member|SUNIONSTORE K other",
        "RENAME K elsewhere",
        "RENAME K elsewhere|RENAME elsewhere K",
        "RENAME K elsewhere|MOVE elsewhere 1|SWAPDB 0 1|RENAME elsewhere again",
        "MOVE K 1",
        "COPY K {t}twin|DEL K",
        "PEXPIRE K 1|PING|GET K",
        "EXPIRE K 1000",
        "FLUSHDB",
        "FLUSHALL",
        "SWAPDB 0 1|FLUSHALL",
        "LTRIM K 10 20|LPOP K 100",
        "LPUSH K one|RPOP K 5|LSET K 7 two|LINSERT K BEFORE two three",
        "SPOP K 100|SADD K one two",
        "SPOP K 5000",
        "HDEL K none|HSET K field value",
        "ZREMRANGEBYRANK K 5 500|ZADD K 12 member5 0 member1100|ZPOPMAX K 10",
        "ZREMRANGEBYRANK K 0 -1|ZADD K 1 member1",
    ] {
        for before in [0, 2] {
            let engine = with_large_values(&["1", "2"]);
            let client = Client::new(&engine);
            let at_cut = engine.digest();
            let mut snapshot = engine.snapshot();
            let lsn = snapshot.lsn();
            let mut frames: Vec<_> = (0..before).filter_map(|_| snapshot.next_frame()).collect();
            for kind in ["list", "set", "hash", "zset"] {
                for line in disturbance.split('|') {
                    client.run(&line.replace('K', &format!("{{t}}{kind}:1")));
                }
            }
            frames.extend(std::iter::from_fn(|| snapshot.next_frame()));
            snapshot.check().expect("every value is whole");
            assert_eq!(loaded(&frames).digest(), at_cut, "{disturbance} after {before} frames");
            assert_eq!(restored(&engine, lsn, &frames), engine.digest(), "{disturbance}");
            let mut snapshot = engine.snapshot();
            let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
            assert_eq!(loaded(&frames).digest(), engine.digest(), "the next one after {disturbance}");
        }
    }
}

#[test]
fn a_large_value_that_moves_on_and_on_is_in_a_snapshot() {
    let engine = with_large_values(&["1", "2", "3", "4"]);
    let client = Client::new(&engine);
    let at_cut = engine.digest();
    let mut snapshot = engine.snapshot();
    let of_kind = |kind| (1..=4).map(move |name| format!("{{t}}{kind}:{name}"));
    let mut places: Vec<_> = ["list", "set", "hash", "zset"].into_iter().flat_map(of_kind).collect();
    let mut frames = Vec::new();
    while let Some(frame) = snapshot.next_frame() {
        frames.push(frame);
        for (number, place) in places.iter_mut().enumerate() {
            let next = format!("place:{}:{number}", frames.len());
            assert_eq!(client.run(&format!("RENAME {place} {next}")), "+OK");
            *place = next;
        }
    }
    snapshot.check().expect("every value is whole");
    assert_eq!(loaded(&frames).digest(), at_cut);
}

#[test]
fn a_large_value_that_shrinks_to_little_is_in_a_snapshot() {
    let engine = engine();
    let mut client = Client::new(&engine);
    for db in 0..3 {
        client.db = db;
        for chunk in 0..40 {
            let fields: Vec<_> = (chunk * 500..(chunk + 1) * 500).map(|n| format!("field{n} {n}")).collect();
            client.run(&format!("HSET hash {}", fields.join(" ")));
        }
    }
    let at_cut = engine.digest();
    let mut snapshot = engine.snapshot();
    let mut frames: Vec<_> = snapshot.next_frame().into_iter().collect();
    for db in 0..3 {
        client.db = db;
        for chunk in 0..40 {
            let fields: Vec<_> = (chunk * 500..(chunk + 1) * 500 - 3).map(|n| format!("field{n}")).collect();
            client.run(&format!("HDEL hash {}", fields.join(" ")));
            client.run(&format!("HSET hash field{} changed new{chunk} {chunk}", (chunk + 1) * 500 - 1));
        }
        frames.extend(snapshot.next_frame());
    }
    frames.extend(std::iter::from_fn(|| snapshot.next_frame()));
    snapshot.check().expect("every value is whole");
    assert_eq!(loaded(&frames).digest(), at_cut);
}

#[test]
fn a_snapshot_with_a_part_missing_or_twice_is_refused() {
    let engine = with_large_values(&["1", "2", "3"]);
    let mut snapshot = engine.snapshot();
    let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
    assert!(frames.len() > 1);
    for missing in 0..frames.len() {
        let copy = support::engine();
        let loader = copy.load(START_US);
        for (_, frame) in frames.iter().enumerate().filter(|(number, _)| *number != missing) {
            loader.load_frame(frame).expect("a frame loads");
        }
        assert!(loader.finish().is_err(), "without frame {missing}");
    }
    for twice in &frames {
        let copy = support::engine();
        let loader = copy.load(START_US);
        let once = frames.iter().try_for_each(|frame| loader.load_frame(frame));
        assert!(once.is_ok() && (loader.load_frame(twice).is_err() || loader.finish().is_err()));
    }
}

#[test]
fn frames_load_in_any_order_and_on_several_threads() {
    let engine = with_large_values(&["1", "2"]);
    let mut snapshot = engine.snapshot();
    let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
    let copy = support::engine();
    let loader = copy.load(START_US);
    std::thread::scope(|scope| {
        for part in frames.chunks(frames.len().div_ceil(2)) {
            let loader = &loader;
            scope.spawn(move || {
                part.iter().rev().for_each(|frame| loader.load_frame(frame).expect("a frame loads"));
            });
        }
    });
    loader.finish().expect("nothing is missing");
    assert_eq!(copy.digest(), engine.digest());
}

#[test]
fn an_abandoned_snapshot_leaves_the_next_one_whole() {
    let engine = engine();
    let client = Client::new(&engine);
    for n in 0..5000 {
        client.run(&format!("SET key:{n} {n}"));
    }
    let mut snapshot = engine.snapshot();
    assert!(snapshot.next_frame().is_some());
    drop(snapshot);
    let mut snapshot = engine.snapshot();
    let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
    assert_eq!(loaded(&frames).digest(), engine.digest());
}

#[test]
fn damaged_records_and_frames_are_refused() {
    let engine = engine();
    let mut scratch = Reply::default();
    let mut apply = |kind, payload| {
        let record = Record { lsn: Lsn(1), time_us: 0, kind, payload };
        support::engine().apply(&record, &mut scratch)
    };
    let digest = engine.digest();
    for payload in
        [&b""[..], b"\xff", b"\x00\x02\x00\x02\x01k", b"\x00\xff\xff\x00", b"\x00\x01\x00\x01\x01k"]
    {
        for kind in 0..=10 {
            // A transaction without commands, and two keys that have expired.
            let is_sound = (kind, payload) == (2, b"") || (kind, payload) == (3, b"\x00\x02\x00\x02\x01k");
            assert_eq!(apply(kind, payload).is_ok(), is_sound, "{payload:?} of kind {kind}");
        }
        assert!(engine.load(START_US).load_frame(payload).is_err(), "{payload:?}");
        assert_eq!(engine.load_queries(Lsn(1), START_US, payload).is_ok(), payload.is_empty(), "{payload:?}");
        assert_eq!(engine.load_names(payload).is_ok(), payload.is_empty(), "{payload:?}");
    }
    assert_eq!(engine.digest(), digest);
}

/// The error for damaged bytes names the record or frame, the byte, and the cause.
#[test]
fn errors_say_where_a_record_is_damaged() {
    let mut scratch = Reply::default();
    let mut apply = |kind, payload: &[u8]| {
        let engine = engine();
        engine.continue_behind(Lsn(6));
        engine
            .apply(&Record { lsn: Lsn(7), time_us: 0, kind, payload }, &mut scratch)
            .expect_err("damaged")
            .to_string()
    };
    let mut set = Vec::new();
    let set_row = command::resolve(&[b"set", b"k", b"v"]).expect("a command");
    encode_command(&mut set, 0, set_row.id, &[b"k", b"v"]);
    assert_eq!(
        apply(1, &set[..set.len() - 1]),
        "the payload of record 7 is malformed at byte 7: a command or its argument is cut off"
    );
    set[0] = 16;
    assert_eq!(
        apply(1, &set),
        "the payload of record 7 is malformed at byte 8: there is no database 16: the last one is 15"
    );
    assert_eq!(
        apply(3, b"\x00\x01a\x05b"),
        "the payload of record 7 is malformed at byte 4: a key is cut off"
    );
    assert_eq!(
        apply(5, b"\x09"),
        "the payload of record 7 is malformed at byte 1: no read is watched since record 9"
    );
    assert_eq!(
        apply(7, b"\x04name"),
        "the payload of record 7 is malformed at byte 5: there is no subscription 'name'"
    );
}

#[test]
fn errors_say_where_a_frame_is_damaged() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[("SET k value", "+OK"), ("SADD s a b c", ":3")]);
    let mut snapshot = engine.snapshot();
    let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
    let apply = |frame: &[u8]| {
        let copy = support::engine();
        let loader = copy.load(START_US);
        loader.load_frame(frame).map_err(|error| error.in_frame(3).to_string())
    };
    assert_eq!(apply(b""), Err("frame 3 is malformed at byte 0: the database is missing".to_owned()));
    assert_eq!(
        apply(b"\x12"),
        Err("frame 3 is malformed at byte 1: there is no database 18: the last one is 15".to_owned())
    );
    for frame in &frames {
        assert_eq!(apply(frame), Ok(()));
        let twice = [frame, &frame[1..]].concat();
        let error = apply(&twice).expect_err("each key is there twice");
        assert!(error.starts_with("frame 3 is malformed at byte "), "{error}");
        assert!(error.ends_with("of database 0 has been loaded before"), "{error}");
        // A truncated frame either ends with a whole entry, or the error names the byte where the
        // entry begins and the byte that the loader reached.
        for cut in 1..frame.len() {
            let Err(error) = apply(&frame[..cut]) else { continue };
            let place = error.strip_prefix("frame 3 is malformed at byte ").expect(&error);
            let (offset, what) = place.split_once(": ").expect("what is wrong");
            let start = what.strip_prefix("what begins at byte ").and_then(|rest| rest.split_once(','));
            let number = |text: &str| text.parse::<usize>().expect(text);
            let (offset, start) = (number(offset), number(start.expect(what).0));
            assert!(start <= offset && offset <= cut, "{error}: {cut} bytes");
        }
    }
}

#[test]
#[should_panic(expected = "record 3 is applied behind record 1, and is not the next one")]
fn a_record_that_is_left_out_stops_the_replay() {
    let (engine, mut scratch) = (engine(), Reply::default());
    for lsn in [1, 3] {
        let applied =
            engine.apply(&Record { lsn: Lsn(lsn), time_us: 0, kind: 2, payload: b"" }, &mut scratch);
        applied.expect("a transaction of nothing");
    }
}

#[test]
#[should_panic(expected = "record 1 is applied behind record 1, and is not the next one")]
fn a_record_that_comes_twice_stops_the_replay() {
    let (engine, mut scratch) = (engine(), Reply::default());
    for _ in 0..2 {
        let applied = engine.apply(&Record { lsn: Lsn(1), time_us: 0, kind: 2, payload: b"" }, &mut scratch);
        applied.expect("a transaction of nothing");
    }
}

#[test]
fn a_snapshot_comes_in_frames_of_bounded_size() {
    let engine = support::engine();
    let client = Client::new(&engine);
    let value = "v".repeat(1000);
    for n in 0..3000 {
        client.run(&format!("SET {{one-shard}}{n} {value}{n}"));
    }
    for _ in 0..2000 {
        client.run(&format!("RPUSH {{one-shard}}large {value}"));
    }
    let mut snapshot = engine.snapshot();
    // Keys that change or are deleted before the walk reaches them are written all the same.
    for n in 1000..2000 {
        client.run(&format!("APPEND {{one-shard}}{n} x"));
    }
    client.run("FLUSHDB");
    let frames: Vec<_> = std::iter::from_fn(|| snapshot.next_frame()).collect();
    assert!(frames.len() > 5, "{}", frames.len());
    assert!(frames.iter().all(|frame| frame.len() <= 513 << 10), "a list of 2 MB comes in parts");
    let copy = loaded(&frames);
    let client = Client::new(&copy);
    client.expect(&[
        ("DBSIZE", ":3001"),
        ("LLEN {one-shard}large", ":2000"),
        ("STRLEN {one-shard}1500", ":1004"),
    ]);
}

#[test]
fn numbers_of_databases_are_refused_in_the_words_of_redis() {
    let engine = engine();
    let client = Client::new(&engine);
    let beyond = "-ERR value is out of range, value must between -2147483648 and 2147483647";
    client.expect(&[
        ("SET a 1", "+OK"),
        ("MOVE a x", "-ERR value is not an integer or out of range"),
        ("MOVE a 16", "-ERR DB index is out of range"),
        ("MOVE a -1", "-ERR DB index is out of range"),
        ("MOVE a 2147483648", beyond),
        ("COPY a b DB 9223372036854775807", beyond),
        ("SWAPDB 2147483648 0", "-ERR invalid first DB index"),
        ("SWAPDB 0 x", "-ERR invalid second DB index"),
        ("SWAPDB 0 16", "-ERR DB index is out of range"),
    ]);
}
