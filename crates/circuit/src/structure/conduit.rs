//! Conduits: pipes by name, and a source of what goes through them.
//!
//! A conduit's pipes share a [`Hub`], which has the subscriptions. A pipe keeps its own list of receivers and makes it anew when
//! it emits for the first time after the hub's version has changed; that is also when subscribers' callbacks are called.
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

/// Where an emission goes besides its own pipe.
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
    /// Nowhere.
    #[default]
    Pipe,
    /// To the pipes of all names that enclose its name, the nearest first: `app.orders.eu`, then `app.orders`, then `app`. They are
    /// part of the emission, but where a name has more parts than are to be on one stack: there every 64th goes by the circuit's own queue,
    /// and of values above 256 bytes a part counts as many times as they have 256 bytes.
    Stem,
}

/// A pool of pipes, one per name, and the source of what is emitted to them.
///
/// Clones are the same conduit. The pipes of a conduit that is closed drop what they are given.
///
/// Looking up a pipe takes no lock once it was made; pipes are kept for as long as the conduit. An emission costs a call through a
/// pointer for each receiver and a clone of the value for each but the last, and little more than that of a bare pipe if nobody has
/// subscribed.
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
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    machine: MachineRef,
    subject: Subject,
    routing: Routing,
    hub: Arc<Hub<E>>,
    pipes: NameMap<Pipe<E>>,
}

impl Circuit {
    /// A conduit. See [`Conduit`].
    pub fn conduit<E: Clone + Send + 'static>(&self) -> Result<Conduit<E>, Fault> {
        self.unnamed().conduit()
    }

    /// A conduit with another routing than the default.
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
        let inner = Inner {
            machine: machine.clone(),
            subject,
            routing,
            hub: Arc::new(Hub { closed: Closed::default(), subscriptions: ContextCell::new(subscriptions) }),
            pipes: NameMap::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Who this conduit is.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// The pipe of a name: always the same for the same name. Takes no lock if it was asked for before.
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
            // Another one than the hub ever begins with.
            version: u64::MAX,
            routes: Vec::new(),
            uncopied: 0,
            parent: parent.map(|parent| Parent::new(parent, calls.is_some())),
        };
        Pipe::new(NodeRef::built_in(&inner.machine, subject, calls, channel))
    }

    /// The pipe of the enclosing name. Those that enclose it are made from the outermost on, none while another is being made: a deep
    /// name must not take a deep stack.
    fn parent(&self, name: Name) -> Option<&Pipe<E>> {
        let is_missing = |name: &Name| self.inner.pipes.get(*name).is_none();
        let missing: Vec<Name> =
            iter::successors(name.enclosure(), Name::enclosure).take_while(is_missing).collect();
        for name in missing.into_iter().rev() {
            self.get(name);
        }
        name.enclosure().map(|enclosure| self.get(enclosure))
    }

    /// Has the subscriber hear of what is emitted from here on. Its callback is called for each pipe when that first emits.
    ///
    /// Fails if the conduit or the subscriber is closed, or the subscriber is of another circuit.
    pub fn subscribe(&self, subscriber: &Subscriber<E>) -> Result<Subscription<E>, Fault> {
        let hearer = Hearer::Subscriber { id: subscriber.subject().id(), has_on_close: false };
        self.begin(subscriber, None, hearer)
    }

    /// As [`Conduit::subscribe`]; `on_close` is called once in the circuit's context when the subscription has ended, whoever
    /// ended it: its own close, or that of its subscriber, its source, or its circuit.
    ///
    /// A circuit that ends first ends what is subscribed to its conduits, one after the other in the order in which they began,
    /// and what `on_close` emits to the circuit is still handled, with all that it causes, before the next. `on_close` is dropped
    /// without being called if the subscription never began, because the circuit was closed meanwhile, and if nobody is left whom
    /// it could tell anything: once it has begun it goes with the last handle of the conduit, its pipes and the subscription, and
    /// with a circuit that nobody can run any more. Who relies on it keeps one of them until the circuit is closed and has
    /// settled.
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

    /// A subscription that has yet to begin. The subscriber must be of this circuit.
    pub(crate) fn prepare(
        &self,
        subscriber: &Subscriber<E>,
        on_close: Option<OnClose<E>>,
    ) -> Subscription<E> {
        let inner = &*self.inner;
        assert!(subscriber.is_of(&inner.machine), "both are reached in the context of one circuit");
        Subscription::new(&inner.subject, &inner.hub, subscriber.inner(), on_close, &inner.machine)
    }

    /// Begins what [`Conduit::prepare`] of this conduit has made. If either may be closed by the time, it ends then without having
    /// begun.
    pub(crate) fn begin_prepared(&self, subscription: &Subscription<E>, hearer: Hearer) {
        subscription.begin(&self.inner.subject, &self.inner.hub, hearer);
    }

    /// Whether it was closed, or its circuit was. Inside of the circuit that is up to the place in the order: what somebody else
    /// asks for at the same time is not known before the circuit comes to it.
    pub fn is_closed(&self) -> bool {
        let Inner { hub, machine, .. } = &*self.inner;
        hub.closed.is_closed(machine.is_inside()) || machine.is_closed_here()
    }

    /// Ends all subscriptions, behind what the caller emitted before. New ones are refused from now on, those of the circuit itself,
    /// unless it is the caller, from that place in the order on; and what is emitted later is dropped.
    pub fn close(&self) {
        let Inner { hub, machine, subject, .. } = &*self.inner;
        hub.closed.ask(machine, || {
            let hub = Arc::clone(hub);
            let event = Event::CloseConduit { source: subject.id() };
            // SAFETY: jobs run in the context of the circuit that they are submitted to.
            machine.submit(event, move || unsafe { hub.close() });
        });
    }

    /// Notes that what was put into the order closes the conduit as well.
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

    /// A handle that does not keep the conduit.
    pub(crate) fn downgrade(&self) -> WeakConduit<E> {
        WeakConduit(Arc::downgrade(&self.inner))
    }
}

