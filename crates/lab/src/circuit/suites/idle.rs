//! Cost of idle circuits.

use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::kept::kept_bytes;
use crate::micro::tally::Tally;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tidemark_circuit::{Circuit, Pipe};

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
                    // The pool's threads spin for some microseconds before they park.
                    std::thread::sleep(time / 10);
                    let before = processor_time();
                    std::thread::sleep(time);
                    let took = processor_time().checked_sub(before).expect("processor time grows");
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

/// Returns circuits that have each handled one value.
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

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("a process has used no negative time")
}
