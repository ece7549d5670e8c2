//! `TransitOps` of the original's newer suite: number of emissions that one emission causes.
//!
//! The widths are around 4,096, where a queue of the original's provider has a boundary; the queue
//! here has none.

use crate::circuit::batch::end;
use crate::circuit::rig::Runner;
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::{Circuit, Fiber, Pipe, name};

/// Total number of emissions, over all rounds of a width.
const EMISSIONS: u64 = 65_536;

pub(super) fn suite() -> Vec<Benchmark> {
    vec![
        fan_out("transit_fanout_1k_batch", 1_024, EMISSIONS / 1_024),
        fan_out("transit_fanout_4k_batch", 4_096, EMISSIONS / 4_096),
        fan_out("transit_fanout_8k_batch", 8_192, EMISSIONS / 8_192),
        fan_out("transit_fanout_full_ring_batch", 4_097, 16),
        fan_out("transit_fanout_over_capacity_batch", 4_098, 16),
        contraction(8_192),
    ]
}

/// A row of emissions by a receptor, `width` for each value that it receives.
fn fan_out(name: &str, width: u64, rounds: u64) -> Benchmark {
    let measures = format!(
        "an emission by a receptor to a pipe of its circuit, {width} for each of {rounds} values, and one await; counted; {}",
        Runner::THREAD.driver
    );
    Benchmark::new(format!("TransitOps.{name}"), measures, move |_| {
        let rig = (Runner::THREAD.rig)()?;
        let mut tally = Tally::default();
        let target = end(&rig, tally.counter())?;
        let pipe = rig.pipe(move |value: u64| (0..width).for_each(|_| target.emit(value)))?;
        Work::calls(width * rounds, move || {
            let clock = Instant::now();
            for value in 0..rounds {
                pipe.emit(black_box(value));
            }
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(width * rounds)?;
            Ok(took)
        })
    })
}

/// Many emissions at once, followed by a value that cycles for long.
fn contraction(width: u64) -> Benchmark {
    let measures = format!(
        "making a conduit whose pipe emits to itself, and an emission by a receptor: {width} to a pipe, and 100,000 by one that \
         goes around behind them, with one await, counted; {}",
        Runner::THREAD.driver
    );
    Benchmark::new("TransitOps.transit_contraction_100k", measures, move |sizes| {
        let cycle = sizes.hops * 10;
        let rig = (Runner::THREAD.rig)()?;
        let mut tally = Tally::default();
        let target = end(&rig, tally.counter())?;
        Work::calls(cycle + width, move || {
            let clock = Instant::now();
            let around = cyclic(&rig, cycle, &tally)?;
            let target = target.clone();
            let both = rig.pipe(move |value: u64| {
                (0..width).for_each(|_| target.emit(value));
                around.emit(value);
            })?;
            both.emit(black_box(1));
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(cycle + width)?;
            Ok(took)
        })
    })
}

/// A pipe on which a value cycles in a conduit `limit` times, each counted.
pub(super) fn cyclic(circuit: &Circuit, limit: u64, tally: &Tally) -> anyhow::Result<Pipe<u64>> {
    let (conduit, counter) = (circuit.conduit()?, tally.counter());
    let pool = conduit.pool(&Fiber::new().limit(limit).peek(move |value: &u64| counter.count(*value)));
    conduit.subscribe(&circuit.subscriber_to(pool.clone())?)?;
    let pipe = pool.get(name!("cyclic")).map_err(Clone::clone)?;
    Ok(pipe.clone())
}
