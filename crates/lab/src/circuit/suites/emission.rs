//! `PipeOps`, the rows that enter a circuit, and beside the original's the honest ones: many emissions, one await, and every
//! value counted.

use crate::circuit::benchmark::{Benchmark, Work, each};
use crate::circuit::rig::{By, Rig, Way};
use crate::circuit::tally::{Counter, Tally};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidemark_circuit::{Circuit, Fault, Fiber, Flow, Pipe, Receptor, Registrar, Subject, name};

/// Makes a scenario's circuit.
type MakeRig = fn() -> anyhow::Result<Rig>;

/// Makes the way behind a pipe, at whose end values are counted.
type Topology = fn(&Circuit, Counter, u64) -> Result<Pipe<u64>, Fault>;

const EMISSIONS_AND_AWAIT: &str = "10,000 emissions and one await, each, and every value counted";

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = asynchronous();
    all.extend(admissions());
    all.extend(awaited());
    all.extend(ways());
    all
}

/// Emission to a circuit, under the original's name and with the draining in the measured time.
fn asynchronous() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "PipeOps.emit_to_async_pipe",
            "emission into a circuit that a pool runs meanwhile, until it returns; after 10,000 the circuit is drained and \
             the values counted, outside of the measured time: see emit_to_async_pipe_batch",
            |sizes| admission(Rig::new(By::Pool)?, sizes.batch, shared),
        )
        .at_most(8.0),
    ];
    let circuits: [(&str, &str, MakeRig); 4] = [
        ("", "the shared pool runs the circuit", || Rig::new(By::Pool)),
        ("_pool", "a pool with one thread runs it, on a core of its own", || Rig::apart(By::Pool)),
        ("_thread", "a thread runs it, on a core of its own", || Rig::apart(By::Thread)),
        ("_waiters", "the thread that awaits runs it", || Rig::new(By::Waiters)),
    ];
    for (suffix, who, rig) in circuits {
        let name = format!("PipeOps.emit_to_async_pipe_batch{suffix}");
        let measures = format!("{EMISSIONS_AND_AWAIT}; {who}");
        all.push(
            Benchmark::new(
                name.clone(),
                format!("{measures}; by a pipe as all threads may use it"),
                move |sizes| batch(rig()?, sizes.batch, shared),
            )
            .at_most(8.0),
        );
        all.push(
            Benchmark::new(
                format!("{name}_lane"),
                format!("{measures}; by a lane of the caller's own"),
                move |sizes| batch(rig()?, sizes.batch, own_lane),
            )
            .at_most(8.0),
        );
    }
    all
}

/// What the caller pays while another core drains.
fn admissions() -> [Benchmark; 4] {
    let measures = |by: &str, until: &str| {
        format!(
            "emission by {by} into a circuit that drains meanwhile on another core, {until}; 10,000 at a time, counted"
        )
    };
    let returned = "until the last one has returned";
    let drained = "until the last one is handled";
    let (lane, pipe) = ("a lane of the caller's own", "a pipe as all threads may use it");
    [
        Benchmark::new("PipeOps.admission_by_lane", measures(lane, returned), |sizes| {
            admission(Rig::apart(By::Thread)?, sizes.batch, own_lane)
        })
        .at_most(2.0),
        Benchmark::new("PipeOps.admission_by_lane_batch", measures(lane, drained), |sizes| {
            batch(Rig::apart(By::Thread)?, sizes.batch, own_lane)
        })
        .at_most(8.0),
        Benchmark::new("PipeOps.admission_by_pipe", measures(pipe, returned), |sizes| {
            admission(Rig::apart(By::Thread)?, sizes.batch, shared)
        })
        .at_most(7.0),
        Benchmark::new("PipeOps.admission_by_pipe_batch", measures(pipe, drained), |sizes| {
            batch(Rig::apart(By::Thread)?, sizes.batch, shared)
        })
        .at_most(8.0),
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
            format!("{EMISSIONS_AND_AWAIT} by an atomic addition; the shared pool runs the circuit"),
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
                    emit_all(&mut pipe.clone(), count);
                    rig.settle()?;
                    let took = clock.elapsed();
                    let arrived = counter.swap(0, Ordering::Relaxed);
                    anyhow::ensure!(arrived == count, "{arrived} values arrived where {count} should have");
                    Ok(took)
                })
            },
        ),
    ];
    let circuits: [(&str, &str, Option<f64>, MakeRig); 4] = [
        ("waiters", "the thread that awaits runs it", Some(25.0), || Rig::new(By::Waiters)),
        ("thread", "a thread runs it, on a core of its own", Some(600.0), || Rig::apart(By::Thread)),
        ("pool", "the shared pool runs it", None, || Rig::new(By::Pool)),
        ("pool_apart", "a pool with one thread runs it, on a core of its own", None, || Rig::apart(By::Pool)),
    ];
    for (suffix, who, target, rig) in circuits {
        let name = format!("PipeOps.emit_with_await_{suffix}");
        let measures =
            format!("an emission into a circuit and an await of it, one after the other, counted; {who}");
        let benchmark = Benchmark::new(name, measures, move |sizes| round_trips(rig()?, sizes.round_trips));
        all.push(match target {
            Some(target) => benchmark.at_most(target),
            None => benchmark,
        });
    }
    all
}

