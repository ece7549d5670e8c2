//! `MIGRATE` between Tidemark and Debian's `redis-server`: values arrive whole, errors are Redis's, no write is lost
//! while a key moves, and nobody else waits.

use crate::support::redis::Redis;
use crate::support::wire::{Pipeline, Value};
use crate::support::{Server, free_port};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

fn connect(port: u16) -> Pipeline {
    Pipeline::connect(port).expect("a connection")
}

/// Sends a command, in words between spaces; `""` is an empty one.
fn call(server: &mut Pipeline, line: &str) -> Value {
    let words: Vec<&[u8]> =
        line.split(' ').map(|word| if word == "\"\"" { &b""[..] } else { word.as_bytes() }).collect();
    server.call(&words).expect("an answer")
}

fn ok() -> Value {
    Value::Status("OK".into())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

/// One key of each type, with what its contents are read.
const VALUES: &[(&[&str], &str)] = &[
    (&["SET string some-text"], "GET string"),
    (&["RPUSH list a 2 c"], "LRANGE list 0 -1"),
    (&["SADD set 1 2 3"], "SMEMBERS set"),
    (&["HSET hash a 1 b 2"], "HGETALL hash"),
    (&["ZADD zset 1 a 2.5 b"], "ZRANGE zset 0 -1 WITHSCORES"),
    (
        &[
            "XADD stream 1-1 a 1",
            "XADD stream 1-2 a 2",
            "XGROUP CREATE stream g 0",
            "XREADGROUP GROUP g c COUNT 1 STREAMS stream >",
        ],
        "XINFO STREAM stream FULL",
    ),
    (&["PFADD sketch a b c"], "GET sketch"),
];

#[test]
fn values_move_to_redis_and_to_another_server() {
    let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let [from, to] = directories.each_ref().map(|directory| Server::start(directory.path(), &[]));
    let redis = Redis::start();
    let mut source = connect(from.port);
    for port in [redis.port, to.port] {
        let mut target = connect(port);
        for (lines, read) in VALUES {
            lines.iter().for_each(|line| drop(call(&mut source, line)));
            let key = lines[0].split(' ').nth(1).expect("a key");
            let shown = call(&mut source, read);
            assert_eq!(call(&mut source, &format!("MIGRATE 127.0.0.1 {port} {key} 3 5000 COPY")), ok());
            assert_eq!(call(&mut source, read), shown, "a copy leaves the key");
            let again = call(&mut source, &format!("MIGRATE 127.0.0.1 {port} {key} 3 5000"));
            let busy = "ERR Target instance replied with error: BUSYKEY Target key name already exists.";
            assert_eq!(again, Value::Error(busy.into()));
            assert_eq!(call(&mut source, read), shown, "what is refused stays");
            assert_eq!(call(&mut source, &format!("PEXPIRE {key} 100000")), Value::Integer(1));
            assert_eq!(call(&mut source, &format!("MIGRATE 127.0.0.1 {port} {key} 3 5000 REPLACE")), ok());
            assert_eq!(call(&mut source, &format!("EXISTS {key}")), Value::Integer(0));
            call(&mut target, "SELECT 3");
            assert_eq!(call(&mut target, read), shown);
            let Value::Integer(ttl) = call(&mut target, &format!("PTTL {key}")) else { panic!("a number") };
            assert!((1..=100_000).contains(&ttl), "{ttl}");
        }
        let none = call(&mut source, &format!("MIGRATE 127.0.0.1 {port} string 3 5000"));
        assert_eq!(none, Value::Status("NOKEY".into()));
    }
    // And from Redis here.
    let mut redis = connect(redis.port);
    call(&mut redis, "SELECT 3");
    let mut target = connect(from.port);
    for (_, read) in VALUES {
        let key = read.split(' ').find(|word| word.chars().all(char::is_lowercase)).expect("a key");
        let shown = call(&mut redis, read);
        assert_eq!(call(&mut redis, &format!("MIGRATE 127.0.0.1 {} {key} 0 5000", from.port)), ok());
        let (shown, got) = (format!("{shown:?}"), format!("{:?}", call(&mut target, read)));
        // The nodes of the tree are each server's own.
        let without_nodes = |text: &str| {
            let nodes = "Bulk([114, 97, 100, 105, 120, 45, 116, 114, 101, 101, 45, 110, 111, 100, 101, 115]), Integer(";
            text.split(nodes)
                .map(|part| part.trim_start_matches(char::is_numeric).to_string())
                .collect::<String>()
        };
        assert_eq!(without_nodes(&got), without_nodes(&shown));
    }
}

#[test]
fn many_keys_move_and_each_that_is_refused_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &[]), Redis::start());
    let (mut source, mut target) = (connect(server.port), connect(redis.port));
    // More than one batch, and one value that is a batch alone.
    let keys: Vec<String> = (0..1_000).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        call(&mut source, &format!("SET {key} {key}"));
    }
    let long = "x".repeat(6 << 20);
    source.call(&[b"SET", b"key:500", long.as_bytes()]).expect("an answer");
    call(&mut target, "SET key:7 there");
    let line = format!("MIGRATE 127.0.0.1 {} \"\" 0 10000 KEYS none {}", redis.port, keys.join(" "));
    let busy = "ERR Target instance replied with error: BUSYKEY Target key name already exists.";
    assert_eq!(call(&mut source, &line), Value::Error(busy.into()));
    assert_eq!(call(&mut source, "DBSIZE"), Value::Integer(1));
    assert_eq!(call(&mut source, "GET key:7"), bulk("key:7"));
    assert_eq!(call(&mut target, "GET key:7"), bulk("there"));
    assert_eq!(call(&mut target, "STRLEN key:500"), Value::Integer(6 << 20));
    assert_eq!(call(&mut target, "DBSIZE"), Value::Integer(1_000));
}

