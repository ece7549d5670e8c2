//! Watched ranges of time series over the wire: an answer, and then what has changed.

use crate::common::TestServer;
use crate::common::events::{Event, Events};
use crate::common::watching::{begun, bulk, emission, resp3};
use serde_json::{Value, json};

const TWO: &str = "*2\r\n*2\r\n:1\r\n,1\r\n*2\r\n:2\r\n,2\r\n";

/// Returns a change in RESP3.
fn change(name: &str, lsn: u64, sequence: u64, rows: &str) -> String {
    format!(">5\r\n{}{}:{lsn}\r\n:{sequence}\r\n{rows}", bulk("change"), bulk(name))
}

#[test]
fn a_change_is_a_frame_of_its_own_in_either_protocol() {
    let server = TestServer::new();
    let (mut watcher, mut old, mut writer) = (resp3(&server), server.client(), server.client());
    writer.ask("TS.ADD k 1 1", ":1\r\n");
    writer.ask("TS.ADD k 2 2", ":2\r\n");
    watcher.ask("TS.RANGE.WATCH k - +", &begun("3-0", 3, 0, TWO));
    let fields = [bulk("sub_id"), bulk("4-0"), bulk("lsn"), ":4\r\n".into(), bulk("seq"), ":0\r\n".into()];
    let value = "*1\r\n*2\r\n:2\r\n+2\r\n";
    old.ask("TS.REVRANGE.WATCH k - + COUNT 1", &format!("*8\r\n{}{}{value}", fields.concat(), bulk("value")));
    writer.ask("TS.ADD k 5 0.5", ":5\r\n");
    watcher.expect(change("3-0", 5, 1, "*1\r\n*2\r\n:5\r\n,0.5\r\n"));
    let rows = "*2\r\n*2\r\n:5\r\n+5E-1\r\n*1\r\n:2\r\n";
    old.expect(format!("*5\r\n{}{}:5\r\n:1\r\n{rows}", bulk("change"), bulk("4-0")));
    writer.ask("TS.DEL k 2 2", ":1\r\n");
    watcher.expect(change("3-0", 6, 2, "*1\r\n*1\r\n:2\r\n"));
    writer.ask("DEL k", ":1\r\n");
    watcher.expect(emission("3-0", 7, 3, "-ERR TSDB: the key does not exist\r\n"));
    // A second subscriber is answered by a read, although none is kept.
    writer.ask("TS.ADD k 9 9", ":9\r\n");
    watcher.expect(emission("3-0", 8, 4, "*1\r\n*2\r\n:9\r\n,9\r\n"));
    resp3(&server).ask("TS.RANGE.WATCH k - +", &begun("3-4", 8, 0, "*1\r\n*2\r\n:9\r\n,9\r\n"));
}

#[test]
fn a_squashed_subscription_gets_the_answer_where_changes_are_left_out() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    writer.ask("TS.ADD k 1 1", ":1\r\n");
    writer.ask("TS.ADD k 2 2", ":2\r\n");
    watcher.ask("TS.RANGE.WATCH k - + | SQUASH 500", &begun("3-0", 3, 0, TWO));
    writer.ask("TS.ADD k 3 3", ":3\r\n");
    watcher.expect(change("3-0", 4, 1, "*1\r\n*2\r\n:3\r\n,3\r\n"));
    for time in 4..=6 {
        writer.ask(&format!("TS.ADD k {time} 3"), &format!(":{time}\r\n"));
    }
    writer.ask("TS.DEL k 1 5", ":5\r\n");
    watcher.expect(emission("3-0", 8, 5, "*1\r\n*2\r\n:6\r\n,3\r\n"));
    watcher.ask("PING", "+PONG\r\n");
}

#[test]
fn the_answer_before_is_refused() {
    let server = TestServer::new();
    let (mut watcher, mut writer) = (resp3(&server), server.client());
    writer.ask("TS.ADD k 1 1", ":1\r\n");
    let refused = "-ERR OLD is not valid for a read that emits changes: apply them to the answer before\r\n";
    watcher.ask("TS.RANGE.WATCH k - + | OLD", refused);
    watcher.ask("TS.RANGE.WATCH k - +", &begun("2-0", 2, 0, "*1\r\n*2\r\n:1\r\n,1\r\n"));
    watcher.ask("EMITRECONNECT k 2-0 2 | OLD", refused);
}

#[test]
fn events_and_messages_have_a_change_in_place_of_a_value() {
    let server = TestServer::with_http(|_| {});
    let (mut subscriber, mut writer) = (resp3(&server), server.client());
    writer.ask("TS.ADD k 1 1", ":1\r\n");
    writer.ask("TS.ADD k 2 2", ":2\r\n");
    let mut events = Events::open(&server, "command=TS.RANGE&arg=k&arg=-&arg=%2B");
    let id = |lsn: u64| Some(format!("3-0:{lsn}"));
    let data = json!({"sub_id": "3-0", "lsn": 3, "seq": 0, "value": [[1, 1.0], [2, 2.0]]});
    events.expect(Event { id: id(3), kind: "snapshot".into(), data });
    subscriber.command(&["SUBSCRIBE", "c"]);
    while subscriber.line() != ":1" {}
    writer.command(&["TS.RANGE.WATCH", "k", "-", "+", "|", "CHANNEL", "c"]);
    let begun: Value = serde_json::from_str(&writer.bulk()).expect("JSON");
    assert_eq!(begun["value"], json!([[1, 1.0], [2, 2.0]]));
    writer.ask("TS.ADD k 3 3", ":3\r\n");
    let data = json!({"sub_id": "3-0", "lsn": 4, "seq": 1, "change": [[3, 3.0]]});
    events.expect(Event { id: id(4), kind: "change".into(), data: data.clone() });
    assert_eq!(subscriber.line(), ">3");
    assert_eq!((subscriber.bulk(), subscriber.bulk()), ("message".to_owned(), "c".to_owned()));
    assert_eq!(serde_json::from_str::<Value>(&subscriber.bulk()).expect("JSON"), data);
}
