//! Watched reads over HTTP: as Server-Sent Events, and by a WebSocket.

use crate::common::events::{Event, Events, connect};
use crate::common::watching::resp3;
use crate::common::{TestServer, eventually, serve_http};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tidemark_log::Durability;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

fn server() -> TestServer {
    TestServer::with_http(|_| {})
}

fn again(server: TestServer) -> TestServer {
    TestServer::in_dir(server.stop(), serve_http)
}

fn event(kind: &str, name: &str, lsn: u64, sequence: u64, value: impl Into<Value>) -> Event {
    let data = json!({"sub_id": name, "lsn": lsn, "seq": sequence, "value": value.into()});
    Event { id: Some(format!("{name}:{lsn}")), kind: kind.to_owned(), data }
}

/// Returns the status and the reason of a request that the server refuses.
fn refused(server: &TestServer, query: &str, headers: &str) -> (u16, String) {
    let mut events = Events::ask(server, query, headers);
    let mut text = String::new();
    events.body.read_to_string(&mut text).expect("an answer, and then the end");
    let error = serde_json::from_str::<Value>(&text).expect("JSON");
    (events.status(), error["error"].as_str().expect("a reason").to_owned())
}

#[test]
fn a_watched_read_is_a_stream_of_events() {
    let server = server();
    let mut writer = server.client();
    writer.ask("SET k 1", "+OK\r\n");
    let mut events = Events::open(&server, "command=GET&arg=k");
    assert!(events.head.contains("content-type: text/event-stream"), "{}", events.head);
    events.expect(event("snapshot", "2-0", 2, 0, "1"));
    let mut hash = Events::open(&server, "command=hgetall&arg=h%20%c3%bc&db=3");
    hash.expect(event("snapshot", "3-0", 3, 0, json!({})));
    for line in ["SET k 2", "SET k 2", "DEL k", "SELECT 3"] {
        writer.command(&line.split(' ').collect::<Vec<_>>());
        writer.line();
    }
    writer.command(&["HSET", "h ü", "f", "v\n\"ü"]);
    writer.line();
    events.expect(event("emission", "2-0", 4, 1, "2"));
    events.expect(event("emission", "2-0", 6, 2, Value::Null));
    hash.expect(event("emission", "3-0", 7, 1, json!({"f": "v\n\"ü"})));
}

#[test]
fn operators_stand_behind_a_bar() {
    let server = server();
    let (mut writer, mut socket) = (server.client(), Socket::open(&server));
    writer.ask("SET k 5", "+OK\r\n");
    let mut events = Events::open(&server, "command=GET&arg=k&arg=%7C&arg=HIGH");
    events.expect(event("snapshot", "2-0", 2, 0, "5"));
    socket.say(json!({"watch": ["GET", "k", "|", "HIGH"]}));
    socket.expect(json!({"type": "snapshot", "sub_id": "2-0", "lsn": 2, "seq": 0, "value": "5"}));
    writer.ask("SET k 3", "+OK\r\n");
    writer.ask("SET k 9", "+OK\r\n");
    events.expect(event("emission", "2-0", 4, 1, "9"));
    socket.expect(json!({"type": "emission", "sub_id": "2-0", "lsn": 4, "seq": 1, "value": "9"}));
    // The same read without the options is another subscription.
    let mut events = Events::ask(&server, "command=GET&arg=k", "Last-Event-ID: 2-0:4\r\n");
    assert_eq!(events.next().data["reason"], "SUBSCRIPTION_NOT_FOUND");
    let (status, reason) = refused(&server, "command=GET&arg=k&arg=|&arg=SQUASH", "");
    assert_eq!(status, 400);
    assert!(reason.starts_with("ERR SQUASH, OLD"), "{reason}");
}

