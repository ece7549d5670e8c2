//! `TapOps`: conduits of values derived from another conduit's emissions.

use super::channel::count;
use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work, each};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::{Conduit, Fault, Flow, Pipe, name};

/// Values or taps per call of a row with `batch`.
const BATCH: u64 = 1_000;

/// Builds what follows a conduit; returns the arrivals per emission.
type Wire = fn(&Rig, &Conduit<u64>, &Tally) -> Result<u64, Fault>;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = vec![
        emitting("baseline_emit_batch_await", "no tap, and a subscriber that counts", direct),
        emitting(
            "tap_emit_identity_batch_await",
            "a tap that changes nothing, and a subscriber of it that counts",
            identity,
        ),
        emitting(
            "tap_emit_string_batch_await",
            "a tap that makes a text of each, and a subscriber of it that counts",
            text,
        ),
        emitting(
            "tap_emit_multi_batch_await",
            "two taps that change nothing, and a subscriber of each",
            |rig, conduit, tally| Ok(identity(rig, conduit, tally)? + identity(rig, conduit, tally)?),
        ),
    ];
    all.extend(creating());
    all.extend(single());
    all
}

/// A thousand emissions and one await.
fn emitting(name: &str, what: &str, wire: Wire) -> Benchmark {
    let measures = format!(
        "1,000 emissions to a conduit with {what}, and one await, each, counted; the shared pool runs the circuit"
    );
    Benchmark::new(format!("TapOps.{name}"), measures, move |_| {
        let (rig, pipe, mut tally, arrivals) = wired(wire)?;
        Work::calls(BATCH, move || {
            let clock = Instant::now();
            for value in 0..BATCH {
                pipe.emit(black_box(value));
            }
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(BATCH * arrivals)?;
            Ok(took)
        })
    })
}

fn single() -> [Benchmark; 2] {
    [
        Benchmark::new(
            "TapOps.tap_emit_identity_single",
            "an emission to a conduit with a tap that changes nothing, until it returns; after 1,000 the circuit is awaited and \
             the values counted, outside of the measured time: see tap_emit_identity_batch_await",
            |_| {
                let (rig, pipe, mut tally, arrivals) = wired(identity)?;
                Work::calls(BATCH, move || {
                    let clock = Instant::now();
                    for value in 0..BATCH {
                        pipe.emit(black_box(value));
                    }
                    let took = clock.elapsed();
                    rig.settle()?;
                    tally.expect(BATCH * arrivals)?;
                    Ok(took)
                })
            },
        ),
        Benchmark::new(
            "TapOps.tap_emit_identity_single_await",
            "an emission to a conduit with a tap that changes nothing, and an await, counted; the shared pool runs the circuit",
            |sizes| {
                let count = sizes.round_trips;
                let (rig, pipe, mut tally, arrivals) = wired(identity)?;
                Work::calls(count, move || {
                    let clock = Instant::now();
                    for value in 0..count {
                        pipe.emit(black_box(value));
                        rig.settle()?;
                    }
                    let took = clock.elapsed();
                    tally.expect(count * arrivals)?;
                    Ok(took)
                })
            },
        ),
    ]
}

fn creating() -> [Benchmark; 5] {
    const HOW: &str = "until it returns; 1,000 of one conduit, then all is closed and awaited, outside of the measured time";
    let many = |awaited: bool, make: fn(&Conduit<u64>) -> Result<(), Fault>| {
        move |_: &_| {
            let rig = Rig::new(By::Pool)?;
            Work::calls(BATCH, move || {
                let conduit = rig.conduit()?;
                let clock = Instant::now();
                for _ in 0..BATCH {
                    make(&conduit)?;
                }
                if awaited {
                    rig.settle()?;
                }
                let took = clock.elapsed();
                conduit.close_and_settle()?;
                Ok(took)
            })
        }
    };
    [
        Benchmark::new(
            "TapOps.tap_create_identity",
            format!("making a tap that changes nothing, {HOW}"),
            many(false, |conduit| conduit.tap(&Flow::new()).map(drop)),
        ),
        Benchmark::new(
            "TapOps.tap_create_string",
            format!("making a tap that makes a text of each, {HOW}"),
            many(false, |conduit| conduit.tap(&to_text()).map(drop)),
        ),
        Benchmark::new(
            "TapOps.tap_create_batch",
            "making a tap that changes nothing, 1,000 of one conduit and one await, each",
            many(true, |conduit| conduit.tap(&Flow::new()).map(drop)),
        ),
        Benchmark::new(
            "TapOps.tap_close",
            "making a tap, closing it, and an await; the shared pool runs the circuit",
            |_| {
                let rig = Rig::new(By::Pool)?;
                let conduit = rig.conduit::<u64>()?;
                each(move |_| {
                    conduit.tap(&Flow::new())?.close();
                    rig.settle()?;
                    anyhow::Ok(())
                })
            },
        ),
        Benchmark::new(
            "TapOps.tap_lifecycle",
            "making a tap that makes a text of each, subscribing to it, an emission and an await, counted, closing it and an \
             await; the shared pool runs the circuit",
            |_| {
                let rig = Rig::new(By::Pool)?;
                let conduit = rig.conduit::<u64>()?;
                let mut tally = Tally::default();
                Work::calls(1, move || {
                    let clock = Instant::now();
                    let tap = conduit.tap(&to_text())?;
                    count(&rig, tap.conduit(), tally.counter())?;
                    conduit.get(name!("bench")).emit(black_box(1));
                    rig.settle()?;
                    tap.close();
                    rig.settle()?;
                    let took = clock.elapsed();
                    tally.expect(1)?;
                    Ok(took)
                })
            },
        ),
    ]
}

/// Returns a circuit with a wired conduit, a pipe of it that has emitted, and the arrivals per
/// emission.
fn wired(wire: Wire) -> anyhow::Result<(Rig, Pipe<u64>, Tally, u64)> {
    let (rig, mut tally) = (Rig::new(By::Pool)?, Tally::default());
    let conduit = rig.conduit()?;
    let arrivals = wire(&rig, &conduit, &tally)?;
    let pipe = conduit.get(name!("bench")).clone();
    pipe.emit(0);
    rig.settle()?;
    tally.expect(arrivals)?;
    Ok((rig, pipe, tally, arrivals))
}

fn direct(rig: &Rig, conduit: &Conduit<u64>, tally: &Tally) -> Result<u64, Fault> {
    count(rig, conduit, tally.counter()).map(|()| 1)
}

fn identity(rig: &Rig, conduit: &Conduit<u64>, tally: &Tally) -> Result<u64, Fault> {
    count(rig, conduit.tap(&Flow::new())?.conduit(), tally.counter()).map(|()| 1)
}

fn text(rig: &Rig, conduit: &Conduit<u64>, tally: &Tally) -> Result<u64, Fault> {
    count(rig, conduit.tap(&to_text())?.conduit(), tally.counter()).map(|()| 1)
}

fn to_text() -> Flow<u64, String, impl tidemark_circuit::operator::Plan<u64, Out = String>> {
    Flow::new().map(|value: u64| value.to_string())
}
