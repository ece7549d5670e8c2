//! The types of subscribers, hubs and subscriptions. They refer to each other, so they are declared
//! together; their methods are in the files of their names.
#![allow(unsafe_code, reason = "the thread inside accesses the state of the circuit's context")]

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::execution::context_cell::ContextCell;
use crate::execution::ending::push_living;
use crate::execution::machine::MachineRef;
use crate::failure::supervision::Supervision;
use crate::identity::subject::Subject;
use crate::structure::closed::Closed;
use crate::subscription::registrar::Registrar;

pub(crate) type Callback<E> = Box<dyn FnMut(&Subject, &mut Registrar<'_, E>) + Send>;

pub(crate) struct Hub<E> {
    pub(crate) closed: Closed,
    pub(crate) subscriptions: ContextCell<Subscriptions<E>>,
}

pub(crate) struct Subscriptions<E> {
    /// Changes with each subscription that begins or ends.
    pub(crate) version: u64,
    /// In the order in which they began.
    pub(crate) all: VecDeque<Arc<SubscriptionInner<E>>>,
    /// Whether the close was executed.
    pub(crate) closed: bool,
}

/// The shared part of a subscriber's handles.
pub(crate) struct SubscriberInner<E> {
    pub(crate) subject: Subject,
    pub(crate) closed: Closed,
    /// Supervision of the registered receptors; none for the circuit's own.
    pub(crate) supervision: Option<Supervision>,
    pub(crate) callback: ContextCell<Callback<E>>,
    /// Number of failures of the callback.
    pub(crate) failures: ContextCell<u32>,
    /// None once the close was executed.
    pub(crate) subscriptions: ContextCell<Option<VecDeque<Weak<SubscriptionInner<E>>>>>,
}

/// Called when a subscription has ended.
pub(crate) type OnClose<E> = Box<dyn FnOnce(&Subscription<E>) + Send>;

/// One subscriber's interest in one source. It covers exactly the emissions between its start and
/// its end in the circuit's order.
///
/// Clones are handles of the same subscription. Dropping them does not end it. It ends with
/// [`Subscription::close`], and with the close of its subscriber, its source or a scope that it is
/// registered with.
///
/// Its start and its end are an entry each in the circuit's queue. After either, each pipe of the
/// source rebuilds its list of receivers when it next emits.
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::{Circuit, name};
///
/// let circuit = Circuit::new();
/// let (sender, receiver) = mpsc::channel();
/// let (orders, copies) = (circuit.conduit()?, circuit.conduit()?);
/// let subscription = orders.subscribe_with(&circuit.subscriber_to(copies)?, move |subscription| {
///     sender.send(subscription.subject().clone()).unwrap();
/// })?;
/// orders.get(name!("eu")).emit(3);
/// subscription.close_and_settle()?;
/// assert_eq!(receiver.try_recv().as_ref(), Ok(subscription.subject()), "what is to be called was called");
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Subscription<E> {
    pub(crate) inner: Arc<SubscriptionInner<E>>,
    pub(crate) machine: MachineRef,
}

/// The shared part of a subscription's handles.
pub(crate) struct SubscriptionInner<E> {
    pub(crate) subject: Subject,
    pub(crate) subscriber: Arc<SubscriberInner<E>>,
    pub(crate) hub: Weak<Hub<E>>,
    pub(crate) closed: Closed,
    pub(crate) on_close: ContextCell<Option<OnClose<E>>>,
    /// Whether it has ended, or never began.
    pub(crate) over: ContextCell<bool>,
}

impl<E> Hub<E> {
    /// Adds a subscription. Returns false if the conduit is closed.
    ///
    /// # Safety
    ///
    /// In the circuit's context, between two deliveries.
    pub(crate) unsafe fn add(&self, subscription: &Arc<SubscriptionInner<E>>) -> bool {
        // SAFETY: as the caller says.
        unsafe {
            self.subscriptions.with(|hub| {
                if !hub.closed {
                    hub.version += 1;
                    hub.all.push_back(Arc::clone(subscription));
                }
                !hub.closed
            })
        }
    }

    /// Removes a subscription.
    ///
    /// # Safety
    ///
    /// As [`Hub::add`].
    pub(crate) unsafe fn remove(&self, subscription: &Arc<SubscriptionInner<E>>) {
        // SAFETY: as the caller says.
        unsafe {
            self.subscriptions.with(|hub| {
                hub.version += 1;
                // When the circuit ends, it is always the first one.
                if hub.all.front().is_some_and(|first| Arc::ptr_eq(first, subscription)) {
                    hub.all.pop_front();
                } else {
                    hub.all.retain(|other| !Arc::ptr_eq(other, subscription));
                }
            });
        }
    }
}

impl<E> SubscriberInner<E> {
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Adds a subscription, which is to end with the subscriber. Returns false if the subscriber is
    /// closed.
    ///
    /// # Safety
    ///
    /// In the circuit's context, between two deliveries.
    pub(crate) unsafe fn add(&self, subscription: Weak<SubscriptionInner<E>>) -> bool {
        // SAFETY: as the caller says.
        unsafe {
            self.subscriptions.with(|subscriptions| {
                let Some(subscriptions) = subscriptions else { return false };
                push_living(subscriptions, subscription);
                true
            })
        }
    }
}
