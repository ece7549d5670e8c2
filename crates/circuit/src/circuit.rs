//! Circuits: each is one sequential context.

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
use crate::execution::waiters::WaiterKey;
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

/// One sequential execution context: values arrive from any thread and are handled one at a time in
/// one order. Everything that one value causes is done before the next one starts.
///
/// Clones are the same circuit. It ends with [`Circuit::close`], or when no handle of it or of its
/// pipes is left and its queues are empty. See [`RunBy`] for circuits that their users run.
///
/// An idle circuit takes no CPU time and at most one kilobyte, or one and a half once a pipe of it
/// was used. Making one takes a few allocations, and no thread unless [`RunBy::Thread`] requests
/// one.
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

/// What runs a circuit. It does not affect what happens in the circuit, nor in which order.
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
    /// The threads of the pool that all circuits share by default. Costs nothing while there is no
    /// work.
    #[default]
    SharedPool,
    /// The threads of this pool.
    Pool(ThreadPool),
    /// A thread of its own, which parks while there is no work.
    Thread,
    /// The threads that wait in [`Circuit::settle`]. Once only pipes are left, which cannot wait,
    /// the drop of the last other handle handles what is queued, and from then on the drop of each
    /// pipe does. Receptors run inside that drop, so do not drop while holding a lock that they
    /// take. If thousands of such circuits hold each other in a chain, drop them one by one:
    /// otherwise each drop runs inside the one before, on one stack.
    Waiters,
    /// The owner, by calling [`Circuit::run`]. A caller that waits for the circuit, as in
    /// [`Circuit::settle`], does not run it: another thread must do so meanwhile. When the last
    /// `Circuit` is dropped, no caller can run it any more, even if pipes or conduits are left: the
    /// circuit ends and drops what it has not handled.
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

