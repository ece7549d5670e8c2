//! Streams: entries, groups of consumers, clients that wait, and what is logged of them.

use crate::blocking::{wait, wait_as};
use crate::support::members::{GroupMember, replicate};
use crate::support::{Client, START_US, engine, for_each_record, replayed, transaction, words};
use crate::watching::{LISTENER, answers, read, watch};
use tidemark_engine::change::{Change, Changes};
use tidemark_engine::record::level;
use tidemark_engine::watch::{Filter, Read};
use tidemark_engine::{Call, Engine, Protocol, Reply, command};
use tidemark_log::{Lsn, MemoryStorage};

/// The commands in the log, as lines.
fn logged(engine: &Engine) -> Vec<String> {
    let mut lines = Vec::new();
    for_each_record(engine, Lsn::ZERO, |record| {
        for change in Changes::of(record).into_iter().flatten() {
            if let Ok(Change::Command { args, .. }) = change {
                let words: Vec<_> =
                    args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
                lines.push(words.join(" "));
            }
        }
    });
    lines
}

fn check_replay(engine: &Engine) {
    assert_eq!(replayed(engine).digest(), engine.digest());
}

#[test]
fn entries_are_read_in_the_order_of_their_ids() {
    let engine = engine();
    let client = Client::new(&engine);
    client.expect(&[
        ("XADD s 1-1 a 1 b 22", "$3 1-1"),
        ("XADD s 1-* a 2", "$3 1-2"),
        ("XADD s 5 c xyz", "$3 5-0"),
        ("XLEN s", ":3"),
        ("TYPE s", "+stream"),
        ("OBJECT ENCODING s", "$6 stream"),
        (
            "XRANGE s - +",
            "*3 *2 $3 1-1 *4 $1 a $1 1 $1 b $2 22 *2 $3 1-2 *2 $1 a $1 2 *2 $3 5-0 *2 $1 c $3 xyz",
        ),
        ("XRANGE s (1-1 5 COUNT 1", "*1 *2 $3 1-2 *2 $1 a $1 2"),
        ("XREVRANGE s + (1-2", "*1 *2 $3 5-0 *2 $1 c $3 xyz"),
        ("XRANGE s - + COUNT 0", "*-1"),
        ("XREAD COUNT 1 STREAMS s none 1-1 0", "*1 *2 $1 s *1 *2 $3 1-2 *2 $1 a $1 2"),
        ("XREAD STREAMS s $", "*-1"),
        ("XREAD STREAMS s +", "*1 *2 $1 s *1 *2 $3 5-0 *2 $1 c $3 xyz"),
        ("XDEL s 1-2 7-7", ":1"),
        (
            "XADD s 4-0 a 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        ("XADD s 0-0 a 1", "-ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD none NOMKSTREAM * a 1", "$-1"),
        ("XADD s * a", "-ERR wrong number of arguments for 'xadd' command"),
        ("XTRIM s MAXLEN 1", ":1"),
        ("XTRIM s MINID 9", ":1"),
        ("XLEN s", ":0"),
        ("EXISTS s", ":1"),
        (
            "XADD s 5-0 a 1",
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
    ]);
    assert_eq!(
        Client::resp3(&engine).run("XADD s 6-0 a 1").as_str(),
        "$3 6-0",
        "an ID does not come back, although no entry is left"
    );
    assert_eq!(Client::resp3(&engine).run("XREAD STREAMS s 0"), "%1 $1 s *1 *2 $3 6-0 *2 $1 a $1 1");
    check_replay(&engine);
}

#[test]
fn what_is_chosen_is_in_the_record() {
    let engine = engine();
    let client = Client::new(&engine);
    let now = START_US / 1000;
    let id = format!("{now}-0");
    assert_eq!(client.run("XADD s * a 1"), format!("${} {id}", id.len()));
    client.run("XADD s NOMKSTREAM 9999999999999-* a 2");
    for number in 0..150 {
        client.run(&format!("XADD t {}-0 a 1", number + 1));
    }
    client.expect(&[
        ("XADD t MAXLEN ~ 40 200-* a 1", "$5 200-0"),
        ("XLEN t", ":51"),
        ("XTRIM t MAXLEN ~ 10", ":0"),
    ]);
    client.expect(&[
        ("XADD t MAXLEN ~ 40 LIMIT 10 201 a 1", "$5 201-0"),
        ("XADD t MAXLEN = 3 202-* a 1", "$5 202-0"),
    ]);
    assert_eq!(client.run("XTRIM t MINID ~ 202"), ":0", "the last block has an entry that stays");
    let logged = logged(&engine);
    assert_eq!(logged[0], format!("xadd s {id} a 1"));
    assert_eq!(logged[1], "xadd s NOMKSTREAM 9999999999999-0 a 2");
    assert_eq!(
        logged[152..],
        ["xadd t MAXLEN = 51 200-0 a 1", "xadd t 201-0 a 1", "xadd t MAXLEN = 3 202-0 a 1"]
    );
    check_replay(&engine);
}

#[test]
fn the_consumers_of_a_group_share_its_entries() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.expect(&[
        ("XGROUP CREATE s g $", "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."),
        ("XGROUP CREATE s g $ MKSTREAM", "+OK"),
        ("XGROUP CREATE s g 0", "-BUSYGROUP Consumer Group name already exists"),
        ("XGROUP CREATE none g $ ENTRIESREAD 3 ENTRIESREAD 5", "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."),
        ("XGROUP SETID s g $ ENTRIESREAD 3 ENTRIESREAD 5", "-ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP."),
        ("XREADGROUP GROUP none c STREAMS s >", "-NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option"),
        ("XREADGROUP GROUP g c STREAMS s >", "*-1"),
    ]);
    for number in 1..=5 {
        client.run(&format!("XADD s {number}-0 n {number}"));
    }
    client.expect(&[
        (
            "XREADGROUP GROUP g c1 COUNT 2 STREAMS s >",
            "*1 *2 $1 s *2 *2 $3 1-0 *2 $1 n $1 1 *2 $3 2-0 *2 $1 n $1 2",
        ),
        ("XREADGROUP GROUP g c2 COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 3-0 *2 $1 n $1 3"),
        ("XREADGROUP GROUP g c3 COUNT 1 NOACK STREAMS s >", "*1 *2 $1 s *1 *2 $3 4-0 *2 $1 n $1 4"),
        ("XPENDING s g", "*4 :3 $3 1-0 $3 3-0 *2 *2 $2 c1 $1 2 *2 $2 c2 $1 1"),
        ("XACK s g 1-0 4-0", ":1"),
        ("XDEL s 2-0", ":1"),
    ]);
    client.sleep_ms(50);
    client.expect(&[
        ("XREADGROUP GROUP g c1 STREAMS s 0", "*1 *2 $1 s *1 *2 $3 2-0 *-1"),
        ("XPENDING s g IDLE 50 - + 10", "*2 *4 $3 2-0 $2 c1 :50 :1 *4 $3 3-0 $2 c2 :50 :1"),
        ("XCLAIM s g c3 60 3-0", "*0"),
        ("XCLAIM s g c3 50 3-0 JUSTID", "*1 $3 3-0"),
        ("XAUTOCLAIM s g c2 0 - COUNT 10", "*3 $3 0-0 *1 *2 $3 3-0 *2 $1 n $1 3 *1 $3 2-0"),
        ("XPENDING s g - + 10", "*1 *4 $3 3-0 $2 c2 :0 :2"),
        (
            "XINFO GROUPS s",
            "*1 *12 $4 name $1 g $9 consumers :3 $7 pending :1 $17 last-delivered-id $3 4-0 $12 entries-read :4 $3 lag :1",
        ),
        ("XGROUP CREATECONSUMER s g c9", ":1"),
        ("XGROUP DELCONSUMER s g c2", ":1"),
        ("XGROUP SETID s g 0", "+OK"),
        ("XGROUP DESTROY s g", ":1"),
        ("XGROUP DESTROY s g", ":0"),
    ]);
    check_replay(&engine);
}

#[test]
fn readers_that_wait_all_get_what_comes() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("XADD s 1-0 a 1");
    let first = wait(&engine, "XREAD BLOCK 0 STREAMS s $");
    let second = wait_as(&engine, 0, Protocol::Resp3, "XREAD COUNT 1 BLOCK 100 STREAMS other s $ 1-0", || ());
    let later = wait(&engine, "XREAD BLOCK 0 STREAMS s 7-0");
    assert_eq!((first.timeout_ms, second.timeout_ms), (None, Some(100)));
    client.run("RPUSH other x");
    assert_eq!(second.answer(), None, "a list is no stream");
    assert_eq!(transaction(&engine, None, &["XADD s 2-0 a 2", "XADD s 3-0 a 3"]), "*2 $3 2-0 $3 3-0");
    let entries = "*2 *2 $3 2-0 *2 $1 a $1 2 *2 $3 3-0 *2 $1 a $1 3";
    assert_eq!(first.answer(), Some(format!("*1 *2 $1 s {entries}")));
    assert_eq!(second.answer().as_deref(), Some("%1 $1 s *1 *2 $3 2-0 *2 $1 a $1 2"));
    assert_eq!(later.answer(), None);
    let mut reply = Reply::new(Protocol::Resp2);
    engine.answer_late(&later.waiter, START_US, &mut reply);
    assert_eq!(reply.bytes(), b"*-1\r\n");
    check_replay(&engine);
}

