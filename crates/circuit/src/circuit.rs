//! Circuits: one sequential context each.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::{ArgumentError, ContextError, Error, Fault, called_inside};
use crate::execution::bounds::{Bounds, Overflow};
use crate::execution::current::Current;
use crate::execution::depth::Depth;
use crate::execution::driver::{Driver, ThreadPool, thread};
use crate::execution::lane::Lane;
use crate::execution::machine::{Machine, MachineRef, Progress};
use crate::execution::node::NodeRef;
use crate::execution::waiters::Place;
use crate::failure::account::Failures;
use crate::failure::care::{Care, Make};
use crate::failure::supervision::Supervision;
use crate::identity::name::Name;
use crate::identity::subject::{Kind, Subject};
use crate::name;
use crate::operator::recipe::Recipe;
use crate::structure::pipe::Pipe;
use crate::subscription::attachment::{AsItIs, Finish};
use crate::subscription::receptor::Receptor;

/// One sequential execution context: values come in from any thread, are handled one at a time in one order, and everything
/// that one causes is done before the next one starts.
///
/// Clones are the same circuit. It ends with [`Circuit::close`], or when nobody has a handle of it or of its pipes any more
/// and its queues are empty. See [`RunBy`] for those that are run by who has them.
///
/// An idle circuit takes no time and at most a kilobyte, and half as much again once it has a pipe that was used. Making one
/// allocates a few times; it needs no thread of its own, unless that is asked for with [`RunBy::Thread`].
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tidemark_circuit::Circuit;
///
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let circuit = Circuit::new();
/// let log = Arc::clone(&seen);
/// let pipe = circuit.pipe(move |value: i32| log.lock().unwrap().push(value))?;
/// for value in 1..=3 {
///     pipe.emit(value);
/// }
/// circuit.settle()?;
/// assert_eq!(*seen.lock().unwrap(), [1, 2, 3]);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Circuit(MachineRef);

/// Who runs a circuit. What happens in it, and in which order, does not depend on that.
///
/// ```
/// use tidemark_circuit::{Circuit, RunBy};
///
/// let circuit = Circuit::builder().run_by(RunBy::Owner).build()?;
/// let last = circuit.cell(0)?;
/// (1..=3).for_each(|value| last.pipe().emit(value));
/// assert!(circuit.run(2), "there is more to do");
/// assert_eq!(last.get(), 2);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunBy {
    /// The threads of a pool that all circuits without another choice share. Costs nothing while there is nothing to do.
    #[default]
    SharedPool,
    /// The threads of this pool.
    Pool(ThreadPool),
    /// A thread of its own, which parks while there is nothing to do.
    Thread,
    /// Whoever waits in [`Circuit::settle`], on its own thread. Once only pipes are left, which cannot wait, what is in its queue is
    /// handled by who drops the last other handle, and from then on by who drops a pipe: receptors run within that drop, so it is
    /// not to be done under a lock that they take. Where such circuits hold each other in a chain, thousands of them, let go of them
    /// one by one: each drop runs within the one before, on one stack.
    Waiters,
    /// The owner, by calling [`Circuit::run`]. Who waits for it, as in [`Circuit::settle`], does not run it: another thread has to,
    /// meanwhile. Once the last `Circuit` is dropped, nobody can do that any more, whoever has its
    /// pipes, conduits and so on: then the circuit has ended, and drops what it had not handled.
    Owner,
}

impl RunBy {
    fn driver(self) -> io::Result<Driver> {
        Ok(match self {
            Self::SharedPool => Driver::SharedPool(ThreadPool::global()?),
            Self::Pool(pool) => Driver::Pool(pool),
            Self::Waiters => Driver::Waiters,
            Self::Owner => Driver::Owner(None),
            Self::Thread => Driver::Thread(Arc::default()),
        })
    }
}

