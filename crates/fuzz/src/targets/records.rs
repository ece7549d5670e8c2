//! Records of the log that the engine applies: each is applied or refused, and applying all of them
//! again gives the same state.
//!
//! ```text
//! input   (kind u8 │ milliseconds since the record before u8 │ block)*
//! ```

use super::{Target, state};
use crate::input::{Input, put_block};
use tidemark_engine::{Engine, Protocol, Reply};
use tidemark_log::{Lsn, Record};

/// Kinds that the engine writes, and one unknown kind.
const KINDS: u8 = 9;

pub(super) const TARGET: Target = Target {
    name: "records",
    run,
    corpus,
    words: &[
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x80\x04",
        b"\0\0\0",
        b"-1",
        b"9223372036854775807",
        b"nan",
        b"inf",
        b"-inf",
        b"1e308",
        b"\x05LIMIT",
        b"\x02PX",
        b"\x0218446744073709551615",
    ],
};

fn run(data: &[u8]) -> bool {
    let (engine, again) = (state::engine(), state::engine());
    let applied = apply(&engine, data);
    assert_eq!(apply(&again, data), applied);
    assert_eq!(engine.digest(), again.digest(), "the same records give the same state");
    applied > 0
}

/// Returns how many records were applied before one was refused.
fn apply(engine: &Engine, data: &[u8]) -> usize {
    let (mut input, mut scratch) = (Input::new(data), Reply::new(Protocol::Resp2));
    let (mut time_us, mut applied) = (state::NOW_US, 0);
    while !input.is_empty() {
        let kind = 1 + input.u8() % KINDS;
        time_us += 1000 * u64::from(input.u8());
        let lsn = engine.log().append(time_us, kind, |_| ()).expect("memory takes every record");
        let record = Record { lsn, time_us, kind, payload: input.block() };
        if let Err(error) = engine.apply(&record, &mut scratch) {
            assert!(!error.to_string().is_empty());
            break;
        }
        applied += 1;
    }
    applied
}

/// Returns the records of an engine's log as an input.
fn input_of(engine: &Engine) -> Vec<u8> {
    let log = engine.log();
    log.wait_durable(log.appended()).expect("memory takes everything");
    let (mut input, mut replay) = (Vec::new(), log.replay(Lsn::FIRST).expect("begins"));
    while let Some(batch) = replay.next_batch().expect("is read") {
        for record in batch {
            input.extend([record.kind - 1, 1]);
            put_block(&mut input, record.payload);
        }
    }
    input
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let mut inputs: Vec<(&'static str, Vec<u8>)> =
        state::SCRIPTS.iter().map(|(name, script)| (*name, input_of(&state::after(script)))).collect();
    let watched = state::after("SET a b");
    state::watch(&watched);
    inputs.push(("watched", input_of(&watched)));
    inputs
}
