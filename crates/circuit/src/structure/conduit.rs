//! Conduits: pipes by name, and a source of their emissions.
//!
//! The pipes of a conduit share a [`Hub`], which has the subscriptions. Each pipe caches its list
//! of receivers. It rebuilds the list on its first emission after the hub's version has changed,
//! and calls the callbacks of new subscribers then.
#![allow(
    unsafe_code,
    reason = "state of the circuit's context is reached in jobs and deliveries, which run there"
)]

use std::collections::VecDeque;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use crate::circuit::{Circuit, Naming};
use crate::error::{ContextError, Fault};
use crate::execution::context_cell::ContextCell;
use crate::execution::event::{Event, Hearer};
use crate::execution::machine::{Machine, MachineRef};
use crate::execution::node::NodeRef;
use crate::failure::thrown::shielded;
use crate::identity::name::Name;
use crate::identity::name_map::NameMap;
use crate::identity::subject::{Kind, Subject};
use crate::structure::closed::Closed;
use crate::structure::handle::handle;
use crate::structure::pipe::{Forward, Pipe};
use crate::subscription::membership::{Hub, OnClose, Subscription, SubscriptionInner, Subscriptions};
use crate::subscription::receptor::Receptor;
use crate::subscription::registered;
use crate::subscription::registrar::{Receiver, ReceiverPool, Registrar};
use crate::subscription::subscriber::Subscriber;

/// Further targets of an emission, besides its own pipe.
///
/// ```
/// use tidemark_circuit::{Circuit, Routing, name};
///
/// let circuit = Circuit::new();
/// let orders = circuit.conduit_with(Routing::Stem)?;
/// let reservoir = orders.reservoir(16)?;
/// orders.get(name!("app.orders.eu")).emit(7);
/// circuit.settle()?;
/// let names: Vec<_> = reservoir.drain().iter().map(|capture| capture.name().path()).collect();
/// assert_eq!(names, ["app.orders.eu", "app.orders", "app"]);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Routing {
    /// None.
    #[default]
    Pipe,
    /// The pipes of all enclosing names, nearest first: `app.orders.eu`, then `app.orders`, then
    /// `app`. They run as part of the emission. To bound the stack, every 64th level goes through
    /// the circuit's queue instead. With values above 256 bytes, a level counts once per 256 bytes.
    Stem,
}

/// Pipes by name, and the source of what is emitted to them.
///
/// Clones are handles of the same conduit. The pipes of a closed conduit drop their values.
///
/// Looking up an existing pipe takes no lock. Pipes live as long as the conduit. An emission costs
/// an indirect call per receiver, and a clone of the value for each receiver but the last. Without
/// subscriptions it costs little more than that of a bare pipe.
///
/// ```
/// use tidemark_circuit::{Circuit, Name};
///
/// let circuit = Circuit::new();
/// let conduit = circuit.conduit::<u64>()?;
/// let orders = Name::new("orders")?;
/// assert_eq!(conduit.get(orders), conduit.get(orders));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Conduit<E> {
    inner: Arc<ConduitInner<E>>,
}

struct ConduitInner<E> {
    machine: MachineRef,
    subject: Subject,
    routing: Routing,
    hub: Arc<Hub<E>>,
    pipes: NameMap<Pipe<E>>,
}

impl Circuit {
    /// Creates a conduit. See [`Conduit`].
    pub fn conduit<E: Clone + Send + 'static>(&self) -> Result<Conduit<E>, Fault> {
        self.unnamed().conduit()
    }

    /// Creates a conduit with the given routing.
    pub fn conduit_with<E: Clone + Send + 'static>(&self, routing: Routing) -> Result<Conduit<E>, Fault> {
        self.unnamed().conduit_with(routing)
    }
}

impl Naming<'_> {
    /// See [`Circuit::conduit`].
    pub fn conduit<E: Clone + Send + 'static>(&self) -> Result<Conduit<E>, Fault> {
        self.conduit_with(Routing::Pipe)
    }

    /// See [`Circuit::conduit_with`].
    pub fn conduit_with<E: Clone + Send + 'static>(&self, routing: Routing) -> Result<Conduit<E>, Fault> {
        let subject = self.component(Kind::Conduit, "conduit")?;
        Ok(Conduit::new(self.machine(), subject, routing))
    }
}

