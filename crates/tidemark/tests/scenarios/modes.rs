//! `kill -9` where answers do not wait for the disk, and while files change: only the end of the
//! log is lost, never something in the middle; with `always` nothing is lost.

use crate::support::{Answer, Client, Server, free_port, info_number, wait_until};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The smallest segments, so that the log switches files all the time.
const SMALL_FILES: [&str; 2] = ["--log-segment-bytes", "65536"];

/// Returns how many times the server is killed in a loop of `standard` rounds.
fn rounds(standard: u64) -> u64 {
    std::env::var("TIDEMARK_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(standard)
}

/// Pushes `count` numbers in order, from `next` on; returns the number after the last answered one.
fn push(client: &mut Client, list: &str, next: i64, count: i64) -> i64 {
    for number in next..next + count {
        let answer = client.call(&["RPUSH", list, &number.to_string()]).expect("an answer");
        assert_eq!(answer, Answer::Integer(number + 1));
    }
    next + count
}

/// Returns the length of a list, which must hold 0, 1, 2 … without a gap or repeat.
fn length_of_prefix(client: &mut Client, list: &str) -> i64 {
    let found = client.call(&["LRANGE", list, "0", "-1"]).expect("an answer").array();
    for (index, element) in found.iter().enumerate() {
        assert_eq!(*element, Answer::Bulk(index.to_string()), "what is left of {list} is a prefix");
    }
    found.len() as i64
}

#[test]
fn a_kill_loses_at_most_the_window_and_only_the_end() {
    for durability in ["interval", "off"] {
        let directory = tempfile::tempdir().expect("a directory");
        let arguments = [&["--durability", durability][..], &SMALL_FILES].concat();
        for _ in 0..3 {
            let server = Server::start(directory.path(), &arguments);
            let mut client = server.client();
            let start = length_of_prefix(&mut client, "list");
            let old = push(&mut client, "list", start, 2000);
            // The window of possible loss closes without a request: the log writes what was
            // appended.
            let given = info_number(&mut client, "persistence", "log_appended_lsn");
            wait_until("the log writes out what it was given", || {
                info_number(&mut client, "persistence", "log_written_lsn") >= given
            });
            let all = push(&mut client, "list", old, 500);
            server.kill();
            let server = Server::start(directory.path(), &arguments);
            let left = length_of_prefix(&mut server.client(), "list");
            assert!(
                (old..=all).contains(&left),
                "{durability}: {left} left, {old} older than the window, {all} in all"
            );
        }
    }
}

/// Writes in `always` mode and takes snapshots until the server dies; returns the number of the
/// last answered push.
fn write_until_killed(port: u16, mut next: i64) -> i64 {
    let Ok(mut client) = Client::connect(port) else { return next };
    let ballast = "x".repeat(3000);
    loop {
        match client.call(&["RPUSH", "list", &next.to_string()]) {
            Ok(answer) => assert_eq!(answer, Answer::Integer(next + 1)),
            Err(_) => return next,
        }
        next += 1;
        let key = format!("ballast:{}", next % 50);
        if client.call(&["SET", &key, &ballast]).is_err() {
            return next;
        }
        if next % 8 == 0 && client.call(&["BGSAVE"]).is_err() {
            return next;
        }
    }
}

/// Starts servers and kills each before it has finished starting.
fn kill_during_recovery(directory: &Path, durability: &str) {
    for after_ms in [1, 3, 6, 10, 15] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["serve", "--durability", durability, "--port", &free_port().to_string()])
            .args(SMALL_FILES)
            .arg("--dir")
            .arg(directory)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        child.kill().expect("the process can be killed");
        child.wait().expect("the process ends");
    }
}

#[test]
fn kills_during_snapshots_rotation_and_recovery_lose_nothing_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [&["--durability", "always"][..], &SMALL_FILES].concat();
    let (mut acknowledged, mut snapshots) = (0, 0);
    for round in 0..rounds(30) {
        let server = Server::start(directory.path(), &arguments);
        let mut client = server.client();
        let found = length_of_prefix(&mut client, "list");
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{found}, acknowledged {acknowledged}");
        snapshots += u32::from(info_number(&mut client, "persistence", "snapshot_last_lsn") > 0);
        let port = server.port;
        let writer = std::thread::spawn(move || write_until_killed(port, found));
        std::thread::sleep(Duration::from_millis(40 + round * 23 % 300));
        server.kill();
        acknowledged = writer.join().expect("the writer is right about its answers");
        kill_during_recovery(directory.path(), "always");
    }
    assert!(snapshots > 0, "some start came after a snapshot");
    let server = Server::start(directory.path(), &arguments);
    let found = length_of_prefix(&mut server.client(), "list");
    assert!(
        found > 20 && (acknowledged..=acknowledged + 1).contains(&found),
        "{found}, acknowledged {acknowledged}"
    );
}

/// Number of keys over which numbers are distributed, so that a gap in the log would show as a key
/// that is behind the others.
const DEALT_KEYS: i64 = 37;

/// What a writer knows when its server has been killed.
struct Written {
    /// The last number that was sent.
    sent: i64,
    /// The last number that the server has confirmed to be on disk.
    durable: i64,
}

/// Distributes numbers over keys until the server dies, with snapshots and durable writes in
/// between.
fn deal_until_killed(port: u16, last: i64) -> Written {
    let mut written = Written { sent: last, durable: last };
    let Ok(mut client) = Client::connect(port) else { return written };
    loop {
        let number = written.sent + 1;
        written.sent = number;
        let set = client.call(&["SET", &format!("dealt:{}", number % DEALT_KEYS), &number.to_string()]);
        let Ok(answer) = set else { return written };
        assert_eq!(answer, Answer::Status("OK".into()));
        if number % 101 == 0 && client.call(&["BGSAVE"]).is_err() {
            return written;
        }
        if number % 53 == 0 {
            let Ok(answer) = client.call(&["WAITAOF", "1", "0", "0"]) else { return written };
            assert_eq!(answer, Answer::Array(vec![Answer::Integer(1), Answer::Integer(0)]));
            written.durable = number;
        }
    }
}