#[test]
fn consumers_that_wait_are_served_in_their_order() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("XGROUP CREATE s g $ MKSTREAM");
    let [first, second, third] = ["c1", "c2", "c3"]
        .map(|name| wait(&engine, &format!("XREADGROUP GROUP g {name} COUNT 1 BLOCK 0 STREAMS s >")));
    client.run("XADD s 1-0 a 1");
    assert_eq!(first.answer().as_deref(), Some("*1 *2 $1 s *1 *2 $3 1-0 *2 $1 a $1 1"));
    assert_eq!((second.answer(), third.answer()), (None, None));
    transaction(&engine, None, &["XADD s 2-0 a 2", "XADD s 3-0 a 3"]);
    assert_eq!(second.answer().as_deref(), Some("*1 *2 $1 s *1 *2 $3 2-0 *2 $1 a $1 2"));
    assert_eq!(third.answer().as_deref(), Some("*1 *2 $1 s *1 *2 $3 3-0 *2 $1 a $1 3"));
    client.expect(&[("XPENDING s g", "*4 :3 $3 1-0 $3 3-0 *3 *2 $2 c1 $1 1 *2 $2 c2 $1 1 *2 $2 c3 $1 1")]);
    assert_eq!(logged(&engine)[2], "xreadgroup GROUP g c1 COUNT 1 STREAMS s >");
    check_replay(&engine);
}

