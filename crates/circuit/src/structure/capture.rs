//! Captures: values with their origin.

use crate::execution::current::Current;
use crate::identity::name::Name;
use crate::identity::subject::Subject;
use crate::identity::value::State;

/// A value, the subject of the pipe that it was emitted to, and the context that it was emitted in.
/// Made by a [`crate::Sink`] and a [`crate::Reservoir`]; costs two reference counts.
///
/// ```
/// use tidemark_circuit::{Circuit, name};
///
/// let circuit = Circuit::new();
/// let orders = circuit.conduit()?;
/// let reservoir = orders.reservoir(16)?;
/// orders.get(name!("eu")).emit(3);
/// circuit.settle()?;
/// for capture in reservoir.drain() {
///     assert_eq!(capture.name(), name!("eu"));
///     assert_eq!(capture.current(), circuit.current(), "a reservoir captures inside of the circuit");
///     assert_eq!(capture.into_emission(), 3);
/// }
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Capture<E> {
    emission: E,
    subject: Subject,
    current: Current,
}

impl<E> Capture<E> {
    pub(crate) fn new(emission: E, subject: Subject, current: Current) -> Self {
        Self { emission, subject, current }
    }

    /// Returns the value.
    pub fn emission(&self) -> &E {
        &self.emission
    }

    /// Returns the value and drops the rest.
    pub fn into_emission(self) -> E {
        self.emission
    }

    /// Returns the subject of the pipe that the value was emitted to.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the name of that pipe.
    pub fn name(&self) -> Name {
        self.subject.name()
    }

    /// Returns the emitter: the circuit whose receptor emitted the value, or the thread if it was
    /// outside all circuits.
    pub fn current(&self) -> &Current {
        &self.current
    }

    /// Returns the state of the pipe's subject.
    pub fn state(&self) -> &State {
        self.subject.state()
    }
}
