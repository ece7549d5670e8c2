//! Registration of receivers for the emissions of a source.

use std::fmt;

use crate::failure::supervision::Supervision;
use crate::identity::subject::Subject;
use crate::structure::pipe::Pipe;
use crate::subscription::receptor::Receptor;
use crate::subscription::registered::{Made, Plain, Registered};

/// Registers receivers for a subscriber's callback. It ends with the callback: the subject can be
/// kept, but keeping the registrar does not compile:
///
/// ```
/// use tidemark_circuit::{Circuit, Registrar, Subject};
///
/// let circuit = Circuit::new();
/// let mut kept = None;
/// circuit.subscriber(move |subject: &Subject, _: &mut Registrar<'_, u64>| kept = Some(subject.clone()))?;
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
///
/// ```compile_fail,E0521
/// use tidemark_circuit::{Circuit, Registrar, Subject};
///
/// let circuit = Circuit::new();
/// let mut kept = None;
/// circuit.subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| kept = Some(registrar))?;
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
pub struct Registrar<'a, E> {
    pub(crate) receivers: &'a mut Vec<Receiver<E>>,
    pub(crate) supervision: Option<Supervision>,
}

/// A receiver of a pipe's emissions.
pub(crate) enum Receiver<E> {
    /// Runs as part of the emission.
    Receptor(Box<dyn Registered<E>>),
    Pipe(Pipe<E>),
}

/// Provides a receiver per name. With a pool, a subscriber mirrors each pipe of a source into the
/// pool's pipe of that name.
///
/// Implemented by conduits, sinks and pools of pipes.
///
/// ```
/// use tidemark_circuit::{Circuit, ReceiverPool, Registrar, Subject, name};
///
/// /// Says what is emitted, with who emitted it.
/// struct Printer;
///
/// impl ReceiverPool<u64> for Printer {
///     fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, u64>) {
///         let name = subject.name();
///         registrar.receptor(move |value| println!("{name}: {value}"));
///     }
/// }
///
/// let circuit = Circuit::new();
/// let orders = circuit.conduit()?;
/// orders.subscribe(&circuit.subscriber_to(Printer)?)?;
/// orders.get(name!("eu")).emit(3);
/// circuit.settle()?;
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub trait ReceiverPool<E>: Send + 'static {
    /// Registers the receivers for the emissions of the pipe with this subject.
    fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, E>);
}

impl<E: Clone + Send + 'static> Registrar<'_, E> {
    /// Registers a receptor for the emissions of the pipe, starting with the one that caused this
    /// call.
    pub fn receptor(&mut self, receptor: impl Receptor<E> + 'static) {
        self.receivers.push(Receiver::Receptor(Box::new(Plain::new(receptor, self.supervision))));
    }

    /// Registers a receptor as [`Registrar::receptor`] does. The function makes it: now, and again
    /// on each [restart](crate::Supervision::Restart).
    pub fn receptor_from<R, F>(&mut self, mut make: F)
    where
        R: Receptor<E> + 'static,
        F: FnMut() -> R + Send + 'static,
    {
        let receptor = make();
        self.receivers.push(Receiver::Receptor(Box::new(Made::new(receptor, make, self.supervision))));
    }

    /// Registers a pipe of this circuit or another. A pipe registered twice gets each value twice.
    pub fn pipe(&mut self, pipe: &Pipe<E>) {
        self.receivers.push(Receiver::Pipe(pipe.clone()));
    }
}

impl<E> fmt::Debug for Registrar<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registrar").field("receivers", &self.receivers.len()).finish()
    }
}
