//! Points that clients pipeline, through `kill -9`: no acknowledged point is lost, and none has a
//! value that no client has sent.

use crate::support::{Answer, Client, Server};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Kills.
const ROUNDS: u64 = 12;
/// Commands of a pipeline.
const PIPELINE: i64 = 64;

/// What one writer has sent and which of it was acknowledged.
#[derive(Default)]
struct Ledger {
    next: i64,
    acknowledged: BTreeMap<i64, i64>,
}

/// Key of a writer's point: mostly its series, sometimes no series, or another one.
fn key_of(key: &str, at: i64) -> String {
    match at % 8 {
        6 => "text".to_owned(),
        7 => format!("{key}:{}", at % 24),
        _ => key.to_owned(),
    }
}

fn value_of(at: i64) -> String {
    if at % 8 == 5 { "bad".to_owned() } else { (at * 3).to_string() }
}

/// Sends pipelines of good and bad requests until the server dies.
fn write_until_killed(port: u16, key: &str, ledger: &mut Ledger, over: &AtomicBool) {
    let Ok(mut client) = Client::connect(port) else { return };
    while !over.load(Ordering::Relaxed) {
        let first = ledger.next;
        ledger.next += PIPELINE;
        let words: Vec<[String; 3]> =
            (first..ledger.next).map(|at| [key_of(key, at), at.to_string(), value_of(at)]).collect();
        let commands: Vec<[&str; 4]> =
            words.iter().map(|[key, time, value]| ["TS.ADD", key, time, value]).collect();
        if client.send_together(&commands).is_err() {
            return;
        }
        for at in first..ledger.next {
            let Ok(answer) = client.read() else { return };
            match at % 8 {
                5 => assert_eq!(answer, Answer::Error("ERR TSDB: invalid value".into())),
                6 => assert_eq!(answer, Answer::Error("ERR TSDB: the key is not a TSDB key".into())),
                7 => assert_eq!(answer, Answer::Integer(at)),
                _ => {
                    assert_eq!(answer, Answer::Integer(at), "answers come in the order of the commands");
                    ledger.acknowledged.insert(at, at * 3);
                }
            }
        }
    }
}

/// Compares a series with what its writer knows.
fn check(client: &mut Client, key: &str, ledger: &Ledger) {
    if ledger.next == 0 {
        return;
    }
    let Answer::Array(rows) =
        client.call(&["TS.RANGE", key, "-", "+"]).expect("the restarted server answers")
    else {
        // No pipeline was logged, so none was acknowledged.
        assert!(ledger.acknowledged.is_empty());
        return;
    };
    let mut missing = ledger.acknowledged.clone();
    for row in rows {
        let row = row.array();
        let (time, value) = (row[0].integer(), &row[1]);
        assert_eq!(*value, Answer::Status((time * 3).to_string()), "{key} at {time}");
        assert!(time < ledger.next && !matches!(time % 8, 5..=7), "nobody has sent {time} to {key}");
        missing.remove(&time);
    }
    assert!(missing.is_empty(), "{key} has lost {} acknowledged points", missing.len());
}

#[test]
fn no_acknowledged_point_of_a_pipeline_is_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut ledgers = [("points:a", Ledger::default()), ("points:b", Ledger::default())];
    for round in 0..=ROUNDS {
        let server = Server::start(directory.path(), &["--durability", "always", "--snapshot-after", "40"]);
        let mut client = server.client();
        client.call(&["SET", "text", "x"]).expect("an answer");
        for (key, ledger) in &ledgers {
            check(&mut client, key, ledger);
        }
        if round == ROUNDS {
            break;
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (key, ledger) in &mut ledgers {
                let (port, over) = (server.port, &over);
                scope.spawn(move || write_until_killed(port, key, ledger, over));
            }
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 120));
            server.kill();
            over.store(true, Ordering::Relaxed);
        });
    }
    let acknowledged: usize = ledgers.iter().map(|(_, ledger)| ledger.acknowledged.len()).sum();
    assert!(acknowledged > 0, "the writers got somewhere");
}