#[test]
fn a_browser_that_comes_back_gets_what_it_missed_and_nothing_else() {
    let server = server();
    let mut writer = server.client();
    let mut events = Events::open(&server, "command=GET&arg=k");
    events.expect(event("snapshot", "1-0", 1, 0, Value::Null));
    writer.ask("SET k 1", "+OK\r\n");
    events.expect(event("emission", "1-0", 2, 1, "1"));
    drop(events);
    writer.ask("SET k 2", "+OK\r\n");
    let mut events = Events::ask(&server, "command=GET&arg=k", "Last-Event-ID: 1-0:2\r\n");
    events.expect(event("emission", "1-0", 3, 2, "2"));
    writer.ask("SET k 3", "+OK\r\n");
    events.expect(event("emission", "1-0", 4, 3, "3"));
    // The subscription also resumes after a restart. The browser's `Last-Event-ID` takes precedence
    // over the page's `resume`.
    let server = again(server);
    let mut events = Events::ask(&server, "command=GET&arg=k&resume=1-0:1", "Last-Event-ID: 1-0:3\r\n");
    events.expect(event("emission", "1-0", 4, 3, "3"));
    let mut events = Events::open(&server, "command=GET&arg=k&resume=1-0:1");
    for number in 1..=3 {
        events.expect(event("emission", "1-0", number + 1, number, number.to_string()));
    }
}

#[test]
fn a_subscriber_that_cannot_resume_gets_the_reason_and_the_present_answer() {
    let server = server();
    let mut writer = server.client();
    Events::open(&server, "command=GET&arg=k").expect(event("snapshot", "1-0", 1, 0, Value::Null));
    writer.ask("SET k 1", "+OK\r\n");
    writer.ask("SAVE", "+OK\r\n");
    let server = TestServer::in_dir(server.stop(), |config| {
        serve_http(config);
        config.watch_backlogs = 0;
    });
    for (query, last, name, reason, floor) in [
        ("command=GET&arg=k", "1-0:1", "1-0", "STALE_SEQUENCE", 2),
        ("command=GET&arg=k", "1-0:9", "1-0", "INVALID_SEQUENCE", 2),
        ("command=GET&arg=k", "9-0:1", "9-0", "SUBSCRIPTION_NOT_FOUND", 0),
        ("command=GET&arg=k", "1-0", "1-0", "SUBSCRIPTION_NOT_FOUND", 0),
        ("command=GET&arg=k", "", "", "SUBSCRIPTION_NOT_FOUND", 0),
        ("command=GET&arg=k", "%%%:-1", "%%%", "SUBSCRIPTION_NOT_FOUND", 0),
    ] {
        let mut events = Events::ask(&server, query, &format!("Last-Event-ID: {last}\r\n"));
        let data = json!({"sub_id": name, "reason": reason, "floor": floor});
        events.expect(Event { id: None, kind: "stale".to_owned(), data });
        events.expect(event("snapshot", "1-1", 2, 0, "1"));
    }
    // This id is of the subscription to another read.
    let mut events = Events::ask(&server, "command=STRLEN&arg=k", "Last-Event-ID: 1-0:2\r\n");
    assert_eq!(events.next().data["reason"], "SUBSCRIPTION_NOT_FOUND");
    events.expect(event("snapshot", "3-0", 3, 0, 1));
}

#[test]
fn a_slow_reader_gets_everything_that_is_retained() {
    let server = server();
    let mut writer = server.client();
    let value = |number: usize| format!("{number:0>10000}");
    let mut events = Events::open(&server, "command=GET&arg=k");
    let mut socket = Socket::open(&server);
    socket.say(json!({"watch": ["GET", "k"]}));
    for number in 0..2000 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
    }
    events.expect(event("snapshot", "1-0", 1, 0, Value::Null));
    for number in 0..2000 {
        events.expect(event("emission", "1-0", number as u64 + 2, number as u64 + 1, value(number)));
    }
    let mut answer = socket.next();
    while answer["value"] != value(1999) {
        let next = socket.next();
        assert_eq!(next["seq"].as_u64(), answer["seq"].as_u64().map(|number| number + 1), "none is left out");
        answer = next;
    }
}

