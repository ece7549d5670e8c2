//! Lanes: a caller's own queue into a circuit.

use std::fmt;

use crate::execution::machine::MachineRef;
use crate::execution::queue::lane::Writer;
use crate::structure::pipe::Pipe;

/// A caller's own queue into a circuit, without the counter that all callers of pipes share. It has
/// the highest throughput for many values in a row.
///
/// Values emitted through one lane keep their order, and every observer sees the same order.
/// Between different lanes, or a lane and [`Pipe::emit`], the circuit chooses the order, *even if
/// one value was emitted after the other*. Use only pipes where the order between callers matters.
///
/// [`crate::Circuit::settle`] covers what was emitted through any lane before.
///
/// ```
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let mut sum = 0;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let pipe = circuit.pipe(move |value: u64| {
///     sum += value;
///     sender.send(sum).unwrap();
/// })?;
/// let mut lane = circuit.lane()?;
/// lane.emit(&pipe, 1);
/// lane.emit(&pipe, 2);
/// circuit.settle()?;
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 3]);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Lane {
    /// Dropped before the circuit is notified, and before the reference to it.
    writer: Option<Writer>,
    machine: MachineRef,
}

impl Lane {
    pub(crate) fn new(machine: MachineRef) -> Self {
        Self { writer: Some(machine.open_lane()), machine }
    }

    /// Emits a value, as [`Pipe::emit`] does. A pipe of another circuit uses its shared queue.
    #[inline]
    #[allow(unsafe_code, reason = "the type of the pipe is the type of its node")]
    pub fn emit<E: Send + 'static>(&mut self, pipe: &Pipe<E>, value: E) {
        match &mut self.writer {
            Some(writer) if std::ptr::eq(pipe.machine(), &raw const *self.machine) => {
                // SAFETY: the pipe is a handle of a node of this machine, and the node takes an `E`.
                unsafe { self.machine.emit_by(writer, pipe.node().as_ptr(), value) };
            }
            _ => pipe.emit(value),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.writer = None;
        self.machine.lane_closed();
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lane").field(self.machine.subject()).finish()
    }
}