/// Options of a circuit to be made.
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
    /// Sets the circuit's name. Default: `circuit`.
    pub fn name(mut self, name: Name) -> Self {
        self.name = Some(name);
        self
    }

    /// Sets what runs the circuit. Default: [`RunBy::SharedPool`].
    pub fn run_by(mut self, run_by: RunBy) -> Self {
        self.run_by = run_by;
        self
    }

    /// Sets the seed of the random numbers that its operators draw: equal seeds give equal draws.
    /// Default: zero.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets what happens when receptors panic whose pipe has no supervision of its own.
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// Limits how many emissions from outside may wait, and sets what happens to further ones.
    /// Unbounded by default: emitting never blocks and drops nothing, and memory grows while values
    /// arrive faster than they are handled.
    ///
    /// Emissions of the circuit to itself are not bounded, nor are subscribing and closing. In a
    /// bounded circuit lanes are no faster than pipes.
    pub fn bounded(mut self, capacity: usize, overflow: Overflow) -> Self {
        self.bounds = Some((capacity, overflow));
        self
    }

    /// Makes the circuit. Fails if the system cannot start a thread, or if the options contradict
    /// each other.
    pub fn build(self) -> Result<Circuit, Error> {
        self.build_with(RunBy::driver)
    }

    /// Makes the circuit with the driver that `driver` makes.
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
    /// Makes a circuit that the shared pool runs.
    ///
    /// # Panics
    ///
    /// If the system cannot start the threads of the pool, which start with the first circuit.
    /// [`Circuit::builder`] returns this as an error.
    #[allow(clippy::new_without_default, reason = "a default that starts threads would surprise")]
    pub fn new() -> Self {
        Self::builder().build().expect("a thread for the shared pool of circuits")
    }

    /// Returns a builder for a circuit with options.
    pub fn builder() -> CircuitBuilder {
        CircuitBuilder::default()
    }

    /// Identity of the circuit.
    pub fn subject(&self) -> &Subject {
        self.0.subject()
    }

    /// The circuit as an execution context: what [`Current::here`] returns inside it.
    pub fn current(&self) -> &Current {
        self.0.current()
    }

    /// Names what is made next through the returned value; otherwise it has the circuit's name.
    pub fn named(&self, name: Name) -> Naming<'_> {
        Naming { circuit: self, name, supervision: None }
    }

    /// Sets the supervision of the pipes, and of the receptors that subscribers register, made
    /// through the returned value; otherwise they have the circuit's.
    ///
    /// The circuit's own components (conduits, cells, ports, basins, reservoirs, streams) always
    /// resume: they fail only when cloning or dropping a value panics.
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

    /// Makes a pipe to a receptor.
    pub fn pipe<E, R>(&self, receptor: R) -> Result<Pipe<E>, Fault>
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        self.unnamed().pipe(receptor)
    }

    /// Makes a pipe to a receptor that `make` returns. `make` is called now, and again in the
    /// circuit's context for each [restart](Supervision::Restart).
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

    /// Opens a lane into the circuit for the caller alone, for emitting without sharing anything
    /// with other callers.
    pub fn lane(&self) -> Result<Lane, Fault> {
        self.0.check_open("lane")?;
        Ok(Lane::new(self.0.clone()))
    }

    /// Waits until everything emitted before is handled, with all that it caused. Returns
    /// immediately if it already is, or if the circuit has ended. Does not wait for later
    /// emissions.
    ///
    /// Everything that the circuit did until then happens before this returns. A receptor of
    /// another circuit may wait for a circuit of a pool, and runs it on its own thread if no thread
    /// of the pool does. In a chain of circuits that wait for each other like this, every 32nd runs
    /// on a separate thread, which has its own locks and thread-locals.
    ///
    /// A circuit that its owner runs is waited for until another thread has called [`Circuit::run`]
    /// often enough: on the owner's own thread, for ever.
    ///
    /// # Errors
    ///
    /// - Inside the circuit, which would wait for itself.
    /// - Inside a circuit that this one waits for, directly or through others, because neither wait
    ///   would end ([`ContextError::is_circle`]). If circuits begin to wait for each other
    ///   concurrently, at least one is refused.
    /// - For a circuit of a [`crate::Simulation`]: [run](crate::Simulation::run) the simulation
    ///   instead.
    #[inline]
    pub fn settle(&self) -> Result<(), ContextError> {
        self.0.settle()
    }

    /// As [`Circuit::settle`], for a task instead of a thread, with the same errors. The call fixes
    /// what is waited for, and checks for cycles only then: it does not detect two receptors that
    /// block on each other's circuit with this.
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

    /// As [`Circuit::settled`], but also allowed in a simulation, for futures that are polled there
    /// from time to time. `inside` is the error message inside the circuit.
    pub(crate) fn settled_in_steps(&self, inside: &'static str) -> Result<Settled, ContextError> {
        Ok(Settled { target: self.0.settle_target(inside)?, registered: None, machine: self.0.clone() })
    }

    /// Closes the circuit: values emitted before are still handled, later ones are dropped. Open
    /// subscriptions then end one after the other, each with everything that its on-close callback
    /// causes; receptors are dropped last. Does not wait. May be called from anywhere and more than
    /// once.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns whether the circuit was closed. Inside the circuit this depends on the position in
    /// the order: a concurrent close by another thread takes effect only when the circuit reaches
    /// it.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed_here()
    }

    /// Closes the circuit and waits until it has ended. Fails, and closes nothing, inside the
    /// circuit and in a [`crate::Simulation`]. See [`Circuit::settle`] for a circuit that its owner
    /// runs.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.0.check_can_wait("Cannot close a circuit and wait for it from within its context")?;
        self.close();
        self.0.settle_closed()
    }

    /// Handles up to `budget` entries on this thread, for circuits that their owner runs. Returns
    /// whether there are more.
    ///
    /// Does nothing for a circuit with another driver, inside the circuit, and while another thread
    /// runs it.
    pub fn run(&self, budget: usize) -> bool {
        if !matches!(self.0.driver(), Driver::Owner(_)) || budget == 0 {
            return self.0.has_work();
        }
        match self.0.enter() {
            Some(mut running) => running.run(budget, u64::MAX) == Progress::More && running.has_more(),
            None => self.0.has_work(),
        }
    }

    /// What runs the circuit.
    pub fn run_by(&self) -> RunBy {
        match self.0.driver() {
            Driver::Owner(_) => RunBy::Owner,
            Driver::Waiters => RunBy::Waiters,
            Driver::Thread(_) => RunBy::Thread,
            Driver::Pool(pool) => RunBy::Pool(pool.clone()),
            Driver::SharedPool(_) => RunBy::SharedPool,
        }
    }

    /// Number of emissions that were dropped because the queue was full. See
    /// [`CircuitBuilder::bounded`].
    pub fn dropped(&self) -> u64 {
        self.0.bounds.as_ref().map_or(0, |bounds| bounds.dropped())
    }

    /// Number of callbacks that have failed.
    pub fn failures(&self) -> u64 {
        self.0.failures.count()
    }

    /// Returns another handle of the circuit with this machine.
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

