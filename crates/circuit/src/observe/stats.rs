//! Statistics of a circuit.

use crate::circuit::Circuit;
use crate::execution::machine::Machine;

/// Statistics of a circuit. Returned by [`Circuit::stats`], which has an example.
///
/// Admitted, handled and backlog count *entries* of the circuit's queues. An emission from outside
/// of up to 24 bytes is one entry; a larger one through the shared queue is one for each 24 bytes
/// or part of them. The begin or end of a subscription, the drop of a pipe's last handle and the
/// like are one entry each. Emissions of the circuit to itself are not counted: they are part of
/// the entry that caused them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// Entries ever put into the queues. Never decreases.
    pub admitted: u64,
    /// Entries handled with all that they caused; all of them once the circuit has ended. Never
    /// decreases. May lag by a few dozen entries while the circuit runs.
    pub handled: u64,
    /// Entries that wait: admitted minus handled.
    pub backlog: u64,
    /// Callbacks that have failed.
    pub failures: u64,
    /// Emissions dropped because the queue was full.
    pub dropped: u64,
}

impl Circuit {
    /// Returns the circuit's statistics. May be called from anywhere.
    ///
    /// Costs a few loads, and a lock while there are lanes; it neither stops nor slows the circuit.
    /// The numbers are not an atomic snapshot.
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
