//! Subscriptions below the retained emissions: the server replays what they missed from snapshots
//! and the log's segments, byte for byte.

use crate::common::watching::resp3;
use crate::common::{Client, TestServer, eventually, serve_http};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_server::config::Config;

/// Bytes of about thirty small emissions.
const RETAINED_BYTES: usize = 4096;

fn retain_little(config: &mut Config) {
    config.watch_retention_bytes = RETAINED_BYTES;
}

/// Reads one RESP3 value as sent over the wire; returns its lines joined by spaces.
fn value(client: &mut Client<TcpStream>) -> String {
    let head = client.line();
    let count = |per: usize| head[1..].parse::<usize>().expect("a count") * per;
    match head.as_bytes()[0] {
        b'$' => {
            let length = count(1);
            let text = client.bytes(length + 2);
            format!("{head} {}", String::from_utf8_lossy(&text[..length]))
        }
        b'*' | b'~' | b'>' => elements(client, count(1), head.clone()),
        b'%' => elements(client, count(2), head.clone()),
        _ => head,
    }
}

fn elements(client: &mut Client<TcpStream>, count: usize, mut shown: String) -> String {
    for _ in 0..count {
        shown.push(' ');
        shown += &value(client);
    }
    shown
}

/// Sends a command and reads its reply.
fn ask(client: &mut Client<TcpStream>, line: &str) -> String {
    client.command(&line.split(' ').collect::<Vec<_>>());
    value(client)
}

/// Emission as sent over the wire, with its LSN.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Received {
    lsn: u64,
    frame: String,
}

fn received(client: &mut Client<TcpStream>) -> Received {
    let frame = value(client);
    let mut words = frame.split(' ').skip(5);
    assert!(frame.starts_with(">5 $8 emission "), "{frame}");
    let lsn = words.next().and_then(|word| word.strip_prefix(':')).and_then(|lsn| lsn.parse().ok());
    Received { lsn: lsn.expect("an LSN"), frame }
}

fn set_all(server: &TestServer, values: std::ops::RangeInclusive<u64>) {
    let mut writer = server.client();
    for number in values {
        writer.ask(&format!("SET k {number}"), "+OK\r\n");
    }
}

/// Returns the emission of `GET.WATCH k` caused by `SET k number`. The watch is the first record;
/// the `SET`s follow.
fn of_k(number: u64) -> String {
    let text = number.to_string();
    format!(">5 $8 emission $3 1-0 :{} :{number} ${} {text}", number + 1, text.len())
}

#[test]
fn a_subscriber_goes_on_behind_what_is_retained_and_behind_snapshots() {
    let server = TestServer::with(retain_little);
    assert!(ask(&mut resp3(&server), "GET.WATCH k").starts_with("%4 $6 sub_id $3 1-0"));
    set_all(&server, 1..=500);
    let check = |server: &TestServer| {
        for seen in [0, 1, 250, 499, 777, 990, 999] {
            let mut watcher = resp3(server);
            let answer = ask(&mut watcher, &format!("EMITRECONNECT k 1-0 {}", seen + 1));
            assert_eq!(answer, format!("*2 $2 OK :{}", seen + 1));
            for number in seen + 1..=1000 {
                assert_eq!(received(&mut watcher).frame, of_k(number));
            }
            assert_eq!(ask(&mut watcher, "PING"), "+PONG");
        }
    };
    ask(&mut resp3(&server), "SAVE");
    set_all(&server, 501..=1000);
    check(&server);
    let server = TestServer::in_dir(server.stop(), retain_little);
    check(&server);
    ask(&mut resp3(&server), "SAVE");
    let server = TestServer::in_dir(server.stop(), retain_little);
    check(&server);
    // Live emissions follow the replayed ones, each exactly once.
    let mut watcher = resp3(&server);
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 1"), "*2 $2 OK :1");
    for number in 1..=1000 {
        assert_eq!(received(&mut watcher).frame, of_k(number));
    }
    let lsn: u64 = {
        let mut writer = resp3(&server);
        ask(&mut writer, "SET k last");
        received(&mut watcher).lsn
    };
    assert!(lsn > 1001);
    assert_eq!(ask(&mut watcher, "PING"), "+PONG", "and nothing else");
}

