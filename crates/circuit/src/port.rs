//! Ports: a value that is changed and sent on request, each request in its place in the order.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::machine::Machine;
use crate::node::NodeRef;
use crate::pipe::Pipe;
use crate::receptor::Receptor;
use crate::subject::{Kind, Subject};

/// A value in a circuit that cannot be read, only changed and sent: what is asked for is done in the circuit's context, behind
/// what the caller emitted and asked for before. Nothing is done at once, inside of the circuit neither.
///
/// Requests count as emissions where the circuit is bounded. After the close of the circuit they are dropped. Clones are the
/// same port.
///
/// ```
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let (port, total) = (circuit.port(0)?, circuit.cell(0)?);
/// port.update(|value| value + 20);
/// port.update_with(22, |value, more| value + more);
/// port.emit(total.pipe());
/// circuit.settle()?;
/// assert_eq!(total.get(), 42);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Port<E> {
    requests: Pipe<Request<E>>,
}

type Transform<E> = Box<dyn FnOnce(&E) -> Option<E> + Send>;

enum Request<E> {
    Replace(E),
    Update(Transform<E>),
    Emit(Pipe<E>),
}

impl Circuit {
    /// A port with its first value. See [`Port`].
    pub fn port<E: Clone + Send + 'static>(&self, seed: E) -> Result<Port<E>, Fault> {
        self.unnamed().port(seed)
    }
}

impl Naming<'_> {
    /// See [`Circuit::port`].
    pub fn port<E: Clone + Send + 'static>(&self, seed: E) -> Result<Port<E>, Fault> {
        let subject = self.component(Kind::Port, "port")?;
        let held = Held { subject: subject.clone(), value: seed };
        Ok(Port { requests: Pipe::new(NodeRef::new(self.machine(), subject, 0, held)) })
    }
}

impl<E: Clone + Send + 'static> Port<E> {
    /// Who this port is.
    pub fn subject(&self) -> &Subject {
        self.requests.subject()
    }

    /// Has the value replaced. Does not allocate.
    pub fn replace(&self, value: E) {
        self.requests.emit(Request::Replace(value));
    }

    /// Has the value become what `transform` makes of it. If that panics, the value stays and the circuit reports it.
    pub fn update(&self, transform: impl FnOnce(&E) -> E + Send + 'static) {
        self.filter_update(move |value| Some(transform(value)));
    }

    /// As [`Port::update`]; the value stays if `transform` gives none.
    pub fn filter_update(&self, transform: impl FnOnce(&E) -> Option<E> + Send + 'static) {
        self.requests.emit(Request::Update(Box::new(transform)));
    }

    /// As [`Port::update`], with an argument for `transform`: for functions that capture nothing.
    pub fn update_with<A: Send + 'static>(
        &self,
        argument: A,
        transform: impl FnOnce(&E, A) -> E + Send + 'static,
    ) {
        self.update(move |value| transform(value, argument));
    }

    /// Has a copy of the value, as it is then, emitted to the target, which may be of another circuit.
    pub fn emit(&self, target: &Pipe<E>) {
        self.requests.emit(Request::Emit(target.clone()));
    }
}

/// The receptor of a port.
struct Held<E> {
    subject: Subject,
    value: E,
}

impl<E: Clone + Send + 'static> Receptor<Request<E>> for Held<E> {
    fn receive(&mut self, request: Request<E>) {
        match request {
            Request::Replace(value) => self.value = value,
            // Caught here, so that a port with a bad caller is not put into quarantine for all of them.
            Request::Update(transform) => match catch_unwind(AssertUnwindSafe(|| transform(&self.value))) {
                Ok(Some(value)) => self.value = value,
                Ok(None) => {}
                Err(panic) => Machine::report_inside(&self.subject, "update", panic),
            },
            Request::Emit(target) => target.emit(self.value.clone()),
        }
    }
}

impl<E> Clone for Port<E> {
    fn clone(&self) -> Self {
        Self { requests: self.requests.clone() }
    }
}

/// Whether two handles are of one port.
impl<E> PartialEq for Port<E> {
    fn eq(&self, other: &Self) -> bool {
        self.requests == other.requests
    }
}

impl<E> Eq for Port<E> {}

impl<E: Send + 'static> fmt::Debug for Port<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Port").field(self.requests.subject()).finish()
    }
}
