//! The conduit of a circuit's own failures.

use crate::circuit::Circuit;
use crate::conduit::Conduit;
use crate::error::Fault;
use crate::extent::Extent;
use crate::failure::Failure;
use crate::name;

impl Circuit {
    /// A conduit that emits each failure of a callback in this circuit, to the pipe with the name of whose callback it was.
    /// It is told for as long as it exists. Without one, failures are counted only. When its last handle is dropped is in no
    /// journal, so in a circuit that is recorded or replayed keep one, or else what its pipes are told may differ.
    ///
    /// The failures of those who subscribe to it are counted but not emitted.
    ///
    /// ```
    /// use tidemark_circuit::{Circuit, Failure, Registrar, Subject};
    ///
    /// let circuit = Circuit::new();
    /// let faults = circuit.faults()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// faults.subscribe(&circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, Failure>| {
    ///     let sender = sender.clone();
    ///     registrar.receptor(move |failure: Failure| sender.send(failure.message().to_owned()).unwrap());
    /// })?)?;
    /// # std::panic::set_hook(Box::new(|_| ()));
    /// circuit.pipe(|value: u32| panic!("{value} is too much"))?.emit(7);
    /// circuit.settle()?;
    /// assert_eq!(receiver.recv().unwrap(), "7 is too much");
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn faults(&self) -> Result<Conduit<Failure>, Fault> {
        let faults = self.named(name!("faults")).conduit::<Failure>()?;
        let weak = faults.downgrade();
        self.machine().failures.add_hook(Box::new(move |failure| {
            let Some(faults) = weak.upgrade() else { return false };
            // A subscriber to failures that fails would otherwise be told of its own failure, and so on.
            if !failure.subject().within(faults.subject()) {
                faults.get(failure.subject()).emit(failure.clone());
            }
            true
        }));
        Ok(faults)
    }
}
