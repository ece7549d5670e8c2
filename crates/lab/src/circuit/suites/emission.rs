//! `PipeOps`, the rows that enter a circuit, with unbiased rows next to the original's: many
//! emissions, one await, and every value counted.

use crate::circuit::batch::{Batch, end};
use crate::circuit::rig::{By, Rig, Runner};
use crate::micro::benchmark::{Benchmark, Work, each};
use crate::micro::tally::{Counter, Tally};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidemark_circuit::{Circuit, Fault, Fiber, Flow, Lane, Pipe, Receptor, Registrar, Subject, name};

/// Builds the topology behind a pipe, which ends in the counter.
type Topology = fn(&Circuit, Counter, u64) -> Result<Pipe<u64>, Fault>;

const BY_PIPE: &str = "by a pipe as all threads may use it";
const BY_LANE: &str = "by a lane of the caller's own";

/// Target cost for the caller of an emission by a shared pipe, in nanoseconds.
const ADMISSION_BY_PIPE: f64 = 7.0;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = asynchronous();
    all.extend(admissions());
    all.extend(awaited());
    all.extend(ways());
    all
}

/// Emission to a circuit. Under the original's name it ends when the emission returns, with a
/// target for that. The rows next to it include the draining, with a target for both.
fn asynchronous() -> Vec<Benchmark> {
    let emission = Batch::new(
        "PipeOps.emit_to_async_pipe",
        "emission into a circuit that runs meanwhile (see emit_to_async_pipe_batch)",
        shared,
    );
    let mut all =
        vec![emission.run_by(Runner::SHARED_POOL).until_returned().row().at_most(ADMISSION_BY_PIPE)];
    let runners = [
        ("", Runner::SHARED_POOL),
        ("_pool", Runner::POOL),
        ("_thread", Runner::THREAD),
        ("_waiters", Runner::WAITERS),
    ];
    for (suffix, runner) in runners {
        let name = format!("PipeOps.emit_to_async_pipe_batch{suffix}");
        all.push(Batch::new(name.clone(), BY_PIPE, shared).run_by(runner).row().at_most(8.0).in_summary());
        all.push(
            Batch::new(format!("{name}_lane"), BY_LANE, own_lane)
                .run_by(runner)
                .row()
                .at_most(8.0)
                .in_summary(),
        );
    }
    all
}

/// The caller's cost while another core drains.
fn admissions() -> [Benchmark; 4] {
    let (lane, pipe) = ("PipeOps.admission_by_lane", "PipeOps.admission_by_pipe");
    [
        Batch::new(lane, BY_LANE, own_lane).until_returned().row().at_most(2.0).in_summary(),
        Batch::new(format!("{lane}_batch"), BY_LANE, own_lane).row().at_most(8.0),
        Batch::new(pipe, BY_PIPE, shared).until_returned().row().at_most(ADMISSION_BY_PIPE).in_summary(),
        Batch::new(format!("{pipe}_batch"), BY_PIPE, shared).row().at_most(8.0),
    ]
}

/// Emissions that are awaited one by one.
fn awaited() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "PipeOps.emit_with_await",
            "a call of a receptor that does nothing, and an await of a circuit that has nothing to do: see \
             emit_with_await_waiters, _thread and _pool",
            |_| {
                let rig = Rig::new(By::Pool)?;
                let mut receptor = |_: u64| {};
                each(move |value| {
                    receptor.receive(value);
                    rig.settle()
                })
            },
        ),
        Benchmark::new(
            "PipeOps.emit_with_counter_await",
            "making a receptor behind a trait object, a call of it that counts, and an await of a circuit that has nothing \
             to do: see emit_with_counter_await_batch",
            |_| {
                let rig = Rig::new(By::Pool)?;
                let counter = Arc::new(AtomicU64::new(0));
                each(move |value| {
                    let counter = Arc::clone(&counter);
                    let mut receptor: Box<dyn Receptor<u64>> = Box::new(move |value| {
                        black_box(value);
                        counter.fetch_add(1, Ordering::Relaxed);
                    });
                    black_box(&mut receptor).receive(value);
                    rig.settle()
                })
            },
        ),
        Benchmark::new(
            "PipeOps.emit_with_counter_await_batch",
            "10,000 emissions and one await, each, and every value counted by an atomic addition; the shared pool runs the \
             circuit",
            |sizes| {
                let rig = Rig::new(By::Pool)?;
                let (count, counter) = (sizes.batch, Arc::new(AtomicU64::new(0)));
                let counted = Arc::clone(&counter);
                let pipe = rig.pipe(move |value: u64| {
                    black_box(value);
                    counted.fetch_add(1, Ordering::Relaxed);
                })?;
                Work::calls(count, move || {
                    let clock = Instant::now();
                    for value in 0..count {
                        pipe.emit(black_box(value));
                    }
                    rig.settle()?;
                    let took = clock.elapsed();
                    let arrived = counter.swap(0, Ordering::Relaxed);
                    anyhow::ensure!(arrived == count, "{arrived} values arrived where {count} should have");
                    Ok(took)
                })
            },
        ),
    ];
    let runners = [
        ("waiters", Runner::WAITERS, Some(25.0)),
        ("thread", Runner::THREAD, Some(600.0)),
        ("pool", Runner::SHARED_POOL, None),
        ("pool_apart", Runner::POOL, None),
    ];
    for (suffix, Runner { driver, rig }, target) in runners {
        let name = format!("PipeOps.emit_with_await_{suffix}");
        let measures =
            format!("an emission into a circuit and an await of it, one after the other, counted; {driver}");
        let benchmark =
            Benchmark::new(name, measures, move |sizes| round_trips(rig()?, sizes.round_trips)).in_summary();
        all.push(match target {
            Some(target) => benchmark.at_most(target),
            None => benchmark,
        });
    }
    all
}

