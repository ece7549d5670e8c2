//! DiceDB's protocol over real sockets: requests as clients such as `dicedb-go` send them, and
//! typed results.

use crate::common::dice::{DiceClient, DiceEnd, DiceResult, Field, command, fields, frame};
use crate::common::{TestServer, eventually};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidemark_log::Durability;
use tidemark_server::config::{Config, OutputLimit};

#[test]
fn strings_are_set_and_read() {
    let server = TestServer::new();
    let mut client = DiceClient::greeted(&server, "one", "command");
    assert_eq!(client.body(&["SET", "k", "v"], 17), b"");
    assert_eq!(client.text(&["GET", "k"], 16), "v");
    assert_eq!(client.text(&["get", "k"], 16), "v", "names in any case");
    assert_eq!(client.text(&["GET", "missing"], 16), "");
    assert_eq!(client.text(&["GETSET", "k", "ü"], 22), "v");
    assert_eq!(client.text(&["GETEX", "k", "EX", "100"], 21), "ü");
    assert_eq!(client.number(&["TTL", "k"], 31), 100);
    assert_eq!(client.text(&["GETDEL", "k"], 20), "ü");
    assert_eq!(client.number(&["EXISTS", "k", "missing"], 15), 0);
    assert_eq!(client.number(&["INCR", "n"], 23), 1);
    assert_eq!(client.number(&["INCRBY", "n", "-5"], 25), -4);
    assert_eq!(client.number(&["DECR", "n"], 24), -5);
    assert_eq!(client.number(&["DECRBY", "n", "2"], 26), -7);
    assert_eq!(client.text(&["TYPE", "n"], 11), "string");
    assert_eq!(client.number(&["DEL", "n", "missing"], 18), 1);
    assert_eq!(client.body(&["SET", "k", "1", "NX"], 17), b"");
    assert_eq!(client.body(&["SET", "k", "2", "NX"], 17), b"", "as DiceDB says OK to what it leaves alone");
    assert_eq!(client.text(&["GET", "k"], 16), "1");
    assert_eq!(client.body(&["FLUSHDB"], 27), b"");
    assert_eq!(client.text(&["TYPE", "k"], 11), "none");
}

