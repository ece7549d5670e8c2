//! The conduit of a circuit's own failures.

use crate::circuit::Circuit;
use crate::error::Fault;
use crate::execution::event::Event;
use crate::execution::machine::Machine;
use crate::failure::account::Hook;
use crate::failure::failure_report::Failure;
use crate::name;
use crate::structure::conduit::Conduit;

impl Circuit {
    /// Returns a conduit that emits each failure of a callback in this circuit, to the pipe named
    /// as the component that failed.
    ///
    /// It emits for as long as it exists. A subscription does not keep it, so hold the conduit to
    /// be notified of failures; without one they are only counted. No journal records when its last
    /// handle is dropped: in a circuit that is recorded or replayed keep a handle, or its emissions
    /// may differ.
    ///
    /// After it has emitted one failure, further failures of the same input are counted but not
    /// emitted. They may be caused by the subscribers, and a subscriber that fails on failures
    /// would otherwise be notified of its own failures without end.
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
        let (known, weak) = (faults.downgrade(), faults.downgrade());
        let is_wanted = Box::new(move || known.exists());
        let report = Box::new(move |failure: &Failure| {
            let Some(faults) = weak.upgrade() else { return false };
            Machine::with_inside(|machine| {
                let Some(machine) = machine.filter(|machine| !machine.has_reported_failure()) else { return };
                // Submitted directly before the failure: failures before that are not caused by it.
                machine.submit(Event::Other, || {
                    Machine::with_inside(|machine| {
                        machine.iter().for_each(|machine| machine.mark_failure_reported());
                    });
                });
                faults.get(failure.subject()).emit(failure.clone());
            });
            true
        });
        self.machine().failures.add_hook(Hook { is_wanted, report });
        Ok(faults)
    }
}
