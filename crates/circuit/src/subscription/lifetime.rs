//! Lifetime of subscriptions.
#![allow(unsafe_code, reason = "state of the circuit's context is reached in jobs, which run there")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use crate::error::ContextError;
use crate::execution::context_cell::ContextCell;
use crate::execution::ending::Ending;
use crate::execution::event::{Event, Hearer};
use crate::execution::machine::{Machine, MachineRef};
use crate::identity::subject::{Kind, Subject};
use crate::structure::closed::Closed;
use crate::structure::handle::handle;
use crate::subscription::membership::{Hub, OnClose, SubscriberInner, Subscription, SubscriptionInner};

impl<E: Clone + Send + 'static> Subscription<E> {
    /// Creates a subscription that has not begun.
    pub(crate) fn new(
        source: &Subject,
        hub: &Arc<Hub<E>>,
        subscriber: &Arc<SubscriberInner<E>>,
        on_close: Option<OnClose<E>>,
        machine: &MachineRef,
    ) -> Self {
        let inner = Arc::new(SubscriptionInner {
            subject: Subject::new(Kind::Subscription, subscriber.subject().name(), Some(source.clone())),
            subscriber: Arc::clone(subscriber),
            hub: Arc::downgrade(hub),
            closed: Closed::default(),
            on_close: ContextCell::new(on_close),
            over: ContextCell::new(false),
        });
        Self { inner, machine: machine.clone() }
    }

    /// Begins the subscription at this place in the order. `source` and `hub` are those that it was
    /// made for.
    pub(crate) fn begin(&self, source: &Subject, hub: &Arc<Hub<E>>, hearer: Hearer) {
        let event = Event::Subscribe { source: source.id(), subscription: self.inner.subject.id(), hearer };
        // The job holds the hub: whether the subscription begins must not depend on when the last
        // handle of the source is dropped.
        let (beginning, hub) = (Arc::clone(&self.inner), Arc::clone(hub));
        // SAFETY: jobs run in the context of the circuit that they are submitted to, which is that
        // of the hub and the subscriber.
        self.machine.submit(event, move || unsafe { beginning.enter(&hub) });
    }

    /// Returns the subject of the subscription.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Ends the subscription, after what the caller emitted before.
    pub fn close(&self) {
        self.inner.closed.ask(&self.machine, || {
            let event = Event::Unsubscribe { subscription: self.inner.subject.id() };
            let inner = Arc::clone(&self.inner);
            // SAFETY: jobs run in the context of the circuit that they are submitted to.
            self.machine.submit(event, move || unsafe { inner.end() });
        });
    }

    pub(crate) fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(&raw const *self.machine, machine)
    }

    /// Closes the subscription and waits until it has ended and its `on_close` has returned.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.machine.check_can_close_and_wait()?;
        self.close();
        self.machine.settle_closed()
    }
}

/// A handle that keeps neither its subscription nor the circuit alive.
#[cfg(feature = "stream")]
pub(crate) struct WeakSubscription<E>(Weak<SubscriptionInner<E>>);

#[cfg(feature = "stream")]
impl<E> Subscription<E> {
    pub(crate) fn downgrade(&self) -> WeakSubscription<E> {
        WeakSubscription(Arc::downgrade(&self.inner))
    }
}

#[cfg(feature = "stream")]
impl<E> WeakSubscription<E> {
    /// Returns the subscription if it still exists. In its circuit's context only.
    pub(crate) fn upgrade_inside(&self) -> Option<Subscription<E>> {
        self.0.upgrade().map(|inner| Subscription { inner, machine: MachineRef::inside() })
    }
}

impl<E: Clone + Send + 'static> SubscriptionInner<E> {
    pub(crate) fn subscriber(&self) -> &SubscriberInner<E> {
        &self.subscriber
    }

    /// # Safety
    ///
    /// In the circuit's context, between two deliveries.
    unsafe fn enter(self: Arc<Self>, hub: &Hub<E>) {
        // SAFETY: as the caller says.
        unsafe {
            if self.over.with(|over| *over) {
                return;
            }
            if !hub.add(&self) || !self.subscriber.add(Arc::downgrade(&self)) {
                return SubscriptionInner::end(&self);
            }
            let open: Weak<Self> = Arc::downgrade(&self);
            Machine::with_inside(|machine| machine.expect("in a circuit's context").ends_with(open));
        }
    }

    /// Removes the subscription from its hub. Returns its `on_close` the first time.
    ///
    /// # Safety
    ///
    /// As for `enter`.
    unsafe fn leave(self: &Arc<Self>) -> Option<OnClose<E>> {
        // SAFETY: as the caller says.
        unsafe {
            if self.over.with(|over| std::mem::replace(over, true)) {
                return None;
            }
            if let Some(hub) = self.hub.upgrade() {
                hub.remove(self);
            }
            self.on_close.with(Option::take)
        }
    }

    /// Ends the subscription and calls its `on_close`. Does nothing after the first call.
    ///
    /// # Safety
    ///
    /// As for `enter`.
    pub(crate) unsafe fn end(self: &Arc<Self>) {
        // SAFETY: as the caller says.
        if let Some(on_close) = unsafe { self.leave() } {
            let subscription = Subscription { inner: Arc::clone(self), machine: MachineRef::inside() };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| on_close(&subscription))) {
                Machine::report_inside(&self.subject, "close", 1, panic);
            }
        }
    }
}

impl<E: Clone + Send + 'static> Ending for SubscriptionInner<E> {
    unsafe fn end(self: Arc<Self>) {
        // SAFETY: as the caller says.
        unsafe { Self::end(&self) };
    }

    unsafe fn forget(self: Arc<Self>) {
        // SAFETY: as the caller says.
        drop(unsafe { self.leave() });
    }
}

handle!(Subscription<E> { machine }, |subscription| &subscription.inner.subject);