impl<E: Clone + Send + 'static> Conduit<E> {
    pub(crate) fn new(machine: &MachineRef, subject: Subject, routing: Routing) -> Self {
        let subscriptions = Subscriptions { version: 0, all: VecDeque::new(), closed: false };
        let inner = ConduitInner {
            machine: machine.clone(),
            subject,
            routing,
            hub: Arc::new(Hub { closed: Closed::default(), subscriptions: ContextCell::new(subscriptions) }),
            pipes: NameMap::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the subject of the conduit.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Returns the pipe of a name, creating it on the first call. Later calls return the same pipe
    /// and take no lock.
    #[inline]
    pub fn get(&self, name: impl Into<Name>) -> &Pipe<E> {
        let name = name.into();
        self.inner.pipes.get_or_make(name, || self.make(name))
    }

    fn make(&self, name: Name) -> Pipe<E> {
        let inner = &*self.inner;
        let parent = match inner.routing {
            Routing::Pipe => None,
            Routing::Stem => self.parent(name),
        };
        let subject = Subject::new(Kind::Pipe, name, Some(inner.subject.clone()));
        let calls = parent.and_then(|parent| parent.node().depth().called_by(size_of::<E>()));
        let channel = Channel {
            subject: subject.clone(),
            hub: Arc::clone(&inner.hub),
            // Differs from the first version of any hub.
            version: u64::MAX,
            routes: Vec::new(),
            uncopied: 0,
            parent: parent.map(|parent| Parent::new(parent, calls.is_some())),
        };
        Pipe::new(NodeRef::built_in(&inner.machine, subject, calls, channel))
    }

    /// Returns the pipe of the enclosing name. Creates missing enclosing pipes from the outermost
    /// in, one after the other, so that a deep name does not need a deep stack.
    fn parent(&self, name: Name) -> Option<&Pipe<E>> {
        let is_missing = |name: &Name| self.inner.pipes.get(*name).is_none();
        let missing: Vec<Name> =
            iter::successors(name.enclosure(), Name::enclosure).take_while(is_missing).collect();
        for name in missing.into_iter().rev() {
            self.get(name);
        }
        name.enclosure().map(|enclosure| self.get(enclosure))
    }

    /// Subscribes to the emissions that follow in the circuit's order. The subscriber's callback is
    /// called for each pipe when that pipe next emits.
    ///
    /// Fails if the conduit or the subscriber is closed, or the subscriber is of another circuit.
    pub fn subscribe(&self, subscriber: &Subscriber<E>) -> Result<Subscription<E>, Fault> {
        let hearer = Hearer::Subscriber { id: subscriber.subject().id(), has_on_close: false };
        self.begin(subscriber, None, hearer)
    }

    /// Subscribes as [`Conduit::subscribe`] does. `on_close` is called once, in the circuit's
    /// context, when the subscription has ended: by its own close, or by that of its subscriber,
    /// its source or its circuit.
    ///
    /// A circuit that ends first ends the subscriptions to its conduits, in the order in which they
    /// began. What `on_close` emits to the circuit is handled, with all that it causes, before the
    /// next subscription ends.
    ///
    /// `on_close` is dropped uncalled if the circuit was closed before the subscription began. It
    /// is also dropped with the last handle of the conduit, its pipes and the subscription, and
    /// with a circuit that can no longer be run. A caller that relies on `on_close` keeps one of
    /// these handles until the circuit is closed and has settled.
    pub fn subscribe_with<F>(&self, subscriber: &Subscriber<E>, on_close: F) -> Result<Subscription<E>, Fault>
    where
        F: FnOnce(&Subscription<E>) + Send + 'static,
    {
        let hearer = Hearer::Subscriber { id: subscriber.subject().id(), has_on_close: true };
        self.begin(subscriber, Some(Box::new(on_close)), hearer)
    }

    pub(crate) fn begin(
        &self,
        subscriber: &Subscriber<E>,
        on_close: Option<OnClose<E>>,
        hearer: Hearer,
    ) -> Result<Subscription<E>, Fault> {
        let inner = &*self.inner;
        let refuse = |message: String| Err(Fault::new(inner.subject.clone(), "subscribe", message));
        if !subscriber.is_of(&inner.machine) {
            return refuse(format!("Subscriber belongs to a different circuit: {:?}", subscriber.subject()));
        }
        if subscriber.inner().is_closed(inner.machine.is_inside()) {
            return refuse(format!("the subscriber {:?} is closed", subscriber.subject()));
        }
        if self.is_closed() {
            return refuse("the conduit is closed".to_owned());
        }
        let subscription = self.prepare(subscriber, on_close);
        self.begin_prepared(&subscription, hearer);
        Ok(subscription)
    }

    /// Creates a subscription that has not begun. The subscriber must be of this circuit.
    pub(crate) fn prepare(
        &self,
        subscriber: &Subscriber<E>,
        on_close: Option<OnClose<E>>,
    ) -> Subscription<E> {
        let inner = &*self.inner;
        assert!(subscriber.is_of(&inner.machine), "both are reached in the context of one circuit");
        Subscription::new(&inner.subject, &inner.hub, subscriber.inner(), on_close, &inner.machine)
    }

    /// Begins a subscription made by [`Conduit::prepare`] of this conduit. If the conduit or the
    /// subscriber is closed by then, the subscription ends without having begun.
    pub(crate) fn begin_prepared(&self, subscription: &Subscription<E>, hearer: Hearer) {
        subscription.begin(&self.inner.subject, &self.inner.hub, hearer);
    }

    /// Returns whether the conduit or its circuit was closed. Inside the circuit, a close requested
    /// from outside counts only once the circuit has reached it in its order.
    pub fn is_closed(&self) -> bool {
        let ConduitInner { hub, machine, .. } = &*self.inner;
        hub.closed.is_closed(machine.is_inside()) || machine.is_closed_here()
    }

    /// Ends all subscriptions, after what the caller emitted before. Later emissions are dropped.
    /// New subscriptions are refused immediately; inside the circuit, unless it is the caller, once
    /// it has reached the close in its order.
    pub fn close(&self) {
        let ConduitInner { hub, machine, subject, .. } = &*self.inner;
        hub.closed.ask(machine, || {
            let hub = Arc::clone(hub);
            let event = Event::CloseConduit { source: subject.id() };
            // SAFETY: jobs run in the context of the circuit that they are submitted to.
            machine.submit(event, move || unsafe { hub.close() });
        });
    }

    /// Marks the conduit as closed by an entry that is already in the circuit's order.
    pub(crate) fn expect_close(&self) {
        self.inner.hub.closed.expect();
    }

    /// Closes the conduit and waits until its subscriptions have ended.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.inner.machine.check_can_close_and_wait()?;
        self.close();
        self.inner.machine.settle_closed()
    }
}

