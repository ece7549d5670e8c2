//! What circuits cost while nothing happens.

use crate::allocations::{self, Allocations};
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tidemark_circuit::{Circuit, Pipe};

/// How many times a rest is taken for others to give back memory, at most.
const QUIET_TRIES: u32 = 50;

pub(super) fn suite() -> Vec<Benchmark> {
    vec![
        Benchmark::new(
            "CircuitOps.idle_memory",
            "what each of 100,000 circuits keeps that have been made and nothing else: what was asked of the allocator, or what \
             the process has become larger by where it does not count (-f 1 then has it begin small)",
            |sizes| {
                let (count, rest) = (sizes.idle_circuits, sizes.idle_time / 10);
                Work::amounts(count, move || {
                    kept_bytes(rest, || Ok((0..count).map(|_| Circuit::new()).collect::<Vec<_>>()))
                })
            },
        )
        .in_unit("B/circuit")
        .at_most(1024.0)
        .in_summary(),
        Benchmark::new(
            "CircuitOps.idle_memory_used",
            "the same of 100,000 circuits with one pipe each, by which one value has come and was handled and counted",
            |sizes| {
                let (count, rest) = (sizes.idle_circuits, sizes.idle_time / 10);
                Work::amounts(count, move || kept_bytes(rest, || used(count)))
            },
        )
        .in_unit("B/circuit")
        .at_most(1024.0)
        .in_summary(),
        Benchmark::new(
            "CircuitOps.idle_processor",
            "processor time of all threads while 100,000 circuits that have each handled a value have nothing to do, for three \
             seconds, by second; the one that looks at the clock takes some twenty",
            |sizes| {
                let (count, time) = (sizes.idle_circuits, sizes.idle_time);
                Work::amounts(1, move || {
                    let circuits = used(count)?;
                    // The pool's threads look for more for some microseconds before they sleep.
                    std::thread::sleep(time / 10);
                    let before = processor_time();
                    std::thread::sleep(time);
                    let took = processor_time().saturating_sub(before);
                    drop(circuits);
                    Ok(took.as_secs_f64() * 1e6 / time.as_secs_f64())
                })
            },
        )
        .in_unit("us/s")
        .at_most(100.0)
        .in_summary(),
    ]
}

/// Circuits that have each handled one value.
fn used(count: u64) -> anyhow::Result<Vec<(Circuit, Pipe<u64>)>> {
    let mut circuits = Vec::with_capacity(count as usize);
    for value in 0..count {
        let mut tally = Tally::default();
        let (circuit, counter) = (Circuit::new(), tally.counter());
        let pipe = circuit.pipe(move |value: u64| counter.count(value))?;
        pipe.emit(value);
        circuit.settle()?;
        tally.expect(1)?;
        circuits.push((circuit, pipe));
    }
    Ok(circuits)
}

/// How much more memory there is in use while what is made exists, and has had a rest in which others tidy up behind it.
fn kept_bytes<T>(rest: Duration, make: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<f64> {
    wait_for_quiet(rest);
    let resident = resident_bytes()?;
    let (made, allocated) = allocations::during(|| {
        let made = make();
        std::thread::sleep(rest);
        made
    });
    let made = made?;
    let bytes = match allocated {
        Some(allocated) => allocated.kept_bytes as f64,
        None => resident_bytes()?.saturating_sub(resident) as f64,
    };
    drop(made);
    Ok(bytes)
}

/// Waits until what was dropped before is given back, which a pool's threads do in their own time.
fn wait_for_quiet(rest: Duration) {
    for _ in 0..QUIET_TRIES {
        let ((), allocated) = allocations::during(|| std::thread::sleep(rest));
        if allocated.unwrap_or_default() == Allocations::default() {
            return;
        }
    }
}

fn resident_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/statm").context("cannot read /proc/self/statm")?;
    let pages: u64 = status.split(' ').nth(1).context("/proc/self/statm has no second number")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