/// How a circuit is to be made.
///
/// ```
/// use tidemark_circuit::{Circuit, Name, RunBy};
///
/// let circuit = Circuit::builder().name(Name::new("orders")?).run_by(RunBy::Thread).build()?;
/// assert_eq!(circuit.subject().name().to_string(), "orders");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CircuitBuilder {
    name: Option<Name>,
    run_by: RunBy,
    seed: u64,
    supervision: Supervision,
    bounds: Option<(usize, Overflow)>,
}

impl CircuitBuilder {
    /// What the circuit is called; `circuit` if nothing else is said.
    pub fn name(mut self, name: Name) -> Self {
        self.name = Some(name);
        self
    }

    /// Who runs it.
    pub fn run_by(mut self, run_by: RunBy) -> Self {
        self.run_by = run_by;
        self
    }

    /// Where random numbers start that its operators draw: equal seeds give equal draws. Zero if nothing else is said.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What is done about receptors that panic, unless their pipe has a supervision of its own.
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// How many emissions from outside may wait, and what happens to more. Unbounded if nothing else is said: then emitting
    /// never blocks and drops nothing, and memory grows while more comes in than is handled.
    ///
    /// What a circuit emits to itself is not bounded, nor are subscribing and closing. Lanes of a bounded circuit are no
    /// faster than its pipes.
    pub fn bounded(mut self, capacity: usize, overflow: Overflow) -> Self {
        self.bounds = Some((capacity, overflow));
        self
    }

    /// Makes the circuit. Fails if the system gives no thread, or the choices contradict each other.
    pub fn build(self) -> Result<Circuit, Error> {
        self.build_with(RunBy::driver)
    }

    /// Makes the circuit with the driver that is made for who is to run it.
    pub(crate) fn build_with(
        self,
        driver: impl FnOnce(RunBy) -> io::Result<Driver>,
    ) -> Result<Circuit, Error> {
        let bounds = self.checked_bounds()?;
        let name = self.name.unwrap_or_else(|| name!("circuit"));
        let subject = Subject::new(Kind::Circuit, name, Some(Subject::cortex().clone()));
        let driver = driver(self.run_by)?;
        let machine = Machine::new(subject, driver, self.seed, bounds, Failures::new(self.supervision));
        if let Driver::Thread(parker) = machine.driver() {
            thread::start(machine.clone(), parker)?;
        }
        Ok(Circuit::of(machine))
    }

    fn checked_bounds(&self) -> Result<Option<Bounds>, ArgumentError> {
        let refuse = |message: &str| Err(ArgumentError::new("bounded", message));
        match self.bounds {
            None => Ok(None),
            Some((0, _)) => refuse("the capacity is 0; at least one emission must have room"),
            Some((_, Overflow::Block)) if matches!(self.run_by, RunBy::Waiters | RunBy::Owner) => refuse(
                "callers cannot block on a circuit that only they would run; have it run by a pool or a thread",
            ),
            Some((capacity, overflow)) => Ok(Some(Bounds::new(capacity, overflow))),
        }
    }
}

impl Circuit {
    /// A circuit that the shared pool runs.
    ///
    /// # Panics
    ///
    /// If the system gives no thread for the pool, which is started with the first circuit. [`Circuit::builder`] returns
    /// this as an error.
    #[allow(clippy::new_without_default, reason = "a default that starts threads would surprise")]
    pub fn new() -> Self {
        Self::builder().build().expect("a thread for the shared pool of circuits")
    }

    /// A circuit with choices.
    pub fn builder() -> CircuitBuilder {
        CircuitBuilder::default()
    }

    /// Who this circuit is.
    pub fn subject(&self) -> &Subject {
        self.0.subject()
    }

    /// The circuit as an execution context: what [`Current::here`] says inside of it.
    pub fn current(&self) -> &Current {
        self.0.current()
    }

