//! `CrossCircuitOps` of the original's newer suite: emissions from one circuit to another.

use super::channel;
use crate::circuit::batch::{Batch, end};
use crate::circuit::rig::Way;
use crate::micro::benchmark::Benchmark;
use crate::micro::tally::Counter;
use tidemark_circuit::{Circuit, ContextError, Fault, Pipe, name};

/// Builds the second circuit's part, and the pipe of the first that leads to it.
type Wire = fn(&Circuit, &Circuit, Counter) -> Result<Pipe<u64>, Fault>;

pub(super) fn suite() -> Vec<Benchmark> {
    let rows: [(&str, &str, u64, bool, Wire); 4] = [
        ("cross_circuit_emit_admission_batch", "a pipe", 1, false, to_pipe),
        ("cross_circuit_pipe_emit_batch", "a pipe", 1, true, to_pipe),
        ("cross_circuit_fanout_emit_batch", "two pipes", 2, true, |entry, owner, counter| {
            entry.fan_out(&[end(owner, counter.clone())?, end(owner, counter)?])
        }),
        (
            "cross_circuit_channel_emit_batch",
            "a conduit's pipe with a receptor",
            1,
            true,
            |entry, owner, counter| {
                let conduit = owner.conduit()?;
                channel::count(owner, &conduit, counter)?;
                entry.forward(conduit.get(name!("channel")))
            },
        ),
    ];
    let row = |(name, what, times, is_awaited, wire): (&str, &str, u64, bool, Wire)| {
        let what =
            format!("by one circuit to {what} of another, which the shared pool runs; both are awaited");
        let batch = Batch::new(format!("CrossCircuitOps.{name}"), what, move |entry: &Circuit, counter| {
            let owner = Circuit::new();
            Ok(Crossing { pipe: wire(entry, &owner, counter)?, owner })
        });
        let batch = batch.with_one_value().arriving_times(times);
        if is_awaited { batch.row() } else { batch.until_returned().row() }
    };
    rows.into_iter().map(row).collect()
}

fn to_pipe(entry: &Circuit, owner: &Circuit, counter: Counter) -> Result<Pipe<u64>, Fault> {
    entry.forward(&end(owner, counter)?)
}

/// Emissions into a second circuit.
struct Crossing {
    pipe: Pipe<u64>,
    owner: Circuit,
}

impl Way for Crossing {
    #[inline]
    fn emit(&mut self, value: u64) {
        self.pipe.emit(value);
    }

    fn settle(&mut self, entry: &Circuit) -> Result<(), ContextError> {
        entry.settle()?;
        self.owner.settle()
    }
}