#[test]
fn keys_expire() {
    let server = TestServer::new();
    let mut client = DiceClient::connect(&server);
    client.ask(&["SET", "k", "v"]);
    assert_eq!(client.number(&["TTL", "k"], 31), -1);
    assert_eq!(client.number(&["EXPIRETIME", "missing"], 30), -2);
    assert_eq!(client.number(&["EXPIRE", "k", "100", "XX"], 28), 0);
    assert_eq!(client.number(&["EXPIRE", "k", "100", "NX"], 28), 1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    let at = (now + 1000).to_string();
    assert_eq!(client.number(&["EXPIREAT", "k", &at, "GT"], 29), 1);
    assert_eq!(client.number(&["EXPIRETIME", "k"], 30).to_string(), at);
}

#[test]
fn hashes_keep_pairs() {
    let server = TestServer::new();
    let mut client = DiceClient::connect(&server);
    assert_eq!(client.number(&["HSET", "h", "a", "1", "b", ""], 35), 2);
    assert_eq!(client.text(&["HGET", "h", "a"], 34), "1");
    assert_eq!(client.text(&["HGET", "h", "missing"], 34), "");
    let body = client.body(&["HGETALL", "h"], 36);
    let pairs = fields(&body);
    let pair = |bytes: &[u8]| Field::Bytes(1, bytes.to_vec());
    assert_eq!(pairs, [pair(b"\x0a\x01a\x12\x011"), pair(b"\x0a\x01b")]);
    assert_eq!(client.body(&["HGETALL", "missing"], 36), b"");
    assert_eq!(client.text(&["TYPE", "h"], 11), "hash");
}

#[test]
fn sorted_sets_have_ranks_from_one_and_integer_scores() {
    let server = TestServer::new();
    let mut client = DiceClient::connect(&server);
    let element = |score, member: &str, rank| (score, member.to_owned(), rank);
    assert_eq!(client.number(&["ZADD", "z", "10", "a", "20", "b", "30", "c", "40", "d"], 39), 4);
    assert_eq!(client.number(&["ZADD", "z", "CH", "-11", "a"], 39), 1);
    assert_eq!(client.number(&["ZADD", "z", "INCR", "1", "a"], 39), -10);
    assert_eq!(client.number(&["ZCARD", "z"], 46), 4);
    assert_eq!(client.number(&["ZCOUNT", "z", "-inf", "30"], 40), 3);
    let two = [element(20, "b", 2), element(30, "c", 3)];
    assert_eq!(client.elements(&["ZRANGE", "z", "2", "3"], 41), two);
    assert_eq!(client.elements(&["ZRANGE", "z", "2", "3", "BYRANK"], 41), two);
    assert_eq!(client.elements(&["ZRANGE", "z", "20", "35", "BYSCORE"], 41), two);
    assert_eq!(client.elements(&["ZRANGE", "z", "-3", "-2"], 41), two);
    assert_eq!(client.elements(&["ZRANGE", "missing", "1", "3"], 41), []);
    let ranked = |client: &mut DiceClient, member: &str| {
        let body = client.body(&["ZRANK", "z", member], 45);
        crate::common::dice::elements(&body)
    };
    assert_eq!(ranked(&mut client, "c"), [element(30, "c", 3)]);
    assert_eq!(ranked(&mut client, "missing"), [element(0, "missing", 0)]);
    assert_eq!(client.elements(&["ZPOPMIN", "z"], 44), [element(-10, "a", 1)]);
    assert_eq!(client.elements(&["ZPOPMAX", "z", "2"], 42), [element(40, "d", 3), element(30, "c", 2)]);
    assert_eq!(client.number(&["ZREM", "z", "b", "missing"], 43), 1);
    assert_eq!(client.elements(&["ZPOPMAX", "z"], 42), []);
    client.expect_error(
        &["ZADD", "z", "1.5", "a"],
        "ERR a score is not an integer between -9007199254740992 and 9007199254740992",
    );
    let mut redis = server.client();
    redis.ask("ZADD z 1.5 a", ":1\r\n");
    let refusal = "ERR the score 1.5 is not an integer of 64 bits, which this protocol's scores have to be; read it by RESP";
    client.expect_error(&["ZRANGE", "z", "1", "1"], refusal);
    redis.ask("SET s v", "+OK\r\n");
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for words in [
        ["ZRANGE", "s", "1", "2"].as_slice(),
        &["ZRANGE", "s", "-2", "-1"],
        &["ZRANGE", "s", "1", "2", "BYSCORE"],
        &["ZPOPMAX", "s"],
        &["ZRANK", "s", "a"],
        &["HGETALL", "s"],
    ] {
        client.expect_error(words, wrong_type);
    }
    // The transactions of the failed commands have ended, too.
    assert_eq!(client.text(&["GET", "s"], 16), "v");
}

#[test]
fn clients_introduce_themselves() {
    let server = TestServer::new();
    let mut client = DiceClient::connect(&server);
    assert_eq!(client.text(&["PING"], 12), "PONG");
    assert_eq!(client.text(&["PING", "a"], 12), "PONG a");
    assert_eq!(client.text(&["ECHO", "a b"], 13), "a b");
    assert!(client.ask(&["HELLO"]).message.contains("\"clientId\":\"client-1\""));
    client.ask(&["HANDSHAKE", "say \"id\"", "command"]);
    let hello = client.ask(&["HELLO", "3"]);
    assert!(hello.ok && hello.body.is_none());
    assert!(hello.message.contains("\"clientId\":\"say \\\"id\\\"\""), "{}", hello.message);
    client.expect_error(&["HANDSHAKE", "id"], "ERR wrong number of arguments for 'handshake' command");
    client.expect_error(&["HANDSHAKE", "id", "other"], "ERR the mode of a handshake is 'command' or 'watch'");
    client.expect_error(&["HANDSHAKE", "", "watch"], "ERR the id of a handshake has 1 to 256 bytes");
    for number in 1..16 {
        assert!(client.ask(&["HANDSHAKE", &number.to_string(), "watch"]).ok);
    }
    client.expect_error(&["HANDSHAKE", "16", "watch"], "ERR one connection has at most 16 ids");
    assert!(client.ask(&["HANDSHAKE", "1", "watch"]).ok, "one that is known is no further one");
    let mut redis = server.client();
    redis.command(&["CLIENT", "LIST"]);
    assert!(redis.bulk().contains(" name=1 "), "the client is known by its id");
}

#[test]
fn what_cannot_run_is_answered_and_the_next_command_runs() {
    let server = TestServer::new();
    let mut client = DiceClient::connect(&server);
    client.expect_error(&["MGET", "k"], "ERROR unknown command 'MGET'");
    client.expect_error(&["", "k"], "ERROR unknown command ''");
    client.expect_error(&["GET"], "ERR wrong number of arguments for 'get' command");
    client.expect_error(&["ZRANGE", "k", "1"], "ERR wrong number of arguments for 'zrange' command");
    client.expect_error(&["ZRANGE", "k", "a", "2"], "ERR value is not an integer or out of range");
    client.expect_error(&["SET", "k", "v", "EX"], "ERR syntax error");
    client.send_bytes(&frame(b"\x0a\x03GET\x12\x01\xff"));
    assert_eq!(
        client.receive().message,
        "ERR an argument is not UTF-8, which the strings of this protocol have to be"
    );
    let mut redis = server.client();
    redis.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\xff\xfe\r\n");
    redis.expect("+OK\r\n");
    client.expect_error(
        &["GET", "k"],
        "ERR the answer is not UTF-8, which the strings of this protocol have to be; read it by RESP",
    );
    client.body(&["SET", "k", "text"], 17);
    redis.ask("GET k", "$4\r\ntext\r\n");
}

#[test]
fn malformed_frames_are_answered_and_end_the_connection() {
    let server = TestServer::new();
    let whole = frame(&command(&["PING"]));
    for (bytes, message) in [
        (b"\0\0\0\0".to_vec(), "ERR Protocol error: a frame of no bytes"),
        (
            b"\x02\0\0\x01".to_vec(),
            "ERR Protocol error: a frame of 33554433 bytes, and the limit is 33554432",
        ),
        (frame(b"\x0a\x05GET"), "ERR Protocol error: a frame that is no protocol buffer message"),
        ([whole.clone(), b"*1\r\n$4\r\nPING\r\n".to_vec()].concat(), "PONG"),
    ] {
        let mut client = DiceClient::connect(&server);
        client.send_bytes(&bytes);
        let first = client.receive();
        if message == "PONG" {
            assert!(first.ok);
            assert_eq!(
                client.receive().message,
                "ERR Protocol error: a frame of 707857674 bytes, and the limit is 33554432"
            );
        } else {
            assert_eq!((first.ok, first.message.as_str()), (false, message));
        }
        assert_eq!(client.try_receive(), None);
    }
    let mut redis = server.client();
    redis.command(&["INFO", "stats"]);
    assert!(redis.bulk().contains("total_error_replies:4"), "errors are counted as those of other clients");
}

#[test]
fn frames_come_in_pieces_and_many_at_once() {
    let server = TestServer::new();
    let mut client = DiceClient::connect(&server);
    for byte in frame(&command(&["SET", "k", "v"])) {
        client.send_bytes(&[byte]);
    }
    assert!(client.receive().ok);
    let value = "x".repeat(1_000_000);
    let mut many = Vec::new();
    for number in 0..20 {
        many.extend(frame(&command(&["SET", &format!("k{number}"), &value])));
        many.extend(frame(&command(&["GET", "k"])));
    }
    client.send_bytes(&many);
    for _ in 0..20 {
        assert_eq!(client.receive().body, Some((17, Vec::new())));
        assert_eq!(client.receive().body, Some((16, b"\x0a\x01v".to_vec())));
    }
    assert_eq!(client.text(&["GET", "k19"], 16).len(), 1_000_000);
    assert_eq!(fields(&client.body(&["KEYS", "k1*"], 19)).len(), 11);
}

#[test]
fn a_value_that_no_frame_holds_is_refused() {
    let server = TestServer::new();
    let mut redis = server.client();
    redis.ask("SETRANGE k 33554432 x", ":33554433\r\n");
    let mut client = DiceClient::connect(&server);
    client.expect_error(
        &["GET", "k"],
        "ERR the answer takes 33554448 bytes, and the frames of this protocol hold 33554432",
    );
    assert_eq!(client.number(&["EXISTS", "k"], 15), 1);
}

#[test]
fn a_password_is_asked_for() {
    let server = TestServer::with(|config| config.requirepass = "secret".into());
    let mut client = DiceClient::greeted(&server, "one", "command");
    for words in [
        ["GET", "k"].as_slice(),
        &["PING"],
        &["HELLO"],
        &["ZRANGE", "k", "x", "1"],
        &["ZPOPMAX", "k"],
        &["ZADD", "k", "1.5", "a"],
    ] {
        client.expect_error(words, "NOAUTH Authentication required.");
    }
    client.expect_error(&["AUTH", "wrong"], "WRONGPASS invalid username-password pair or user is disabled.");
    assert!(client.ask(&["AUTH", "secret"]).ok);
    assert_eq!(client.text(&["PING"], 12), "PONG");
    let mut stranger = DiceClient::connect(&server);
    stranger.send_bytes(&[0, 1, 0, 0]);
    let message = stranger.receive().message;
    assert_eq!(message, "ERR Protocol error: a frame of 65536 bytes, and the limit is 32768");
    assert_eq!(stranger.try_receive(), None);
}

#[test]
fn limits_apply_as_to_other_clients() {
    let server = TestServer::with(|config| {
        config.output_limits.normal =
            OutputLimit { hard_bytes: 100_000, soft_bytes: 0, soft_time: Duration::ZERO };
        config.max_bulk_bytes = 2_000_000;
        config.maxclients = 3;
        config.reserved_clients = 1;
    });
    let mut client = DiceClient::connect(&server);
    client.ask(&["SET", "k", &"x".repeat(200_000)]);
    client.send(&["GET", "k"]);
    assert_eq!(client.try_receive(), None, "an answer beyond the output limit ends the connection");
    let mut client = DiceClient::connect(&server);
    client.send(&["SET", "k", &"x".repeat(2_000_001)]);
    assert_eq!(client.receive().message, "ERR Protocol error: an argument of more than 2000000 bytes");
    assert_eq!(client.try_receive(), None);
    let mut others: Vec<DiceClient> = (0..3).map(|_| DiceClient::connect(&server)).collect();
    others.iter_mut().for_each(|other| assert!(other.ask(&["PING"]).ok));
    let mut reserved = DiceClient::greeted(&server, "one", "command");
    reserved.expect_error(&["GET", "k"], "ERR max number of clients reached");
    assert_eq!(reserved.try_receive(), None);
}

#[test]
fn a_paused_command_runs_later() {
    let server = TestServer::new();
    let (mut redis, mut client) = (server.client(), DiceClient::connect(&server));
    assert!(client.ask(&["PING"]).ok);
    redis.ask("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
    client.send(&["SET", "k", "v"]);
    redis.ask("EXISTS k", ":0\r\n");
    redis.ask("CLIENT UNPAUSE", "+OK\r\n");
    assert_eq!(client.receive().body, Some((17, Vec::new())));
    redis.ask("GET k", "$1\r\nv\r\n");
}

#[test]
fn answers_wait_for_the_disk() {
    let server = TestServer::with(|config| config.durability = Durability::Always);
    let mut client = DiceClient::connect(&server);
    for number in 0..50 {
        assert_eq!(client.body(&["SET", "k", &number.to_string()], 17), b"");
    }
    let dir = server.stop();
    let server = TestServer::in_dir(dir, |config| config.durability = Durability::Off);
    let mut client = DiceClient::connect(&server);
    assert_eq!(client.text(&["GET", "k"], 16), "49");
    assert_eq!(client.body(&["SET", "k", "50", "DURABLE"], 17), b"");
    assert_eq!(client.body(&["SET", "k", "51", "sync"], 17), b"");
}

#[test]
fn both_protocols_share_one_port() {
    let server = TestServer::new();
    let (mut redis, mut client) = (server.client(), DiceClient::connect(&server));
    redis.ask("SET k v", "+OK\r\n");
    assert_eq!(client.text(&["GET", "k"], 16), "v");
    redis.send("GET k\r\n");
    redis.expect("$1\r\nv\r\n");
    client.end_input();
    assert_eq!(client.try_receive(), None, "a client that has said its last word is let go");
}

/// Returns a result that carries the value of a watched read.
fn emission(value: &str, fingerprint: u64) -> DiceResult {
    let body =
        if value.is_empty() { Vec::new() } else { [&[0x0a, value.len() as u8], value.as_bytes()].concat() };
    DiceResult { ok: true, message: value.to_owned(), fingerprint, body: Some((16, body)) }
}

/// Watches a key and returns the fingerprint.
fn watch(client: &mut DiceClient, key: &str, value: &str) -> u64 {
    let answer = client.ask(&["GET.WATCH", key]);
    assert_eq!(answer, DiceResult { message: "OK".to_owned(), ..emission(value, answer.fingerprint) });
    assert_ne!(answer.fingerprint, 0);
    answer.fingerprint
}

#[test]
fn a_watched_key_emits_its_values() {
    let server = TestServer::new();
    let (mut redis, mut client) = (server.client(), DiceClient::greeted(&server, "one", "command"));
    redis.ask("SET k 1", "+OK\r\n");
    let fingerprint = watch(&mut client, "k", "1");
    assert_eq!(watch(&mut client, "k", "1"), fingerprint, "once more is the same");
    redis.ask("SET k 2", "+OK\r\n");
    assert_eq!(client.receive(), emission("2", fingerprint));
    redis.ask("INCR k", ":3\r\n");
    redis.ask("SET k 3", "+OK\r\n");
    redis.ask("DEL k", ":1\r\n");
    redis.ask("SETEX k 100 é", "+OK\r\n");
    for value in ["3", "", "é"] {
        assert_eq!(client.receive(), emission(value, fingerprint));
    }
    redis.ask("LPUSH l a", ":1\r\n");
    redis.ask("RENAME l k", "+OK\r\n");
    let wrong = client.receive();
    assert_eq!((wrong.ok, wrong.fingerprint, wrong.body), (false, fingerprint, None));
    assert_eq!(wrong.message, "WRONGTYPE Operation against a key holding the wrong kind of value");
    redis.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n\xff\r\n");
    redis.expect("+OK\r\n");
    let binary = client.receive();
    assert_eq!((binary.ok, binary.fingerprint, binary.body), (false, fingerprint, None));
    assert_eq!(client.ask(&["UNWATCH", &fingerprint.to_string()]).body, Some((33, Vec::new())));
    redis.ask("SET k 4", "+OK\r\n");
    assert_eq!(client.text(&["GET", "k"], 16), "4", "and nothing before it");
    assert!(client.ask(&["UNWATCH", &fingerprint.to_string()]).ok, "what has ended can be ended");
    client.expect_error(&["UNWATCH", "x"], "ERR value is not an integer or out of range");
    client.expect_error(&["UNWATCH"], "ERR wrong number of arguments for 'unwatch' command");
}

#[test]
fn all_seven_reads_are_watched() {
    let server = TestServer::new();
    let (mut redis, mut client) = (server.client(), DiceClient::greeted(&server, "one", "command"));
    redis.ask("HSET h a 1", ":1\r\n");
    redis.ask("ZADD z 10 a 20 b", ":2\r\n");
    let mut fingerprints = Vec::new();
    for words in [
        ["HGET.WATCH", "h", "a"].as_slice(),
        &["HGETALL.WATCH", "h"],
        &["ZCARD.WATCH", "z"],
        &["ZCOUNT.WATCH", "z", "15", "50"],
        &["ZRANGE.WATCH", "z", "2", "3"],
        &["ZRANGE.WATCH", "z", "15", "50", "BYSCORE"],
        &["ZRANK.WATCH", "z", "b"],
    ] {
        let answer = client.ask(words);
        assert!(answer.ok && answer.message == "OK", "{words:?}: {answer:?}");
        assert!(!fingerprints.contains(&answer.fingerprint));
        fingerprints.push(answer.fingerprint);
    }
    let received = |client: &mut DiceClient| {
        let result = client.receive();
        assert!(result.ok && result.message == "OK", "{result:?}");
        let at = fingerprints.iter().position(|known| *known == result.fingerprint).expect("one of ours");
        let (field, body) = result.body.expect("a body");
        (at, field, body)
    };
    redis.ask("HSET h a 2", ":0\r\n");
    let mut hashes = [received(&mut client), received(&mut client)];
    hashes.sort_unstable();
    assert_eq!(hashes, [(0, 34, b"\x0a\x012".to_vec()), (1, 36, b"\x0a\x06\x0a\x01a\x12\x012".to_vec())]);
    redis.ask("ZADD z 5 c", ":1\r\n");
    let mut sets = [received(&mut client), received(&mut client), received(&mut client)];
    sets.sort_unstable();
    let [cardinality, range, rank] = sets;
    assert_eq!(cardinality, (2, 46, b"\x08\x03".to_vec()));
    let element = |score, member: &str, rank| (score, member.to_owned(), rank);
    assert_eq!((range.0, range.1), (4, 41));
    assert_eq!(crate::common::dice::elements(&range.2), [element(10, "a", 2), element(20, "b", 3)]);
    assert_eq!((rank.0, rank.1), (6, 45));
    assert_eq!(crate::common::dice::elements(&rank.2), [element(20, "b", 3)]);
    redis.ask("ZADD z 30 d", ":1\r\n");
    let mut sets = [received(&mut client), received(&mut client), received(&mut client)];
    sets.sort_unstable();
    let [cardinality, count, range] = sets;
    assert_eq!(cardinality, (2, 46, b"\x08\x04".to_vec()));
    assert_eq!(count, (3, 40, b"\x08\x02".to_vec()));
    // A range by score does not count the elements before it, so every rank is 0.
    assert_eq!((range.0, range.1), (5, 41));
    assert_eq!(crate::common::dice::elements(&range.2), [element(20, "b", 0), element(30, "d", 0)]);
}

#[test]
fn a_connection_that_watches_listens_for_the_others_of_its_client() {
    let server = TestServer::new();
    let mut writer = DiceClient::greeted(&server, "writer", "command");
    // Several clients, so that both workers serve some.
    for number in 0..6 {
        let (id, key) = (format!("client-{number}"), format!("k{number}"));
        let mut asking = DiceClient::greeted(&server, &format!("library-{number}"), "command");
        assert!(asking.ask(&["HANDSHAKE", &id, "command"]).ok);
        let fingerprint = watch(&mut asking, &key, "");
        writer.body(&["SET", &key, "1"], 17);
        assert_eq!(asking.receive(), emission("1", fingerprint), "while there is no other listener");
        let mut listening = DiceClient::greeted(&server, &id, "watch");
        for value in ["2", "3"] {
            writer.body(&["SET", &key, value], 17);
            assert_eq!(listening.receive(), emission(value, fingerprint));
        }
        assert_eq!(watch(&mut asking, &key, "3"), fingerprint, "it is still the same subscription");
        let other = watch(&mut asking, "other", "");
        writer.body(&["SET", "other", &id], 17);
        assert_eq!(listening.receive(), emission(&id, other));
        writer.body(&["DEL", "other"], 18);
        assert_eq!(listening.receive(), emission("", other));
        assert!(asking.ask(&["UNWATCH", &fingerprint.to_string()]).ok);
        listening.send(&["PING"]);
        writer.body(&["SET", &key, "4"], 17);
        assert_eq!(asking.text(&["PING"], 12), "PONG", "it hears nothing any more");
        assert_eq!(listening.receive().body.map(|(field, _)| field), Some(12));
    }
}

#[test]
fn a_subscription_goes_on_behind_the_last_number() {
    let server = TestServer::new();
    let mut writer = DiceClient::connect(&server);
    let mut earlier = DiceClient::greeted(&server, "earlier", "command");
    watch(&mut earlier, "k", "");
    writer.body(&["SET", "k", "before"], 17);
    let mut client = DiceClient::greeted(&server, "id", "command");
    let fingerprint = watch(&mut client, "k", "before");
    let subscription = format!("id:{fingerprint}");
    for number in 1..=5 {
        writer.body(&["SET", "k", &number.to_string()], 17);
        assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
    }
    drop(client);
    // Otherwise the next client of this name would receive what was meant for this one.
    let mut administrator = server.client();
    eventually("the server notices that the client has gone", || {
        administrator.command(&["INFO", "clients"]);
        administrator.bulk().contains("connected_clients:3\r\n")
    });
    for number in 6..=9 {
        writer.body(&["SET", "k", &number.to_string()], 17);
    }
    // The client has processed three of the five emissions that it received.
    let mut client = DiceClient::greeted(&server, "id", "watch");
    let answer = client.ask(&["EMITRECONNECT", "k", &subscription, "3"]);
    assert_eq!((answer.ok, answer.message.as_str(), answer.fingerprint), (true, "OK 4", 0));
    assert_eq!(watch(&mut client, "k", "9"), fingerprint, "its answer comes before the emissions");
    for number in 4..=9 {
        assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
    }
    assert!(client.ask(&["EMITACK", "k", &subscription, "9"]).ok);
    client.expect_error(&["EMITACK", "k", &subscription, "10"], "INVALID_SEQUENCE");
    client.expect_error(&["EMITRECONNECT", "k", &subscription, "10"], "INVALID_SEQUENCE");
    // `EMITRECONNECT` alone makes the server deliver the emissions; the client sends no other
    // command.
    assert_eq!(client.ask(&["EMITRECONNECT", "k", &subscription, "8"]).message, "OK 9");
    assert_eq!(client.receive(), emission("9", fingerprint));
    for (key, subscription) in [
        ("k", "id:17".to_owned()),
        ("k", "id".to_owned()),
        ("k", format!("id:{}", fingerprint + 2)),
        ("other", subscription.clone()),
    ] {
        client.expect_error(&["EMITRECONNECT", key, &subscription, "3"], "SUBSCRIPTION_NOT_FOUND");
        client.expect_error(&["EMITACK", key, &subscription, "3"], "SUBSCRIPTION_NOT_FOUND");
    }
    client.expect_error(
        &["EMITRECONNECT", "k", &subscription, "-1"],
        "ERR value is not an integer or out of range",
    );
    client.expect_error(&["EMITRECONNECT", "k"], "ERR wrong number of arguments for 'emitreconnect' command");
    // The subscription also resumes after a restart, and its numbers continue.
    drop((client, earlier, writer));
    let server = TestServer::in_dir(server.stop(), |_| {});
    let (mut writer, mut client) =
        (DiceClient::connect(&server), DiceClient::greeted(&server, "id", "watch"));
    writer.body(&["SET", "k", "10"], 17);
    assert_eq!(client.ask(&["EMITRECONNECT", "k", &subscription, "7"]).message, "OK 8");
    for number in 8..=10 {
        assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
    }
}

#[test]
fn watching_needs_a_password_and_a_place() {
    let server = TestServer::with(|config| config.requirepass = "secret".into());
    let mut client = DiceClient::greeted(&server, "one", "watch");
    for words in [
        ["GET.WATCH", "k"].as_slice(),
        &["UNWATCH", "1"],
        &["EMITRECONNECT", "k", "one:1", "0"],
        &["EMITACK", "k", "one:1", "0"],
    ] {
        client.expect_error(words, "NOAUTH Authentication required.");
    }
    assert!(client.ask(&["AUTH", "secret"]).ok);
    client.expect_error(&["GET.WATCH"], "ERR wrong number of arguments for 'get' command");
    client.expect_error(&["ZRANGE.WATCH", "z", "a", "1"], "ERR value is not an integer or out of range");
    watch(&mut client, "k", "");
    // An unauthenticated connection does not take over deliveries.
    let mut stranger = DiceClient::greeted(&server, "one", "watch");
    let fingerprint = watch(&mut client, "other", "");
    assert!(client.ask(&["SET", "other", "1"]).ok);
    assert_eq!(client.receive(), emission("1", fingerprint));
    assert!(stranger.ask(&["AUTH", "secret"]).ok);
    assert!(client.ask(&["SET", "other", "2"]).ok);
    assert_eq!(stranger.receive(), emission("2", fingerprint), "now it is one of the client's connections");
}

#[test]
fn emissions_are_delivered_once_and_in_order_while_listeners_change() {
    const CHANGES: usize = 3_000;
    let server = TestServer::new();
    let mut asking = DiceClient::greeted(&server, "id", "command");
    let fingerprint = watch(&mut asking, "n", "");
    let mut writer = DiceClient::connect(&server);
    let writing = std::thread::spawn(move || {
        for number in 1..=CHANGES {
            assert_eq!(writer.number(&["INCR", "n"], 23), number as i64);
        }
    });
    let mut listeners = vec![asking];
    while !writing.is_finished() && listeners.len() < 200 {
        // Some connections that are listening already send the handshake again.
        if listeners.len() % 3 == 2 {
            let again = listeners.len() / 2;
            listeners[again].send(&["HANDSHAKE", "id", "watch"]);
        }
        let mut listener = DiceClient::connect(&server);
        listener.send(&["HANDSHAKE", "id", "watch"]);
        listeners.push(listener);
    }
    writing.join().expect("the writer");
    let received = Mutex::new(Vec::new());
    // One thread reads from each connection until all changes have arrived.
    let ends: Vec<DiceEnd> = listeners.iter().map(DiceClient::end).collect();
    std::thread::scope(|scope| {
        for listener in &mut listeners {
            scope.spawn(|| {
                let mut last = 0;
                while let Some(result) = listener.try_receive() {
                    if result.fingerprint == fingerprint {
                        let number: usize = result.message.parse().expect("a number");
                        assert!(number > last, "{number} after {last}");
                        last = number;
                        received.lock().expect("no panic").push(number);
                    }
                }
            });
        }
        eventually("every change is delivered", || received.lock().expect("no panic").len() >= CHANGES);
        drop(ends);
    });
    let mut received = received.into_inner().expect("no panic");
    received.sort_unstable();
    assert_eq!(received, (1..=CHANGES).collect::<Vec<_>>());
}

/// Configures retention for about thirty small emissions.
fn retain_little(config: &mut Config) {
    config.watch_retention_bytes = 4096;
    config.log_segment_bytes = 64 << 10;
}

fn set_all(server: &TestServer, values: std::ops::RangeInclusive<u64>) {
    let mut writer = server.client();
    for number in values {
        writer.ask(&format!("SET k {number}"), "+OK\r\n");
    }
}

#[test]
fn a_subscription_goes_on_behind_what_is_retained_and_behind_snapshots() {
    let server = TestServer::with(retain_little);
    let fingerprint = watch(&mut DiceClient::greeted(&server, "id", "command"), "k", "");
    let subscription = format!("id:{fingerprint}");
    let check = |server: &TestServer, last: u64| {
        for seen in [0, 1, 250, 499, 777, last - 1, last] {
            let mut client = DiceClient::greeted(server, "id", "watch");
            client.send(&["EMITRECONNECT", "k", &subscription, &seen.to_string()]);
            client.send(&["GET.WATCH", "k"]);
            let answer = client.receive();
            assert_eq!((answer.ok, answer.message), (true, format!("OK {}", seen + 1)), "behind {seen}");
            assert_eq!(client.receive().message, "OK", "the answer comes before the emissions");
            for number in seen + 1..=last {
                assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
            }
            assert_eq!(client.text(&["PING"], 12), "PONG", "and nothing else");
        }
    };
    set_all(&server, 1..=500);
    server.client().ask("SAVE", "+OK\r\n");
    set_all(&server, 501..=1000);
    check(&server, 1000);
    let server = TestServer::in_dir(server.stop(), retain_little);
    check(&server, 1000);
    // Live emissions follow the replayed ones, each exactly once.
    let mut client = DiceClient::greeted(&server, "id", "watch");
    assert_eq!(client.ask(&["EMITRECONNECT", "k", &subscription, "3"]).message, "OK 4");
    set_all(&server, 1001..=1100);
    for number in 4..=1100 {
        assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
    }
    client.expect_error(&["EMITRECONNECT", "k", &subscription, "1101"], "INVALID_SEQUENCE");
    check(&server, 1100);
}

#[test]
fn a_client_listening_for_another_gets_replayed_emissions() {
    let server = TestServer::with(retain_little);
    let fingerprint = watch(&mut DiceClient::greeted(&server, "id", "command"), "k", "");
    let later = {
        set_all(&server, 1..=300);
        watch(&mut DiceClient::greeted(&server, "later", "command"), "k", "300")
    };
    assert_ne!(later, fingerprint, "its numbers begin elsewhere");
    set_all(&server, 301..=900);
    // Several clients, so that both workers serve some.
    for number in 0..6 {
        let mut asking = DiceClient::greeted(&server, &format!("id-{number}"), "command");
        let mut listening = DiceClient::greeted(&server, &format!("id-{number}"), "watch");
        for (fingerprint, missed) in [(fingerprint, 6..=900), (later, 306..=900)] {
            let answer = asking.ask(&["EMITRECONNECT", "k", &format!("id:{fingerprint}"), "5"]);
            assert_eq!((answer.ok, answer.message.as_str()), (true, "OK 6"));
            for value in missed {
                assert_eq!(listening.receive(), emission(&value.to_string(), fingerprint));
            }
        }
        assert_eq!(asking.text(&["PING"], 12), "PONG");
        assert_eq!(listening.text(&["PING"], 12), "PONG");
    }
}

#[test]
fn a_command_behind_a_resumption_waits_for_its_answer() {
    let server = TestServer::with(retain_little);
    let fingerprint = watch(&mut DiceClient::greeted(&server, "id", "command"), "k", "");
    set_all(&server, 1..=900);
    let mut client = DiceClient::greeted(&server, "id", "watch");
    let commands =
        [command(&["EMITRECONNECT", "k", &format!("id:{fingerprint}"), "0"]), command(&["SET", "k", "901"])];
    client.send_bytes(&commands.map(|command| frame(&command)).concat());
    assert_eq!(client.receive().message, "OK 1");
    assert_eq!(client.receive().body.map(|(field, _)| field), Some(17));
    for number in 1..=901 {
        assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
    }
}

#[test]
fn past_the_oldest_snapshot_a_sequence_is_stale() {
    let server = TestServer::with(retain_little);
    let fingerprint = watch(&mut DiceClient::greeted(&server, "id", "command"), "k", "");
    let subscription = format!("id:{fingerprint}");
    for round in 0..4 {
        set_all(&server, round * 1000 + 1..=round * 1000 + 1000);
        server.client().ask("SAVE", "+OK\r\n");
    }
    set_all(&server, 4001..=4100);
    // The server keeps two snapshots, and the log after the older one.
    let mut client = DiceClient::greeted(&server, "id", "watch");
    eventually("segments are dropped", || {
        client.ask(&["EMITRECONNECT", "k", &subscription, "1"]).message == "STALE_SEQUENCE" || {
            client = DiceClient::greeted(&server, "id", "watch");
            false
        }
    });
    client.expect_error(&["EMITRECONNECT", "k", &subscription, "2999"], "STALE_SEQUENCE");
    assert_eq!(client.ask(&["EMITRECONNECT", "k", &subscription, "3000"]).message, "OK 3001");
    for number in 3001..=4100 {
        assert_eq!(client.receive(), emission(&number.to_string(), fingerprint));
    }
    let server = TestServer::in_dir(server.stop(), |config| {
        retain_little(config);
        config.watch_backlogs = 0;
    });
    let mut client = DiceClient::greeted(&server, "id", "watch");
    client.expect_error(&["EMITRECONNECT", "k", &subscription, "3000"], "STALE_SEQUENCE");
}
