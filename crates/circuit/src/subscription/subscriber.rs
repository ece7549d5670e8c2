//! Subscribers and their callbacks.
#![allow(
    unsafe_code,
    reason = "state of the circuit's context is reached in jobs and deliveries, which run there"
)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use crate::circuit::{Circuit, Naming};
use crate::error::{ContextError, Fault};
use crate::execution::context_cell::ContextCell;
use crate::execution::event::Event;
use crate::execution::machine::{Machine, MachineRef};
use crate::identity::subject::{Kind, Subject};
use crate::structure::closed::Closed;
use crate::structure::handle::handle;
use crate::subscription::membership::SubscriberInner;
use crate::subscription::registrar::{Receiver, ReceiverPool, Registrar};

/// A callback that registers receivers for the pipes of a source. It is called once for each pipe,
/// when the pipe first emits.
///
/// A subscriber belongs to a circuit and subscribes to sources of that circuit. Clones are handles
/// of the same subscriber. Dropping them does not end its subscriptions; [`Subscriber::close`]
/// does.
///
/// The callback runs in the circuit's context, as part of the emission that caused the call, which
/// pays its cost.
///
/// ```
/// use tidemark_circuit::{Circuit, Name, Registrar, Subject};
///
/// let circuit = Circuit::new();
/// let conduit = circuit.conduit::<u64>()?;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, u64>| {
///     let (name, sender) = (subject.name(), sender.clone());
///     registrar.receptor(move |value| sender.send((name, value)).unwrap());
/// })?;
/// conduit.subscribe(&subscriber)?;
/// conduit.get(Name::new("orders")?).emit(7);
/// circuit.settle()?;
/// assert_eq!(receiver.recv()?, (Name::new("orders")?, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Subscriber<E> {
    inner: Arc<SubscriberInner<E>>,
    machine: MachineRef,
}

impl Circuit {
    /// Creates a subscriber with this callback, which gets the subject of a pipe and a registrar
    /// for the receivers of its emissions.
    ///
    /// The registered receptors are supervised as the subscriber is; see [`Circuit::supervised`].
    ///
    /// If the callback panics, the receivers registered before the panic stay, and the callback is
    /// not called again for this pipe.
    pub fn subscriber<E, F>(&self, callback: F) -> Result<Subscriber<E>, Fault>
    where
        E: Clone + Send + 'static,
        F: FnMut(&Subject, &mut Registrar<'_, E>) + Send + 'static,
    {
        self.unnamed().subscriber(callback)
    }

    /// Creates a subscriber that forwards each pipe's emissions to the pool's receiver of the same
    /// name.
    pub fn subscriber_to<E, P>(&self, pool: P) -> Result<Subscriber<E>, Fault>
    where
        E: Clone + Send + 'static,
        P: ReceiverPool<E>,
    {
        self.unnamed().subscriber_to(pool)
    }
}

impl Naming<'_> {
    /// See [`Circuit::subscriber`].
    pub fn subscriber<E, F>(&self, callback: F) -> Result<Subscriber<E>, Fault>
    where
        E: Clone + Send + 'static,
        F: FnMut(&Subject, &mut Registrar<'_, E>) + Send + 'static,
    {
        let inner = SubscriberInner {
            subject: self.component(Kind::Subscriber, "subscriber")?,
            closed: Closed::default(),
            supervision: self.supervision(),
            callback: ContextCell::new(Box::new(callback)),
            failures: ContextCell::new(0),
            subscriptions: ContextCell::new(Some(VecDeque::new())),
        };
        Ok(Subscriber { inner: Arc::new(inner), machine: self.machine().clone() })
    }

    /// See [`Circuit::subscriber_to`].
    pub fn subscriber_to<E, P>(&self, mut pool: P) -> Result<Subscriber<E>, Fault>
    where
        E: Clone + Send + 'static,
        P: ReceiverPool<E>,
    {
        self.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, E>| {
            pool.register(subject, registrar);
        })
    }
}

impl<E: Clone + Send + 'static> Subscriber<E> {
    /// Returns the subject of the subscriber.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Ends all subscriptions, after what the caller emitted before. New subscriptions are refused
    /// immediately; inside the circuit, unless it is the caller, once it has reached the close in
    /// its order.
    pub fn close(&self) {
        self.inner.closed.ask(&self.machine, || {
            let inner = Arc::clone(&self.inner);
            let event = Event::CloseSubscriber { subscriber: inner.subject.id() };
            // SAFETY: jobs run in the context of the circuit that they are submitted to.
            self.machine.submit(event, move || unsafe { inner.end() });
        });
    }

    /// Closes the subscriber and waits until its subscriptions have ended.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.machine.check_can_close_and_wait()?;
        self.close();
        self.machine.settle_closed()
    }

    pub(crate) fn inner(&self) -> &Arc<SubscriberInner<E>> {
        &self.inner
    }

    pub(crate) fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(&raw const *self.machine, machine)
    }
}

impl<E: Clone + Send + 'static> SubscriberInner<E> {
    /// Returns whether the subscriber is closed, as seen from inside or outside the circuit.
    pub(crate) fn is_closed(&self, is_inside: bool) -> bool {
        self.closed.is_closed(is_inside)
    }

    /// Ends all subscriptions.
    ///
    /// # Safety
    ///
    /// In the circuit's context, to which its subscriptions belong.
    unsafe fn end(&self) {
        self.closed.reach();
        // SAFETY: as the caller says.
        let subscriptions = unsafe { self.subscriptions.with(Option::take) };
        for subscription in subscriptions.iter().flatten().filter_map(Weak::upgrade) {
            // SAFETY: as above.
            unsafe { subscription.end() };
        }
    }

    /// Calls the callback for a pipe and returns the receivers that it registered, including those
    /// registered before a panic.
    ///
    /// # Safety
    ///
    /// In the circuit's context, and not from within this callback: a delivery never leads directly
    /// to another one.
    pub(crate) unsafe fn discover(&self, subject: &Subject) -> Vec<Receiver<E>> {
        let mut receivers = Vec::new();
        // SAFETY: as the caller says.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
            let mut registrar = Registrar { receivers: &mut receivers, supervision: self.supervision };
            self.callback.with(|callback| callback(subject, &mut registrar));
        }));
        if let Err(panic) = outcome {
            // SAFETY: as the caller says.
            let count = unsafe {
                self.failures.with(|failures| {
                    *failures = failures.saturating_add(1);
                    *failures
                })
            };
            Machine::report_inside(&self.subject, "subscribe", count, panic);
        }
        receivers
    }
}

handle!(Subscriber<E> { machine }, |subscriber| &subscriber.inner.subject);