/// The ways of `pipe.rs` within a circuit.
fn ways() -> Vec<Benchmark> {
    let mut all = vec![
        way("emit_no_await_batch", "a pipe to a receptor", 1, 1, |circuit, counter, _| end(circuit, counter)),
        way("emit_to_receptor_pipe_batch", "a pipe to a receptor", 1, 1, |circuit, counter, _| {
            end(circuit, counter)
        }),
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
        let name = format!("emit_chain_depth_{depth}_batch");
        all.push(way(
            &name,
            &format!("{depth} pipes ahead of a pipe, one behind the other"),
            depth,
            1,
            chain,
        ));
    }
    for width in [1, 5, 10, 20] {
        let name = format!("emit_fanout_width_{width}_batch");
        all.push(way(&name, &format!("a conduit's pipe with {width} receptors"), width, width, fan_out));
        let what = format!("a pipe to {width} pipes of the circuit");
        all.push(way(&format!("{name}_pipes"), &what, width, width, pipes));
    }
    all
}

/// A row of a way within a circuit on which each emission arrives so often.
fn way(name: &str, what: &str, size: u64, arrivals: u64, topology: Topology) -> Benchmark {
    let measures = format!("{EMISSIONS_AND_AWAIT}; {what}; the thread that awaits runs the circuit");
    Benchmark::new(format!("PipeOps.{name}"), measures, move |sizes| {
        let (rig, count) = (Rig::new(By::Waiters)?, sizes.batch);
        let mut tally = Tally::default();
        let mut pipe = topology(&rig, tally.counter(), size)?;
        Work::calls(count, move || {
            let clock = Instant::now();
            emit_all(&mut pipe, count);
            rig.settle()?;
            let took = clock.elapsed();
            tally.expect(count * arrivals)?;
            Ok(took)
        })
    })
}

fn end(circuit: &Circuit, counter: Counter) -> Result<Pipe<u64>, Fault> {
    circuit.pipe(move |value: u64| counter.count(value))
}

fn chain(circuit: &Circuit, counter: Counter, depth: u64) -> Result<Pipe<u64>, Fault> {
    let one = Fiber::new().replace(|value: u64| value.wrapping_add(1));
    (0..depth).try_fold(end(circuit, counter)?, |next, _| next.prepend(&one))
}

fn fan_out(circuit: &Circuit, counter: Counter, width: u64) -> Result<Pipe<u64>, Fault> {
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

fn pipes(circuit: &Circuit, counter: Counter, width: u64) -> Result<Pipe<u64>, Fault> {
    let targets = (0..width).map(|_| end(circuit, counter.clone())).collect::<Result<Vec<_>, _>>()?;
    circuit.fan_out(&targets)
}

fn shared(_: &Circuit, pipe: Pipe<u64>) -> Result<Pipe<u64>, Fault> {
    Ok(pipe)
}

fn own_lane(circuit: &Circuit, pipe: Pipe<u64>) -> Result<(tidemark_circuit::Lane, Pipe<u64>), Fault> {
    Ok((circuit.lane()?, pipe))
}

#[inline]
fn emit_all(way: &mut impl Way, count: u64) {
    for value in 0..count {
        way.emit(black_box(value));
    }
}

/// Emissions in the measured time; draining and counting outside of it.
fn admission<W: Way>(
    rig: Rig,
    count: u64,
    open: fn(&Circuit, Pipe<u64>) -> Result<W, Fault>,
) -> anyhow::Result<Work> {
    let mut tally = Tally::default();
    let mut way = open(&rig, end(&rig, tally.counter())?)?;
    Work::calls(count, move || {
        let clock = Instant::now();
        emit_all(&mut way, count);
        let took = clock.elapsed();
        rig.settle()?;
        tally.expect(count)?;
        Ok(took)
    })
}

/// Emissions and one await in the measured time.
fn batch<W: Way>(
    rig: Rig,
    count: u64,
    open: fn(&Circuit, Pipe<u64>) -> Result<W, Fault>,
) -> anyhow::Result<Work> {
    let mut tally = Tally::default();
    let mut way = open(&rig, end(&rig, tally.counter())?)?;
    Work::calls(count, move || {
        let clock = Instant::now();
        emit_all(&mut way, count);
        rig.settle()?;
        let took = clock.elapsed();
        tally.expect(count)?;
        Ok(took)
    })
}

/// Emissions with an await behind each.
fn round_trips(rig: Rig, count: u64) -> anyhow::Result<Work> {
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
