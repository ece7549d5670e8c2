//! `BasinOps` of the original's newer suite: keeping the newest values.

use crate::circuit::batch::{Batch, end};
use crate::circuit::rig::Way;
use crate::micro::benchmark::Benchmark;
use crate::micro::tally::Counter;
use tidemark_circuit::{Basin, Circuit, ContextError, Pipe, name};

/// Capacity of a basin that loses most of its values.
const SMALL: usize = 1_024;
/// Capacity of a basin that loses none.
const LARGE: usize = 10_000;

pub(super) fn suite() -> [Benchmark; 3] {
    [
        Batch::new("BasinOps.baseline_emit_batch", "a conduit's pipe without subscribers", |circuit, _| {
            Ok(circuit.conduit::<u64>()?.get(name!("bench")).clone())
        })
        .with_one_value()
        .arriving_times(0)
        .row(),
        Batch::new(
            "BasinOps.basin_emit_batch",
            "a basin for 1,024 values, so that most are lost again; what is left is drained outside of the measured time",
            |circuit, counter| filling(circuit, counter, SMALL, false),
        )
        .with_one_value()
        .arriving(|count| count.min(SMALL as u64)..=count.min(SMALL as u64))
        .row(),
        Batch::new(
            "BasinOps.basin_burst_then_drain_batch",
            "a basin for all of them, and draining it, with a second await",
            |circuit, counter| filling(circuit, counter, LARGE, true),
        )
        .with_one_value()
        .row(),
    ]
}

/// Emissions into a basin.
struct Filling {
    basin: Basin<u64>,
    pipe: Pipe<u64>,
    target: Pipe<u64>,
    /// Whether draining is part of the measurement.
    drained: bool,
}

fn filling(circuit: &Circuit, counter: Counter, capacity: usize, drained: bool) -> anyhow::Result<Filling> {
    let basin = circuit.basin(capacity)?;
    Ok(Filling { pipe: basin.pipe().clone(), basin, target: end(circuit, counter)?, drained })
}

impl Way for Filling {
    #[inline]
    fn emit(&mut self, value: u64) {
        self.pipe.emit(value);
    }

    fn settle(&mut self, circuit: &Circuit) -> Result<(), ContextError> {
        circuit.settle()?;
        if self.drained {
            self.basin.drain(&self.target);
            circuit.settle()?;
        }
        Ok(())
    }

    fn finish(&mut self, circuit: &Circuit, _: u64) -> anyhow::Result<()> {
        if !self.drained {
            self.basin.drain(&self.target);
            circuit.settle()?;
        }
        Ok(())
    }
}