impl<E> Conduit<E> {
    pub(crate) fn circuit(&self) -> Circuit {
        Circuit::of(self.inner.machine.clone())
    }

    pub(crate) fn machine(&self) -> &MachineRef {
        &self.inner.machine
    }

    pub(crate) fn downgrade(&self) -> WeakConduit<E> {
        WeakConduit(Arc::downgrade(&self.inner))
    }
}

/// A handle that keeps neither its conduit nor the circuit alive.
pub(crate) struct WeakConduit<E>(Weak<ConduitInner<E>>);

impl<E> WeakConduit<E> {
    pub(crate) fn upgrade(&self) -> Option<Conduit<E>> {
        self.0.upgrade().map(|inner| Conduit { inner })
    }

    pub(crate) fn exists(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Mirrors: a subscriber to a conduit forwards each pipe's emissions to the conduit's pipe of the
/// same name.
impl<E: Clone + Send + 'static> ReceiverPool<E> for Conduit<E> {
    fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, E>) {
        registrar.pipe(self.get(subject.name()));
    }
}

handle!(Conduit<E>, |conduit| &conduit.inner.subject);

impl<E: Clone + Send + 'static> Hub<E> {
    /// Ends all subscriptions and refuses new ones.
    ///
    /// # Safety
    ///
    /// As [`Hub::add`].
    unsafe fn close(&self) {
        self.closed.reach();
        // SAFETY: as the caller says. The subscriptions end outside of `with`, because ending one
        // enters the cell again.
        unsafe {
            let all = self.subscriptions.with(|hub| {
                hub.closed = true;
                hub.version += 1;
                std::mem::take(&mut hub.all)
            });
            for subscription in &all {
                subscription.end();
            }
        }
    }
}

