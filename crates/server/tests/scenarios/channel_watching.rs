//! Channel delivery: watched reads whose emissions are published on channels.

use crate::common::watching::resp3;
use crate::common::{Client, TestServer, eventually};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidemark_log::Durability;
use tidemark_server::config::Config;

/// Subscribes a client to a channel, in the client's protocol.
fn subscribe(mut client: Client<TcpStream>, channel: &str) -> Client<TcpStream> {
    client.command(&["SUBSCRIBE", channel]);
    assert!(matches!(client.line().as_str(), "*3" | ">3"));
    assert_eq!((client.bulk(), client.bulk()), ("subscribe".to_owned(), channel.to_owned()));
    client.line();
    client
}

/// Reads the next message of the channel and parses its line of JSON.
fn message(subscriber: &mut Client<TcpStream>, channel: &str) -> Value {
    assert!(matches!(subscriber.line().as_str(), "*3" | ">3"));
    assert_eq!((subscriber.bulk(), subscriber.bulk()), ("message".to_owned(), channel.to_owned()));
    serde_json::from_str(&subscriber.bulk()).expect("a line of JSON")
}

/// Runs a command and parses the line of JSON in its reply.
fn line(client: &mut Client<TcpStream>, command: &str) -> Value {
    client.command(&command.split(' ').collect::<Vec<_>>());
    serde_json::from_str(&client.bulk()).expect("a line of JSON")
}

fn emission(sub_id: &str, lsn: u64, seq: u64, value: impl Into<Value>) -> Value {
    json!({ "sub_id": sub_id, "lsn": lsn, "seq": seq, "value": value.into() })
}

/// Returns how many channel watches exist.
fn watches(server: &TestServer) -> usize {
    let mut client = server.client();
    client.command(&["WATCHES", "CHANNELS"]);
    client.line()[1..].parse().expect("a count")
}

/// Returns how many emissions the only channel watch has not published yet.
fn lag(server: &TestServer) -> u64 {
    let mut client = server.client();
    client.command(&["WATCHES", "CHANNELS"]);
    while client.line() != "lag" {}
    client.line()[1..].parse().expect("a count")
}

#[test]
fn emissions_are_messages_in_either_protocol() {
    let server = TestServer::new();
    let mut subscribers = [subscribe(server.client(), "c"), subscribe(resp3(&server), "c")];
    let mut asker = server.client();
    asker.ask("HSET h f 1", ":1\r\n");
    assert_eq!(line(&mut asker, "HGETALL.WATCH h | CHANNEL c"), emission("2-0", 2, 0, json!({ "f": "1" })));
    assert_eq!(line(&mut resp3(&server), "HGETALL.WATCH h | CHANNEL c")["value"], json!({ "f": "1" }));
    asker.ask("HSET h f 2", ":0\r\n");
    asker.ask("DEL h", ":1\r\n");
    for subscriber in &mut subscribers {
        assert_eq!(message(subscriber, "c"), emission("2-0", 3, 1, json!({ "f": "2" })));
        assert_eq!(message(subscriber, "c"), emission("2-0", 4, 2, json!({})));
    }
    // Both requests share one watch: each emission was published once.
    asker.ask("PUBLISH c end", ":2\r\n");
    subscribers[0].expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\nend\r\n");
}

#[test]
fn a_watch_needs_a_subscriber_and_ends_with_the_last() {
    let server = TestServer::new();
    let mut asker = server.client();
    asker.ask(
        "GET.WATCH k | CHANNEL c",
        "-ERR the channel 'c' has no subscriber; SUBSCRIBE to it first, and then watch\r\n",
    );
    for leave in ["", "UNSUBSCRIBE c", "RESET"] {
        let (first, mut second) = (subscribe(server.client(), "c"), subscribe(server.client(), "c"));
        line(&mut asker, "GET.WATCH k | CHANNEL c");
        drop(first);
        eventually("one is left", || {
            asker.command(&["PUBSUB", "NUMSUB", "c"]);
            [asker.line(), asker.line(), asker.line(), asker.line()][3] == ":1"
        });
        assert_eq!(line(&mut asker, "GET.WATCH k | CHANNEL c")["seq"], 0);
        if leave.is_empty() {
            drop(second);
        } else {
            second.command(&leave.split(' ').collect::<Vec<_>>());
        }
        eventually("the watch ends with the last", || watches(&server) == 0);
    }
    asker.command(&["WATCHES", "ALL"]);
    let shown: Vec<String> = (0..24).map(|_| asker.line()).collect();
    let at = shown.iter().position(|line| line == "subscribed").expect("the field");
    assert_eq!(shown[at + 1], ":0", "the engine no longer notifies of the read: {shown:?}");
}