#[test]
fn a_reader_that_is_too_slow_begins_anew() {
    let server = TestServer::with_http(|config| {
        config.watch_retention_bytes = 1 << 20;
        config.watch_backlogs = 0;
    });
    let mut writer = server.client();
    let mut events = Events::open(&server, "command=GET&arg=k");
    let mut socket = Socket::open(&server);
    socket.say(json!({"watch": ["GET", "k"]}));
    let answer = socket.next();
    assert_eq!((&answer["type"], &answer["seq"]), (&json!("snapshot"), &json!(0)));
    events.expect(event("snapshot", "1-0", 1, 0, Value::Null));
    let value = |number: usize| format!("{number:0>50000}");
    for number in 0..1000 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
    }
    writer.ask("SET k last", "+OK\r\n");
    let mut last = 1;
    let floor = loop {
        let event = events.next();
        if event.kind == "stale" {
            assert_eq!((event.id, &event.data["sub_id"]), (None, &json!("1-0")));
            break event.data["floor"].as_u64().expect("an LSN");
        }
        last += 1;
        assert_eq!((event.kind.as_str(), event.data["lsn"].as_u64()), ("emission", Some(last)));
    };
    assert!(floor > last, "something was lost");
    let mut answer = events.next();
    assert_eq!((answer.kind.as_str(), &answer.data["seq"]), ("snapshot", &json!(0)));
    let mut name = answer.data["sub_id"].as_str().expect("a name").to_owned();
    let mut seq = 0;
    // A subscription that restarts while the writer still writes continues from there, or restarts
    // once more.
    while answer.data["value"] != "last" {
        answer = events.next();
        match answer.kind.as_str() {
            "stale" => assert_eq!(answer.data["sub_id"], json!(name)),
            "snapshot" => {
                seq = 0;
                name = answer.data["sub_id"].as_str().expect("a name").to_owned();
            }
            "emission" => {
                seq += 1;
                assert_eq!((&answer.data["sub_id"], &answer.data["seq"]), (&json!(name), &json!(seq)));
            }
            other => panic!("{other}"),
        }
    }
    writer.ask("SET k more", "+OK\r\n");
    events.expect(event("emission", &name, 1003, seq + 1, "more"));

    while socket.next()["type"] != "stale" {}
    let mut answer = socket.next();
    assert_eq!(answer["type"], "snapshot");
    while answer["value"] != "more" {
        answer = socket.next();
    }
}

#[test]
fn what_is_not_retained_any_more_is_made_again_from_the_log() {
    let server = TestServer::with_http(|config| config.watch_retention_bytes = 1 << 20);
    let mut writer = server.client();
    let value = |number: u64| format!("{number:0>50000}");
    // Both clients read nothing until all values are written.
    let mut slow = Events::open(&server, "command=GET&arg=k");
    let mut slow_socket = Socket::open(&server);
    slow_socket.say(json!({"watch": ["GET", "k"]}));
    slow.expect(event("snapshot", "1-0", 1, 0, Value::Null));
    assert_eq!(slow_socket.next()["type"], "snapshot");
    for number in 1..=600 {
        writer.ask(&format!("SET k {}", value(number)), "+OK\r\n");
        if number == 100 {
            writer.ask("SAVE", "+OK\r\n");
        }
    }
    let mut back = Events::ask(&server, "command=GET&arg=k", "Last-Event-ID: 1-0:1\r\n");
    let mut socket = Socket::open(&server);
    socket.say(json!({"resume": "1-0", "lsn": 201, "key": "k", "id": "mine"}));
    socket.expect(json!({"type": "resumed", "id": "mine", "sub_id": "1-0", "next": 201}));
    for number in 1..=600 {
        slow.expect(event("emission", "1-0", number + 1, number, value(number)));
        back.expect(event("emission", "1-0", number + 1, number, value(number)));
        let next = slow_socket.next();
        assert_eq!((&next["seq"], &next["value"]), (&json!(number), &json!(value(number))));
        if number > 200 {
            let next = socket.next();
            assert_eq!((&next["seq"], &next["lsn"]), (&json!(number), &json!(number + 1)));
        }
    }
    writer.ask("SET k now", "+OK\r\n");
    slow.expect(event("emission", "1-0", 602, 601, "now"));
    back.expect(event("emission", "1-0", 602, 601, "now"));
}