/// Reads of each family, some over keys that are made from others.
const READS: [&str; 9] = [
    "GET.WATCH a",
    "GET.WATCH a | EVERY 3",
    "MGET.WATCH a b c",
    "SMEMBERS.WATCH union",
    "ZRANGE.WATCH board 0 2 WITHSCORES",
    "LRANGE.WATCH done 0 -1",
    "HGETALL.WATCH h",
    "KEYS.WATCH t*",
    "DBSIZE.WATCH",
];

/// Returns the change number `step`. Some changes make keys from others, swap whole databases, or
/// let keys expire.
fn change(step: usize) -> String {
    let number = step * 7 % 23;
    match step * 5 % 17 {
        0 => format!("SET a {number}"),
        1 => format!("MSET b {number} a {step}"),
        2 => format!("SADD one {number}"),
        3 => format!("SADD two {step}"),
        4 => "SUNIONSTORE union one two".to_owned(),
        5 => format!("ZADD board {step} m{number}"),
        6 => format!("RPUSH todo {step} {number}"),
        7 => "LMOVE todo done LEFT RIGHT".to_owned(),
        8 => format!("HSET h f{number} {step}"),
        9 => format!("SET temp{number} x"),
        10 => format!("RENAME temp{number} t{number}"),
        11 => "COPY b c REPLACE".to_owned(),
        12 => "INCR a".to_owned(),
        13 => format!("SET tshort{number} x PX 1"),
        14 => format!("DEL one h t{number} temp{number}"),
        15 => "SPOP two".to_owned(),
        _ if step % 68 == 16 => "SWAPDB 0 3".to_owned(),
        _ => "ZUNIONSTORE board 2 board other".to_owned(),
    }
}

#[test]
fn a_replay_is_byte_for_byte_what_was_sent_at_first() {
    let server = TestServer::new();
    let mut writer = resp3(&server);
    // Each read has its own connection, which receives every emission live.
    let mut live: Vec<(Client<TcpStream>, String, Vec<Received>)> = Vec::new();
    for read in READS {
        let mut client = resp3(&server);
        let begun = ask(&mut client, read);
        let name = begun.split(' ').nth(4).expect("a name").to_owned();
        live.push((client, name, Vec::new()));
    }
    for step in 0..600 {
        ask(&mut writer, &change(step));
        if step % 250 == 100 {
            writer.ask("SAVE", "+OK\r\n");
        }
    }
    for (client, _, all) in &mut live {
        client.command(&["WATCHES"]);
        loop {
            let frame = value(client);
            if frame.starts_with("*1") && frame.contains("$3 lag :0") {
                break;
            } else if frame.starts_with("*1") {
                client.command(&["WATCHES"]);
                continue;
            }
            let lsn = frame.split(' ').nth(5).and_then(|word| word[1..].parse().ok()).expect("an LSN");
            all.push(Received { lsn, frame });
        }
        assert!(all.len() > 10, "{}", all.len());
    }
    let received_live: Vec<(String, Vec<Received>)> =
        live.into_iter().map(|(_, name, all)| (name, all)).collect();
    drop(writer);
    let server = TestServer::in_dir(server.stop(), retain_little);
    for (read, (name, all)) in READS.iter().zip(&received_live) {
        let key = read.split(' ').nth(1).unwrap_or("any");
        let first = name.split('-').next().and_then(|id| id.parse::<u64>().ok()).expect("an id");
        for lsn in std::iter::once(first).chain(all.iter().step_by(9).map(|received| received.lsn)) {
            let missed: Vec<&Received> = all.iter().filter(|received| received.lsn > lsn).collect();
            let mut watcher = resp3(&server);
            let answer = ask(&mut watcher, &format!("EMITRECONNECT {key} {name} {lsn}"));
            assert_eq!(answer, format!("*2 $2 OK :{}", all.len() - missed.len() + 1), "{read} behind {lsn}");
            for expected in missed {
                assert_eq!(&received(&mut watcher), expected, "{read} behind {lsn}");
            }
        }
    }
}