#[test]
fn consumers_do_not_wait_for_a_group_that_is_gone() {
    for (line, answer) in [
        ("XGROUP DESTROY s g", "-NOGROUP the consumer group this client was blocked on no longer exists"),
        ("DEL s", "-UNBLOCKED the stream key no longer exists"),
        ("SET s x", "-UNBLOCKED the stream key no longer exists"),
        ("FLUSHALL", "-UNBLOCKED the stream key no longer exists"),
        ("RENAME s other", "-UNBLOCKED the stream key no longer exists"),
    ] {
        let engine = engine();
        let client = Client::new(&engine);
        client.run("XGROUP CREATE s g $ MKSTREAM");
        let waiting = wait(&engine, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        client.run(line);
        assert_eq!(waiting.answer().as_deref(), Some(answer), "{line}");
        check_replay(&engine);
    }
}

#[test]
fn a_read_is_watched_from_an_id_on() {
    let read = |line: &str| {
        let words = words(line);
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        Read::new(0, Protocol::Resp2, &args, Filter::default()).map(drop).map_err(|error| error.to_string())
    };
    let refused =
        "ERR XREAD is watched from an ID on, such as 0 or that of the last entry received, without BLOCK";
    assert_eq!(read("XREAD COUNT 5 STREAMS s t 0 5-1"), Ok(()));
    assert_eq!(read("XREAD STREAMS s t 0 $"), Err(refused.to_owned()));
    assert_eq!(read("XREAD BLOCK 0 STREAMS s 0"), Err(refused.to_owned()));
    assert_eq!(read("XRANGE s - +"), Ok(()));
    assert!(read("XREADGROUP GROUP g c STREAMS s >").is_err(), "it changes the group");
}

#[test]
fn a_watched_read_emits_what_changes_its_answer() {
    let engine = engine();
    let client = Client::new(&engine);
    client.run("XADD s 1-0 a 1");
    let behind = watch(&engine, "XREAD STREAMS s 1-0");
    let newest = watch(&engine, "XREVRANGE s + - COUNT 1");
    let length = watch(&engine, "XLEN s");
    for line in [
        "XADD s 2-0 a 2",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c STREAMS s >",
        "XACK s g 1-0",
        "XADD s 3-0 a 3",
        "XDEL s 2-0",
        "XTRIM s MAXLEN 1",
        "RENAME s t",
    ] {
        assert!(!client.run(line).starts_with('-'), "{line}");
    }
    let two = "*2 $3 2-0 *2 $1 a $1 2";
    let three = "*2 $3 3-0 *2 $1 a $1 3";
    assert_eq!(
        answers(&behind),
        [
            format!("%1 $1 s *1 {two}"),
            format!("%1 $1 s *2 {two} {three}"),
            format!("%1 $1 s *1 {three}"),
            "_".to_owned(),
        ],
        "deliveries, acknowledgements, and what happens before the ID change nothing"
    );
    assert_eq!(answers(&newest), [format!("*1 {two}"), format!("*1 {three}"), "*0".to_owned()]);
    assert_eq!(answers(&length), [":2", ":3", ":2", ":1", ":0"]);
    check_replay(&engine);
}

/// What was published of Redis's streams, each tried:
///
/// | CVE | what it was |
/// |---|---|
/// | 2018-12453 | `XGROUP` took a key that has no stream for one |
/// | 2021-32627 | an entry longer than its block's length can say |
/// | 2022-31144 | `XAUTOCLAIM` of entries that are deleted wrote behind its buffer |
/// | 2022-35951 | a `COUNT` of `XAUTOCLAIM` whose multiple overflows |
/// | 2026-23479 | a client that has waited, and whose command fails when it is run again |
///
/// CVE-2025-62507 is in `XACKDEL`, which came with Redis 8.2 and is not here.
#[test]
fn what_was_published_of_other_servers_does_no_harm() {
    let engine = engine();
    let client = Client::new(&engine);
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    client.run("SET string x");
    for line in [
        "XGROUP CREATE string g $",
        "XGROUP CREATE string g $ MKSTREAM",
        "XGROUP SETID string g $",
        "XGROUP DESTROY string g",
        "XGROUP CREATECONSUMER string g c",
        "XGROUP DELCONSUMER string g c",
        "XINFO STREAM string",
        "XREADGROUP GROUP g c STREAMS string >",
        "XAUTOCLAIM string g c 0 -",
    ] {
        assert_eq!(client.run(line), wrong_type, "{line}");
    }

    // More than a GiB of one entry, whose parts are the same.
    let part = vec![b'x'; 48 << 20];
    let mut args: Vec<&[u8]> = vec![b"XADD", b"long", b"*"];
    args.extend(std::iter::repeat_n(&part[..], 24));
    let mut reply = Reply::new(Protocol::Resp2);
    let command = command::resolve(&args).expect("a command");
    engine.execute(&Call { command, args: &args, db: 0, now_us: START_US }, &mut reply);
    assert!(reply.bytes().starts_with(b"-ERR "), "{}", String::from_utf8_lossy(reply.bytes()));
    assert_eq!(client.run("EXISTS long"), ":0");

    client.run("XGROUP CREATE s g $ MKSTREAM");
    (1..=30).for_each(|number| drop(client.run(&format!("XADD s {number} a 1"))));
    client.run("XREADGROUP GROUP g c STREAMS s >");
    client.run("XTRIM s MAXLEN 2");
    for count in ["0", "-1", "1152921504606846976", "9223372036854775807"] {
        let answer = client.run(&format!("XAUTOCLAIM s g d 0 - COUNT {count}"));
        assert_eq!(answer, "-ERR COUNT must be > 0", "{count}");
    }
    let answer = client.run("XAUTOCLAIM s g d 0 - COUNT 3");
    assert_eq!(answer, "*3 $3 4-0 *0 *3 $3 1-0 $3 2-0 $3 3-0", "deleted entries count too");
    let answer = client.run("XAUTOCLAIM s g d 0 - COUNT 576460752303423487 JUSTID");
    assert!(answer.starts_with("*3 $3 0-0 *2 $4 29-0 $4 30-0 *25 $3 4-0 $3 5-0"), "{answer}");

    let waiting = wait(&engine, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    assert_eq!(transaction(&engine, None, &["DEL s", "SET s x"]), "*2 :1 +OK");
    assert_eq!(waiting.answer().as_deref(), Some("-UNBLOCKED the stream key no longer exists"));
    check_replay(&engine);
}

#[test]
fn a_group_whose_members_may_not_know_streams_has_none() {
    let leader = GroupMember::of_first_level(MemoryStorage::new());
    leader.lead(START_US);
    let client = Client::new(&leader.engine);
    let refusal = |name: &str| {
        format!(
            "'{name}' needs records of level 3, and the cluster writes them up to level 1, because a member"
        )
    };
    for (line, name) in [
        ("XADD s 1-0 a 1", "xadd"),
        ("XGROUP CREATE s g $ MKSTREAM", "xgroup"),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "xreadgroup"),
    ] {
        let answer = client.run(line);
        assert!(answer.contains(&refusal(name)), "{line}: {answer}");
    }
    // The record of a watched read has the read.
    for (line, name) in [("XREAD STREAMS s 0", "xread"), ("XRANGE s - +", "xrange"), ("XLEN s", "xlen")] {
        let refused = leader.engine.subscribe(read(line), LISTENER, START_US).expect_err(line).to_string();
        assert!(refused.contains(&refusal(name)), "{line}: {refused}");
    }
    assert_eq!(client.run("XLEN s"), ":0", "an answer needs no record");
    assert!(leader.write().is_none(), "nothing is logged");
    leader.engine.raise_level(level::STREAMS);
    client.run("XADD s 1-0 a 1");
    watch(&leader.engine, "XREAD STREAMS s 0");
    let follower = GroupMember::new();
    replicate(&leader, &[&follower]);
    assert_eq!(follower.engine.digest(), leader.engine.digest());
}

#[test]
fn the_effort_of_a_read_is_what_it_visits() {
    let engine = engine();
    let client = Client::new(&engine);
    (1..=20_000).for_each(|number| drop(client.run(&format!("XADD s {number}-0 a 1"))));
    client.run("XADD short 1-0 a 1");
    client.run("XGROUP CREATE s g 15000-0");
    for (line, effort) in [
        ("XRANGE s - +", 20_000..=20_000),
        ("XREVRANGE s 15000 1000", 14_000..=14_300),
        ("XRANGE s - + COUNT 10", 10..=10),
        ("XRANGE s 500 500", 1..=200),
        ("XRANGE s 500 400", 0..=200),
        ("XRANGE none - +", 0..=0),
        ("XRANGE s x +", 0..=0),
        // Which ID belongs to which stream is not known.
        ("XREAD STREAMS short s 0 8000", 20_001..=20_001),
        ("XREAD COUNT 20 STREAMS s 0", 20..=20),
        ("XREAD STREAMS s $", 0..=0),
        ("XREADGROUP GROUP g c STREAMS s >", 5000..=5300),
        ("XREADGROUP GROUP g c COUNT 3 STREAMS s >", 3..=3),
        // A client that may have to wait is not handed over.
        ("XREAD BLOCK 0 STREAMS s 0", 0..=0),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", 0..=0),
    ] {
        let words = words(line);
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let command = command::resolve(&args).expect("a command");
        let found = engine.effort(&Call { command, args: &args, db: 0, now_us: START_US });
        assert!(effort.contains(&found), "{line}: {found}");
    }
}

#[test]
fn nothing_waits_in_a_transaction() {
    let engine = engine();
    Client::new(&engine).run("XGROUP CREATE s g $ MKSTREAM");
    let lines = ["XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"];
    assert_eq!(transaction(&engine, None, &lines), "*2 *-1 *-1");
}

#[test]
fn a_copy_has_the_groups_and_goes_its_own_way() {
    let engine = engine();
    let client = Client::new(&engine);
    for number in 1..=300 {
        client.run(&format!("XADD s {number}-0 a {number}"));
    }
    client.expect(&[
        ("XGROUP CREATE s g 0", "+OK"),
        ("XGROUP CREATECONSUMER s g c", ":1"),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-0 *2 $1 a $1 1"),
        ("COPY s t", ":1"),
        ("XACK s g 1-0", ":1"),
        ("XDEL s 1-0 250-0", ":2"),
        ("XLEN t", ":300"),
        ("XPENDING t g", "*4 :1 $3 1-0 $3 1-0 *1 *2 $1 c $1 1"),
        ("RENAME t u", "+OK"),
        ("XRANGE u 250 250", "*1 *2 $5 250-0 *2 $1 a $3 250"),
    ]);
    check_replay(&engine);
}
