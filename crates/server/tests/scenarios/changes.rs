//! `CHANGES`: clients that follow the log over connections.

use crate::common::{Client, TestServer, eventually};
use std::net::TcpStream;
use tidemark_log::Durability;

/// Connects a client that speaks RESP3.
fn resp3(server: &TestServer) -> Client<TcpStream> {
    let mut client = server.client();
    client.command(&["HELLO", "3"]);
    while client.line() != "*0" {}
    client
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Starts to follow the log and returns `from`, `floor` and `durable`.
fn follow(client: &mut Client<TcpStream>, words: &str) -> [u64; 3] {
    client.command(&format!("CHANGES {words}").split(' ').collect::<Vec<_>>());
    let head = client.line();
    assert!(head == "%3" || head == "*6", "{head}");
    ["from", "floor", "durable"].map(|name| {
        assert_eq!(client.bulk(), name);
        client.line()[1..].parse().expect("an LSN")
    })
}

/// Reads the next change in JSON; returns its LSN and the text after its time.
fn change(client: &mut Client<TcpStream>) -> (u64, String) {
    let mut head = client.line();
    // On a busy machine a progress message may come before the next change.
    while head == ">2" {
        assert_eq!(client.bulk(), "progress");
        client.line();
        head = client.line();
    }
    assert!(head == ">3" || head == "*3", "{head}");
    assert_eq!(client.bulk(), "change");
    let lsn = client.line()[1..].parse().expect("an LSN");
    let json = client.bulk();
    assert!(json.starts_with(&format!("{{\"lsn\":{lsn},\"time_us\":")), "{json}");
    let kind = json.find("\"kind\"").expect("a kind");
    (lsn, json[kind..].to_owned())
}

/// Returns what [`change`] returns for one command in database 0.
fn command(lsn: u64, name: &str, args: &str) -> (u64, String) {
    (
        lsn,
        format!(
            "\"kind\":\"command\",\"commands\":[{{\"db\":0,\"command\":\"{name}\",\"args\":[{args}]}}]}}"
        ),
    )
}

#[test]
fn every_change_is_sent_in_order_from_any_position_in_the_log() {
    let server = TestServer::new();
    let (mut follower, mut writer) = (resp3(&server), server.client());
    writer.ask("SET k 1", "+OK\r\n");
    writer.ask("GET k", "$1\r\n1\r\n");
    let [from, floor, _] = follow(&mut follower, "FROM 0");
    assert_eq!((from, floor), (0, 1));
    writer.ask("DEL nothing", ":0\r\n");
    writer.ask("RPUSH l a b", ":2\r\n");
    assert_eq!(change(&mut follower), command(1, "set", "\"k\",\"1\""));
    assert_eq!(change(&mut follower), command(2, "rpush", "\"l\",\"a\",\"b\""));
    // Each follower has its own position, and a RESP3 connection can run other commands meanwhile.
    let mut later = resp3(&server);
    assert_eq!(follow(&mut later, "FROM 1")[0], 1);
    assert_eq!(change(&mut later).0, 2);
    follower.ask("GET k", "$1\r\n1\r\n");
    let mut newest = resp3(&server);
    assert_eq!(follow(&mut newest, "FROM $"), [2, 1, 2]);
    writer.ask("DEL k", ":1\r\n");
    for client in [&mut follower, &mut later, &mut newest] {
        assert_eq!(change(client), command(3, "del", "\"k\""));
    }
}

#[test]
fn a_transaction_is_one_change_and_an_expiry_is_one() {
    let server = TestServer::new();
    let (mut follower, mut writer) = (resp3(&server), server.client());
    follow(&mut follower, "FROM $");
    for (line, answer) in [
        ("MULTI", "+OK\r\n"),
        ("INCR n", "+QUEUED\r\n"),
        ("GET n", "+QUEUED\r\n"),
        ("SET m 1 PX 1", "+QUEUED\r\n"),
    ] {
        writer.ask(line, answer);
    }
    writer.ask("EXEC", "*3\r\n:1\r\n$1\r\n1\r\n+OK\r\n");
    let (lsn, record) = change(&mut follower);
    let begin = "\"kind\":\"transaction\",\"commands\":[{\"db\":0,\"command\":\"incr\",\"args\":[\"n\"]},\
                 {\"db\":0,\"command\":\"set\",\"args\":[\"m\",\"1\",";
    assert!(lsn == 1 && record.starts_with(begin), "{record}");
    let expiry = "\"kind\":\"expiry\",\"commands\":[{\"db\":0,\"command\":\"del\",\"args\":[\"m\"]}]}";
    assert_eq!(change(&mut follower), (2, expiry.to_owned()));
}

#[test]
fn a_follower_with_a_selection_gets_selected_changes_and_progress_only() {
    let server = TestServer::new();
    let (mut follower, mut writer) = (resp3(&server), server.client());
    follow(&mut follower, "FROM 0 PREFIX user: PREFIX order: TYPE hash DB 0 PROGRESS 100");
    for line in ["HSET user:1 f v", "HSET other f v", "SET user:2 v", "DEL order:1", "HSET order:1 f v"] {
        writer.command(&line.split(' ').collect::<Vec<_>>());
        writer.line();
    }
    assert_eq!(change(&mut follower).0, 1);
    assert_eq!(change(&mut follower).0, 4);
    writer.ask("SET another v", "+OK\r\n");
    let mut reached = 0;
    while reached < 5 {
        assert_eq!(follower.line(), ">2");
        assert_eq!(follower.bulk(), "progress");
        reached = follower.line()[1..].parse().expect("an LSN");
    }
    assert_eq!(reached, 5);
}

#[test]
fn the_binary_format_is_an_array() {
    let server = TestServer::new();
    let (mut follower, mut writer) = (resp3(&server), server.client());
    follow(&mut follower, "FROM 0 FORMAT BINARY");
    writer.ask("SELECT 2", "+OK\r\n");
    writer.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\xff\0\r\n");
    writer.expect("+OK\r\n");
    follower.expect(format!(">3\r\n{}:1\r\n*4\r\n:1\r\n", bulk("change")));
    assert!(follower.line().starts_with(':'), "the time");
    follower.expect(format!("{}*1\r\n*4\r\n:2\r\n{}{}", bulk("command"), bulk("set"), bulk("k")));
    follower.expect(b"$2\r\n\xff\0\r\n");
}

#[test]
fn in_resp2_changes_are_arrays_and_only_subscriptions_may_change() {
    let server = TestServer::new();
    let (mut follower, mut writer) = (server.client(), server.client());
    follow(&mut follower, "FROM $");
    writer.ask("SET k 1", "+OK\r\n");
    assert_eq!(change(&mut follower), command(1, "set", "\"k\",\"1\""));
    follower.command(&["GET", "k"]);
    assert!(follower.line().starts_with("-ERR Can't execute 'get'"));
    follower.command(&["CHANGES", "FROM", "0"]);
    assert!(follower.line().starts_with("-ERR this connection follows the log already"));
    follower.ask("CHANGES STOP", ":1\r\n");
    follower.ask("CHANGES STOP", ":0\r\n");
    writer.ask("SET k 2", "+OK\r\n");
    follower.ask("GET k", "$1\r\n2\r\n");
    follow(&mut follower, "FROM 1");
    assert_eq!(change(&mut follower).0, 2);
    follower.ask("RESET", "+RESET\r\n");
    follower.ask("GET k", "$1\r\n2\r\n");
}

#[test]
fn places_outside_of_the_log_are_refused() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("SET k v", "+OK\r\n");
    client.command(&["CHANGES", "FROM", "2"]);
    assert_eq!(client.line(), "-INVALID_SEQUENCE the log ends at LSN 1: that LSN is not from this server");
    let value = "x".repeat(10_000);
    for _ in 0..200 {
        client.ask(&format!("SET k {value}"), "+OK\r\n");
    }
    // The server drops the segments that both snapshots cover.
    client.ask("SAVE", "+OK\r\n");
    client.ask("SET k v", "+OK\r\n");
    client.ask("SAVE", "+OK\r\n");
    let mut place = 0;
    eventually("segments are dropped, and what is left can be followed", || {
        client.command(&["CHANGES", "FROM", &place.to_string()]);
        let line = client.line();
        let Some(behind) = line.strip_prefix("-STALE_SEQUENCE the log begins at LSN ") else {
            assert_eq!(line, "*6");
            (0..3).for_each(|_| {
                client.bulk();
                client.line();
            });
            if place > 0 {
                return true;
            }
            // The server has not dropped a segment yet.
            client.command(&["RESET"]);
            while client.line() != "+RESET" {}
            return false;
        };
        let floor: u64 = behind.split(':').next().and_then(|lsn| lsn.parse().ok()).expect("an LSN");
        assert!(floor > place + 1, "{line}");
        place = floor - 1;
        false
    });
    assert_eq!(change(&mut client).0, place + 1);
}