#[test]
fn a_slow_reader_that_falls_off_what_is_retained_goes_on_from_the_log() {
    let server = TestServer::with(|config| config.watch_retention_bytes = 1 << 20);
    let mut watcher = resp3(&server);
    ask(&mut watcher, "GET.WATCH k");
    let mut writer = server.client();
    let text = |number: u64| format!("{number:0>50000}");
    for number in 1..=600 {
        writer.ask(&format!("SET k {}", text(number)), "+OK\r\n");
        if number == 200 {
            writer.ask("SAVE", "+OK\r\n");
        }
    }
    for number in 1..=600 {
        let expected = format!(">5 $8 emission $3 1-0 :{} :{number} $50000 {}", number + 1, text(number));
        assert_eq!(received(&mut watcher).frame, expected);
    }
    assert_eq!(ask(&mut watcher, "PING"), "+PONG");
}

#[test]
fn resuming_ends_where_the_present_begins_while_writers_go_on() {
    let server = TestServer::with(retain_little);
    ask(&mut resp3(&server), "GET.WATCH k");
    set_all(&server, 1..=2000);
    let (done, port) = (AtomicBool::new(false), server.port);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut writer = TcpStream::connect(("127.0.0.1", port)).map(Client::over).expect("it listens");
            let mut number = 2000;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                writer.ask(&format!("SET k {number}"), "+OK\r\n");
            }
            number
        });
        for seen in [0, 1900, 7] {
            let mut watcher = resp3(&server);
            let answer = ask(&mut watcher, &format!("EMITRECONNECT k 1-0 {} | MARK", seen + 1));
            assert_eq!(answer, format!("*2 $2 OK :{}", seen + 1));
            let mut next = seen + 1;
            loop {
                let frame = value(&mut watcher);
                if frame.starts_with(">3 $9 caught-up") {
                    break;
                }
                assert_eq!(frame, of_k(next));
                next += 1;
            }
            assert!(next > 2000, "what was missed has come");
            for _ in 0..100 {
                assert_eq!(received(&mut watcher).frame, of_k(next));
                next += 1;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(writing.join().expect("it writes") > 2000);
    });
}

#[test]
fn past_the_oldest_snapshot_the_answer_is_the_floor_and_the_floor_is_true() {
    let server = TestServer::with(|config| {
        retain_little(config);
        config.log_segment_bytes = 64 << 10;
    });
    ask(&mut resp3(&server), "GET.WATCH k");
    let mut writer = server.client();
    let mut saved = Vec::new();
    for round in 0..4 {
        for number in 0..1000 {
            writer.ask(&format!("SET k {}", round * 1000 + number + 1), "+OK\r\n");
        }
        saved.push(round * 1000 + 1001);
        writer.ask("SAVE", "+OK\r\n");
    }
    set_all(&server, 4001..=4100);
    // The server keeps two snapshots, and the log after the older one.
    let floor = saved[2];
    eventually("segments are dropped", || {
        ask(&mut resp3(&server), "EMITRECONNECT k 1-0 1") == format!("*2 $14 STALE_SEQUENCE :{floor}")
    });
    let mut watcher = resp3(&server);
    assert_eq!(
        ask(&mut watcher, &format!("EMITRECONNECT k 1-0 {}", floor - 1)),
        format!("*2 $14 STALE_SEQUENCE :{floor}")
    );
    assert_eq!(
        ask(&mut watcher, "GET.WATCH k | RESUME 7"),
        format!("-STALE_SEQUENCE emissions up to LSN {floor} are not retained any more")
    );
    assert_eq!(ask(&mut watcher, &format!("EMITRECONNECT k 1-0 {floor}")), format!("*2 $2 OK :{floor}"));
    for number in floor..=4100 {
        assert_eq!(received(&mut watcher).frame, of_k(number));
    }
}

