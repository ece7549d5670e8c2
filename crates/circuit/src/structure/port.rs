//! Ports: values that are changed and sent on request, in the circuit's order.
#![allow(unsafe_code, reason = "a journal records what an update has made")]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::execution::machine::Machine;
use crate::execution::node::NodeRef;
use crate::failure::thrown::message_of;
use crate::identity::subject::{Kind, Subject};
use crate::structure::pipe::Pipe;
use crate::subscription::receptor::Receptor;

/// A value in a circuit that cannot be read, only changed and sent. Requests are executed in the
/// circuit's context, after what the caller emitted and requested before. Requests from inside the
/// circuit are queued too.
///
/// Requests count as emissions in a bounded circuit, and are dropped after its close. Clones are
/// handles of the same port.
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

pub(crate) type Transform<E> = Box<dyn FnOnce(&E) -> Option<E> + Send>;

pub(crate) enum Request<E> {
    Replace(E),
    Update(Transform<E>),
    /// An update whose result is recorded in a journal.
    Noted(Transform<E>),
    /// Result of an update that panicked with this message.
    Fail(Arc<str>),
    Emit(Pipe<E>),
}

impl Circuit {
    /// Creates a port with its initial value. See [`Port`].
    pub fn port<E: Clone + Send + 'static>(&self, seed: E) -> Result<Port<E>, Fault> {
        self.unnamed().port(seed)
    }
}

impl Naming<'_> {
    /// See [`Circuit::port`].
    pub fn port<E: Clone + Send + 'static>(&self, seed: E) -> Result<Port<E>, Fault> {
        let subject = self.component(Kind::Port, "port")?;
        let held = Held { subject: subject.clone(), value: seed, failures: 0 };
        Ok(Port { requests: Pipe::new(NodeRef::built_in(self.machine(), subject, None, held)) })
    }
}

impl<E: Clone + Send + 'static> Port<E> {
    /// Returns the subject of the port.
    pub fn subject(&self) -> &Subject {
        self.requests.subject()
    }

    /// Requests a replacement of the value. Does not allocate.
    pub fn replace(&self, value: E) {
        self.requests.emit(Request::Replace(value));
    }

    /// Requests an update of the value with `transform`. If that panics, the value stays and the
    /// circuit reports the panic.
    pub fn update(&self, transform: impl FnOnce(&E) -> E + Send + 'static) {
        self.filter_update(move |value| Some(transform(value)));
    }

    /// Requests an update as [`Port::update`] does. The value stays if `transform` returns none.
    pub fn filter_update(&self, transform: impl FnOnce(&E) -> Option<E> + Send + 'static) {
        self.requests.emit(Request::Update(Box::new(transform)));
    }

    /// Requests an update as [`Port::update`] does, with an argument for `transform`: for functions
    /// that capture nothing.
    pub fn update_with<A: Send + 'static>(
        &self,
        argument: A,
        transform: impl FnOnce(&E, A) -> E + Send + 'static,
    ) {
        self.update(move |value| transform(value, argument));
    }

    /// Requests that a copy of the value be emitted to the target, which may be of another circuit.
    pub fn emit(&self, target: &Pipe<E>) {
        self.requests.emit(Request::Emit(target.clone()));
    }

    pub(crate) fn is_of(&self, machine: &Machine) -> bool {
        self.requests.is_of(machine)
    }

    /// Requests what an update that panics with this message does.
    pub(crate) fn fail(&self, message: Arc<str>) {
        self.requests.emit(Request::Fail(message));
    }
}

/// The receptor of a port.
struct Held<E> {
    subject: Subject,
    value: E,
    failures: u32,
}

impl<E: Clone + Send + 'static> Receptor<Request<E>> for Held<E> {
    fn receive(&mut self, request: Request<E>) {
        match request {
            Request::Replace(value) => self.value = value,
            Request::Update(transform) => {
                if let Some(outcome) = self.update(transform) {
                    self.receive(outcome);
                }
            }
            Request::Noted(transform) => {
                let outcome = self.update(transform);
                if let Some(outcome) = self.note(outcome) {
                    self.receive(outcome);
                }
            }
            Request::Fail(message) => {
                self.failures = self.failures.saturating_add(1);
                Machine::report_inside(&self.subject, "update", self.failures, Box::new(message.to_string()));
            }
            Request::Emit(target) => target.emit(self.value.clone()),
        }
    }
}

impl<E: Clone + Send + 'static> Held<E> {
    /// Runs the update. Returns its result as a request without a function, or none.
    fn update(&self, transform: Transform<E>) -> Option<Request<E>> {
        // Caught here, so that one bad caller does not get the port quarantined for all callers.
        match catch_unwind(AssertUnwindSafe(|| transform(&self.value))) {
            Ok(value) => value.map(Request::Replace),
            Err(panic) => Some(Request::Fail(message_of(panic))),
        }
    }

    /// Records the result of an update in the journal. A replay uses it in place of the update.
    #[cold]
    fn note(&self, mut outcome: Option<Request<E>>) -> Option<Request<E>> {
        Machine::with_inside(|machine| {
            let machine = machine.expect("in the circuit's context");
            if machine.has_caused() {
                let what = format!("an update of {:?} that does more than to make a value", self.subject);
                machine.record_gap(&what);
            } else if let Some(outcome) = &mut outcome {
                // SAFETY: this is the receptor of the node with this subject, which takes requests.
                unsafe { machine.record_as_emission_to(&self.subject, outcome) };
            }
        });
        outcome
    }
}

impl<E> Clone for Port<E> {
    fn clone(&self) -> Self {
        Self { requests: self.requests.clone() }
    }
}

/// Returns whether both are handles of the same port.
impl<E> PartialEq for Port<E> {
    fn eq(&self, other: &Self) -> bool {
        self.requests == other.requests
    }
}

impl<E> Eq for Port<E> {}

impl<E> Hash for Port<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.requests.hash(state);
    }
}

impl<E: Send + 'static> fmt::Debug for Port<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Port").field(self.requests.subject()).finish()
    }
}