#[test]
fn errors_are_those_of_redis() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis, target) = (Server::start(directory.path(), &[]), Redis::start(), Redis::start());
    let mut to = connect(target.port);
    call(&mut to, "CONFIG SET requirepass secret");
    let (port, closed) = (target.port, free_port());
    let lines = [
        format!("MIGRATE 127.0.0.1 {port} k 0 1000"),
        "SET k v".into(),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 AUTH wrong"),
        format!("MIGRATE 127.0.0.1 {port} k 99 1000 AUTH secret"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 AUTH2 nobody secret"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 AUTH2 default"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 AUTH"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 OTHER"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 KEYS k"),
        format!("MIGRATE 127.0.0.1 {port} \"\" 0 1000 AUTH secret KEYS"),
        format!("MIGRATE 127.0.0.1 {port} \"\" 0 1000 AUTH secret"),
        format!("MIGRATE 127.0.0.1 {port} k x 1000"),
        format!("MIGRATE 127.0.0.1 {port} k 0 x"),
        format!("MIGRATE 127.0.0.1 {port} k x y"),
        format!("MIGRATE 127.0.0.1 {closed} k 0 1000"),
        "MIGRATE 127.0.0.1 port k 0 1000".into(),
        format!("MIGRATE 127.0.0.1 {port} k"),
        "GET k".into(),
        format!("MIGRATE 127.0.0.1 {port} k 0 -1 AUTH secret REPLACE"),
        "GET k".into(),
        "SET k v".into(),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 AUTH secret"),
        format!("MIGRATE 127.0.0.1 {port} k 0 1000 REPLACE AUTH2 default secret COPY"),
        "GET k".into(),
    ];
    let answers = [redis.port, server.port].map(|port| {
        let mut source = connect(port);
        call(&mut to, "AUTH secret");
        call(&mut to, "FLUSHALL");
        lines.each_ref().map(|line| format!("{line} -> {:?}", call(&mut source, line)))
    });
    assert_eq!(answers[1], answers[0]);
    let mut source = connect(server.port);
    call(&mut source, "COUNTER.CREATE own");
    let own = call(&mut source, &format!("MIGRATE 127.0.0.1 {port} own 0 1000 AUTH secret"));
    assert!(matches!(&own, Value::Error(text) if text.contains("cannot be dumped")), "{own:?}");
    call(&mut source, "MULTI");
    let queued = call(&mut source, &format!("MIGRATE 127.0.0.1 {port} k 0 1000"));
    assert!(
        matches!(&queued, Value::Error(text) if text.contains("not allowed inside a transaction")),
        "{queued:?}"
    );
}