#[test]
fn channels_and_comebacks_have_the_same_numbers() {
    let server = TestServer::new();
    let (mut a, mut b) = (subscribe(server.client(), "a"), subscribe(server.client(), "b"));
    let mut asker = server.client();
    line(&mut asker, "GET.WATCH k | CHANNEL a");
    asker.ask("SET k 1", "+OK\r\n");
    let first = emission("1-0", 2, 1, "1");
    assert_eq!(message(&mut a, "a"), first);
    assert_eq!(line(&mut asker, "GET.WATCH k | CHANNEL b"), first, "the present answer");
    asker.ask("SET k 2", "+OK\r\n");
    let second = emission("1-0", 3, 2, "2");
    assert_eq!((message(&mut a, "a"), message(&mut b, "b")), (second.clone(), second.clone()));
    let resumed = json!({ "sub_id": "1-0", "lsn": 1, "seq": 0 });
    assert_eq!(line(&mut asker, "GET.WATCH k | CHANNEL b RESUME 1"), resumed);
    assert_eq!((message(&mut b, "b"), message(&mut b, "b")), (first, second.clone()));
    // A later `RESUME` position does not move the watch.
    assert_eq!(line(&mut asker, "GET.WATCH k | CHANNEL b RESUME 3")["seq"], 2);
    asker.ask("SET k 3", "+OK\r\n");
    let third = emission("1-0", 4, 3, "3");
    assert_eq!((message(&mut a, "a"), message(&mut b, "b")), (third.clone(), third));
    // With operators it is another read.
    assert_eq!(line(&mut asker, "GET.WATCH k | CHANNEL b HIGH"), emission("5-0", 5, 0, "3"));
    asker.ask("UNWATCH CHANNEL b 9-0", ":0\r\n");
    asker.ask("UNWATCH CHANNEL b 1-0", ":1\r\n");
    let ended = json!({ "sub_id": "1-0", "error": "ERR UNWATCH CHANNEL has ended the watch" });
    assert_eq!(message(&mut b, "b"), ended);
    asker.command(&["WATCHES", "CHANNELS", "a*"]);
    let head = "*1\r\n*16\r\n$7\r\nchannel\r\n$1\r\na\r\n$6\r\nsub_id\r\n$3\r\n1-0\r\n$7\r\ncommand\r\n*2\r\n$3\r\nget\r\n$1\r\nk\r\n";
    let place = "$9\r\noperators\r\n*0\r\n$2\r\ndb\r\n:0\r\n$3\r\nlsn\r\n:4\r\n$3\r\nseq\r\n:3\r\n$3\r\nlag\r\n:0\r\n";
    asker.expect([head, place].concat());
    asker.ask("UNWATCH CHANNEL a", ":1\r\n");
    assert_eq!(message(&mut a, "a"), ended);
    asker.ask("UNWATCH CHANNEL b", ":1\r\n");
    assert_eq!(watches(&server), 0);
}