/// Two handles are equal if they are of one circuit.
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

/// Future that completes when a circuit has handled everything emitted before. Made by
/// [`Circuit::settled`], which has an example.
///
/// A poll that finds it complete costs a few loads; any other takes a lock.
#[must_use = "it waits only while it is polled"]
pub struct Settled {
    machine: MachineRef,
    /// None once there is nothing to wait for.
    target: Option<u64>,
    registered: Option<WaiterKey>,
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

/// A circuit with the name and supervision for what it makes next. Made by [`Circuit::named`] and
/// [`Circuit::supervised`]; costs nothing.
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
    /// None to use the circuit's.
    supervision: Option<Supervision>,
}

impl Naming<'_> {
    /// Sets the supervision of the pipes and subscribers that follow. See [`Circuit::supervised`].
    pub fn supervised(self, supervision: Supervision) -> Self {
        Self { supervision: Some(supervision), ..self }
    }

    /// Makes a pipe to a receptor. See [`Circuit::pipe`].
    pub fn pipe<E, R>(&self, receptor: R) -> Result<Pipe<E>, Fault>
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        let subject = self.component(Kind::Pipe, "pipe")?;
        Ok(Pipe::new(self.node(subject, None, receptor)))
    }

    /// Makes a pipe to a receptor that the function makes. See [`Circuit::pipe_from`].
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

    /// As [`Pipe::prepend`], with this name and supervision. The target must belong to this
    /// circuit.
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

    /// Makes a node of the circuit with this supervision. `calls` is the depth of the node that it
    /// calls directly, if any.
    pub(crate) fn node<E, R>(&self, subject: Subject, calls: Option<Depth>, receptor: R) -> NodeRef
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        let depth = Depth::of(size_of::<E>(), calls);
        NodeRef::with_care(self.machine(), subject, depth, receptor, self.care::<E, R>(None))
    }

    /// How failures of a pipe are handled. Drops `make` if the supervision never restarts.
    pub(crate) fn care<E, R>(&self, make: Option<Make<R>>) -> Care<E, R> {
        let make = make.filter(|_| self.machine().supervises(self.supervision).restarts());
        Care { supervision: self.supervision, make, dead_letters: None }
    }

    /// The supervision that was set; none to use the circuit's.
    pub(crate) fn supervision(&self) -> Option<Supervision> {
        self.supervision
    }

    pub(crate) fn machine(&self) -> &MachineRef {
        self.circuit.machine()
    }

    /// Returns the subject of a new component of the circuit; a fault if the circuit is closed.
    pub(crate) fn component(&self, kind: Kind, operation: &'static str) -> Result<Subject, Fault> {
        self.machine().check_open(operation)?;
        Ok(Subject::new(kind, self.name, Some(self.circuit.subject().clone())))
    }
}
