//! `ChannelOps` and `MirrorOps` of the original's newer suite: emissions by a conduit's pipe to
//! subscribers or to none, and through a second conduit.

use crate::circuit::batch::{Batch, ahead, end};
use crate::micro::benchmark::Benchmark;
use crate::micro::tally::Counter;
use tidemark_circuit::operator::Plan;
use tidemark_circuit::{Circuit, Conduit, Fault, Fiber, Flow, Pipe, Registrar, Subject, name};

/// Subscribes to a conduit and ends in the counter.
type Listen = fn(&Circuit, &Conduit<u64>, Counter) -> anyhow::Result<()>;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = channels();
    all.extend(mirrors());
    all
}

fn channels() -> Vec<Benchmark> {
    let rows: [(&str, &str, u64, Listen); 3] = [
        ("observed", "a conduit's pipe with a receptor", 1, |circuit, conduit, counter| {
            Ok(count(circuit, conduit, counter)?)
        }),
        ("piped", "a conduit's pipe with a pipe of the circuit", 1, |circuit, conduit, counter| {
            to_pipe(circuit, conduit, end(circuit, counter)?)
        }),
        ("unobserved", "a conduit's pipe without subscribers", 0, |_, _, _| Ok(())),
    ];
    let mut all = Vec::new();
    for (name, what, times, listen) in rows {
        let batch = |suffix: &str| to_conduit(&format!("ChannelOps.{name}_emit_{suffix}"), what, listen);
        all.push(batch("admission_batch").arriving_times(times).until_returned().row());
        all.push(batch("batch").arriving_times(times).row());
    }
    let composed = to_conduit(
        "ChannelOps.composed_emit_batch",
        "a conduit's pipe with a guard ahead of a pipe of the circuit",
        |circuit, conduit, counter| {
            to_pipe(circuit, conduit, ahead(circuit, counter, &Fiber::new().guard(|_: &u64| true))?)
        },
    );
    all.push(composed.row());
    all
}

fn mirrors() -> [Benchmark; 4] {
    let mirrored = |name: &str, what: &str, listen: Listen| {
        to_conduit(&format!("MirrorOps.{name}"), &format!("a conduit's pipe, {what}"), listen)
    };
    [
        mirrored("baseline_emit_batch", "with a receptor", |circuit, conduit, counter| {
            Ok(count(circuit, conduit, counter)?)
        })
        .row(),
        mirrored(
            "mirror_emit_identity_batch",
            "mirrored to another with a receptor",
            |circuit, conduit, counter| {
                mirror(circuit, conduit, &Flow::<u64>::new().map(|value| value), counter)
            },
        )
        .row(),
        mirrored(
            "mirror_emit_multi_batch",
            "mirrored to two others with a receptor each",
            |circuit, conduit, counter| {
                let identity = Flow::<u64>::new().map(|value| value);
                mirror(circuit, conduit, &identity, counter.clone())?;
                mirror(circuit, conduit, &identity, counter)
            },
        )
        .arriving_times(2)
        .row(),
        mirrored(
            "mirror_emit_string_batch",
            "mirrored as texts to another with a receptor",
            |circuit, conduit, counter| {
                mirror(circuit, conduit, &Flow::<u64>::new().map(|value| value.to_string()), counter)
            },
        )
        .row(),
    ]
}

/// Emissions of one value to a conduit's pipe.
fn to_conduit(
    name: &str,
    what: &str,
    listen: Listen,
) -> Batch<impl Fn(&Circuit, Counter) -> anyhow::Result<Pipe<u64>> + 'static + use<>> {
    Batch::new(name, what, move |circuit: &Circuit, counter| {
        let conduit = circuit.conduit()?;
        listen(circuit, &conduit, counter)?;
        Ok(conduit.get(name!("channel")).clone())
    })
    .with_one_value()
}

/// Counts the emissions of a conduit's pipes.
pub(super) fn count<E: Clone + Send + 'static>(
    circuit: &Circuit,
    conduit: &Conduit<E>,
    counter: Counter,
) -> Result<(), Fault> {
    let subscriber = circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, E>| {
        let counter = counter.clone();
        registrar.receptor(move |value: E| counter.count(value));
    })?;
    conduit.subscribe(&subscriber).map(drop)
}

fn to_pipe(circuit: &Circuit, conduit: &Conduit<u64>, pipe: Pipe<u64>) -> anyhow::Result<()> {
    let subscriber =
        circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| registrar.pipe(&pipe))?;
    conduit.subscribe(&subscriber)?;
    Ok(())
}

fn mirror<O, R>(
    circuit: &Circuit,
    conduit: &Conduit<u64>,
    flow: &Flow<u64, O, R>,
    counter: Counter,
) -> anyhow::Result<()>
where
    O: Clone + Send + 'static,
    R: Plan<u64, Out = O>,
{
    let mirror = circuit.conduit::<O>()?;
    conduit.subscribe(&circuit.subscriber_to(mirror.pool(flow))?)?;
    Ok(count(circuit, &mirror, counter)?)
}