    /// Makes what follows under this name instead of the circuit's.
    pub fn named(&self, name: Name) -> Naming<'_> {
        Naming { circuit: self, name, supervision: None }
    }

    /// Has the pipes that follow, and the receptors that subscribers register, supervised like this, instead of like all others of
    /// this circuit.
    ///
    /// What the circuit brings along by itself (conduits, cells, ports, basins, reservoirs, streams) always resumes: it is the values
    /// that make it fail, by a panic when they are cloned or dropped.
    ///
    /// ```
    /// # use tidemark_circuit::{Circuit, Supervision};
    /// let circuit = Circuit::new();
    /// let careful = circuit.supervised(Supervision::Quarantine { after: 1 });
    /// let pipe = careful.pipe(|number: u64| println!("{}", 100 / number))?;
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn supervised(&self, supervision: Supervision) -> Naming<'_> {
        self.unnamed().supervised(supervision)
    }

    /// A pipe to a receptor.
    pub fn pipe<E, R>(&self, receptor: R) -> Result<Pipe<E>, Fault>
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        self.unnamed().pipe(receptor)
    }

    /// A pipe to a receptor that the function makes: now, and anew in the circuit's context for each
    /// [restart](Supervision::Restart).
    pub fn pipe_from<E, R, F>(&self, make: F) -> Result<Pipe<E>, Fault>
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
        F: FnMut() -> R + Send + 'static,
    {
        self.unnamed().pipe_from(make)
    }

    /// Makes what follows under the circuit's own name.
    pub(crate) fn unnamed(&self) -> Naming<'_> {
        self.named(self.subject().name())
    }

    /// A lane of the caller's own into the circuit, for emitting without sharing anything with other callers.
    pub fn lane(&self) -> Result<Lane, Fault> {
        self.0.check_open("lane")?;
        Ok(Lane::new(self.0.clone()))
    }

    /// Waits until everything that was emitted before is handled, with all that it caused; at once if it is already, or the
    /// circuit has ended. What is emitted later is not waited for.
    ///
    /// Everything that the circuit did to get there happened before this returns. A receptor of another circuit may wait for one
    /// that a pool runs, and runs it meanwhile on its own thread if no thread of the pool does; of circuits that wait for the next one like
    /// this, every 32nd does on a thread apart, which has its own locks and thread-locals. Fails inside of the circuit, where
    /// it would wait for itself, inside of another one that it waits for, directly or through others, because that would never end
    /// either ([`ContextError::is_circle`]), and where it would wait for a [`crate::Simulation`], which is to be
    /// [run](crate::Simulation::run) instead. Of circuits that begin to wait for each other at the same time one is refused at least.
    ///
    /// What its owner runs is waited for until somebody else has called [`Circuit::run`] often enough: on the owner's own thread, for
    /// ever.
    #[inline]
    pub fn settle(&self) -> Result<(), ContextError> {
        self.0.settle()
    }

    /// As [`Circuit::settle`], for a task instead of a thread, and refused where that would be. What it waits for is fixed when this is
    /// called, and whether that would be for ever is looked at then: of two receptors that block on each other's circuit by this, nobody
    /// knows.
    ///
    /// ```
    /// # use tidemark_circuit::Circuit;
    /// async fn one_two_three(circuit: &Circuit) -> Result<(), tidemark_circuit::Error> {
    ///     let pipe = circuit.pipe(|value: u64| println!("{value}"))?;
    ///     (1..=3).for_each(|value| pipe.emit(value));
    ///     circuit.settled()?.await;
    ///     Ok(())
    /// }
    /// ```
    pub fn settled(&self) -> Result<Settled, ContextError> {
        let inside = called_inside!("settled");
        let settled = self.settled_in_steps(inside)?;
        if settled.target.is_some() {
            self.0.check_can_wait(inside)?;
        }
        Ok(settled)
    }

    /// As [`Circuit::settled`], also in a simulation, for what is polled there from time to time. Inside of the circuit this refusal
    /// is the answer.
    pub(crate) fn settled_in_steps(&self, inside: &'static str) -> Result<Settled, ContextError> {
        Ok(Settled { target: self.0.settle_target(inside)?, registered: None, machine: self.0.clone() })
    }

    /// Has the circuit end: what was emitted before is still handled, what comes after is dropped. Subscriptions that are open
    /// then end one after the other, each with all that its on-close causes; receptors are dropped last. Does not wait, may be
    /// called from anywhere and more than once.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether it was closed. Inside of the circuit that is up to the place in the order: what somebody else asks for at the same
    /// time is not known before the circuit comes to it.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed_here()
    }

    /// Closes the circuit and waits until it has ended. Fails, and closes nothing, inside of the circuit and in a
    /// [`crate::Simulation`]; see [`Circuit::settle`] for one that its owner runs.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.0.check_can_wait("Cannot close a circuit and wait for it from within its context")?;
        self.close();
        self.0.settle_closed()
    }

    /// Handles up to `budget` entries on this thread, for circuits that their owner runs. Returns whether there are more.
    ///
    /// Does nothing for a circuit with another driver, inside of the circuit, and while another thread runs it.
    pub fn run(&self, budget: usize) -> bool {
        if !matches!(self.0.driver(), Driver::Owner(_)) || budget == 0 {
            return self.0.has_work();
        }
        match self.0.enter() {
            Some(mut running) => running.run(budget, u64::MAX) == Progress::More && running.has_more(),
            None => self.0.has_work(),
        }
    }

    /// Who runs it.
    pub fn run_by(&self) -> RunBy {
        match self.0.driver() {
            Driver::Owner(_) => RunBy::Owner,
            Driver::Waiters => RunBy::Waiters,
            Driver::Thread(_) => RunBy::Thread,
            Driver::Pool(pool) => RunBy::Pool(pool.clone()),
            Driver::SharedPool(_) => RunBy::SharedPool,
        }
    }

    /// How many emissions were dropped because the queue was full. See [`CircuitBuilder::bounded`].
    pub fn dropped(&self) -> u64 {
        self.0.bounds.as_ref().map_or(0, |bounds| bounds.dropped())
    }

    /// How many callbacks have failed.
    pub fn failures(&self) -> u64 {
        self.0.failures.count()
    }

    /// Another handle of the circuit with this machine.
    pub(crate) fn of(machine: MachineRef) -> Self {
        machine.add_owner();
        Self(machine)
    }

    pub(crate) fn machine(&self) -> &MachineRef {
        &self.0
    }
}

