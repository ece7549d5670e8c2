//! A client of DiceDB's protocol that was away while its server was killed, again and again: all
//! that it has missed comes from the log, each change once and in order.

#[path = "../../../server/tests/scenarios/common/dice.rs"]
#[allow(dead_code, reason = "the client of the server's own tests can do more")]
mod dice;

use crate::support::{Answer, Server as TestServer};
use dice::{DiceClient, DiceResult};

/// How often the server is killed, and how often the key changes before each kill.
const LIVES: u64 = 4;
const CHANGES: u64 = 8000;

/// Sets the key to these numbers, which are all on disk at the end.
fn write(server: &TestServer, numbers: std::ops::RangeInclusive<u64>) {
    let mut writer = server.client();
    let ok = Answer::Status("OK".into());
    for number in numbers.clone() {
        assert_eq!(writer.call(&["SET", "k", &number.to_string()]).expect("an answer"), ok);
    }
    // The test is not about writes that a kill loses. This repeated write is no change, and so no
    // emission.
    let last = numbers.end().to_string();
    assert_eq!(writer.call(&["DURABLE", "SET", "k", &last]).expect("an answer"), ok);
}

#[test]
fn what_was_missed_through_kills_comes_from_the_log_once_and_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments =
        ["--watch-retention-bytes", "1mb", "--log-segment-bytes", "65536", "--log-retention-bytes", "1gb"];
    let mut server = TestServer::start(directory.path(), &arguments);
    let fingerprint = DiceClient::greeted(&server, "id", "watch").ask(&["GET.WATCH", "k"]).fingerprint;
    let subscription = format!("id:{fingerprint}");
    for life in 1..=LIVES {
        let last = life * CHANGES;
        write(&server, last - CHANGES + 1..=last);
        if life == 2 {
            let saved = server.client().call(&["SAVE"]).expect("an answer");
            assert_eq!(saved, Answer::Status("OK".into()));
        }
        server.kill();
        server = TestServer::start(directory.path(), &arguments);
        for seen in [0, last / 2 + 7, last - 1] {
            let mut client = DiceClient::greeted(&server, "id", "watch");
            let answer = client.ask(&["EMITRECONNECT", "k", &subscription, &seen.to_string()]);
            assert_eq!((answer.ok, answer.message), (true, format!("OK {}", seen + 1)), "life {life}");
            for number in (seen + 1..=last).map(|number| number.to_string()) {
                let body = [&[0x0a, number.len() as u8], number.as_bytes()].concat();
                let expected = DiceResult { ok: true, message: number, fingerprint, body: Some((16, body)) };
                assert_eq!(client.receive(), expected, "life {life}, behind {seen}");
            }
            assert_eq!(client.text(&["PING"], 12), "PONG", "and nothing else");
        }
    }
    server.kill();
    let server = TestServer::start(directory.path(), &[&arguments[..], &["--watch-backlogs", "0"]].concat());
    let mut client = DiceClient::greeted(&server, "id", "watch");
    // Memory has not retained it.
    client.expect_error(&["EMITRECONNECT", "k", &subscription, "0"], "STALE_SEQUENCE");
}