struct Channel<E> {
    subject: Subject,
    hub: Arc<Hub<E>>,
    /// Version of the hub that `routes` was built for.
    version: u64,
    routes: Vec<Route<E>>,
    /// Number of failed clones of a value.
    uncopied: u32,
    /// The pipe of the enclosing name, which gets every value too.
    parent: Option<Parent<E>>,
}

/// How values reach the pipe of the enclosing name.
enum Parent<E> {
    Direct(Forward<E>),
    /// Through the transit queue, to bound the stack for deep names.
    Queued(Pipe<E>),
}

/// The receivers that one subscription registered for this pipe.
struct Route<E> {
    subscription: Arc<SubscriptionInner<E>>,
    receivers: Vec<Receiver<E>>,
}

impl<E: Clone + Send + 'static> Receptor<E> for Channel<E> {
    #[inline]
    fn receive(&mut self, value: E) {
        // SAFETY: receptors run in their circuit's context.
        if unsafe { self.hub.subscriptions.with(|hub| hub.version) } != self.version {
            self.rewire();
        }
        let mut targets = self.routes.iter_mut().flat_map(|route| &mut route.receivers).peekable();
        while let Some(target) = targets.next() {
            if targets.peek().is_none() && self.parent.is_none() {
                // The last receiver gets the value itself.
                return target.give(&self.subject, value);
            }
            target.give_copy(&self.subject, &value, &mut self.uncopied);
        }
        match &mut self.parent {
            Some(Parent::Direct(parent)) => parent.receive(value),
            Some(Parent::Queued(parent)) => parent.emit(value),
            None => {}
        }
    }
}

impl<E: Send + 'static> Parent<E> {
    fn new(parent: &Pipe<E>, is_called: bool) -> Self {
        if is_called { Self::Direct(parent.forward()) } else { Self::Queued(parent.clone()) }
    }
}

impl<E: Clone + Send + 'static> Channel<E> {
    /// Drops the receivers of ended subscriptions and calls the callbacks of new ones.
    #[cold]
    fn rewire(&mut self) {
        // SAFETY: receptors run in their circuit's context; no callback is called within `with`.
        let (version, all) = unsafe { self.hub.subscriptions.with(|hub| (hub.version, hub.all.clone())) };
        // Both lists are in the order in which subscriptions began, and new ones are at the end, so
        // one pass finds the remaining ones.
        let mut before = std::mem::take(&mut self.routes).into_iter();
        let mut gone = Vec::new();
        self.routes.reserve_exact(all.len());
        for subscription in all {
            let known = loop {
                match before.next() {
                    Some(route) if !Arc::ptr_eq(&route.subscription, &subscription) => gone.push(route),
                    known => break known,
                }
            };
            self.routes.push(known.unwrap_or_else(|| {
                // SAFETY: as above; a callback is never called from within another.
                let receivers = unsafe { subscription.subscriber().discover(&self.subject) };
                Route { subscription, receivers }
            }));
        }
        gone.extend(before);
        self.version = version;
        // Dropping receptors calls user code.
        shielded(|| drop(gone));
    }
}

impl<E: Clone + Send + 'static> Receiver<E> {
    #[inline]
    fn give(&mut self, pipe: &Subject, value: E) {
        match self {
            Self::Pipe(target) => target.emit(value),
            Self::Receptor(receptor) => {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| receptor.receive(value))) {
                    registered::failed(receptor, pipe, panic);
                }
            }
        }
    }

    /// Gives the receiver a copy. A failed clone is not the receiver's failure and affects no other
    /// receiver.
    #[inline]
    fn give_copy(&mut self, pipe: &Subject, value: &E, uncopied: &mut u32) {
        let mut is_copied = false;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let copy = value.clone();
            is_copied = true;
            match self {
                Self::Pipe(target) => target.emit(copy),
                Self::Receptor(receptor) => receptor.receive(copy),
            }
        }));
        match (outcome, self) {
            (Ok(()), _) => {}
            (Err(panic), Self::Receptor(receptor)) if is_copied => registered::failed(receptor, pipe, panic),
            (Err(panic), _) => {
                *uncopied = uncopied.saturating_add(1);
                Machine::report_inside(pipe, "clone", *uncopied, panic);
            }
        }
    }
}