#[test]
fn what_cannot_be_had_any_more_is_said_with_the_present_answer() {
    let server = TestServer::with(|config| {
        config.watch_retention_bytes = 0;
        config.watch_backlogs = 0;
    });
    let (mut subscriber, mut asker) = (subscribe(server.client(), "c"), server.client());
    let missed = |reason: &str, floor: u64, lsn: u64, seq: u64, value: Value| json!({ "sub_id": "1-0", "lsn": lsn, "seq": seq, "value": value, "reason": reason, "floor": floor });
    let begun = line(&mut asker, "GET.WATCH k | CHANNEL c RESUME 7");
    assert_eq!(begun, missed("SUBSCRIPTION_NOT_FOUND", 0, 1, 0, Value::Null));
    for value in 1..=3 {
        asker.ask(&format!("SET k {value}"), "+OK\r\n");
        assert_eq!(message(&mut subscriber, "c"), emission("1-0", value + 1, value, value.to_string()));
    }
    // The query retains its last emission.
    assert_eq!(line(&mut asker, "GET.WATCH k | CHANNEL c RESUME 3")["seq"], 2);
    assert_eq!(message(&mut subscriber, "c"), emission("1-0", 4, 3, "3"));
    let stale = line(&mut asker, "GET.WATCH k | CHANNEL c RESUME 1");
    assert_eq!(stale, missed("STALE_SEQUENCE", 3, 4, 3, "3".into()));
    let invalid = line(&mut asker, "GET.WATCH k | CHANNEL c RESUME 99");
    assert_eq!(invalid, missed("INVALID_SEQUENCE", 4, 4, 3, "3".into()));
    asker.ask("SET k 4", "+OK\r\n");
    assert_eq!(message(&mut subscriber, "c"), emission("1-0", 5, 4, "4"));
    // An operator can end the read for all subscribers.
    asker.ask("UNWATCH QUERY 1", ":1\r\n");
    let ended = json!({ "sub_id": "1-0", "error": "ERR the watched read has ended" });
    assert_eq!(message(&mut subscriber, "c"), ended);
    assert_eq!(watches(&server), 0);
}

#[test]
fn wrong_options_and_too_many_watches_are_refused() {
    let server = TestServer::with(|config| config.watch_max_channels = 2);
    let mut client = resp3(&server);
    let _subscriber = subscribe(server.client(), "c");
    line(&mut client, "GET.WATCH a | CHANNEL c");
    line(&mut client, "GET.WATCH b | CHANNEL c");
    line(&mut client, "GET.WATCH b | CHANNEL c");
    for (command, error) in [
        (
            "GET.WATCH k | CHANNEL c",
            "ERR 2 watched reads are published on channels, as many as watch-max-channels allows",
        ),
        ("GET.WATCH a | CHANNEL", "ERR CHANNEL takes the channel to publish emissions on"),
        (
            "GET.WATCH a | CHANNEL c OLD",
            "ERR CHANNEL is only valid with RESUME and operators; remove the other options",
        ),
        ("EMITRECONNECT a 1-0 1 | CHANNEL c", "ERR CHANNEL is only valid with X.WATCH"),
        ("UNWATCH CHANNEL", "ERR wrong number of arguments"),
    ] {
        client.command(&command.split(' ').collect::<Vec<_>>());
        let line = client.line();
        assert!(line.starts_with(&format!("-{error}")), "{command}: {line}");
    }
    client.ask("UNWATCH CHANNEL c 1-0", ":1\r\n");
    line(&mut client, "GET.WATCH k | CHANNEL c");
}

/// A correct subscriber: it consumes the emission with the next number, and resumes after the last
/// one that it has.
struct Consumer {
    channel: &'static str,
    lsn: u64,
    seq: u64,
    values: Vec<String>,
}

impl Consumer {
    /// Subscribes, and resumes after the last emission that the consumer has.
    fn connect(&mut self, server: &TestServer, in_resp3: bool) -> Client<TcpStream> {
        let client = if in_resp3 { resp3(server) } else { server.client() };
        let subscriber = subscribe(client, self.channel);
        let channel = self.channel;
        let command = if self.lsn == 0 {
            format!("GET.WATCH k | CHANNEL {channel}")
        } else {
            format!("GET.WATCH k | CHANNEL {channel} RESUME {}", self.lsn)
        };
        let answer = line(&mut server.client(), &command);
        assert!(answer.get("reason").is_none(), "nothing is missing: {answer}");
        (self.lsn, self.seq) = (number(&answer["lsn"]), number(&answer["seq"]));
        subscriber
    }

