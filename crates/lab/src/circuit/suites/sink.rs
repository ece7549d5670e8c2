//! `SinkOps` of the original's newer suite: values with their origin.

use super::channel;
use crate::circuit::batch::{Batch, end};
use crate::micro::benchmark::Benchmark;
use tidemark_circuit::{Capture, name};

pub(super) fn suite() -> [Benchmark; 2] {
    [
        Batch::new("SinkOps.baseline_emit_batch", "a conduit's pipe with a receptor", |circuit, counter| {
            let conduit = circuit.conduit::<u64>()?;
            channel::count(circuit, &conduit, counter)?;
            Ok(conduit.get(name!("bench")).clone())
        })
        .with_one_value()
        .row(),
        Batch::new(
            "SinkOps.sink_emit_batch",
            "a sink's pipe, captured and counted at its endpoint",
            |circuit, counter| {
                let endpoint = end::<Capture<u64>>(circuit, counter)?;
                Ok(circuit.sink(&endpoint)?.get(name!("bench")).clone())
            },
        )
        .with_one_value()
        .row(),
    ]
}