/// A target that a test plays.
struct FakeTarget {
    reader: BufReader<TcpStream>,
}

impl FakeTarget {
    fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().expect("a connection");
        Self { reader: BufReader::new(stream) }
    }

    fn request(&mut self) -> Vec<Vec<u8>> {
        let mut number = |kind: char| {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("a line");
            line.trim_end().strip_prefix(kind).expect("the kind").parse::<usize>().expect("a number")
        };
        let mut words = Vec::new();
        for _ in 0..number('*') {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("a line");
            let len = line.trim_end().strip_prefix('$').expect("a word").parse::<usize>().expect("a number");
            let mut word = vec![0; len + 2];
            self.reader.read_exact(&mut word).expect("a word");
            word.truncate(len);
            words.push(word);
        }
        words
    }

    fn answer(&mut self, line: &str) {
        self.reader.get_mut().write_all(format!("{line}\r\n").as_bytes()).expect("it is sent");
    }

    /// Answers `SELECT`, and returns the next request.
    fn first_request(&mut self) -> Vec<Vec<u8>> {
        assert_eq!(self.request(), [b"SELECT".to_vec(), b"0".to_vec()]);
        self.answer("+OK");
        self.request()
    }
}

/// Starts a migration of the key `k` to a target that the test plays.
fn migrate_to_fake<T: Send>(
    server: &Server,
    timeout_ms: u32,
    play: impl FnOnce(&mut FakeTarget, &mut Pipeline) -> T + Send,
) -> (Value, T) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut client = connect(server.port);
    std::thread::scope(|scope| {
        let mut other = connect(server.port);
        let played = scope.spawn(move || {
            let mut target = FakeTarget::accept(&listener);
            let result = play(&mut target, &mut other);
            drop(target);
            result
        });
        let answer = call(&mut client, &format!("MIGRATE 127.0.0.1 {port} k 0 {timeout_ms}"));
        (answer, played.join().expect("the target is played"))
    })
}

#[test]
fn a_change_while_the_key_moves_is_sent_as_well() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = connect(server.port);
    for change in ["RPUSH k late", "PEXPIRE k 50000", "SET k other"] {
        call(&mut client, "DEL k");
        call(&mut client, "RPUSH k early");
        let (answer, dumped) = migrate_to_fake(&server, 60_000, |target, other| {
            let first = target.first_request();
            assert_eq!((&first[0][..], &first[1][..], first.len()), (&b"RESTORE"[..], &b"k"[..], 4));
            call(other, change);
            let changed = other.call(&[b"DUMP", b"k"]).expect("an answer");
            target.answer("+OK");
            let second = target.request();
            assert_eq!(
                second.last().map(Vec::as_slice),
                Some(&b"REPLACE"[..]),
                "it replaces what it has sent"
            );
            target.answer("+OK");
            (changed, second)
        });
        assert_eq!(answer, ok(), "{change}");
        assert_eq!(dumped.0.bytes(), dumped.1[3], "{change}");
        assert_eq!(call(&mut client, "EXISTS k"), Value::Integer(0));
    }
}

#[test]
fn a_key_that_is_deleted_while_it_moves_is_deleted_at_the_target() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = connect(server.port);
    call(&mut client, "SET k v");
    let (answer, request) = migrate_to_fake(&server, 60_000, |target, other| {
        target.first_request();
        assert_eq!(call(other, "DEL k"), Value::Integer(1));
        target.answer("+OK");
        let second = target.request();
        target.answer(":1");
        second
    });
    assert_eq!((answer, request), (ok(), vec![b"DEL".to_vec(), b"k".to_vec()]));
}

