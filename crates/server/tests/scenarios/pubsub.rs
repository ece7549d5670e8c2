//! SUBSCRIBE and PUBLISH, in both protocols.

use crate::common::{TestServer, eventually};
use std::fmt::Write as _;

#[test]
fn messages_reach_subscribers_by_name_and_by_pattern() {
    let server = TestServer::new();
    let (mut named, mut matching, mut publisher) = (server.client(), server.client(), server.client());
    named.ask("SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    matching.ask("PSUBSCRIBE n*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:1\r\n");
    publisher.ask("PUBLISH news hello", ":2\r\n");
    publisher.ask("PUBLISH other hello", ":0\r\n");
    named.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
    matching.expect("*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
}

#[test]
fn a_resp3_subscriber_gets_push_frames_and_may_go_on() {
    let server = TestServer::new();
    let (mut client, mut publisher) = (server.client(), server.client());
    client.command(&["HELLO", "3"]);
    while client.line() != "*0" {}
    client.ask("SUBSCRIBE a", ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    publisher.ask("PUBLISH a x", ":1\r\n");
    client.expect(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n");
    client.ask("SET k v", "+OK\r\n");
    client.ask("PUBLISH a y", ":1\r\n");
    client.expect(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\ny\r\n");
}

#[test]
fn a_resp2_subscriber_may_only_change_its_subscriptions() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    client.ask(
        "GET k",
        "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
         context\r\n",
    );
    client.ask("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    client.ask("PING x", "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
    client.ask("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n");
    client.ask("UNSUBSCRIBE", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n");
    client.ask("GET k", "$-1\r\n");
}

#[test]
fn messages_of_one_publisher_arrive_in_order() {
    let server = TestServer::new();
    let (mut subscriber, mut publisher) = (server.client(), server.client());
    subscriber.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    let (mut requests, mut messages) = (String::new(), String::new());
    for number in 1000..3000 {
        write!(requests, "PUBLISH a {number}\r\n").expect("memory");
        write!(messages, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\n{number}\r\n").expect("memory");
    }
    publisher.send(requests);
    publisher.expect(":1\r\n".repeat(2000));
    subscriber.expect(messages);
}

#[test]
fn after_the_confirmation_of_unsubscribe_no_message_follows() {
    let server = TestServer::new();
    let (mut subscriber, mut publisher) = (server.client(), server.client());
    for _ in 0..50 {
        subscriber.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
        subscriber.ask("UNSUBSCRIBE a", "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n");
        publisher.ask("PUBLISH a x", ":0\r\n");
        subscriber.ask("PING", "+PONG\r\n");
    }
}

#[test]
fn shard_channels_have_names_of_their_own() {
    let server = TestServer::new();
    let (mut subscriber, mut publisher) = (server.client(), server.client());
    subscriber.ask("SSUBSCRIBE a", "*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n");
    publisher.ask("PUBLISH a x", ":0\r\n");
    publisher.ask("SPUBLISH a y", ":1\r\n");
    subscriber.expect("*3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\ny\r\n");
    publisher.ask("PUBSUB SHARDNUMSUB a b", "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:0\r\n");
}

#[test]
fn the_audience_can_be_counted_and_leaves_with_its_connection() {
    let server = TestServer::new();
    let (mut subscriber, mut other) = (server.client(), server.client());
    subscriber.ask("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    subscriber.ask("PSUBSCRIBE b*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:2\r\n");
    other.ask("PUBSUB CHANNELS", "*1\r\n$1\r\na\r\n");
    other.ask("PUBSUB CHANNELS x*", "*0\r\n");
    other.ask("PUBSUB NUMSUB a", "*2\r\n$1\r\na\r\n:1\r\n");
    other.ask("PUBSUB NUMPAT", ":1\r\n");
    drop(subscriber);
    eventually("the audience leaves", || {
        other.command(&["PUBLISH", "a", "x"]);
        other.line() == ":0"
    });
    other.ask("PUBSUB NUMPAT", ":0\r\n");
}
