//! `CircuitOps`: creating circuits and their components, closing and awaiting them.

use crate::circuit::making::making;
use crate::circuit::rig::{By, Rig};
use crate::micro::benchmark::{Benchmark, Work, each};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::time::Instant;
use tidemark_circuit::operator::Plan;
use tidemark_circuit::{Circuit, Fault, Fiber, RunBy, name};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = waiting();
    all.extend(hot());
    all.extend(lifetimes());
    all
}

fn waiting() -> Vec<Benchmark> {
    let idle = |by| {
        move |_: &_| {
            let rig = Rig::new(by)?;
            rig.settle()?;
            each(move |_| rig.settle())
        }
    };
    vec![
        Benchmark::new(
            "CircuitOps.hot_await_queue_drain",
            "an await of a circuit that has nothing to do; the shared pool runs it: see hot_await_queue_drain_batch",
            idle(By::Pool),
        )
        .at_most(1.0)
        .in_summary(),
        Benchmark::new(
            "CircuitOps.hot_await_queue_drain_thread",
            "an await of a circuit that has nothing to do; a thread runs it",
            idle(By::Thread),
        )
        .at_most(1.0),
        Benchmark::new(
            "CircuitOps.hot_await_queue_drain_waiters",
            "an await of an idle circuit; the waiter runs it",
            idle(By::Waiters),
        )
        .at_most(1.0),
        Benchmark::new(
            "CircuitOps.hot_await_queue_drain_batch",
            "an await that handles 10,000 values which wait in the queue, each, counted; the thread that awaits runs the \
             circuit; emitting them is not in the measured time",
            |sizes| {
                let (rig, count) = (Rig::new(By::Waiters)?, sizes.batch);
                let mut tally = Tally::default();
                let counter = tally.counter();
                let pipe = rig.pipe(move |value: u64| counter.count(value))?;
                Work::calls(count, move || {
                    for value in 0..count {
                        pipe.emit(black_box(value));
                    }
                    let clock = Instant::now();
                    rig.settle()?;
                    let took = clock.elapsed();
                    tally.expect(count)?;
                    Ok(took)
                })
            },
        ),
    ]
}

/// Components of an existing circuit.
fn hot() -> Vec<Benchmark> {
    vec![
        making("CircuitOps.hot_pipe_async", "a pipe", |_| Ok(|circuit: &Circuit| circuit.pipe(|_: u64| {}))),
        making("CircuitOps.hot_pipe_async_with_flow", "a pipe with a guard ahead of it", |_| {
            let guard = guard();
            Ok(move |circuit: &Circuit| circuit.pipe(|_: u64| {})?.prepend(&guard))
        }),
        making("CircuitOps.hot_conduit_create", "a conduit", |_| {
            Ok(|circuit: &Circuit| circuit.conduit::<u64>())
        }),
        making("CircuitOps.hot_conduit_create_named", "a conduit with a name", |_| {
            Ok(|circuit: &Circuit| circuit.named(name!("bench")).conduit::<u64>())
        }),
        making(
            "CircuitOps.hot_conduit_create_with_flow",
            "a conduit and its pool of pipes with a guard ahead",
            |_| {
                let guard = guard();
                Ok(move |circuit: &Circuit| circuit.conduit::<u64>().map(|conduit| conduit.pool(&guard)))
            },
        ),
    ]
}

/// Circuits from creation to closing.
fn lifetimes() -> Vec<Benchmark> {
    const POOL: &str = "the shared pool would run it";
    let closing = |name: &str, what: &str, make: fn(&Circuit) -> Result<(), Fault>| {
        Benchmark::new(name, format!("making a circuit, {what}, closing it; {POOL}"), move |_| {
            each(move |_| {
                let circuit = Circuit::new();
                make(&circuit)?;
                circuit.close();
                anyhow::Ok(circuit)
            })
        })
    };
    vec![
        Benchmark::new(
            "CircuitOps.create_and_close",
            format!("making a circuit and closing it; {POOL}"),
            |_| {
                each(|_| {
                    let circuit = Circuit::new();
                    circuit.close();
                    circuit
                })
            },
        )
        .at_most(100.0)
        .in_summary(),
        Benchmark::new(
            "CircuitOps.create_and_close_thread",
            "making a circuit with a thread of its own and closing it; the thread's end is not waited for",
            |_| {
                each(|_| {
                    let circuit = Circuit::builder().run_by(RunBy::Thread).build()?;
                    circuit.close();
                    anyhow::Ok(circuit)
                })
            },
        ),
        Benchmark::new(
            "CircuitOps.create_await_close",
            format!("making a circuit, awaiting it though it has nothing to do, closing it; {POOL}"),
            |_| {
                each(|_| {
                    let circuit = Circuit::new();
                    circuit.settle()?;
                    circuit.close();
                    anyhow::Ok(circuit)
                })
            },
        ),
        Benchmark::new(
            "CircuitOps.create_emit_await_close",
            "making a circuit and a pipe, one emission, an await of it, closing and awaiting the end, counted; the shared \
             pool runs it",
            |_| {
                let mut tally = Tally::default();
                Work::calls(1, move || {
                    let counter = tally.counter();
                    let clock = Instant::now();
                    let circuit = Circuit::new();
                    let pipe = circuit.pipe(move |value: u64| counter.count(value))?;
                    pipe.emit(black_box(1));
                    circuit.settle()?;
                    circuit.close_and_settle()?;
                    drop((pipe, circuit));
                    let took = clock.elapsed();
                    tally.expect(1)?;
                    Ok(took)
                })
            },
        ),
        closing("CircuitOps.conduit_create_close", "a conduit in it", |circuit| {
            drop_made(circuit.conduit::<u64>())
        }),
        closing("CircuitOps.conduit_create_named", "a conduit with a name in it", |circuit| {
            drop_made(circuit.named(name!("bench")).conduit::<u64>())
        }),
        closing(
            "CircuitOps.conduit_create_with_flow",
            "a conduit in it and its pool of pipes with a guard ahead",
            |circuit| drop_made(Ok(circuit.conduit::<u64>()?.pool(&guard()))),
        ),
        closing("CircuitOps.pipe_async", "a pipe in it", |circuit| drop_made(circuit.pipe(|_: u64| {}))),
        closing("CircuitOps.pipe_async_with_flow", "a pipe in it with a guard ahead", |circuit| {
            drop_made(circuit.pipe(|_: u64| {})?.prepend(&guard()))
        }),
    ]
}

fn drop_made<T>(made: Result<T, Fault>) -> Result<(), Fault> {
    made.map(|made| drop(black_box(made)))
}

fn guard() -> Fiber<u64, impl Plan<u64, Out = u64>> {
    Fiber::new().guard(|value: &u64| *value > 0)
}