/// A handle that does not keep its conduit, nor its circuit.
pub(crate) struct WeakConduit<E>(Weak<Inner<E>>);

impl<E> WeakConduit<E> {
    pub(crate) fn upgrade(&self) -> Option<Conduit<E>> {
        self.0.upgrade().map(|inner| Conduit { inner })
    }

    pub(crate) fn exists(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Mirroring: a subscriber to a conduit has each pipe's emissions go to the conduit's pipe of the same name.
impl<E: Clone + Send + 'static> ReceiverPool<E> for Conduit<E> {
    fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, E>) {
        registrar.pipe(self.get(subject.name()));
    }
}

handle!(Conduit<E>, |conduit| &conduit.inner.subject);

impl<E: Clone + Send + 'static> Hub<E> {
    /// Ends all subscriptions, and takes no more.
    ///
    /// # Safety
    ///
    /// As [`Hub::add`].
    unsafe fn close(&self) {
        self.closed.reach();
        // SAFETY: as the caller says. The subscriptions are ended after the cell was left, because that comes back to it.
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

/// The receptor of a conduit's pipe.
struct Channel<E> {
    subject: Subject,
    hub: Arc<Hub<E>>,
    /// The hub's version that `routes` is of.
    version: u64,
    routes: Vec<Route<E>>,
    /// How often a value could not be copied for somebody.
    uncopied: u32,
    /// The pipe of the enclosing name, which hears of everything too.
    parent: Option<Parent<E>>,
}

/// The way to the pipe of the enclosing name.
enum Parent<E> {
    Direct(Forward<E>),
    /// By the transit queue, so that the stack stays small however deep names are.
    Queued(Pipe<E>),
}

/// What one subscription registered for this pipe.
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
                // The last one gets the value itself.
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
    /// Forgets what ended subscriptions registered, and has new ones register.
    #[cold]
    fn rewire(&mut self) {
        // SAFETY: receptors run in their circuit's context; the cell is left before callbacks are called.
        let (version, all) = unsafe { self.hub.subscriptions.with(|hub| (hub.version, hub.all.clone())) };
        // Both are in the order in which subscriptions began, and who is new is behind all others: one walk finds who is left.
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
                // SAFETY: as above; a callback is not called from within another.
                let receivers = unsafe { subscription.subscriber().discover(&self.subject) };
                Route { subscription, receivers }
            }));
        }
        gone.extend(before);
        self.version = version;
        // Dropping receptors calls code of users.
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

    /// Gives a copy. That one cannot be made is not the receiver's failure, and costs nobody else the value.
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