impl Clone for Circuit {
    fn clone(&self) -> Self {
        Self::of(self.0.clone())
    }
}

impl Drop for Circuit {
    fn drop(&mut self) {
        self.0.give_up_owner();
    }
}

/// Whether two handles are of one circuit.
impl PartialEq for Circuit {
    fn eq(&self, other: &Self) -> bool {
        self.subject() == other.subject()
    }
}

impl Eq for Circuit {}

impl Hash for Circuit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.subject().hash(state);
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Circuit").field(self.subject()).finish()
    }
}

/// Waits until a circuit has handled what was emitted before. Made by [`Circuit::settled`], with an example there.
///
/// A poll that finds it handled costs a few loads, any other one takes a lock.
#[must_use = "it waits only while it is polled"]
pub struct Settled {
    machine: MachineRef,
    /// None once there is nothing to wait for.
    target: Option<u64>,
    registered: Option<Place>,
}

impl Future for Settled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { machine, target, registered } = &mut *self;
        if let Some(ticket) = *target {
            if !machine.poll_settled(ticket, context.waker(), registered) {
                return Poll::Pending;
            }
            *target = None;
        }
        Poll::Ready(())
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        if let Some(place) = self.registered {
            self.machine.waiters.remove(place);
        }
    }
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settled").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A circuit and the name for what it is asked to make next, and how that is supervised. Made by [`Circuit::named`]
/// and [`Circuit::supervised`]; costs nothing.
///
/// ```
/// use tidemark_circuit::{Circuit, name};
///
/// let circuit = Circuit::new();
/// let level = circuit.named(name!("level")).cell(0)?;
/// assert_eq!(level.subject().to_string(), "cortex:cortex/circuit:circuit/cell:level");
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "it only says how what it is asked to make is called and supervised"]
pub struct Naming<'a> {
    circuit: &'a Circuit,
    name: Name,
    /// None if as all others of the circuit.
    supervision: Option<Supervision>,
}