#[test]
fn the_password_is_asked_for() {
    let server = TestServer::with_http(|config| config.requirepass = "secret".to_owned());
    let query = "command=GET&arg=k";
    for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic YTpi\r\n"] {
        let (status, reason) = refused(&server, query, headers);
        assert_eq!(status, 401, "{headers}");
        assert!(reason.contains("Bearer") && !reason.contains("secret"), "{reason}");
    }
    assert_eq!(refused(&server, &format!("{query}&token=wrong"), "").0, 401);
    assert_eq!(Socket::try_open(&server, "", "").err(), Some(401));
    Events::ask(&server, query, "Authorization: Bearer secret\r\n").next();
    // anybody:secret
    Events::ask(&server, query, "Authorization: Basic YW55Ym9keTpzZWNyZXQ=\r\n").next();
    Events::open(&server, &format!("{query}&token=secret")).next();
    assert!(Socket::try_open(&server, "?token=secret", "").is_ok());
    assert!(server.http("/health/live").contains("200 OK"), "health is for every client");
}

#[test]
fn pages_of_others_are_refused_unless_their_origin_is_named() {
    let server =
        TestServer::with_http(|config| config.http_allow_origin = vec!["https://app.example".to_owned()]);
    let query = "command=GET&arg=k";
    let (status, reason) = refused(&server, query, "Origin: https://evil.example\r\n");
    assert_eq!(status, 403);
    assert!(reason.contains("http-allow-origin"), "{reason}");
    assert_eq!(Socket::try_open(&server, "", "https://evil.example").err(), Some(403));
    let mut events = Events::ask(&server, query, "Origin: https://app.example\r\n");
    assert!(events.head.contains("access-control-allow-origin: https://app.example"), "{}", events.head);
    events.next();
    assert!(Socket::try_open(&server, "", "https://app.example").is_ok());
    let own = format!("http://{}", server.http_address());
    let mut events = Events::ask(&server, query, &format!("Origin: {own}\r\n"));
    assert!(!events.head.contains("access-control-allow-origin"), "{}", events.head);
    events.next();
    // An administrator can change settings while the server runs.
    server.client().ask("CONFIG SET http-allow-origin https://evil.example", "+OK\r\n");
    Events::ask(&server, query, "Origin: https://evil.example\r\n").next();
}

#[test]
fn requests_that_make_no_sense_say_why() {
    let server = server();
    server.client().ask("RPUSH list a", ":1\r\n");
    for (query, beginning) in [
        ("", "ERR no command"),
        ("command=NONSENSE", "ERR unknown command"),
        ("command=SET&arg=k&arg=v", "ERR 'set' cannot be watched"),
        ("command=GET", "ERR wrong number of arguments"),
        ("command=GET&arg=list", "WRONGTYPE"),
        ("command=GET&key=k", "ERR unknown parameter 'key'"),
        ("command=GET&arg=k&db=99", "ERR DB index is out of range"),
    ] {
        let (status, reason) = refused(&server, query, "");
        assert_eq!(status, 400, "{query}");
        assert!(reason.starts_with(beginning), "{query}: {reason}");
    }
    let (status, reason) = refused(&server, "command=GET&arg=k", "Upgrade: websocket\r\n");
    assert_eq!(status, 400, "{reason}");
}

