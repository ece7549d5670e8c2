//! The log as clients follow it over HTTP: by Server-Sent Events, and by a WebSocket.

use crate::common::events::{Event, Events, connect};
use crate::common::{TestServer, eventually};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use tungstenite::{Message, WebSocket};

fn follow(server: &TestServer, query: &str) -> Events {
    Events::of(server, &format!("changes?{query}"), "")
}

/// Returns a change by one command in database 0, without its time.
fn change(lsn: u64, name: &str, args: &[&str]) -> Value {
    json!({"lsn": lsn, "kind": "command", "commands": [{"db": 0, "command": name, "args": args}]})
}

/// Returns the data of a change event, without the time.
fn change_of(event: Event) -> Value {
    assert_eq!(event.kind, "change");
    let mut data = event.data;
    assert_eq!(event.id, Some(data["lsn"].to_string()), "what a browser comes back with");
    assert!(data.as_object_mut().expect("an object").remove("time_us").is_some());
    data
}

/// Returns the status and the reason of a request that the server refuses.
fn refused(server: &TestServer, query: &str, headers: &str) -> (u16, String) {
    let mut events = Events::of(server, &format!("changes?{query}"), headers);
    let mut text = String::new();
    events.body.read_to_string(&mut text).expect("an answer, and then the end");
    let error = serde_json::from_str::<Value>(&text).expect("JSON");
    (events.status(), error["error"].as_str().expect("a reason").to_owned())
}

#[test]
fn changes_are_a_stream_of_events_that_goes_on_where_it_was() {
    let server = TestServer::with_http(|_| {});
    let mut writer = server.client();
    writer.ask("SET k 1", "+OK\r\n");
    let mut events = follow(&server, "from=0");
    assert_eq!(change_of(events.next()), change(1, "set", &["k", "1"]));
    writer.ask("SET k 2", "+OK\r\n");
    assert_eq!(change_of(events.next()), change(2, "set", &["k", "2"]));
    drop(events);
    writer.ask("DEL k", ":1\r\n");
    let mut events = Events::of(&server, "changes?from=0", "Last-Event-ID: 2\r\n");
    assert_eq!(change_of(events.next()), change(3, "del", &["k"]));
}

#[test]
fn a_follower_with_a_selection_gets_selected_changes_and_progress_only() {
    let server = TestServer::with_http(|_| {});
    let mut writer = server.client();
    let mut events = follow(&server, "from=$&prefix=user%3A&type=hash&progress=50");
    writer.ask("HSET other f v", ":1\r\n");
    writer.ask("HSET user:1 f v", ":1\r\n");
    writer.ask("SET user:2 v", "+OK\r\n");
    let mut event = events.next();
    while event.kind == "progress" {
        assert!(event.data["lsn"].as_u64().expect("an LSN") < 2, "{event:?}");
        event = events.next();
    }
    assert_eq!(change_of(event), change(2, "hset", &["user:1", "f", "v"]));
    eventually("the progress", || {
        let event = events.next();
        assert_eq!(event.kind, "progress");
        event.data == json!({"lsn": 3})
    });
}

#[test]
fn a_websocket_gets_the_same() {
    let server = TestServer::with_http(|_| {});
    let mut writer = server.client();
    writer.ask("SET k 1", "+OK\r\n");
    let address = server.http_address();
    let request = tungstenite::http::Request::builder()
        .uri(format!("ws://{address}/v1/changes?from=0"))
        .header("Host", address.to_string())
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let connected = tungstenite::client(request.body(()).expect("a request"), connect(address));
    let mut socket: WebSocket<TcpStream> = connected.expect("a WebSocket").0;
    let mut next = || match socket.read().expect("a message") {
        Message::Text(text) => serde_json::from_str::<Value>(text.as_str()).expect("JSON"),
        other => panic!("{other:?}"),
    };
    let first = next();
    assert_eq!((&first["type"], &first["change"]["lsn"]), (&json!("change"), &json!(1)));
    writer.ask("SET k 2", "+OK\r\n");
    assert_eq!(next()["change"]["commands"], json!([{"db": 0, "command": "set", "args": ["k", "2"]}]));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let server = TestServer::with_http(|config| config.changes_followers = 1);
    let mut writer = server.client();
    writer.ask("SET k 1", "+OK\r\n");
    let asked = |query: &str| refused(&server, query, "");
    let (status, reason) = asked("from=2");
    assert_eq!(
        (status, reason.starts_with("INVALID_SEQUENCE the log ends at LSN 1")),
        (400, true),
        "{reason}"
    );
    assert_eq!(asked("").0, 400);
    assert_eq!(refused(&server, "from=0", "Origin: https://evil.example\r\n").0, 403);
    let mut events = follow(&server, "from=0");
    assert_eq!(change_of(events.next()), change(1, "set", &["k", "1"]));
    let (status, reason) = asked("from=0");
    assert!(status == 503 && reason.contains("changes-followers"), "{status} {reason}");
    drop(events);
    // The server drops the segments that both snapshots cover.
    let value = "x".repeat(10_000);
    for _ in 0..200 {
        writer.ask(&format!("SET k {value}"), "+OK\r\n");
    }
    writer.ask("SAVE", "+OK\r\n");
    writer.ask("SET k v", "+OK\r\n");
    writer.ask("SAVE", "+OK\r\n");
    eventually("what was dropped is gone", || {
        let mut events = follow(&server, "from=0");
        if events.status() == 200 {
            events.next();
        }
        events.status() == 410
    });
    assert!(asked("from=0").1.starts_with("STALE_SEQUENCE the log begins at LSN"));
}

#[test]
fn with_a_password_it_must_be_given() {
    let server = TestServer::with_http(|config| "secret".clone_into(&mut config.requirepass));
    assert_eq!(refused(&server, "from=0", "").0, 401);
    assert_eq!(follow(&server, "from=0&token=secret").status(), 200);
}
