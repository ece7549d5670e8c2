//! Streams: entries, groups of consumers, clients that wait, and what is logged of them.

use crate::blocking::{wait, wait_as};
use crate::support::{Client, START_US, engine, for_each_record, replayed, transaction, words};
use tidemark_engine::change::{Change, Changes};
use tidemark_engine::watch::{Filter, Read};
use tidemark_engine::{Engine, Protocol};
use tidemark_log::Lsn;

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
    let mut reply = tidemark_engine::Reply::new(Protocol::Resp2);
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