#[test]
fn no_change_is_sent_before_it_is_durable() {
    let server = TestServer::with(|config| {
        config.durability = Durability::Interval(std::time::Duration::from_hours(1));
    });
    let (mut follower, mut writer) = (resp3(&server), server.client());
    follow(&mut follower, "FROM 0 PROGRESS 50");
    writer.ask("SET k 1", "+OK\r\n");
    for _ in 0..2 {
        follower.expect(format!(">2\r\n{}:0\r\n", bulk("progress")));
    }
    writer.ask("DURABLE SET k 2", "+OK\r\n");
    assert_eq!([change(&mut follower).0, change(&mut follower).0], [1, 2]);
}

#[test]
fn a_follower_that_does_not_read_delays_no_client_and_misses_nothing() {
    let server = TestServer::new();
    let (mut slow, mut quick, mut writer) = (resp3(&server), resp3(&server), server.client());
    follow(&mut slow, "FROM 0");
    follow(&mut quick, "FROM 0");
    let value = "x".repeat(100_000);
    for _ in 0..150 {
        writer.ask(&format!("SET k {value}"), "+OK\r\n");
    }
    for client in [&mut quick, &mut slow] {
        for lsn in 1..=150 {
            assert_eq!(change(client).0, lsn);
        }
    }
}

#[test]
fn as_many_follow_as_are_allowed_to() {
    let server = TestServer::with(|config| config.changes_followers = 1);
    let (mut one, mut other) = (server.client(), server.client());
    follow(&mut one, "FROM 0");
    other.command(&["CHANGES", "FROM", "0"]);
    assert!(other.line().starts_with("-ERR too many connections follow the log:"));
    one.ask("CHANGES STOP", ":1\r\n");
    follow(&mut other, "FROM 0");
}

#[test]
fn changes_go_on_after_a_restart() {
    let server = TestServer::new();
    let mut writer = server.client();
    writer.ask("SET k 1", "+OK\r\n");
    writer.ask("SET k 2", "+OK\r\n");
    let server = TestServer::in_dir(server.stop(), |_| {});
    let (mut follower, mut writer) = (resp3(&server), server.client());
    writer.ask("SET k 3", "+OK\r\n");
    follow(&mut follower, "FROM 1");
    assert_eq!(change(&mut follower), command(2, "set", "\"k\",\"2\""));
    assert!(change(&mut follower).0 > 2);
}
