//! `CyclicOps`: values that cycle in a circuit.

use super::transit;
use crate::circuit::rig::{By, Rig, Runner};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tidemark_circuit::{Circuit, Conduit, Fiber, Pipe, Registrar, Subject, name};

/// Number of cycles in the original's rows.
const LIMIT: u64 = 1_000;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "CyclicOps.cyclic_emit",
            "making a conduit whose pipe emits to itself a thousand times, subscribing, and one emission, by time around; the \
             cycle runs meanwhile and is awaited and counted outside of the measured time: see cyclic_hop",
            |_| conduit_cycles(LIMIT, false),
        ),
        Benchmark::new("CyclicOps.cyclic_emit_await", "the same with the await in the measured time", |_| {
            conduit_cycles(LIMIT, true)
        }),
        Benchmark::new(
            "CyclicOps.cyclic_emit_deep_await",
            "the same with an await, ten thousand times around",
            |_| conduit_cycles(LIMIT * 10, true),
        )
        .also(["CyclicOps.cyclic_deep_await", "CyclicOps.cyclic_emit_deep_await_batch"]),
        around("cyclic_emit_direct", "10,000", 1, transit::cyclic),
        around("cyclic_emit_deep_100k", "100,000", 10, transit::cyclic),
        around("cyclic_emit_registrar", "10,000", 1, |circuit, limit, tally| {
            let conduit = conduit_cycle(circuit, limit, tally)?;
            Ok(conduit.get(name!("cyclic")).clone())
        }),
    ];
    for (suffix, driver, by) in [
        ("", "the thread that awaits runs it", By::Waiters),
        ("_thread", "a thread runs it", By::Thread),
        ("_pool", "the shared pool runs it", By::Pool),
    ] {
        let name = format!("CyclicOps.cyclic_hop{suffix}");
        let measures = format!(
            "one time around of a pipe that emits to itself, 10,000 with one await, counted; {driver}"
        );
        all.push(Benchmark::new(name, measures, move |sizes| hops(by, sizes.hops)).at_most(3.0).in_summary());
    }
    all
}

/// A pipe whose receptor emits to it until the value has counted down to 0.
fn hops(by: By, count: u64) -> anyhow::Result<Work> {
    let rig = Rig::new(by)?;
    let mut tally = Tally::default();
    let counter = tally.counter();
    let itself: Arc<OnceLock<Pipe<u64>>> = Arc::default();
    let own = Arc::clone(&itself);
    let pipe = rig.pipe(move |left: u64| {
        counter.count(left);
        if left > 1
            && let Some(own) = own.get()
        {
            own.emit(left - 1);
        }
    })?;
    anyhow::ensure!(itself.set(pipe.clone()).is_ok(), "the cycle is closed once");
    Work::calls(count, move || {
        let clock = Instant::now();
        pipe.emit(black_box(count));
        rig.settle()?;
        let took = clock.elapsed();
        tally.expect(count)?;
        Ok(took)
    })
}

/// Creates a path on which a value cycles a given number of times, each counted.
type Cycle = fn(&Circuit, u64, &Tally) -> anyhow::Result<Pipe<u64>>;

/// A row of the newer suite: the cycle is created in an existing circuit.
fn around(name: &str, times: &str, factor: u64, cycle: Cycle) -> Benchmark {
    let measures = format!(
        "making a conduit whose pipe emits to itself {times} times, subscribing, one emission and one await, by time around; \
         counted; {}",
        Runner::THREAD.driver
    );
    Benchmark::new(format!("CyclicOps.{name}"), measures, move |sizes| {
        let (rig, limit) = ((Runner::THREAD.rig)()?, sizes.hops * factor);
        let mut tally = Tally::default();
        Work::calls(limit, move || {
            let clock = Instant::now();
            cycle(&rig, limit, &tally)?.emit(black_box(1));
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(limit)?;
            Ok(took)
        })
    })
}

/// The original's cycle: a subscriber registers the conduit's own pipe behind a limit, in a new
/// circuit each time.
fn conduit_cycles(limit: u64, awaited: bool) -> anyhow::Result<Work> {
    Work::calls(limit, move || {
        let (rig, mut tally) = (Rig::new(By::Pool)?, Tally::default());
        let clock = Instant::now();
        let conduit = conduit_cycle(&rig, limit, &tally)?;
        conduit.get(name!("cyclic")).emit(black_box(1));
        let mut took: Option<Duration> = None;
        if !awaited {
            took = Some(clock.elapsed());
        }
        rig.settle()?;
        let took = took.unwrap_or_else(|| clock.elapsed());
        tally.expect(limit)?;
        Ok(took)
    })
}

fn conduit_cycle(circuit: &Circuit, limit: u64, tally: &Tally) -> anyhow::Result<Conduit<u64>> {
    let conduit = circuit.conduit()?;
    let (own, counter) = (conduit.clone(), tally.counter());
    // The first emission does not pass the limit.
    let limited = Fiber::new().limit(limit - 1);
    let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
        let counter = counter.clone();
        registrar.receptor(move |value| counter.count(value));
        // Refused only by a closed circuit, which calls no subscriber.
        if let Ok(pipe) = own.get(subject.name()).prepend(&limited) {
            registrar.pipe(&pipe);
        }
    })?;
    conduit.subscribe(&subscriber)?;
    Ok(conduit)
}