#[test]
fn a_watch_resumes_behind_an_lsn_with_its_options() {
    let server = TestServer::with(retain_little);
    ask(&mut resp3(&server), "GET.WATCH k");
    set_all(&server, 1..=300);
    let mut watcher = resp3(&server);
    // A separate subscription, whose numbers start at its own position.
    let answer = ask(&mut watcher, "GET.WATCH k | RESUME 101 OLD MARK");
    assert_eq!(answer, "%4 $6 sub_id $5 1-100 $3 lsn :101 $3 seq :0 $5 value _");
    for number in 101..=300_u64 {
        let (now, before) = (number.to_string(), (number - 1).to_string());
        let expected =
            format!(">6 $8 emission $5 1-100 :{} :{} $3 {now} $3 {before}", number + 1, number - 100);
        assert_eq!(value(&mut watcher), expected);
    }
    assert_eq!(value(&mut watcher), ">3 $9 caught-up $5 1-100 :301");
    let mut watcher = resp3(&server);
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 1 | SQUASH MARK"), "*2 $2 OK :1");
    assert_eq!(received(&mut watcher).frame, of_k(300), "only the latest");
    assert_eq!(value(&mut watcher), ">3 $9 caught-up $3 1-0 :301");
}

#[test]
fn more_than_there_are_places_for_take_turns() {
    let server = TestServer::with(|config| {
        retain_little(config);
        config.watch_backlogs = 1;
    });
    ask(&mut resp3(&server), "GET.WATCH k");
    set_all(&server, 1..=1000);
    let mut watchers: Vec<_> = (0..12).map(|_| resp3(&server)).collect();
    for watcher in &mut watchers {
        watcher.command(&["EMITRECONNECT", "k", "1-0", "1"]);
    }
    // One client disconnects while it waits.
    watchers.remove(5);
    for watcher in watchers.iter_mut().rev() {
        assert_eq!(value(watcher), "*2 $2 OK :1");
        for number in 1..=1000 {
            assert_eq!(received(watcher).frame, of_k(number));
        }
    }
}

#[test]
fn a_subscriber_that_does_not_read_does_not_occupy_the_only_replay() {
    let server = TestServer::with(|config| {
        config.watch_retention_bytes = 1 << 20;
        config.watch_backlogs = 1;
    });
    ask(&mut resp3(&server), "GET.WATCH k");
    let mut writer = server.client();
    let text = |number: u64| format!("{number:0>60000}");
    for number in 1..=400 {
        writer.ask(&format!("SET k {}", text(number)), "+OK\r\n");
    }
    // The emissions exceed the socket buffers and the output limit.
    let mut lazy = resp3(&server);
    assert_eq!(ask(&mut lazy, "EMITRECONNECT k 1-0 1"), "*2 $2 OK :1");
    let mut other = resp3(&server);
    assert_eq!(ask(&mut other, "EMITRECONNECT k 1-0 2"), "*2 $2 OK :2");
    for (watcher, first) in [(&mut other, 2), (&mut lazy, 1)] {
        for number in first..=400 {
            let expected = format!(">5 $8 emission $3 1-0 :{} :{number} $60000 {}", number + 1, text(number));
            assert_eq!(received(watcher).frame, expected);
        }
    }
}

