//! Counters of a circuit.

use crate::circuit::Circuit;
use crate::execution::machine::Machine;

/// Counters of a circuit. Made by [`Circuit::stats`], which has an example.
///
/// Admitted, handled and backlog count *entries* of the circuit's queues. An emission from outside
/// of up to 24 bytes is one entry. A larger one that goes through the shared queue counts one entry
/// per 24 bytes, rounded up. The start or end of a subscription, the drop of a pipe's last handle
/// and the like are one entry each. Emissions of the circuit to itself are not counted: they are
/// part of the entry that caused them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// Entries put into the queues so far. Never decreases.
    pub admitted: u64,
    /// Entries handled with all that they caused; equal to `admitted` once the circuit has ended.
    /// Never decreases. Lags by up to some dozen entries while the circuit runs.
    pub handled: u64,
    /// Waiting entries: `admitted` minus `handled`.
    pub backlog: u64,
    /// Failed callbacks.
    pub failures: u64,
    /// Emissions dropped because the queue was full.
    pub dropped: u64,
}

impl Circuit {
    /// Returns the circuit's counters. May be called from anywhere.
    ///
    /// Costs a few loads, and a lock if there are lanes. Does not stop or slow the circuit. The
    /// numbers are read at slightly different times.
    ///
    /// ```
    /// use tidemark_circuit::{Circuit, RunBy};
    ///
    /// let circuit = Circuit::builder().run_by(RunBy::Owner).build()?;
    /// let pipe = circuit.pipe(|_: u64| ())?;
    /// (0..5).for_each(|value| pipe.emit(value));
    /// assert_eq!((circuit.stats().admitted, circuit.stats().backlog), (5, 5));
    /// circuit.run(100);
    /// assert_eq!((circuit.stats().handled, circuit.stats().backlog), (5, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> Stats {
        Stats::of(self.machine())
    }
}

impl Stats {
    pub(crate) fn of(machine: &Machine) -> Self {
        let (admitted, handled) = machine.counts();
        Self {
            admitted,
            handled,
            backlog: admitted - handled,
            failures: machine.failures.count(),
            dropped: machine.bounds.as_ref().map_or(0, |bounds| bounds.dropped()),
        }
    }
}
