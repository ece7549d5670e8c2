//! What a circuit has done so far, in numbers.

use crate::circuit::Circuit;
use crate::execution::machine::Machine;

/// What a circuit has done so far. Made by [`Circuit::stats`], with an example there.
///
/// Admitted, handled and backlog count *entries* of the circuit's queues. An emission from outside of up to 24 bytes is one entry;
/// a larger one that goes through the shared queue is one for each 24 bytes or part of them. Beginning and ending a
/// subscription, dropping the last handle of a pipe and the like are one entry each. What a circuit sends itself is not
/// counted: it is part of the entry that caused it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// Entries that were ever put into the queues. Never decreases.
    pub admitted: u64,
    /// Entries that were handled with all that they caused; all of them once the circuit has ended. Never decreases, and is up to
    /// some dozen entries late while the circuit runs.
    pub handled: u64,
    /// Entries that wait: those admitted less those handled.
    pub backlog: u64,
    /// Callbacks that have failed.
    pub failures: u64,
    /// Emissions that were dropped because the queue was full.
    pub dropped: u64,
}

impl Circuit {
    /// What the circuit has done so far. May be called from anywhere.
    ///
    /// Costs a few loads, and a lock while there are lanes; the circuit is neither stopped nor slowed. The numbers are of about
    /// the same time, not of one.
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
