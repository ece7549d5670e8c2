//! Banks: owners of conduits by name.

use std::ptr;
use std::sync::{Arc, Mutex};

use crate::circuit::{Circuit, Naming};
use crate::error::{ContextError, Fault};
use crate::execution::event::Event;
use crate::execution::machine::{Machine, MachineRef};
use crate::identity::name::Name;
use crate::identity::name_map::NameMap;
use crate::identity::subject::{Kind, Subject};
use crate::structure::closed::Closed;
use crate::structure::conduit::{Conduit, Routing};
use crate::structure::handle::handle;
use crate::sync::unpoisoned;

/// One conduit per name, all closed with the bank.
///
/// Clones are handles of the same bank; dropping them does not close it. Only the first request for
/// a conduit takes a lock.
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
    inner: Arc<BankInner<E>>,
}

struct BankInner<E> {
    machine: MachineRef,
    subject: Subject,
    routing: Routing,
    conduits: NameMap<Conduit<E>>,
    closed: Closed,
    /// Held while a conduit is made or all are listed, so that a close misses none. No user code is
    /// called under it.
    making: Mutex<()>,
}

impl Circuit {
    /// Creates a bank. See [`Bank`].
    pub fn bank<E: Clone + Send + 'static>(&self) -> Result<Bank<E>, Fault> {
        self.unnamed().bank()
    }

    /// Creates a bank whose conduits have the given routing.
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
        let inner = BankInner {
            machine: self.machine().clone(),
            subject: self.component(Kind::Bank, "bank")?,
            routing,
            conduits: NameMap::default(),
            closed: Closed::default(),
            making: Mutex::new(()),
        };
        Ok(Bank { inner: Arc::new(inner) })
    }
}

impl<E: Clone + Send + 'static> Bank<E> {
    /// Returns the subject of the bank.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Returns the conduit of a name, creating it on the first call. Fails if the bank or its
    /// circuit is closed.
    pub fn get(&self, name: impl Into<Name>) -> Result<&Conduit<E>, Fault> {
        let (inner, name) = (&*self.inner, name.into());
        inner.machine.check_open("get")?;
        inner.check_open()?;
        if let Some(conduit) = inner.conduits.get(name) {
            return Ok(conduit);
        }
        let _making = unpoisoned(inner.making.lock());
        inner.check_open()?;
        Ok(inner.conduits.get_or_make(name, || {
            let subject = Subject::new(Kind::Conduit, name, Some(inner.subject.clone()));
            Conduit::new(&inner.machine, subject, inner.routing)
        }))
    }

    /// Closes all conduits in the order of their names, after what the caller emitted before. New
    /// conduits are refused immediately; inside the circuit, unless it is the caller, once it has
    /// reached the close in its order.
    pub fn close(&self) {
        let BankInner { machine, subject, closed, .. } = &*self.inner;
        closed.ask(machine, || {
            if machine.is_inside() {
                return self.inner.conduits().into_iter().for_each(Conduit::close);
            }
            let bank = Arc::clone(&self.inner);
            machine.submit(Event::CloseBank { bank: subject.id() }, move || {
                bank.closed.reach();
                bank.conduits().into_iter().for_each(Conduit::close);
            });
            self.inner.conduits().into_iter().for_each(Conduit::expect_close);
        });
    }

    /// Closes the bank and waits until the subscriptions to its conduits have ended.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.inner.machine.check_can_close_and_wait()?;
        self.close();
        self.inner.machine.settle_closed()
    }
}

impl<E> Bank<E> {
    pub(crate) fn is_of(&self, machine: &Machine) -> bool {
        ptr::eq(&raw const *self.inner.machine, machine)
    }
}

impl<E: Clone + Send + 'static> BankInner<E> {
    /// Returns a fault if the bank is closed.
    fn check_open(&self) -> Result<(), Fault> {
        if self.closed.is_closed(self.machine.is_inside()) {
            return Err(Fault::new(self.subject.clone(), "get", "the bank is closed"));
        }
        Ok(())
    }

    /// Returns all conduits, sorted by name.
    fn conduits(&self) -> Vec<&Conduit<E>> {
        let making = unpoisoned(self.making.lock());
        let mut conduits = self.conduits.values();
        drop(making);
        conduits.sort_by_key(|conduit| conduit.subject().name());
        conduits
    }
}

handle!(Bank<E>, |bank| &bank.inner.subject);