#[test]
fn there_are_as_many_streams_as_allowed_and_numbers_beside_them() {
    let server = TestServer::with_http(|config| config.http_watch_connections = 40);
    let mut streams: Vec<Events> = (0..40).map(|_| Events::open(&server, "command=GET&arg=k")).collect();
    streams.iter_mut().for_each(|events| events.expect(event("snapshot", "1-0", 1, 0, Value::Null)));
    let (status, reason) = refused(&server, "command=GET&arg=k", "");
    assert_eq!(status, 503);
    assert!(reason.contains("http-watch-connections"), "{reason}");
    let count = |server: &TestServer| {
        let metrics = server.http("/metrics");
        metrics
            .lines()
            .find_map(|line| Some(line.strip_prefix("tidemark_http_watch_connections ")?.to_owned()))
    };
    assert_eq!(count(&server).as_deref(), Some("40.0"));
    server.client().ask("SET k 1", "+OK\r\n");
    streams.iter_mut().for_each(|events| events.expect(event("emission", "1-0", 2, 1, "1")));
    streams.truncate(10);
    eventually("places are free again", || count(&server).as_deref() == Some("10.0"));
    Events::open(&server, "command=GET&arg=k").next();
}

#[test]
fn reads_that_only_browsers_have_watched_are_forgotten() {
    let server = TestServer::with_http(|config| config.watch_retention_age = Duration::from_secs(1));
    let watched = || {
        let metrics = server.http("/metrics");
        metrics.lines().find_map(|line| Some(line.strip_prefix("tidemark_watched_reads ")?.to_owned()))
    };
    let mut events = Events::open(&server, "command=GET&arg=k");
    events.next();
    let mut socket = Socket::open(&server);
    socket.say(json!({"watch": ["GET", "other"]}));
    socket.next();
    assert_eq!(watched().as_deref(), Some("2.0"));
    drop((events, socket));
    eventually("they are forgotten", || watched().as_deref() == Some("0.0"));
}

#[test]
fn under_always_no_subscriber_gets_a_change_before_it_is_durable() {
    let server = TestServer::with_http(|config| config.durability = Durability::Always);
    let mut writer = server.client();
    let mut events = Events::open(&server, "command=GET&arg=k");
    events.expect(event("snapshot", "1-0", 1, 0, Value::Null));
    for number in 1..100 {
        writer.ask(&format!("SET k {number}"), "+OK\r\n");
        events.expect(event("emission", "1-0", number + 1, number, number.to_string()));
    }
    // A change that no client waits for becomes durable all the same.
    writer.ask("SET k x PX 1", "+OK\r\n");
    events.expect(event("emission", "1-0", 101, 100, "x"));
    events.expect(event("emission", "1-0", 102, 101, Value::Null));
}

