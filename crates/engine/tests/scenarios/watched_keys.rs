//! Which commands abort a transaction that watches a key. The expectations are those of Redis
//! 7.0.15, observed by WATCH, the command of another client, MULTI, PING and EXEC.

use crate::support::{Client, START_US, engine, words};
use tidemark_engine::{Call, Engine, Protocol, Reply, WatchedKeys, command};

/// Commands that create the keys before each case.
const SETUP: [&str; 8] = [
    "SET s text",
    "SET n 10",
    "RPUSH l a b",
    "HSET h f 1 g x",
    "SADD t 1 2 3",
    "ZADD z 1 a 2 b 3 c",
    "SETBIT b 7 1",
    "SET e v EX 1000",
];

/// A watched key, a command of another client, and whether EXEC then answers nil.
const COMMANDS: &[(&str, &str, bool)] = &[
    ("s", "SET s text", true),
    ("s", "SET s text NX", false),
    ("s", "SET s text XX", true),
    ("s", "SET s text GET", true),
    ("s", "SET m text XX", false),
    ("m", "SET m text XX", false),
    ("s", "SETNX s text", false),
    ("m", "SETNX m x", true),
    ("s", "GETSET s text", true),
    ("s", r#"APPEND s """#, true),
    ("m", r#"APPEND m """#, true),
    ("s", r#"SETRANGE s 0 """#, false),
    ("m", r#"SETRANGE m 0 """#, false),
    ("s", "SETRANGE s 0 text", true),
    ("s", "GETEX s", false),
    ("s", "GETEX s PERSIST", false),
    ("e", "GETEX e PERSIST", true),
    ("e", "GETEX e", false),
    ("s", "GETEX s EX 100", true),
    ("s", "GETEX s PXAT 1", true),
    ("n", "INCRBY n 0", true),
    ("n", "INCRBYFLOAT n 0", true),
    ("n", "DECRBY n 0", true),
    ("s", "INCR s", false),
    ("s", "MSET s text", true),
    ("s", "MSETNX s text", false),
    ("s", "MSETNX m x s text", false),
    ("m", "MSETNX m x s text", false),
    ("m", "GETDEL m", false),
    ("s", "GETDEL s", true),
    ("b", "SETBIT b 7 1", false),
    ("m", "SETBIT m 7 0", true),
    ("b", "BITFIELD b GET u4 0", false),
    ("b", "BITFIELD b SET u8 0 1", false),
    ("b", "BITFIELD b INCRBY u8 0 0", false),
    ("b", "BITFIELD b OVERFLOW FAIL INCRBY u8 0 255", false),
    ("b", "BITFIELD b OVERFLOW FAIL SET u8 0 300", false),
    // Redis creates the key without touching watchers. This server marks the watched key as
    // changed.
    ("m", "BITFIELD m OVERFLOW FAIL INCRBY u8 0 300", true),
    ("m", "BITFIELD m SET u8 0 0", true),
    ("m", "BITOP AND m m2", false),
    ("s", "BITOP AND s m2", true),
    ("b", "BITOP OR b b", true),
    ("s", "EXPIRE s 100", true),
    ("e", "EXPIRE e 1000", true),
    ("e", "EXPIRE e 100 NX", false),
    ("e", "EXPIRE e 10 GT", false),
    ("e", "EXPIRE e 10000 LT", false),
    ("s", "EXPIRE s 100 XX", false),
    ("m", "EXPIRE m 100", false),
    ("s", "PERSIST s", false),
    ("e", "PERSIST e", true),
    ("m", "PERSIST m", false),
    ("s", "EXPIRE s -1", true),
    ("m", "DEL m", false),
    ("m", "UNLINK m", false),
    ("s", "TOUCH s", false),
    ("s", "OBJECT ENCODING s", false),
    ("s", "RENAME s s", false),
    ("s", "RENAME m s", false),
    ("s", "RENAMENX s n", false),
    ("n", "RENAMENX s n", false),
    ("s", "COPY s n", false),
    ("n", "COPY s n", false),
    ("m", "COPY m s", false),
    ("s", "COPY m s", false),
    ("s", "COPY m s REPLACE", false),
    ("s", "MOVE s 1", true),
    ("m", "MOVE m 1", false),
    ("s", "SORT l STORE s", false),
    ("l", "SORT l STORE l", false),
    ("s", "SORT m STORE s", true),
    ("m", "SORT m STORE m", false),
    ("l", "LTRIM l 0 -1", true),
    ("l", "LTRIM l 0 100", true),
    ("m", "LTRIM m 0 1", false),
    ("l", "LSET l 0 a", true),
    ("l", "LREM l 0 zzz", false),
    ("m", "LREM m 0 zzz", false),
    ("l", "LINSERT l BEFORE zzz x", false),
    ("m", "LINSERT m BEFORE zzz x", false),
    ("m", "LPUSHX m a", false),
    ("l", "LPUSHX l a", true),
    ("m", "RPUSHX m a", false),
    ("l", "LPOP l 0", false),
    ("l", "RPOP l 0", false),
    ("m", "LPOP m", false),
    ("m", "LPOP m 1", false),
    ("l", "LMPOP 1 l LEFT COUNT 1", true),
    ("m", "LMPOP 2 m l LEFT", false),
    ("l", "LMPOP 2 m l LEFT", true),
    ("l", "RPOPLPUSH l l", true),
    ("l", "LMOVE l l LEFT LEFT", true),
    ("l", "LMOVE l l LEFT RIGHT", true),
    ("m", "LMOVE m l LEFT RIGHT", false),
    ("l", "LMOVE m l LEFT RIGHT", false),
    ("h", "HSET h f 1", true),
    ("h", "HSETNX h f 1", false),
    ("h", "HMSET h f 1", true),
    ("h", "HDEL h zzz", false),
    ("m", "HDEL m zzz", false),
    ("h", "HINCRBY h f 0", true),
    ("h", "HINCRBYFLOAT h f 0", true),
    ("h", "HINCRBY h g 1", false),
    ("t", "SADD t 1", false),
    ("t", "SREM t 9", false),
    ("m", "SREM m 9", false),
    ("t", "SMOVE t t 1", false),
    ("t", "SMOVE t t 9", false),
    ("t", "SMOVE t m 9", false),
    ("m", "SMOVE t m 9", false),
    ("l", "SMOVE t l 1", false),
    ("t", "SPOP t 0", false),
    ("m", "SPOP m", false),
    ("m", "SPOP m 1", false),
    ("t", "SINTERSTORE t t", true),
    ("t", "SUNIONSTORE t t", true),
    ("t", "SDIFFSTORE t t m", true),
    ("m", "SINTERSTORE m t m2", false),
    ("t", "SINTERSTORE t m m2", true),
    ("s", "SUNIONSTORE s m", true),
    ("m", "SUNIONSTORE m m2", false),
    ("z", "ZADD z 1 a", false),
    ("z", "ZADD z NX 5 a", false),
    ("z", "ZADD z XX 5 q", false),
    ("z", "ZADD z GT 0 a", false),
    ("z", "ZADD z XX CH 1 a", false),
    ("m", "ZADD m XX 1 a", false),
    ("z", "ZADD z XX INCR 1 q", false),
    ("z", "ZADD z NX INCR 1 a", false),
    ("z", "ZINCRBY z 0 a", false),
    ("z", "ZADD z INCR 0 a", false),
    ("z", "ZREM z q", false),
    ("m", "ZREM m q", false),
    ("z", "ZREMRANGEBYRANK z 10 20", false),
    ("z", "ZREMRANGEBYSCORE z 10 20", false),
    ("z", "ZREMRANGEBYLEX z [x [y", false),
    ("m", "ZREMRANGEBYSCORE m 10 20", false),
    ("m", "ZPOPMIN m", false),
    ("z", "ZPOPMIN z 0", false),
    ("z", "ZPOPMAX z 0", false),
    ("z", "ZMPOP 2 m z MIN", true),
    ("m", "ZMPOP 2 m z MIN", false),
    ("z", "ZUNIONSTORE z 1 z", true),
    ("z", "ZINTERSTORE z 1 z", true),
    ("z", "ZDIFFSTORE z 2 z m", true),
    ("m", "ZINTERSTORE m 2 z m2", false),
    ("z", "ZINTERSTORE z 2 z m2", true),
    ("m", "ZDIFFSTORE m 1 m2", false),
    ("m", "ZUNIONSTORE m 1 m2", false),
    ("s", "ZUNIONSTORE s 1 m", true),
    ("z", "ZRANGESTORE z z 0 -1", true),
    ("z", "ZRANGESTORE z z 10 20", true),
    ("m", "ZRANGESTORE m z 10 20", false),
    ("m", "ZRANGESTORE m m2 0 -1", false),
    ("s", "ZRANGESTORE s m2 0 -1", true),
    ("s", "SWAPDB 0 1", true),
    ("m", "SWAPDB 0 1", false),
    ("s", "SWAPDB 0 0", false),
    ("s", "SWAPDB 2 3", false),
    ("m", "FLUSHDB", false),
    ("s", "FLUSHDB", true),
    ("m", "FLUSHALL", false),
    ("s", "FLUSHALL", true),
    ("s", "DEL m", false),
    ("l", "SORT l", false),
    ("l", "LPOS l a", false),
    ("s", "GET s", false),
    ("s", "GETRANGE s 0 1", false),
    ("z", "ZRANDMEMBER z", false),
    ("t", "SRANDMEMBER t", false),
    ("h", "HRANDFIELD h", false),
    ("s", "SETEX s 100 text", true),
    ("s", "PSETEX s 100 text", true),
    ("s", "SETEX s 0 text", false),
    ("s", "SET s text KEEPTTL", true),
    ("e", "SET e v KEEPTTL", true),
    ("s", "SET s text EXAT 1", true),
    ("s", "SUBSTR s 0 1", false),
    ("s", "LPUSH s x", false),
    ("s", "EXPIREAT s 1", true),
    ("m", "SETRANGE m 3 x", true),
    ("s", "SETRANGE s 2 x", true),
    ("m", "RPOPLPUSH m l", false),
    ("l", "RPOPLPUSH m l", false),
    ("t", "SINTERCARD 1 t", false),
    ("h", "HSET h f 1 g x", true),
];

/// Commands before a WATCH of `x`, which has expired and still exists; commands after it, 1 ms
/// later; and whether EXEC then answers nil.
const EXPIRED: &[(&str, &str, bool)] = &[
    ("", "DEL x", false),
    ("", "UNLINK x", false),
    ("", "GET x", false),
    ("", "MGET x y", false),
    ("", "EXISTS x", false),
    ("", "TOUCH x", false),
    ("", "SET x v", true),
    ("", "SET x v XX", false),
    ("", "INCR x", true),
    ("", "RPUSH x a", true),
    ("", "FLUSHDB", false),
    ("", "FLUSHALL", false),
    ("", "SWAPDB 0 1", false),
    ("SELECT 1;SET x other;SELECT 0", "SWAPDB 0 1", true),
    ("SELECT 1;SET x other PX 1;SELECT 0", "SWAPDB 0 1", false),
    ("", "RENAME x z", false),
    ("", "RENAME other x", true),
    ("", "COPY other x", true),
    ("", "COPY other x REPLACE", true),
    ("", "COPY x other REPLACE", false),
    ("", "EXPIRE x 100", false),
    ("", "PERSIST x", false),
    ("", "SORT x STORE x", false),
    ("", "GETDEL x", false),
    ("", "GETEX x PERSIST", false),
    ("", "SETNX x v", true),
    ("", "APPEND x v", true),
    ("", "DEL x;SET x v PX 1", true),
    ("", "GET x;SET x v", true),
    ("", "KEYS *", false),
    ("", "SCAN 0", false),
    ("", "RANDOMKEY", false),
    ("", "SUNIONSTORE x y", false),
    ("", "LTRIM x 0 1", false),
    ("", "LPUSHX x 1", false),
    ("", "LPOP x", false),
    ("", "SREM x 1", false),
    ("", "ZREM x 1", false),
    ("", "HDEL x 1", false),
    ("", "SPOP x", false),
    ("", "MOVE x 1", false),
    ("", "SMOVE x other2 1", false),
];

fn watched(engine: &Engine, key: &str, now_us: u64) -> WatchedKeys {
    let mut watched = WatchedKeys::new();
    engine.watch(&mut watched, 0, key.as_bytes(), now_us);
    watched
}

/// Whether a transaction runs that watches these keys.
fn runs(engine: &Engine, watched: &WatchedKeys, now_us: u64) -> bool {
    let words = words("EXISTS nothing");
    let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let call = Call { command: command::resolve(&args).expect("a command"), args: &args, db: 0, now_us };
    let mut reply = Reply::new(Protocol::Resp2);
    engine.execute_transaction(&[call], Some(watched), now_us, &mut reply);
    engine.unwatch(watched);
    match reply.bytes() {
        b"*-1\r\n" => false,
        b"*1\r\n:0\r\n" => true,
        other => panic!("unexpected {}", String::from_utf8_lossy(other)),
    }
}

/// Runs commands that are separated by semicolons. `SELECT` chooses the database for those after
/// it.
fn run_all(client: &mut Client<'_>, lines: &str) {
    for line in lines.split(';').filter(|line| !line.is_empty()) {
        match line.strip_prefix("SELECT ") {
            Some(db) => client.db = db.parse().expect("a number"),
            None => {
                client.run(line);
            }
        }
    }
}

#[test]
fn a_command_aborts_a_transaction_that_watches_its_key_when_it_does_in_redis() {
    let mut wrong = Vec::new();
    let engine = engine();
    let client = Client::new(&engine);
    for (key, line, is_touched) in COMMANDS {
        client.run("FLUSHALL");
        for setup in SETUP {
            assert!(!client.run(setup).starts_with('-'), "{setup}");
        }
        let watched = watched(&engine, key, START_US);
        let answer = client.run(line);
        assert!(!answer.starts_with("-ERR unknown command"), "{line}: {answer}");
        if runs(&engine, &watched, START_US) == *is_touched {
            wrong.push(format!("WATCH {key}, {line}: {answer}; EXEC is nil in Redis: {is_touched}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), COMMANDS.len(), wrong.join("\n"));
}

#[test]
fn a_key_that_had_expired_when_it_was_watched_aborts_when_it_does_in_redis() {
    let mut wrong = Vec::new();
    for (before, behind, is_touched) in EXPIRED {
        let engine = engine();
        let mut client = Client::new(&engine);
        client.run("SET other 1");
        client.run("SET x v PX 1");
        run_all(&mut client, before);
        client.sleep_ms(2);
        let watched = watched(&engine, "x", client.now_us);
        run_all(&mut client, behind);
        client.sleep_ms(1);
        if runs(&engine, &watched, client.now_us) == *is_touched {
            wrong.push(format!("{before}; WATCH x; {behind}; EXEC is nil in Redis: {is_touched}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), EXPIRED.len(), wrong.join("\n"));
}

#[test]
fn an_absent_key_in_whose_place_an_expired_one_comes_aborts_nothing_until_it_is_set() {
    for (behind, does_run) in
        [("", true), ("SET x 1", false), ("GET x", true), ("DEL x", true), ("FLUSHALL", true)]
    {
        let engine = engine();
        let mut client = Client::new(&engine);
        run_all(&mut client, "SELECT 1;SET x v PX 1;SELECT 0");
        client.sleep_ms(2);
        let watched = watched(&engine, "x", client.now_us);
        run_all(&mut client, "SWAPDB 0 1");
        run_all(&mut client, behind);
        assert_eq!(runs(&engine, &watched, client.now_us), does_run, "SWAPDB 0 1; {behind}");
    }
}

#[test]
fn active_expiry_of_a_key_that_had_expired_when_it_was_watched_aborts_nothing() {
    let engine = engine();
    let mut client = Client::new(&engine);
    client.run("SET x v PX 1");
    let before = watched(&engine, "x", client.now_us);
    client.sleep_ms(2);
    let behind = watched(&engine, "x", client.now_us);
    engine.expire_due(client.now_us, 100);
    assert_eq!(client.run("DBSIZE"), ":0");
    assert!(!runs(&engine, &before, client.now_us), "it has expired since");
    assert!(runs(&engine, &behind, client.now_us), "nothing has changed since");
}
