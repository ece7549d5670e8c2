//! `PortOps` of the original's newer suite: a value that all threads change and that is read later.

use crate::circuit::batch::{Batch, end};
use crate::circuit::rig::Way;
use crate::micro::benchmark::Benchmark;
use crate::micro::tally::Counter;
use std::hint::black_box;
use tidemark_circuit::{Circuit, Pipe, Port};

pub(super) fn suite() -> Vec<Benchmark> {
    vec![
        Batch::new("PortOps.baseline_empty_pipe_batch", "a pipe to a receptor", |circuit, counter| {
            Ok(end::<u64>(circuit, counter)?)
        })
        .row(),
        Batch::new("PortOps.emit_batch", "having a port's value emitted to a pipe", |circuit, counter| {
            let port = circuit.port(0)?;
            let target = end(circuit, counter)?;
            Ok(Changing { act: move |port: &Port<u64>, _| port.emit(&target), port, proof: None })
        })
        .row(),
        Batch::new(
            "PortOps.update_batch",
            "having one added to a port's value, which counts",
            |circuit, counter| changing(circuit, counter, |port, _| port.update(|held| held + 1)),
        )
        .row(),
        Batch::new(
            "PortOps.update_arg_batch",
            "having one added to a port's value, which counts, with an argument",
            |circuit, counter| {
                changing(circuit, counter, |port, value| {
                    port.update_with(value, |held, argument| {
                        black_box(argument);
                        held + 1
                    });
                })
            },
        )
        .row(),
        Batch::new(
            "PortOps.replace_batch",
            "having a port's value replaced; the last is verified, and nothing else is to be counted",
            |circuit, counter| {
                let port = circuit.port(0)?;
                let proof = Proof::of_last(circuit, counter)?;
                Ok(Changing { act: |port: &Port<u64>, value| port.replace(value), port, proof: Some(proof) })
            },
        )
        .arriving(|count| count..=count + FIRST)
        .row(),
    ]
}

/// Maximum of the first emitted value.
const FIRST: u64 = 64;

/// An operation on a port for each value.
struct Changing<F> {
    port: Port<u64>,
    act: F,
    proof: Option<Proof>,
}

/// Pipe to which a port's value is emitted at the end, for the check of it.
struct Proof(Pipe<u64>);

impl Proof {
    /// Takes the port's value as the total number of arrivals.
    fn of_last(circuit: &Circuit, counter: Counter) -> anyhow::Result<Self> {
        Ok(Proof(circuit.pipe(move |count: u64| counter.count_in_all(count))?))
    }
}

fn changing<F>(circuit: &Circuit, counter: Counter, act: F) -> anyhow::Result<Changing<F>>
where
    F: Fn(&Port<u64>, u64) + 'static,
{
    Ok(Changing { port: circuit.port(0)?, act, proof: Some(Proof::of_last(circuit, counter)?) })
}

impl<F: Fn(&Port<u64>, u64) + 'static> Way for Changing<F> {
    #[inline]
    fn emit(&mut self, value: u64) {
        (self.act)(&self.port, value);
    }

    fn finish(&mut self, circuit: &Circuit, _: u64) -> anyhow::Result<()> {
        if let Some(Proof(target)) = &self.proof {
            self.port.emit(target);
            circuit.settle()?;
        }
        Ok(())
    }
}