/// WebSocket client.
struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn open(server: &TestServer) -> Socket {
        Socket::try_open(server, "", "").expect("a WebSocket")
    }

    /// Opens a WebSocket; returns the status if the server refuses it.
    fn try_open(server: &TestServer, query: &str, origin: &str) -> Result<Socket, u16> {
        let address = server.http_address();
        let mut request = tungstenite::http::Request::builder()
            .uri(format!("ws://{address}/v1/watch{query}"))
            .header("Host", address.to_string())
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        if !origin.is_empty() {
            request = request.header("Origin", origin);
        }
        match tungstenite::client(request.body(()).expect("a request"), connect(address)) {
            Ok((socket, _)) => Ok(Socket(socket)),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                Err(response.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).expect("the server reads");
    }

    fn next(&mut self) -> Value {
        loop {
            match self.0.read().expect("a message") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[track_caller]
    fn expect(&mut self, expected: Value) {
        assert_eq!(self.next(), expected);
    }

    #[track_caller]
    fn expect_error(&mut self, beginning: &str) {
        let answer = self.next();
        assert_eq!(answer["type"], "error");
        assert!(answer["error"].as_str().is_some_and(|error| error.starts_with(beginning)), "{answer}");
    }
}

#[test]
fn many_reads_are_watched_on_one_socket() {
    let server = server();
    let (mut socket, mut writer) = (Socket::open(&server), server.client());
    for number in 0..500_u64 {
        let name = format!("{}-0", number + 1);
        socket.say(json!({"watch": ["GET", format!("k{number}")], "id": number}));
        socket.expect(
            json!({"type": "snapshot", "id": number, "sub_id": name, "lsn": number + 1, "seq": 0, "value": null}),
        );
    }
    for number in 0..500_u64 {
        writer.ask(&format!("SET k{number} v"), "+OK\r\n");
    }
    let mut received: Vec<String> = (0..500)
        .map(|_| {
            let emission = socket.next();
            assert_eq!((&emission["type"], &emission["value"]), (&json!("emission"), &json!("v")));
            assert!(emission.get("id").is_none());
            emission["sub_id"].as_str().expect("a name").to_owned()
        })
        .collect();
    received.sort_unstable();
    received.dedup();
    assert_eq!(received.len(), 500, "one of each");
}

#[test]
fn a_socket_watches_goes_on_and_ends() {
    let server = server();
    let (mut socket, mut writer) = (Socket::open(&server), server.client());
    socket.say(json!({"watch": ["GET", "k"], "id": {"any": 1}}));
    socket.expect(
        json!({"type": "snapshot", "id": {"any": 1}, "sub_id": "1-0", "lsn": 1, "seq": 0, "value": null}),
    );
    writer.ask("SET k 1", "+OK\r\n");
    socket.expect(json!({"type": "emission", "sub_id": "1-0", "lsn": 2, "seq": 1, "value": "1"}));
    // The same read is the same subscription.
    socket.say(json!({"watch": ["get", "k"]}));
    socket.expect(json!({"type": "snapshot", "sub_id": "1-0", "lsn": 2, "seq": 1, "value": "1"}));
    socket.say(json!({"unwatch": "1-1", "id": 2}));
    socket.expect(json!({"type": "unwatched", "id": 2, "sub_id": "1-1", "ended": false}));
    socket.say(json!({"unwatch": "1-0"}));
    socket.expect(json!({"type": "unwatched", "sub_id": "1-0", "ended": true}));
    writer.ask("SET k 2", "+OK\r\n");
    socket.say(json!({"resume": "1-0", "key": "k", "lsn": 1, "id": "r"}));
    socket.expect(json!({"type": "resumed", "id": "r", "sub_id": "1-0", "next": 1}));
    socket.expect(json!({"type": "emission", "sub_id": "1-0", "lsn": 2, "seq": 1, "value": "1"}));
    socket.expect(json!({"type": "emission", "sub_id": "1-0", "lsn": 3, "seq": 2, "value": "2"}));
    socket.say(json!({"resume": "1-0", "key": "other", "lsn": 1, "id": 3}));
    socket.expect(
        json!({"type": "stale", "id": 3, "sub_id": "1-0", "reason": "SUBSCRIPTION_NOT_FOUND", "floor": 0}),
    );
    socket.say(json!({"resume": "1-0", "lsn": 99}));
    socket.expect(json!({"type": "stale", "sub_id": "1-0", "reason": "INVALID_SEQUENCE", "floor": 3}));
    let answer = socket.next();
    assert_eq!((&answer["type"], &answer["value"]), (&json!("snapshot"), &json!("2")));
    // Another database, and a key that is not valid UTF-8.
    socket.say(json!({"watch": ["GET", {"base64": "/w=="}], "db": 2, "id": 4}));
    assert_eq!(socket.next()["id"], 4);
    writer.ask("SELECT 2", "+OK\r\n");
    writer.send(b"*3\r\n$3\r\nSET\r\n$1\r\n\xff\r\n$1\r\n\xfe\r\n");
    writer.expect("+OK\r\n");
    assert_eq!(socket.next()["value"], json!({"base64": "/g=="}));
}

/// A returning client first learns that it cannot resume (`stale`), and then that there is no
/// snapshot (`failed`).
#[test]
fn a_read_that_is_forgotten_while_its_place_is_looked_for_is_stale_and_fails_if_it_answers_an_error() {
    // A client that reads nothing loses its replay thread after two seconds. On a very busy machine
    // the other client's position may be found by then.
    let was_forgotten = (0..10).any(|_| comes_back_to_a_read_that_is_forgotten());
    assert!(was_forgotten, "the place was found each time");
}

/// Returns `false` if the position was found before the query was dropped.
fn comes_back_to_a_read_that_is_forgotten() -> bool {
    let server = TestServer::with_http(|config| {
        config.watch_retention_bytes = 4096;
        config.watch_max_queries = 2;
        config.watch_backlogs = 1;
    });
    let (mut keeper, mut writer) = (resp3(&server), server.client());
    keeper.command(&["GET.WATCH", "k"]);
    assert_eq!(keeper.line(), "%4");
    let mut socket = Socket::open(&server);
    socket.say(json!({"watch": ["GET", "j"], "id": 1}));
    socket.expect(json!({"type": "snapshot", "id": 1, "sub_id": "2-0", "lsn": 2, "seq": 0, "value": null}));
    socket.say(json!({"unwatch": "2-0", "id": 2}));
    socket.expect(json!({"type": "unwatched", "id": 2, "sub_id": "2-0", "ended": true}));
    writer.ask("SET j 1", "+OK\r\n");
    writer.ask("DEL j", ":1\r\n");
    writer.ask("RPUSH j 1", ":1\r\n");
    let large = "v".repeat(60_000);
    for number in 0..400 {
        writer.ask(&format!("SET k {number}{large}"), "+OK\r\n");
    }
    // A client that reads nothing occupies the only replay thread.
    let mut lazy = resp3(&server);
    lazy.command(&["EMITRECONNECT", "k", "1-0", "1"]);
    assert_eq!(lazy.line(), "*2");
    socket.say(json!({"resume": "2-0", "lsn": 2, "id": 3}));
    eventually("its place is looked for", || {
        server.http("/metrics").lines().any(|line| line.starts_with("tidemark_backlogs_waiting 1"))
    });
    // A third read takes the place of the query without subscribers.
    let mut other = resp3(&server);
    let begun =
        "%4\r\n$6\r\nsub_id\r\n$5\r\n407-0\r\n$3\r\nlsn\r\n:407\r\n$3\r\nseq\r\n:0\r\n$5\r\nvalue\r\n_\r\n";
    other.ask("GET.WATCH other", begun);
    other.ask("UNWATCH 407-0", ":1\r\n");
    drop(lazy);
    let answer = socket.next();
    if answer["type"] == "resumed" {
        return false;
    }
    let stale =
        json!({"type": "stale", "id": 3, "sub_id": "2-0", "reason": "SUBSCRIPTION_NOT_FOUND", "floor": 0});
    assert_eq!(answer, stale);
    let failed = socket.next();
    assert_eq!((&failed["type"], &failed["sub_id"]), (&json!("failed"), &json!("2-0")));
    assert!(failed["error"].as_str().is_some_and(|error| error.starts_with("WRONGTYPE")), "{failed}");
    true
}

#[test]
fn numbers_are_words_and_ids_as_they_are_written() {
    let server = server();
    let (mut socket, mut writer) = (Socket::open(&server), server.client());
    for number in ["12345678901234567890123", "1e3", "-0", "1.50"] {
        writer.ask(&format!("SET {number} right"), "+OK\r\n");
        let message = format!("{{\"watch\": [\"GET\", {number}], \"id\": {number}}}");
        socket.0.send(Message::text(message)).expect("the server reads");
        let Message::Text(answer) = socket.0.read().expect("an answer") else { panic!("a text") };
        assert!(answer.contains(&format!("\"id\":{number},")), "{answer}");
        assert!(answer.contains("\"value\":\"right\""), "{answer}");
    }
    socket.0.send(Message::text(r#"{"unwatch": "1-0", "id": null}"#)).expect("the server reads");
    let Message::Text(answer) = socket.0.read().expect("an answer") else { panic!("a text") };
    assert!(answer.contains("\"id\":null,"), "{answer}");
}

#[test]
fn the_end_of_a_socket_is_answered() {
    let server = server();
    let mut socket = Socket::open(&server);
    let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    socket.0.close(Some(frame.clone())).expect("the server reads");
    match socket.0.read().expect("an answer") {
        Message::Close(Some(answer)) => assert_eq!(answer, frame),
        other => panic!("{other:?}"),
    }
    // An invalid frame: the client did not mask it.
    let mut socket = Socket::open(&server);
    socket.0.get_mut().write_all(b"\x81\x02{}").expect("the server reads");
    match socket.0.read().expect("an answer") {
        Message::Close(Some(answer)) => assert_eq!(answer.code, CloseCode::Protocol),
        other => panic!("{other:?}"),
    }
}

/// Pongs wait in the kernel only: the server stops reading from a client that does not read them.
#[test]
fn a_client_that_does_not_read_pongs_is_not_read() {
    const FAR_TOO_MUCH: usize = 256 << 20;
    let server = server();
    let mut socket = Socket::open(&server);
    let mut ping = vec![0x89, 0xfd, 0, 0, 0, 0];
    ping.resize(6 + 125, b'x');
    let pings = ping.repeat(1_000);
    let stream = socket.0.get_mut();
    stream.set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    let mut sent = 0;
    while let Ok(written) = stream.write(&pings) {
        sent += written;
        assert!(sent < FAR_TOO_MUCH, "the server reads on");
    }
}

#[test]
fn every_message_is_answered_however_many_come_at_once() {
    let server = server();
    let mut socket = Socket::open(&server);
    for number in 0..100 {
        socket.say(json!({"watch": ["GET", "k"], "id": number}));
        socket.say(json!({"resume": "1-0", "lsn": 1, "id": -number}));
    }
    for number in 0..100 {
        let (snapshot, resumed) = (socket.next(), socket.next());
        assert_eq!((&snapshot["type"], &snapshot["id"]), (&json!("snapshot"), &json!(number)));
        assert_eq!((&resumed["type"], &resumed["id"]), (&json!("resumed"), &json!(-number)));
    }
}

#[test]
fn messages_that_make_no_sense_are_answered_by_errors() {
    let server = server();
    let mut socket = Socket::open(&server);
    socket.0.send(Message::text("nonsense")).expect("the server reads");
    socket.expect_error("ERR no message of this protocol");
    socket.0.send(Message::binary(vec![1, 2])).expect("the server reads");
    socket.expect_error("ERR messages are JSON text");
    for (message, beginning) in [
        (json!({"wach": ["GET", "k"]}), "ERR no message of this protocol"),
        (json!({}), "ERR a message has either"),
        (json!({"watch": ["GET", "k"], "unwatch": "1-0"}), "ERR a message has either"),
        (json!({"resume": "1-0"}), "ERR a message has either"),
        (json!({"watch": []}), "ERR no command"),
        (json!({"watch": ["GET", "k"], "db": 99}), "ERR DB index is out of range"),
        (json!({"watch": ["SET", "k", "v"]}), "ERR 'set' cannot be watched"),
        (json!({"watch": ["GET", {"base64": "%"}]}), "ERR a word is no base64"),
    ] {
        socket.say(message);
        socket.expect_error(beginning);
    }
    socket.say(json!({"watch": ["GET", "k"]}));
    assert_eq!(socket.next()["type"], "snapshot");
    // A message that is too long ends its own connection and nothing else.
    let _ = socket.0.send(Message::text("x".repeat(2 << 20)));
    while socket.0.read().is_ok() {}
    Socket::open(&server);
}