#[test]
fn without_an_answer_the_key_stays_and_nobody_else_waits() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = connect(server.port);
    call(&mut client, "SET k v");
    let reading = Value::Error("IOERR error or timeout reading to target instance".into());
    // It hangs until its timeout, while others are served.
    let (answer, ()) = migrate_to_fake(&server, 300, |target, other| {
        target.first_request();
        for number in 0..100 {
            assert_eq!(call(other, &format!("SET other:{number} v")), ok());
        }
        assert_eq!(call(other, "GET k"), bulk("v"));
        // Until it closes the connection.
        let mut rest = Vec::new();
        let _ = target.reader.read_to_end(&mut rest);
    });
    assert_eq!(answer, reading);
    // It closes, or answers what is no answer.
    for wrong in [None, Some("$5"), Some("")] {
        let (answer, ()) = migrate_to_fake(&server, 60_000, |target, _| {
            target.first_request();
            if let Some(wrong) = wrong {
                target.answer(wrong);
            }
        });
        assert_eq!(answer, reading);
    }
    // An error of the target is passed on.
    let (answer, ()) = migrate_to_fake(&server, 60_000, |target, _| {
        target.first_request();
        target.answer("-OOM command not allowed");
    });
    assert_eq!(
        answer,
        Value::Error("ERR Target instance replied with error: OOM command not allowed".into())
    );
    assert_eq!(call(&mut client, "GET k"), bulk("v"));
}

#[test]
fn a_migration_that_hangs_does_not_keep_the_server_from_stopping() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut client = connect(server.port);
    call(&mut client, "SET k v");
    let line = format!("MIGRATE 127.0.0.1 {port} k 0 3600000");
    client.send(&[line.split(' ').map(|word| word.as_bytes().to_vec()).collect()]).expect("it is sent");
    let mut target = FakeTarget::accept(&listener);
    target.first_request();
    assert!(server.terminate().success());
    let server = Server::start(directory.path(), &[]);
    assert_eq!(call(&mut connect(server.port), "GET k"), bulk("v"));
}

/// Writers that go on while keys move: each push that was acknowledged is at the target.
#[test]
fn no_acknowledged_write_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    let redis = Redis::start();
    let (mut client, mut target) = (connect(server.port), connect(redis.port));
    let mut pushed = 0;
    for round in 0..40 {
        let key = format!("list:{round}");
        call(&mut client, &format!("RPUSH {key} first"));
        let moved = AtomicBool::new(false);
        let acknowledged = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut writer, mut acknowledged) = (connect(server.port), vec!["first".to_string()]);
                for number in 0_u64.. {
                    let is_last = moved.load(Ordering::SeqCst);
                    // Only while the key is there.
                    match call(&mut writer, &format!("RPUSHX {key} {number}")) {
                        Value::Integer(0) => {}
                        Value::Integer(_) => acknowledged.push(number.to_string()),
                        other => panic!("{other:?}"),
                    }
                    if is_last {
                        break;
                    }
                }
                acknowledged
            });
            let answer = call(&mut client, &format!("MIGRATE 127.0.0.1 {} {key} 0 60000", redis.port));
            assert_eq!(answer, ok());
            moved.store(true, Ordering::SeqCst);
            writer.join().expect("the writer ends")
        });
        let Value::Array(there) = call(&mut target, &format!("LRANGE {key} 0 -1")) else { panic!("a list") };
        let there: Vec<String> =
            there.iter().map(|element| String::from_utf8_lossy(element.bytes()).into_owned()).collect();
        assert_eq!(there, acknowledged);
        assert_eq!(call(&mut client, &format!("EXISTS {key}")), Value::Integer(0));
        pushed += acknowledged.len();
    }
    println!("{pushed} writes while 40 keys moved");
}

#[test]
fn a_key_that_has_moved_does_not_come_back_after_a_crash() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let redis = Redis::start();
    let mut client = connect(server.port);
    call(&mut client, "SET k v");
    call(&mut client, "SET stays v");
    assert_eq!(call(&mut client, &format!("MIGRATE 127.0.0.1 {} k 0 5000", redis.port)), ok());
    server.kill();
    let server = Server::start(directory.path(), &["--durability", "always"]);
    let mut client = connect(server.port);
    assert_eq!(call(&mut client, "EXISTS k stays"), Value::Integer(1));
    assert_eq!(call(&mut connect(redis.port), "GET k"), bulk("v"));
}
