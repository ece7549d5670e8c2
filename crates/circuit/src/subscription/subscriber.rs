//! Subscribers, and what they register.
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

/// Who wants to hear of a source's pipes: a callback, called once for each pipe, when the pipe first emits.
///
/// A subscriber belongs to a circuit and subscribes to sources of that circuit. Clones are the same subscriber. Dropping it
/// changes nothing; [`Subscriber::close`] ends all of its subscriptions.
///
/// The callback runs in the circuit's context, as part of the emission that led to it: what it costs, that emission costs.
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
    /// A subscriber with this callback, which is given the subject of a pipe and a registrar for who wants its emissions.
    ///
    /// The receptors that it registers are supervised as the subscriber is; see [`Circuit::supervised`].
    ///
    /// If the callback panics, what it had registered stays, and it is not called again for this pipe.
    pub fn subscriber<E, F>(&self, callback: F) -> Result<Subscriber<E>, Fault>
    where
        E: Clone + Send + 'static,
        F: FnMut(&Subject, &mut Registrar<'_, E>) + Send + 'static,
    {
        self.unnamed().subscriber(callback)
    }

    /// A subscriber that has each pipe's emissions go to the pool's receiver of the same name.
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
    /// Who this subscriber is.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Ends all subscriptions, behind what the caller emitted before, and refuses new ones from now on; those of the circuit itself,
    /// unless it is the caller, from that place in the order on.
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
    /// Whether it was closed, to whoever asks from there.
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

    /// Calls the callback for a pipe and returns what it registered, if it panics also what it had registered until then.
    ///
    /// # Safety
    ///
    /// In the circuit's context, and not from within this callback: a delivery never leads to another one directly.
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