    fn take(&mut self, emission: &Value) {
        if number(&emission["seq"]) == self.seq + 1 {
            (self.lsn, self.seq) = (number(&emission["lsn"]), self.seq + 1);
            self.values.push(emission["value"].as_str().expect("text").to_owned());
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Writes `last` numbers while consumers lose their connections. Each consumer must receive every
/// number once, in order.
fn every_change_arrives_once(
    change: impl FnOnce(&mut Config),
    consumers: &[(&'static str, bool)],
    last: u64,
) {
    let server = TestServer::with(change);
    let begun = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (channel, in_resp3) in consumers {
            let (server, begun) = (&server, &begun);
            scope.spawn(move || {
                let mut consumer = Consumer { channel, lsn: 0, seq: 0, values: Vec::new() };
                let mut subscriber = consumer.connect(server, *in_resp3);
                begun.fetch_add(1, Ordering::SeqCst);
                // Connections break at various places in the sequence, while messages are in
                // flight.
                let mut until_break = 7;
                while consumer.seq < last {
                    if until_break == 0 {
                        until_break = 40 + consumer.seq % 59;
                        subscriber = consumer.connect(server, *in_resp3);
                    }
                    until_break -= 1;
                    consumer.take(&message(&mut subscriber, channel));
                }
                let expected: Vec<String> = (1..=last).map(|number| number.to_string()).collect();
                assert_eq!(consumer.values, expected);
            });
        }
        eventually("all watch", || begun.load(Ordering::SeqCst) == consumers.len() as u64);
        let mut writer = server.client();
        (1..=last).for_each(|number| writer.ask(&format!("SET k {number}"), "+OK\r\n"));
    });
    eventually("all watches have ended", || watches(&server) == 0);
}

#[test]
fn every_change_arrives_once_through_lost_connections() {
    every_change_arrives_once(
        |_| {},
        &[("a", false), ("b", true), ("shared", false), ("shared", true)],
        1000,
    );
}

#[test]
fn every_change_arrives_once_from_the_log_and_when_it_is_durable() {
    let retain_little = |config: &mut Config| {
        config.watch_retention_bytes = 4096;
        config.durability = Durability::Always;
    };
    every_change_arrives_once(retain_little, &[("a", false), ("b", true)], 500);
}

/// Starts a server with 400 emissions of 60,000 bytes. The one subscriber of `c` has asked for all
/// of them and reads none.
fn much_is_missed(change: impl FnOnce(&mut Config)) -> (TestServer, Client<TcpStream>) {
    let server = TestServer::with(|config| {
        config.output_limits.pubsub.hard_bytes = 1 << 20;
        config.watch_retention_bytes = 1 << 20;
        change(config);
    });
    let mut asker = server.client();
    let subscriber = subscribe(server.client(), "c");
    line(&mut asker, "GET.WATCH k | CHANNEL c");
    (1..=400).for_each(|number| asker.ask(&format!("SET k {}", text(number)), "+OK\r\n"));
    // The server publishes until sockets and output are full. On a busy machine it may have skipped
    // so many emissions that all of the rest fits.
    let mut last = None;
    eventually("the rest is held back", || {
        let now = lag(&server);
        std::thread::sleep(Duration::from_millis(50));
        last.replace(now) == Some(now)
    });
    (server, subscriber)
}

fn text(number: u64) -> String {
    format!("{number:0>60000}")
}

#[test]
fn more_than_the_output_may_hold_reaches_a_subscriber_that_reads_slowly() {
    let (server, mut subscriber) = much_is_missed(|_| {});
    for number in 1..=400 {
        assert_eq!(message(&mut subscriber, "c"), emission("1-0", number + 1, number, text(number)));
    }
    drop(server);
}

#[test]
fn a_subscriber_that_is_too_slow_for_what_is_kept_gets_the_present_answer_and_goes_on() {
    let (server, mut subscriber) = much_is_missed(|config| config.watch_backlogs = 0);
    let (mut seq, mut missed) = (0, 0);
    while seq < 400 {
        let line = message(&mut subscriber, "c");
        let number_now = number(&line["seq"]);
        if line.get("reason").is_none() {
            assert_eq!(number_now, seq + 1);
        } else {
            assert!(number_now > seq, "{number_now} behind {seq}");
            // The current answer replaces the missed emissions, so the floor is not above its LSN.
            assert!(number(&line["floor"]) > seq + 1 && number(&line["floor"]) <= number(&line["lsn"]));
            assert_eq!(line["reason"], "STALE_SEQUENCE");
            missed += 1;
        }
        assert!(line["value"] == text(number_now), "emission {number_now} has another value");
        seq = number_now;
    }
    assert!(missed > 0, "more is missed than is kept");
    server.client().ask("SET k 1", "+OK\r\n");
    assert_eq!(message(&mut subscriber, "c"), emission("1-0", 402, 401, "1"));
}
