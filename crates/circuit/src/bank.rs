//! Banks: owners of conduits.

use std::sync::{Arc, Mutex};

use crate::circuit::{Circuit, Naming};
use crate::closed::Closed;
use crate::conduit::{Conduit, Routing};
use crate::error::{ContextError, Fault};
use crate::event::Event;
use crate::handle::handle;
use crate::machine::MachineRef;
use crate::name::Name;
use crate::name_map::NameMap;
use crate::subject::{Kind, Subject};
use crate::sync::unpoisoned;

/// One conduit per name, all closed with the bank.
///
/// Clones are the same bank; dropping it changes nothing. Looking up a conduit takes a lock: keep the conduit.
///
/// ```
/// use tidemark_circuit::{Circuit, name};
///
/// let circuit = Circuit::new();
/// let bank = circuit.bank::<u64>()?;
/// bank.get(name!("orders"))?.get(name!("eu")).emit(7);
/// bank.close();
/// assert!(bank.get(name!("orders")).is_err());
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Bank<E> {
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    machine: MachineRef,
    subject: Subject,
    routing: Routing,
    conduits: NameMap<Conduit<E>>,
    /// Held while a conduit is made, so that none is made behind the back of a close.
    /// Under a lock, so that no conduit is made while all are closed.
    closed: Mutex<Closed>,
}

impl Circuit {
    /// A bank. See [`Bank`].
    pub fn bank<E: Clone + Send + 'static>(&self) -> Result<Bank<E>, Fault> {
        self.unnamed().bank()
    }

    /// A bank whose conduits have another routing than the default.
    pub fn bank_with<E: Clone + Send + 'static>(&self, routing: Routing) -> Result<Bank<E>, Fault> {
        self.unnamed().bank_with(routing)
    }
}

impl Naming<'_> {
    /// See [`Circuit::bank`].
    pub fn bank<E: Clone + Send + 'static>(&self) -> Result<Bank<E>, Fault> {
        self.bank_with(Routing::Pipe)
    }

    /// See [`Circuit::bank_with`].
    pub fn bank_with<E: Clone + Send + 'static>(&self, routing: Routing) -> Result<Bank<E>, Fault> {
        let inner = Inner {
            machine: self.machine().clone(),
            subject: self.component(Kind::Bank, "bank")?,
            routing,
            conduits: NameMap::default(),
            closed: Mutex::default(),
        };
        Ok(Bank { inner: Arc::new(inner) })
    }
}

impl<E: Clone + Send + 'static> Bank<E> {
    /// Who this bank is.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// The conduit of a name: always the same for the same name. Fails if the bank or its circuit is closed.
    pub fn get(&self, name: impl Into<Name>) -> Result<&Conduit<E>, Fault> {
        let (inner, name) = (&*self.inner, name.into());
        inner.machine.check_open("get")?;
        let closed = unpoisoned(inner.closed.lock());
        if closed.is_closed(inner.machine.is_inside()) {
            return Err(Fault::new(inner.subject.clone(), "get", "the bank is closed"));
        }
        Ok(inner.conduits.get_or_make(name, || {
            let subject = Subject::new(Kind::Conduit, name, Some(inner.subject.clone()));
            Conduit::new(&inner.machine, subject, inner.routing)
        }))
    }

    /// Closes all conduits, and refuses new ones from now on.
    pub fn close(&self) {
        let (inner, is_inside) = (&self.inner, self.inner.machine.is_inside());
        let closed = unpoisoned(inner.closed.lock());
        let mut is_first = false;
        closed.ask(&inner.machine, || {
            is_first = true;
            inner.conduits.values().into_iter().for_each(Conduit::close);
        });
        drop(closed);
        if is_first && !is_inside {
            let reached = Arc::clone(inner);
            inner.machine.submit(Event::Other, move || {
                unpoisoned(reached.closed.lock()).reach();
            });
        }
    }

    /// Closes the bank and waits until the subscriptions to its conduits have ended.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.inner.machine.check_can_close_and_wait()?;
        self.close();
        self.inner.machine.settle_closed()
    }
}

handle!(Bank<E>, |bank| &bank.inner.subject);
