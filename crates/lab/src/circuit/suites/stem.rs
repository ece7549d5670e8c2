//! `StemOps` of the original's newer suite: emissions that also reach subscribers of the enclosing
//! names.

use crate::circuit::batch::Batch;
use crate::micro::benchmark::Benchmark;
use crate::micro::tally::Counter;
use tidemark_circuit::{Circuit, Conduit, Name, Pipe, Registrar, Routing, Subject, name};

/// Numbers of parts in the emitting name.
const DEPTHS: [u64; 4] = [1, 3, 5, 10];

pub(super) fn suite() -> Vec<Benchmark> {
    DEPTHS.into_iter().flat_map(at_depth).collect()
}

fn at_depth(depth: u64) -> [Benchmark; 3] {
    let row = |name: &str, what: &str, wire: fn(&Circuit, Counter) -> anyhow::Result<Conduit<u64>>| {
        let what = format!("a name of {depth} parts, {what}");
        Batch::new(format!("StemOps.{name}_depth_{depth}"), what, move |circuit, counter| {
            leaf(&wire(circuit, counter)?, depth)
        })
        .with_one_value()
    };
    [
        row("baseline_emit_batch", "whose emissions reach only its own subscribers", |circuit, counter| {
            counted(circuit, Routing::Pipe, counter)
        })
        .row(),
        row("stem_emit_batch", "by the conduit's routing to all above it", |circuit, counter| {
            counted(circuit, Routing::Stem, counter)
        })
        .arriving_times(depth)
        .row(),
        row("subscriber_emit_batch", "each by a subscriber to the one above it", chained)
            .arriving_times(depth)
            .row(),
    ]
}

/// A conduit with a counting receptor for each name.
fn counted(circuit: &Circuit, routing: Routing, counter: Counter) -> anyhow::Result<Conduit<u64>> {
    let conduit = circuit.conduit_with(routing)?;
    conduit.subscribe(&circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| {
        let counter = counter.clone();
        registrar.receptor(move |value| counter.count(value));
    })?)?;
    Ok(conduit)
}

/// A conduit with a counting receptor for each name, and the pipe of the name above it.
fn chained(circuit: &Circuit, counter: Counter) -> anyhow::Result<Conduit<u64>> {
    let conduit = circuit.conduit()?;
    let own = conduit.clone();
    conduit.subscribe(&circuit.subscriber(
        move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
            let counter = counter.clone();
            registrar.receptor(move |value| counter.count(value));
            if let Some(above) = subject.name().enclosure() {
                registrar.pipe(own.get(above));
            }
        },
    )?)?;
    Ok(conduit)
}

fn leaf(conduit: &Conduit<u64>, depth: u64) -> anyhow::Result<Pipe<u64>> {
    let name = (1..depth).try_fold(name!("leaf"), |name: Name, part| name.extend(&format!("d{part}")))?;
    Ok(conduit.get(name).clone())
}