#[test]
fn a_read_that_depends_on_more_than_is_allowed_cannot_be_made_again() {
    let server = TestServer::with(|config| {
        retain_little(config);
        config.watch_backlog_bytes = 100_000;
    });
    ask(&mut resp3(&server), "GET.WATCH k");
    let mut writer = server.client();
    for number in 0..5 {
        writer.ask(&format!("SET large{number} {}", "x".repeat(40_000)), "+OK\r\n");
    }
    ask(&mut resp3(&server), "DBSIZE.WATCH");
    set_all(&server, 1..=1000);
    // Records that do not affect the read take no memory in the replay.
    let mut watcher = resp3(&server);
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 1"), "*2 $2 OK :1");
    for number in 1..=1000 {
        let expected = of_k(number).replace(&format!(":{} :", number + 1), &format!(":{} :", number + 7));
        assert_eq!(received(&mut watcher).frame, expected);
    }
    // Where every record affects the read, the replay needs too much memory. The floor is then that
    // of the retained emissions.
    assert_eq!(ask(&mut watcher, "EMITRECONNECT any 7-0 7"), "*2 $14 STALE_SEQUENCE :8");
    assert_eq!(ask(&mut watcher, "EMITRECONNECT any 7-0 8"), "*2 $2 OK :2");
}

#[test]
fn a_named_subscription_goes_on_behind_what_is_retained() {
    let server = TestServer::with(retain_little);
    let mut first = resp3(&server);
    assert!(ask(&mut first, "GET.WATCH k | AS mine").starts_with("%4 $6 sub_id $4 mine $3 lsn :1"));
    drop(first);
    set_all(&server, 1..=500);
    let server = TestServer::in_dir(server.stop(), retain_little);
    let mut watcher = resp3(&server);
    ask(&mut watcher, "EMITACK k mine 1");
    let answer = ask(&mut watcher, "GET.WATCH k | AS mine");
    assert!(answer.starts_with("%4 $6 sub_id $4 mine"), "{answer}");
    for number in 1..=500_u64 {
        let frame = received(&mut watcher).frame;
        assert!(frame.starts_with(">5 $8 emission $4 mine :"), "{frame}");
        assert!(frame.ends_with(&format!(" :{number} ${} {number}", number.to_string().len())), "{frame}");
    }
    assert_eq!(ask(&mut resp3(&server), "EMITRECONNECT k mine 1"), "*2 $2 OK :1");
    assert!(value(&mut watcher).starts_with(">3 $5 ended $4 mine"), "another connection has it now");
}

/// Returns the log's files, oldest first.
fn segments(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir.join("data")).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment-")));
    paths.sort();
    paths
}

#[test]
fn damage_ends_a_subscription_and_never_leaves_a_gap() {
    let server = TestServer::with(|config| {
        retain_little(config);
        config.log_segment_bytes = 64 << 10;
    });
    ask(&mut resp3(&server), "GET.WATCH k");
    set_all(&server, 1..=6000);
    ask(&mut resp3(&server), "SAVE");
    set_all(&server, 6001..=6100);
    let dir = server.stop();
    let segments = segments(dir.path());
    assert!(segments.len() > 3, "{segments:?}");
    // In the middle of the second file: the newest snapshot covers it, so the server starts.
    let mut bytes = std::fs::read(&segments[1]).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segments[1], bytes).expect("a segment");
    let server = TestServer::in_dir(dir, retain_little);
    let mut watcher = resp3(&server);
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 1"), "*2 $2 OK :1");
    let mut next = 1;
    let end = loop {
        let frame = value(&mut watcher);
        if frame.starts_with(">4 $5 stale") {
            break frame;
        }
        assert_eq!(frame, of_k(next));
        next += 1;
    };
    assert!((100..6000).contains(&next), "{next}");
    assert_eq!(end, format!(">4 $5 stale $3 1-0 :{next} :6001"), "and from where it can be gone on");
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 6001"), "*2 $2 OK :6001");
    assert_eq!(received(&mut watcher).frame, of_k(6001));
}

fn answer_no_unheard(config: &mut Config) {
    serve_http(config);
    config.watch_unsubscribed_budget_us = 0;
}

/// Returns the number in an emission of `GET.WATCH k`. The value is the same number, whatever the
/// record's LSN.
fn number_of_k(watcher: &mut Client<TcpStream>) -> u64 {
    let frame = received(watcher).frame;
    let words: Vec<&str> = frame.split(' ').collect();
    assert_eq!(words[6][1..], *words[8], "{frame}");
    words[8].parse().expect("a number")
}