/// The topologies of `pipe.rs` within a circuit.
fn ways() -> Vec<Benchmark> {
    let mut all = vec![
        way("emit_no_await_batch", "a pipe to a receptor", 1, 1, receptor),
        way("emit_to_receptor_pipe_batch", "a pipe to a receptor", 1, 1, receptor),
        way("emit_to_transform_pipe_batch", "a map ahead of a pipe", 1, 1, |circuit, counter, _| {
            end(circuit, counter)?.prepend(&Flow::new().map(|value: u64| value.wrapping_mul(2)))
        }),
        way(
            "emit_to_double_transform_batch",
            "two maps in one flow ahead of a pipe",
            1,
            1,
            |circuit, counter, _| {
                let flow =
                    Flow::new().map(|value: u64| value.wrapping_add(1)).map(|value| value.wrapping_mul(2));
                end(circuit, counter)?.prepend(&flow)
            },
        ),
        way(
            "emit_to_chained_pipes_batch",
            "two pipes, each a map ahead of the next",
            1,
            1,
            |circuit, counter, _| {
                let last =
                    end(circuit, counter)?.prepend(&Flow::new().map(|value: u64| value.wrapping_mul(2)))?;
                last.prepend(&Flow::new().map(|value: u64| value.wrapping_add(1)))
            },
        ),
        way("emit_to_fanout_batch", "a conduit's pipe with three receptors", 3, 3, fan_out),
    ];
    for depth in [1, 5, 10, 20] {
        let what = format!("{depth} pipes ahead of a pipe, one behind the other");
        all.push(way(&format!("emit_chain_depth_{depth}_batch"), &what, depth, 1, chain));
    }
    for width in [1, 5, 10, 20] {
        let name = format!("emit_fanout_width_{width}_batch");
        all.push(way(&name, &format!("a conduit's pipe with {width} receptors"), width, width, fan_out));
        let what = format!("a pipe to {width} pipes of the circuit");
        all.push(way(&format!("{name}_pipes"), &what, width, width, pipes));
    }
    all
}

/// A row of a topology within a circuit in which each emission arrives `arrivals` times.
fn way(name: &str, what: &str, size: u64, arrivals: u64, topology: Topology) -> Benchmark {
    Batch::new(format!("PipeOps.{name}"), what, move |circuit, counter| Ok(topology(circuit, counter, size)?))
        .run_by(Runner::WAITERS)
        .arriving_times(arrivals)
        .row()
}

fn receptor(circuit: &Circuit, counter: Counter, _: u64) -> Result<Pipe<u64>, Fault> {
    end(circuit, counter)
}

fn chain(circuit: &Circuit, counter: Counter, depth: u64) -> Result<Pipe<u64>, Fault> {
    let one = Fiber::new().replace(|value: u64| value.wrapping_add(1));
    (0..depth).try_fold(end(circuit, counter)?, |next, _| next.prepend(&one))
}

pub(super) fn fan_out(circuit: &Circuit, counter: Counter, width: u64) -> Result<Pipe<u64>, Fault> {
    let conduit = circuit.conduit()?;
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
        for _ in 0..width {
            let counter = counter.clone();
            registrar.receptor(move |value| counter.count(value));
        }
    })?;
    conduit.subscribe(&subscriber)?;
    Ok(conduit.get(name!("fanout")).clone())
}

pub(super) fn pipes(circuit: &Circuit, counter: Counter, width: u64) -> Result<Pipe<u64>, Fault> {
    let targets = (0..width).map(|_| end(circuit, counter.clone())).collect::<Result<Vec<_>, _>>()?;
    circuit.fan_out(&targets)
}

fn shared(circuit: &Circuit, counter: Counter) -> anyhow::Result<Pipe<u64>> {
    Ok(end(circuit, counter)?)
}

fn own_lane(circuit: &Circuit, counter: Counter) -> anyhow::Result<(Lane, Pipe<u64>)> {
    Ok((circuit.lane()?, end(circuit, counter)?))
}

/// Emissions that are awaited one by one.
pub(super) fn round_trips(rig: Rig, count: u64) -> anyhow::Result<Work> {
    let mut tally = Tally::default();
    let pipe = end(&rig, tally.counter())?;
    Work::calls(count, move || {
        let clock = Instant::now();
        for value in 0..count {
            pipe.emit(black_box(value));
            rig.settle()?;
        }
        let took = clock.elapsed();
        tally.expect(count)?;
        Ok(took)
    })
}
