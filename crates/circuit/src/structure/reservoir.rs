//! Reservoirs: captured emissions of a conduit, drained from anywhere.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{ArgumentError, ContextError, Error, Fault};
use crate::execution::current::Current;
use crate::execution::event::Hearer;
use crate::failure::supervision::Supervision;
use crate::identity::subject::Subject;
use crate::structure::capture::Capture;
use crate::structure::conduit::Conduit;
use crate::structure::newest::push_newest;
use crate::subscription::membership::Subscription;
use crate::subscription::registrar::Registrar;
use crate::subscription::subscriber::Subscriber;
use crate::sync::unpoisoned;

/// The newest captures of a conduit, up to a capacity, until they are drained.
///
/// Ends when it is closed or dropped, or when its conduit is closed. A [`crate::Sink`] with a
/// [`crate::Basin`] does the same inside circuits, without a lock.
///
/// An emission costs the circuit a lock and a capture. Memory grows with the captures.
///
/// ```
/// use tidemark_circuit::{Circuit, name};
///
/// let circuit = Circuit::new();
/// let conduit = circuit.conduit::<u64>()?;
/// let reservoir = conduit.reservoir(1024)?;
/// conduit.get(name!("orders")).emit(7);
/// circuit.settle()?;
/// let captures = reservoir.drain();
/// assert_eq!((captures[0].name(), *captures[0].emission()), (name!("orders"), 7));
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[must_use = "a reservoir ends when it is dropped"]
pub struct Reservoir<E: Clone + Send + 'static> {
    subscription: Subscription<E>,
    captures: Arc<Captures<E>>,
}

struct Captures<E> {
    capacity: usize,
    /// Oldest first.
    newest: Mutex<VecDeque<Capture<E>>>,
}

impl<E: Clone + Send + 'static> Conduit<E> {
    /// Creates a reservoir for `capacity` captures of the emissions that follow. Fails if
    /// `capacity` is 0. See [`Reservoir`].
    pub fn reservoir(&self, capacity: usize) -> Result<Reservoir<E>, Error> {
        if capacity == 0 {
            return Err(ArgumentError::new("reservoir", "the capacity is 0; it must be at least 1").into());
        }
        let (subscriber, captures) = self.reservoir_parts(capacity)?;
        let subscription = self.begin(&subscriber, None, Hearer::Reservoir { capacity })?;
        Ok(Reservoir { subscription, captures })
    }

    /// Creates a reservoir as [`Conduit::reservoir`] does, even if the conduit is closed by then.
    /// With a capacity of 0 it receives every emission and keeps none.
    pub(crate) fn reservoir_anyway(&self, capacity: usize) -> Result<Reservoir<E>, Fault> {
        let (subscriber, captures) = self.reservoir_parts(capacity)?;
        let subscription = self.prepare(&subscriber, None);
        self.begin_prepared(&subscription, Hearer::Reservoir { capacity });
        Ok(Reservoir { subscription, captures })
    }

    fn reservoir_parts(&self, capacity: usize) -> Result<(Subscriber<E>, Arc<Captures<E>>), Fault> {
        let captures = Arc::new(Captures { capacity, newest: Mutex::default() });
        let kept = Arc::clone(&captures);
        let callback = move |subject: &Subject, registrar: &mut Registrar<'_, E>| {
            let (subject, kept) = (subject.clone(), Arc::clone(&kept));
            registrar.receptor(move |value| {
                kept.push(Capture::new(value, subject.clone(), Current::here()));
            });
        };
        let circuit = self.circuit();
        // A failing value must not keep later values from being captured.
        let naming = circuit.named(self.subject().name()).supervised(Supervision::Resume);
        Ok((naming.subscriber(callback)?, captures))
    }
}

impl<E: Clone + Send + 'static> Reservoir<E> {
    pub(crate) fn subscription(&self) -> &Subscription<E> {
        &self.subscription
    }

    /// Returns the captures since the last call, in the order in which the circuit handled them.
    pub fn drain(&self) -> Vec<Capture<E>> {
        std::mem::take(&mut *self.captures.lock()).into()
    }

    /// Ends the reservoir: later emissions are not captured. Existing captures can still be
    /// drained.
    pub fn close(&self) {
        self.subscription.close();
    }

    /// Closes the reservoir and waits until everything emitted before is captured.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.subscription.close_and_settle()
    }
}

impl<E> Captures<E> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Capture<E>>> {
        unpoisoned(self.newest.lock())
    }

    fn push(&self, capture: Capture<E>) {
        if self.capacity == 0 {
            return;
        }
        let oldest = push_newest(&mut self.lock(), self.capacity, capture);
        // Dropping calls user code, which may drain.
        drop(oldest);
    }
}

impl<E: Clone + Send + 'static> Drop for Reservoir<E> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<E: Clone + Send + 'static> fmt::Debug for Reservoir<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservoir").field(self.subscription.subject()).finish()
    }
}