/// Sets a flag when dropped. It ends the thread that checks the flag, even if the test fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until `count` reads are dormant.
fn wait_dormant(server: &TestServer, count: u64) {
    let line = format!("\ntidemark_watched_reads_dormant {count}.0\n");
    eventually("so many reads are dormant", || server.http("/metrics").contains(&line));
}

#[test]
fn a_read_without_listeners_resumes_at_its_subscribers_position() {
    let server = TestServer::with(answer_no_unheard);
    assert!(ask(&mut resp3(&server), "GET.WATCH k").starts_with("%4 $6 sub_id $3 1-0"));
    assert!(ask(&mut resp3(&server), "KEYS.WATCH *").starts_with("%4 $6 sub_id $3 2-0"));
    set_all(&server, 1..=500);
    wait_dormant(&server, 2);
    // Resumes across a snapshot, the log and a restart.
    ask(&mut resp3(&server), "SAVE");
    set_all(&server, 501..=600);
    let server = TestServer::in_dir(server.stop(), answer_no_unheard);
    let mut watcher = resp3(&server);
    for seen in [0, 599, 600] {
        let lsn = if seen == 0 { 1 } else { seen + 2 };
        assert_eq!(
            ask(&mut watcher, &format!("EMITRECONNECT k 1-0 {lsn}")),
            format!("*2 $2 OK :{}", seen + 1)
        );
        for number in seen + 1..=600 {
            assert_eq!(number_of_k(&mut watcher), number);
        }
        ask(&mut watcher, "UNWATCH 1-0");
    }
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 602"), "*2 $2 OK :601");
    ask(&mut resp3(&server), "SET k 601");
    assert_eq!(number_of_k(&mut watcher), 601);
    wait_dormant(&server, 1);
    assert_eq!(ask(&mut watcher, "EMITRECONNECT * 2-0 2"), "*2 $2 OK :1");
    let keys = received(&mut watcher).frame;
    assert!(keys.starts_with(">5 $8 emission $3 2-0 :3 :1 *1 $1 k"), "{keys}");
    assert_eq!(ask(&mut watcher, "PING"), "+PONG");
    wait_dormant(&server, 0);
    // The log has both the numbers and the end of dormancy.
    let server = TestServer::in_dir(server.stop(), answer_no_unheard);
    let mut watcher = resp3(&server);
    assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 500"), "*2 $2 OK :499");
    for number in 499..=601 {
        assert_eq!(number_of_k(&mut watcher), number);
    }
}

#[test]
fn reads_that_cost_writers_too_much_are_late_and_complete() {
    let server = TestServer::with_http(|config| config.watch_write_budget_us = 0);
    let mut watchers: Vec<_> = (0..3).map(|_| resp3(&server)).collect();
    for watcher in &mut watchers {
        assert!(ask(watcher, "GET.WATCH k").starts_with("%4 $6 sub_id"));
    }
    set_all(&server, 1..=300);
    wait_dormant(&server, 1);
    for watcher in &mut watchers {
        for number in 1..=300 {
            assert_eq!(number_of_k(watcher), number);
        }
    }
    set_all(&server, 301..=400);
    for watcher in &mut watchers {
        for number in 301..=400 {
            assert_eq!(number_of_k(watcher), number);
        }
        assert_eq!(
            ask(watcher, "GET.WATCH k"),
            "-TRYAGAIN the read is watched already, and its emissions are being replayed from the log"
        );
        assert_eq!(ask(watcher, "PING"), "+PONG");
    }
}

