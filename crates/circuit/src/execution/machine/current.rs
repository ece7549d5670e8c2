//! Circuits as execution contexts.

use super::state::Machine;
use crate::execution::current::Current;

impl Machine {
    pub(crate) fn current(&self) -> &Current {
        self.current.get_or_init(|| Current::new(self.subject.name(), Some(self.subject.clone())))
    }
}

impl Current {
    /// The context that this code runs in: the circuit's inside a circuit, otherwise the thread's.
    pub fn here() -> Self {
        Machine::with_inside(|machine| {
            machine.map_or_else(Self::of_thread, |machine| machine.current().clone())
        })
    }
}