impl Naming<'_> {
    /// Has the pipes and subscribers that follow supervised like this. See [`Circuit::supervised`].
    pub fn supervised(self, supervision: Supervision) -> Self {
        Self { supervision: Some(supervision), ..self }
    }

    /// A pipe to a receptor. See [`Circuit::pipe`].
    pub fn pipe<E, R>(&self, receptor: R) -> Result<Pipe<E>, Fault>
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        let subject = self.component(Kind::Pipe, "pipe")?;
        Ok(Pipe::new(self.node(subject, None, receptor)))
    }

    /// A pipe to a receptor that the function makes. See [`Circuit::pipe_from`].
    pub fn pipe_from<E, R, F>(&self, mut make: F) -> Result<Pipe<E>, Fault>
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
        F: FnMut() -> R + Send + 'static,
    {
        let subject = self.component(Kind::Pipe, "pipe")?;
        let (receptor, depth) = (make(), Depth::of(size_of::<E>(), None));
        let care = self.care(Some(Box::new(move |_| Ok(make()))));
        Ok(Pipe::new(NodeRef::with_care(self.machine(), subject, depth, receptor, care)))
    }

    /// As [`Pipe::prepend`], under this name and with this supervision. The target must be of this circuit.
    pub fn prepend<R>(&self, target: &Pipe<R::Out>, recipe: &R) -> Result<Pipe<R::In>, Fault>
    where
        R: Recipe,
    {
        self.prepend_as(target, recipe, &AsItIs)
    }

    pub(crate) fn prepend_as<R>(
        &self,
        target: &Pipe<R::Out>,
        recipe: &R,
        finish: &impl Finish<R::In>,
    ) -> Result<Pipe<R::In>, Fault>
    where
        R: Recipe,
    {
        if !target.is_of(self.machine()) {
            let message = format!("the target belongs to a different circuit: {:?}", target.subject());
            return Err(Fault::new(self.circuit.subject().clone(), "pipe", message));
        }
        target.prepend_as(self.name, self.supervision.or(target.node().supervision()), recipe, finish)
    }

    /// A node of the circuit, supervised as was asked for, which directly calls one of this depth or none.
    pub(crate) fn node<E, R>(&self, subject: Subject, calls: Option<Depth>, receptor: R) -> NodeRef
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        let depth = Depth::of(size_of::<E>(), calls);
        NodeRef::with_care(self.machine(), subject, depth, receptor, self.care::<E, R>(None))
    }

    /// What is to be done about the failures of a pipe. What makes its receptor is forgotten if it is never made anew.
    pub(crate) fn care<E, R>(&self, make: Option<Make<R>>) -> Care<E, R> {
        let make = make.filter(|_| self.machine().supervises(self.supervision).restarts());
        Care { supervision: self.supervision, make, dead_letters: None }
    }

    /// What was asked for; none if as all others of the circuit.
    pub(crate) fn supervision(&self) -> Option<Supervision> {
        self.supervision
    }

    pub(crate) fn machine(&self) -> &MachineRef {
        self.circuit.machine()
    }

    /// The subject of a new component of the circuit; a fault if the circuit is closed.
    pub(crate) fn component(&self, kind: Kind, operation: &'static str) -> Result<Subject, Fault> {
        self.machine().check_open(operation)?;
        Ok(Subject::new(kind, self.name, Some(self.circuit.subject().clone())))
    }
}