#[test]
fn a_dormant_read_is_woken_while_writers_go_on() {
    let server = TestServer::with(answer_no_unheard);
    ask(&mut resp3(&server), "GET.WATCH k");
    set_all(&server, 1..=2000);
    let (done, port) = (AtomicBool::new(false), server.port);
    std::thread::scope(|scope| {
        let _ends_the_writer = SetOnDrop(&done);
        let writing = scope.spawn(|| {
            let mut writer = TcpStream::connect(("127.0.0.1", port)).map(Client::over).expect("it listens");
            let mut number = 2000;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                writer.ask(&format!("SET k {number}"), "+OK\r\n");
                // Slower than the replay thread, even where many tests share a processor.
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        for _ in 0..3 {
            let mut watcher = resp3(&server);
            assert_eq!(ask(&mut watcher, "EMITRECONNECT k 1-0 2 | MARK"), "*2 $2 OK :2");
            let mut next = 2;
            loop {
                let frame = value(&mut watcher);
                if frame.starts_with(">3 $9 caught-up") {
                    break;
                }
                assert!(frame.ends_with(&format!(" :{next} ${} {next}", next.to_string().len())), "{frame}");
                next += 1;
            }
            assert!(next > 2000, "what was missed has come");
            for number in next..next + 100 {
                assert_eq!(number_of_k(&mut watcher), number);
            }
            wait_dormant(&server, 0);
        }
        done.store(true, Ordering::Relaxed);
        writing.join().expect("it writes");
    });
}

#[test]
fn a_name_keeps_its_place_while_its_read_is_dormant() {
    let server = TestServer::with(answer_no_unheard);
    let mut first = resp3(&server);
    assert!(ask(&mut first, "GET.WATCH k | AS mine").starts_with("%4 $6 sub_id $4 mine $3 lsn :1"));
    ask(&mut first, "EMITACK k mine 1");
    drop(first);
    set_all(&server, 1..=100);
    wait_dormant(&server, 1);
    let mut watcher = resp3(&server);
    assert!(ask(&mut watcher, "GET.WATCH k | AS mine").starts_with("%4 $6 sub_id $4 mine"));
    let mut last = 0;
    for number in 1..=100 {
        let received = received(&mut watcher);
        assert!(received.frame.ends_with(&format!(" {number}")), "{}", received.frame);
        last = received.lsn;
    }
    assert_eq!(ask(&mut watcher, &format!("EMITACK k mine {last}")), "+OK");
    drop(watcher);
    set_all(&server, 101..=110);
    let mut watcher = resp3(&server);
    ask(&mut watcher, "GET.WATCH k | AS mine");
    for number in 101..=110 {
        assert!(received(&mut watcher).frame.ends_with(&format!(" {number}")));
    }
}

#[test]
fn operators_list_and_end_any_watched_read() {
    let server = TestServer::with(|_| ());
    let mut watcher = resp3(&server);
    assert!(ask(&mut watcher, "GET.WATCH k").starts_with("%4 $6 sub_id $3 1-0"));
    ask(&mut resp3(&server), "KEYS.WATCH user:*");
    ask(&mut resp3(&server), "GET.WATCH mine | AS name");
    let mut operator = resp3(&server);
    let all = ask(&mut operator, "WATCHES ALL");
    assert!(all.starts_with("*3 %9 $5 query :"), "{all}");
    let one = ask(&mut operator, "WATCHES ALL user:*");
    let start = "*1 %9 $5 query :2 $7 command *2 $4 keys $6 user:* $9 operators *0 $2 db :0 $10 subscribed :";
    assert!(one.starts_with(start), "{one}");
    assert_eq!(ask(&mut operator, "WATCHES ALL none"), "*0");
    assert_eq!(ask(&mut operator, "UNWATCH QUERY 1 2 77"), ":2");
    assert_eq!(
        ask(&mut operator, "UNWATCH QUERY 3"),
        "-ERR query 3 has 1 named subscriptions; end them with UNWATCH NAMED first"
    );
    assert!(ask(&mut operator, "UNWATCH QUERY x").starts_with("-ERR the LSN is not an integer"));
    assert!(ask(&mut operator, "UNWATCH QUERY").starts_with("-ERR wrong number of arguments"));
    assert_eq!(value(&mut watcher), ">4 $5 stale $3 1-0 :1 :1", "it is to watch anew");
    ask(&mut operator, "SET k 1");
    assert!(ask(&mut watcher, "GET.WATCH k").contains("value $1 1"));
}
