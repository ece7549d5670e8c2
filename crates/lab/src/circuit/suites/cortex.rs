//! `CortexOps`: what exists without a circuit, and circuits.

use crate::micro::benchmark::{Benchmark, each};
use std::hint::black_box;
use tidemark_circuit::{Circuit, Current, Flow, Name, Receptor, Scope, Slot, State, name};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    all.extend(Benchmark::with_batch(
        "CortexOps.circuit",
        "making a circuit and dropping it; the shared pool would run it",
        |_| each(|_| Circuit::new()),
    ));
    all.push(Benchmark::new(
        "CortexOps.circuit_named",
        "making a circuit with a name and dropping it",
        |_| each(|_| Circuit::builder().name(name!("bench")).build()),
    ));
    all.push(Benchmark::new("CortexOps.current", "the identity of the calling thread as a context", |_| {
        each(|_| Current::here())
    }));
    all.extend(Benchmark::with_batch("CortexOps.scope", "making a scope and dropping it", |_| {
        each(|_| Scope::new())
    }));
    all.push(Benchmark::new("CortexOps.scope_named", "making a scope with a name and dropping it", |_| {
        each(|_| Scope::named(name!("bench")))
    }));
    all.extend(names());
    all.extend(pipes());
    all.extend(slots());
    all
}

fn names() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new("CortexOps.name_class", "the name of a type", |_| each(|_| Name::of::<Circuit>())),
        Benchmark::new("CortexOps.name_enum", "a name from a literal that was used before", |_| {
            each(|_| name!("bench.first"))
        }),
        Benchmark::new("CortexOps.name_iterable", "a name from three parts in an array", |_| {
            each(|_| Name::from_parts(black_box(["first", "second", "third"])))
        }),
    ];
    all.extend(Benchmark::with_batch("CortexOps.name_path", "a name of three parts from its text", |_| {
        each(|_| Name::new(black_box("first.second.third")))
    }));
    all.extend(Benchmark::with_batch("CortexOps.name_string", "a name of one part from its text", |_| {
        each(|_| Name::new(black_box("first")))
    }));
    all
}

fn pipes() -> Vec<Benchmark> {
    let mut all = vec![Benchmark::new(
        "CortexOps.pipe_transform",
        "making a receptor with a map ahead of it, behind a trait object; no circuit",
        |_| {
            let flow = Flow::new().map(|value: u64| value.wrapping_mul(2));
            each(move |_| {
                let receptor = black_box(&flow).receptor(|value| {
                    black_box(value);
                })?;
                Ok::<Box<dyn Receptor<u64>>, tidemark_circuit::Fault>(Box::new(receptor))
            })
        },
    )];
    all.extend(Benchmark::with_batch(
        "CortexOps.pipe_empty",
        "making a receptor that does nothing, behind a trait object; no circuit",
        |_| each(|_| -> Box<dyn Receptor<u64>> { Box::new(|_: u64| {}) }),
    ));
    all.extend(Benchmark::with_batch(
        "CortexOps.pipe_observer",
        "making a receptor that keeps a sum, behind a trait object; no circuit",
        |_| {
            each(|first| -> Box<dyn Receptor<u64>> {
                let mut sum = first;
                Box::new(move |value: u64| sum = black_box(sum.wrapping_add(value)))
            })
        },
    ));
    all
}

fn slots() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new("CortexOps.slot_boolean", "a slot with a bool", |_| {
            each(|_| Slot::new(name!("slot"), black_box(true)))
        }),
        Benchmark::new("CortexOps.slot_double", "a slot with an f64", |_| {
            each(|_| Slot::new(name!("slot"), black_box(4.2)))
        }),
        Benchmark::new("CortexOps.slot_int", "a slot with an i32", |_| {
            each(|_| Slot::new(name!("slot"), black_box(42)))
        }),
        Benchmark::new("CortexOps.slot_long", "a slot with an i64", |_| {
            each(|_| Slot::new(name!("slot"), black_box(42_i64)))
        }),
        Benchmark::new("CortexOps.slot_string", "a slot with a text made for it, and dropping it", |_| {
            each(|_| Slot::new(name!("slot"), black_box("value").to_owned()))
        }),
    ];
    all.extend(Benchmark::with_batch("CortexOps.state_empty", "the empty state", |_| {
        each(|_| State::empty())
    }));
    all
}