/// Returns the last number, if the keys hold everything up to it and nothing else.
fn end_of_prefix(client: &mut Client) -> i64 {
    let keys: Vec<String> = (0..DEALT_KEYS).map(|key| format!("dealt:{key}")).collect();
    let request: Vec<&str> = std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect();
    let found = client.call(&request).expect("an answer").array();
    let found: Vec<i64> = found.iter().map(Answer::integer).collect();
    let end = found.iter().copied().max().unwrap_or(0);
    for (key, number) in (0..).zip(&found) {
        let expected = end - (end - key).rem_euclid(DEALT_KEYS);
        assert_eq!(*number, expected.max(0), "dealt:{key} is as it was when {end} was written");
    }
    end
}

#[test]
fn what_a_kill_leaves_is_a_prefix_of_everything_that_was_written_to_any_key() {
    for durability in ["interval", "off"] {
        let directory = tempfile::tempdir().expect("a directory");
        let arguments = [&["--durability", durability][..], &SMALL_FILES].concat();
        let mut written = Written { sent: 0, durable: 0 };
        let mut last = 0;
        for round in 0..=rounds(30) {
            let server = Server::start(directory.path(), &arguments);
            let end = end_of_prefix(&mut server.client());
            assert!(
                (written.durable..=written.sent).contains(&end),
                "{durability}: {end} left of {}, {} on disk",
                written.sent,
                written.durable
            );
            last = end;
            let port = server.port;
            let writer = std::thread::spawn(move || deal_until_killed(port, end));
            std::thread::sleep(Duration::from_millis(20 + round * 29 % 170));
            server.kill();
            written = writer.join().expect("the writer is right about its answers");
            if round % 3 == 0 {
                kill_during_recovery(directory.path(), durability);
            }
        }
        println!("{durability}: {last} writes survived");
        assert!(last > 0, "{durability}: the writer got somewhere");
    }
}

#[test]
fn emissions_that_were_sent_survive_a_kill_whatever_the_durability() {
    for durability in ["interval:60s", "off"] {
        let directory = tempfile::tempdir().expect("a directory");
        let arguments = [&["--durability", durability][..], &SMALL_FILES].concat();
        let mut next = 0;
        for round in 0..10 {
            let server = Server::start(directory.path(), &arguments);
            let mut watcher = server.client();
            let mut writer = server.client();
            // In RESP2 emissions are arrays: the word, the subscription, the LSN, the number, the
            // answer.
            watcher.call(&["GET.WATCH", "k"]).expect("an answer");
            for _ in 0..20 {
                next += 1;
                writer.call(&["SET", "k", &next.to_string()]).expect("an answer");
                let emission = watcher.read().expect("an emission").array();
                assert_eq!(emission.last(), Some(&Answer::Bulk(next.to_string())));
            }
            server.kill();
            let server = Server::start(directory.path(), &arguments);
            let kept = server.client().call(&["GET", "k"]).expect("an answer");
            assert_eq!(
                kept,
                Answer::Bulk(next.to_string()),
                "{durability}, round {round}: a delivered change was lost"
            );
            server.kill();
        }
    }
}

#[test]
fn a_position_that_a_kill_took_back_is_not_good_even_when_the_log_has_forgotten_the_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [&["--snapshot-keep", "1"][..], &SMALL_FILES].concat();
    let server = Server::start(directory.path(), &arguments);
    let (mut watcher, mut writer) = (server.client(), server.client());
    let begun = watcher.call(&["GET.WATCH", "k"]).expect("an answer").array();
    let Answer::Bulk(name) = &begun[1] else { panic!("{begun:?}") };
    writer.call(&["SET", "k", "1"]).expect("an answer");
    let seen = watcher.read().expect("an emission").array()[2].integer();
    // Simulates further emissions that a power failure has undone.
    let lost = seen + 50;
    server.kill();
    let server = Server::start(directory.path(), &arguments);
    let reconnect = |server: &Server, lsn: i64| {
        let answer =
            server.client().call(&["EMITRECONNECT", "k", name, &lsn.to_string()]).expect("an answer");
        answer.array().swap_remove(0)
    };
    assert_eq!(reconnect(&server, lost), Answer::Bulk("INVALID_SEQUENCE".into()));
    let (mut writer, ballast) = (server.client(), "x".repeat(8000));
    for _ in 0..4 {
        for number in 0..20 {
            writer.call(&["SET", &format!("other:{number}"), &ballast]).expect("an answer");
        }
        assert_eq!(writer.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
    }
    // The segment that records the gap is removed in the background. The process that opened the
    // log with it still knows the gap; the next one does not, and cannot distinguish a lost record
    // from one that it no longer retains.
    wait_until("the segment with the gap is removed", || {
        info_number(&mut writer, "persistence", "log_floor_lsn") > lost
    });
    assert_eq!(reconnect(&server, lost), Answer::Bulk("INVALID_SEQUENCE".into()));
    assert!(server.terminate().success());
    let server = Server::start(directory.path(), &arguments);
    assert_eq!(reconnect(&server, lost), Answer::Bulk("STALE_SEQUENCE".into()));
    assert_eq!(reconnect(&server, seen), Answer::Bulk("OK".into()), "what was seen last is still the latest");
}
