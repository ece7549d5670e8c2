//! `ReservoirOps`: capturing and draining what a conduit's pipes emit.

use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work};
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::{Capture, Conduit, Pipe, Reservoir, name};

/// Emissions of the original's rows, and of those with `_batch`.
const COUNT: u64 = 100;
const BATCH: u64 = 1_000;

/// The first of the values.
const FIRST: u64 = 42;

/// Uses what was captured, and returns its number.
type Use = fn(Vec<Capture<u64>>) -> u64;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    let both = [("", COUNT), ("_batch", BATCH)];
    for (suffix, count) in both {
        all.push(baseline(suffix, count));
    }
    let rows: [(&str, &str, Option<Use>); 4] = [
        ("reservoir_emit_with_capture_await", "captured and left there", None),
        ("reservoir_drain_await", "captured, drained and counted", Some(|all| all.len() as u64)),
        (
            "reservoir_burst_then_drain_await",
            "captured, drained and counted, as in the row before",
            Some(|all| all.len() as u64),
        ),
        ("reservoir_process_emissions_await", "captured, drained and added up", Some(added_up)),
    ];
    for (name, what, used) in rows {
        for (suffix, count) in both {
            all.push(captured(&format!("{name}{suffix}"), what, count, 1, used));
        }
    }
    all.push(captured(
        "reservoir_process_subjects_await",
        "captured, drained and asked for their subjects",
        COUNT,
        1,
        Some(subjects),
    ));
    all.push(captured(
        "reservoir_emit_drain_cycles_await",
        "captured, drained and counted after every twenty",
        COUNT,
        5,
        Some(|all| all.len() as u64),
    ));
    all
}

fn baseline(suffix: &str, count: u64) -> Benchmark {
    let measures = format!(
        "making a conduit, {count} emissions to a pipe of it and one await, each, without a reservoir; the shared pool runs the \
         circuit"
    );
    Benchmark::new(format!("ReservoirOps.baseline_emit_no_reservoir_await{suffix}"), measures, move |_| {
        let rig = Rig::new(By::Pool)?;
        Work::calls(count, move || {
            let clock = Instant::now();
            let conduit = rig.conduit()?;
            emit(conduit.get(name!("bench")), count);
            rig.settle()?;
            Ok(clock.elapsed())
        })
    })
}

/// A row of `count` emissions to one name of a new conduit with a reservoir, in equal parts with an
/// await and a use each.
fn captured(name: &str, what: &str, count: u64, parts: u64, used: Option<Use>) -> Benchmark {
    let measures = format!(
        "making a conduit and a reservoir, {count} emissions, each, {what}, with an await before, and closing the reservoir; the \
         shared pool runs the circuit"
    );
    Benchmark::new(format!("ReservoirOps.{name}"), measures, move |_| {
        let rig = Rig::new(By::Pool)?;
        Work::calls(count, move || {
            let clock = Instant::now();
            let (conduit, reservoir) = reservoir(&rig)?;
            let mut found = 0;
            for _ in 0..parts {
                emit(conduit.get(name!("bench")), count / parts);
                rig.settle()?;
                if let Some(used) = used {
                    found += used(reservoir.drain());
                }
            }
            reservoir.close();
            let took = clock.elapsed();
            found += reservoir.drain().len() as u64;
            anyhow::ensure!(found == count, "{found} captures where there should be {count}");
            Ok(took)
        })
    })
}

fn reservoir(rig: &Rig) -> anyhow::Result<(Conduit<u64>, Reservoir<u64>)> {
    let conduit = rig.conduit()?;
    let reservoir = conduit.reservoir(BATCH as usize)?;
    Ok((conduit, reservoir))
}

fn emit(pipe: &Pipe<u64>, count: u64) {
    for value in FIRST..FIRST + count {
        pipe.emit(black_box(value));
    }
}

/// Uses the subjects and returns their number.
fn subjects(captures: Vec<Capture<u64>>) -> u64 {
    captures.iter().for_each(|capture| {
        black_box(capture.subject());
    });
    captures.len() as u64
}

/// Uses the values and returns their number.
fn added_up(captures: Vec<Capture<u64>>) -> u64 {
    black_box(captures.iter().map(|capture| *capture.emission()).sum::<u64>());
    captures.len() as u64
}
