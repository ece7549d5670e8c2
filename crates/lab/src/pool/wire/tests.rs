//! The rows against correct and faulty servers.

use super::{WireOptions, suite};
use crate::micro::Sizes;
use crate::test_run;
use crate::test_server::{self, Behaviour, Connection, bulk};
use std::collections::HashMap;
use tidemark_server::resp::Value;

/// A fault of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// A draw is answered twice.
    Repeats,
    /// The stock runs out after the tenth draw.
    RunsOut,
    /// A draw is made without an answer.
    Forgets,
}

struct Prizes {
    flaw: Flaw,
    next_draw: i64,
    counts: HashMap<Vec<u8>, i64>,
    members: i64,
}

impl Prizes {
    fn draw(&mut self) -> Value {
        let number = self.next_draw;
        self.next_draw += i64::from(self.flaw != Flaw::Repeats || number != 5);
        Value::Array(vec![Value::Integer(number), bulk("mug")])
    }

    fn answer_to(&mut self, arguments: &[Vec<u8>]) -> Value {
        match &arguments[0][..] {
            b"POOL.CREATE" | b"DEL" => Value::Integer(1),
            b"POOL.DRAW" if self.flaw == Flaw::RunsOut && self.next_draw >= 10 => {
                Value::Error(b"EMPTY nothing is left".to_vec())
            }
            b"POOL.DRAW" if arguments.len() == 2 => self.draw(),
            b"POOL.DRAW" => {
                let count: u64 = String::from_utf8_lossy(&arguments[3]).parse().unwrap();
                Value::Array((0..count).map(|_| self.draw()).collect())
            }
            b"POOL.STATE" => {
                let made = self.next_draw + i64::from(self.flaw == Flaw::Forgets);
                Value::Array(vec![bulk("draws"), Value::Integer(made)])
            }
            b"INCR" => {
                let count = self.counts.entry(arguments[1].clone()).or_default();
                *count += 1;
                Value::Integer(*count)
            }
            b"SADD" => self.add(arguments.len() as i64 - 2),
            b"ZADD" => self.add((arguments.len() as i64 - 2) / 2),
            b"SPOP" => self.pop(|| bulk("7")),
            b"ZPOPMIN" => self.pop(|| Value::Array(vec![bulk("7"), bulk("1")])),
            b"EXISTS" => Value::Integer(i64::from(self.members > 0)),
            other => Value::Error([b"ERR unknown command ", other].concat()),
        }
    }

    fn add(&mut self, members: i64) -> Value {
        self.members += members;
        Value::Integer(members)
    }

    fn pop(&mut self, member: fn() -> Value) -> Value {
        self.members -= 1;
        if self.members < 0 { Value::Null } else { member() }
    }
}

impl Behaviour for Prizes {
    fn answer(&mut self, arguments: &[Vec<u8>], _: &Connection) -> Vec<Value> {
        vec![self.answer_to(arguments)]
    }
}

fn serve(flaw: Flaw) -> u16 {
    test_server::start(Prizes { flaw, next_draw: 0, counts: HashMap::new(), members: 0 })
}

/// Returns the result of each row with this name prefix against such a server.
fn outcomes(flaw: Flaw, names: &str) -> Vec<anyhow::Result<()>> {
    let rows = {
        let port = serve(Flaw::None).to_string();
        let redis = format!("127.0.0.1:{port}");
        let flags = ["--host", "127.0.0.1", "-p", &port, "--redis", &redis];
        suite(&test_run::options::<WireOptions>(&flags)).len()
    };
    (0..rows)
        .filter_map(|row| {
            // A separate server for each row: draws are numbered from 0.
            let port = serve(flaw).to_string();
            let redis = format!("127.0.0.1:{port}");
            let flags = ["--host", "127.0.0.1", "-p", &port, "--redis", &redis];
            let row = suite(&test_run::options::<WireOptions>(&flags)).swap_remove(row);
            row.name().starts_with(names).then(|| {
                let mut work = row.start(&Sizes::QUICK)?;
                (work.run)(2)?;
                work.check.take().map_or(Ok(Vec::new()), |check| check()).map(drop)
            })
        })
        .collect()
}

#[test]
fn an_honest_server_is_measured() {
    let outcomes = outcomes(Flaw::None, "WireOps.");
    assert_eq!(outcomes.len(), 7);
    for outcome in outcomes {
        outcome.unwrap();
    }
}

#[test]
fn draws_that_are_repeated_refused_or_hidden_are_no_work() {
    for (flaw, expected) in [
        (Flaw::Repeats, "draw Some(5) is answered where draw 6 is due"),
        (Flaw::RunsOut, "the server refuses: EMPTY"),
        (Flaw::Forgets, "Some(201) draws were made where 200 should be"),
    ] {
        for outcome in outcomes(flaw, "WireOps.draw") {
            let error = outcome.unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

#[test]
fn without_a_server_there_is_nothing_to_ask() {
    assert!(suite(&test_run::options::<WireOptions>(&[])).is_empty());
    assert!(test_run::try_options::<WireOptions>(&["--redis", "redis://localhost"]).is_err());
}
