//! Allocations per emission.

use crate::allocations;
use crate::circuit::batch::end;
use crate::circuit::rig::{Runner, Way};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::{Counter, Tally};
use anyhow::Context;
use std::hint::black_box;
use tidemark_circuit::{Circuit, Lane, Pipe};

/// Calls before the counted one, in which queues grow to their permanent size.
const WARM_UP: u32 = 3;

pub(super) fn suite() -> Vec<Benchmark> {
    let runners = [("waiters", Runner::WAITERS), ("thread", Runner::THREAD), ("pool", Runner::POOL)];
    let both = |(suffix, runner)| {
        [
            row(&format!("pipe_{suffix}"), "a pipe", runner, by_pipe),
            row(&format!("lane_{suffix}"), "a lane", runner, by_lane),
        ]
    };
    runners.into_iter().flat_map(both).collect()
}

fn row<W: Way>(
    name: &str,
    by: &str,
    runner: Runner,
    open: fn(&Circuit, Counter) -> anyhow::Result<W>,
) -> Benchmark {
    let measures = format!(
        "how often each of 10,000 emissions of a u64 by {by} and one await ask the allocator for memory, once queues are as \
         large as they need to be; counted; {}",
        runner.driver
    );
    Benchmark::new(format!("CircuitOps.emission_allocations_{name}"), measures, move |sizes| {
        let (rig, count) = ((runner.rig)()?, sizes.batch);
        let mut tally = Tally::default();
        let mut way = open(&rig, tally.counter())?;
        let mut call = move || {
            for value in 0..count {
                way.emit(black_box(value));
            }
            rig.settle()?;
            tally.expect(count)
        };
        Work::amounts(count, move || {
            (0..WARM_UP).try_for_each(|_| call())?;
            let (done, allocated) = allocations::during(&mut call);
            done?;
            Ok(allocated.context("this program's allocator does not count")?.count as f64)
        })
    })
    .in_unit("allocs/op")
    .at_most(0.0)
    .in_summary()
}

fn by_pipe(circuit: &Circuit, counter: Counter) -> anyhow::Result<Pipe<u64>> {
    Ok(end(circuit, counter)?)
}

fn by_lane(circuit: &Circuit, counter: Counter) -> anyhow::Result<(Lane, Pipe<u64>)> {
    Ok((circuit.lane()?, end(circuit, counter)?))
}
