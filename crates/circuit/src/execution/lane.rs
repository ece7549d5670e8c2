//! A caller's own way into a circuit.

use std::fmt;

use crate::execution::machine::MachineRef;
use crate::execution::queue::lane::Writer;
use crate::structure::pipe::Pipe;

/// A caller's own way into a circuit, without the counter that all callers of pipes share: many values in a row pass quickest
/// here.
///
/// What is emitted through one lane keeps its order, and every observer sees the same order. But what different lanes, or a
/// lane and [`Pipe::emit`], bring is handled in an order of the circuit's choosing, *even if one was emitted after the other*.
/// Use pipes alone where the order between callers counts.
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
    /// Dropped before the circuit is told, and before the reference to it is.
    writer: Option<Writer>,
    machine: MachineRef,
}

impl Lane {
    pub(crate) fn new(machine: MachineRef) -> Self {
        Self { writer: Some(machine.open_lane()), machine }
    }

    /// Gives the circuit a value, as [`Pipe::emit`] does. A pipe of another circuit is emitted to in the way that all share.
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
