//! `PipeOps` of the original's newer suite: each row has 10,000 emissions, one await and a count of
//! arrivals.

use super::emission::{fan_out, pipes};
use crate::circuit::batch::{Batch, ahead, end};
use crate::circuit::making::making;
use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use tidemark_circuit::operator::Plan;
use tidemark_circuit::{Circuit, Fiber, Registrar, Subject, name};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = emissions();
    all.extend(creations());
    all.push(Benchmark::new("PipeOps.baseline_counter", "an atomic addition; no circuit", |_| {
        let counter = AtomicU64::new(0);
        each(move |_| counter.fetch_add(1, Ordering::Relaxed))
    }));
    all.push(Benchmark::new(
        "PipeOps.baseline_blackhole",
        "what it costs to have a result counted as used, which every row does; no circuit",
        |_| each(|value| value),
    ));
    all
}

fn emissions() -> Vec<Benchmark> {
    vec![
        Batch::new("PipeOps.async_emit_admission_batch", "a pipe to a receptor", |circuit, counter| {
            Ok(end::<u64>(circuit, counter)?)
        })
        .with_one_value()
        .until_returned()
        .row()
        .also(["PipeOps.async_emit_single"])
        .at_most(7.0),
        Batch::new("PipeOps.async_emit_batch", "a pipe to a receptor", |circuit, counter| {
            Ok(end::<u64>(circuit, counter)?)
        })
        .with_one_value()
        .row()
        .also(["PipeOps.async_emit_batch_await"])
        .at_most(8.0)
        .in_summary(),
        Batch::new("PipeOps.async_emit_chained_batch", "a pipe forwarded to twice", |circuit, counter| {
            let forwarded = circuit.forward(&end(circuit, counter)?)?;
            Ok(circuit.forward(&forwarded)?)
        })
        .with_one_value()
        .row()
        .also(["PipeOps.async_emit_chained_await"]),
        Batch::new(
            "PipeOps.async_emit_fanout_batch",
            "a conduit's pipe with three receptors",
            |circuit, counter| Ok(fan_out(circuit, counter, 3)?),
        )
        .with_one_value()
        .arriving_times(3)
        .row()
        .also(["PipeOps.async_emit_fanout_await"]),
        Batch::new(
            "PipeOps.async_emit_registered_fanout_batch",
            "a conduit's pipe with three pipes of the circuit, each of which queues",
            |circuit, counter| {
                let conduit = circuit.conduit()?;
                let targets = [(); 3].map(|()| end(circuit, counter.clone()));
                let subscriber =
                    circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
                        targets.iter().flatten().for_each(|target| registrar.pipe(target));
                    })?;
                conduit.subscribe(&subscriber)?;
                Ok(conduit.get(name!("fanout")).clone())
            },
        )
        .with_one_value()
        .arriving_times(3)
        .row(),
        Batch::new(
            "PipeOps.static_fanout_emit_batch",
            "a pipe to three pipes of the circuit",
            |circuit, counter| Ok(pipes(circuit, counter, 3)?),
        )
        .with_one_value()
        .arriving_times(3)
        .row()
        .also(["PipeOps.static_fanout"]),
        Batch::new(
            "PipeOps.async_emit_with_flow_batch",
            "a guard and a diff that all values pass",
            |circuit, counter| ahead(circuit, counter, &guard_diff()),
        )
        .row()
        .also(["PipeOps.async_emit_with_flow_await"]),
        Batch::new(
            "PipeOps.empty_emit_batch",
            "a pipe that discards, so that nothing arrives",
            |circuit, _| Ok(circuit.discard::<u64>()?),
        )
        .with_one_value()
        .arriving_times(0)
        .row(),
    ]
}

fn creations() -> Vec<Benchmark> {
    vec![
        making("PipeOps.pipe_create", "a pipe", |_| Ok(|circuit: &Circuit| circuit.pipe(|_: u64| {}))),
        making("PipeOps.pipe_create_empty", "a pipe that discards", |_| {
            Ok(|circuit: &Circuit| circuit.discard::<u64>())
        }),
        making("PipeOps.pipe_create_fanout", "a pipe to three pipes", |circuit| {
            let targets = vec![circuit.discard::<u64>()?; 3];
            Ok(move |circuit: &Circuit| circuit.fan_out(black_box(&targets)))
        }),
        making("PipeOps.pipe_create_named_fanout", "a pipe with a name to three pipes", |circuit| {
            let targets = vec![circuit.discard::<u64>()?; 3];
            Ok(move |circuit: &Circuit| circuit.named(name!("bench")).fan_out(black_box(&targets)))
        }),
        making("PipeOps.pipe_create_with_flow", "a pipe and one with a guard and a diff ahead of it", |_| {
            let fiber = guard_diff();
            Ok(move |circuit: &Circuit| circuit.discard::<u64>()?.prepend(&fiber))
        }),
        making(
            "PipeOps.pipe_target_same_circuit",
            "a pipe that forwards to one of the same circuit, which is that one",
            |circuit| {
                let target = circuit.discard::<u64>()?;
                Ok(move |circuit: &Circuit| circuit.forward(black_box(&target)))
            },
        ),
    ]
}

fn guard_diff() -> Fiber<u64, impl Plan<u64, Out = u64>> {
    Fiber::new().guard(|value: &u64| *value > 0).diff()
}
