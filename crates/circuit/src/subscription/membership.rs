//! Who hears of whom: sources, subscribers, and the subscriptions between them. They know each other, so their declarations are
//! one; what they do is said in the files of their names.
#![allow(unsafe_code, reason = "state of the circuit's context is reached by who is there")]

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

/// The subscriptions of a conduit.
pub(crate) struct Hub<E> {
    pub(crate) closed: Closed,
    pub(crate) subscriptions: ContextCell<Subscriptions<E>>,
}

pub(crate) struct Subscriptions<E> {
    /// Changes with each subscription that begins or ends.
    pub(crate) version: u64,
    /// In the order in which they began.
    pub(crate) all: VecDeque<Arc<SubscriptionInner<E>>>,
    /// Whether the close was handled.
    pub(crate) closed: bool,
}

/// What the handles of a subscriber share.
pub(crate) struct SubscriberInner<E> {
    pub(crate) subject: Subject,
    pub(crate) closed: Closed,
    /// Of what the callback registers; none if as all others of the circuit.
    pub(crate) supervision: Option<Supervision>,
    pub(crate) callback: ContextCell<Callback<E>>,
    /// How often the callback has failed.
    pub(crate) failures: ContextCell<u32>,
    /// None once the close was handled.
    pub(crate) subscriptions: ContextCell<Option<VecDeque<Weak<SubscriptionInner<E>>>>>,
}

/// What is called when a subscription has ended.
pub(crate) type OnClose<E> = Box<dyn FnOnce(&Subscription<E>) + Send>;

/// One subscriber's interest in one source. It covers exactly the emissions between its places in the order: that of the
/// subscribing and that of the close.
///
/// Clones are the same subscription. Dropping it changes nothing, so that it need not be kept; [`Subscription::close`] ends it,
/// as do the close of its subscriber, of its source and of a scope that it was given to.
///
/// Beginning and ending one is an entry each in the circuit's queue. After either, each pipe of the source makes its list of
/// receivers anew when it next emits.
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

/// What the handles of a subscription share.
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
    /// Adds a subscription; false if the conduit is closed.
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

    /// Takes a subscription out.
    ///
    /// # Safety
    ///
    /// As [`Hub::add`].
    pub(crate) unsafe fn remove(&self, subscription: &Arc<SubscriptionInner<E>>) {
        // SAFETY: as the caller says.
        unsafe {
            self.subscriptions.with(|hub| {
                hub.version += 1;
                // At the end of the circuit it is the first, time and again.
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

    /// Remembers a subscription, to end it when the subscriber is closed; false if it is.
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
