//! Pipes: the entries of a circuit.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::error::{Fault, Refused};
use crate::execution::depth::Depth;
use crate::execution::machine::Machine;
use crate::execution::node::{self, NodeRef};
use crate::failure::supervision::Supervision;
use crate::identity::name::Name;
use crate::identity::subject::{Kind, Subject};
use crate::operator::Plan;
use crate::operator::fiber::Fiber;
use crate::operator::flow::Flow;
use crate::operator::recipe::{Recipe, Site};
use crate::subscription::attachment::{AsItIs, Attachment, Finish};
use crate::subscription::receptor::Receptor;

/// An entry of a circuit. Values emitted to it are handled in the circuit's context, in order.
///
/// Clones are handles of the same pipe and may be used from any thread and inside any circuit. A
/// pipe keeps its circuit alive: a receptor that holds a pipe of its own circuit keeps the circuit
/// until [`crate::Circuit::close`], unless the pipe is [weak](Pipe::downgrade).
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let (sender, receiver) = mpsc::channel();
/// let pipe = circuit.pipe(move |value: i32| sender.send(value * 2).unwrap())?;
/// pipe.emit(21);
/// circuit.settle()?;
/// assert_eq!(receiver.recv(), Ok(42));
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Pipe<E> {
    node: NodeRef,
    takes: PhantomData<fn(E)>,
}

impl<E> Clone for Pipe<E> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), takes: PhantomData }
    }
}

/// Returns whether both are handles of the same pipe.
impl<E> PartialEq for Pipe<E> {
    fn eq(&self, other: &Self) -> bool {
        self.node.same(&other.node)
    }
}

impl<E> Eq for Pipe<E> {}

impl<E> Hash for Pipe<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.subject().hash(state);
    }
}

impl<E> fmt::Debug for Pipe<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipe").field(self.node.subject()).finish()
    }
}

impl<E> Pipe<E> {
    pub(crate) fn node(&self) -> &NodeRef {
        &self.node
    }
}

impl<E: Send + 'static> Pipe<E> {
    pub(crate) fn new(node: NodeRef) -> Self {
        Self { node, takes: PhantomData }
    }

    /// Returns the subject of the pipe.
    pub fn subject(&self) -> &Subject {
        self.node.subject()
    }

    /// Emits a value to the pipe. From outside the circuit the value waits in the ingress queue,
    /// from inside in the transit queue. The value is dropped if the circuit is closed.
    ///
    /// Allocates only when a queue grows. Blocks only outside a circuit bounded with
    /// [`Overflow::Block`](crate::Overflow::Block), while its queue is full. If the circuit has
    /// just ended and was not run by a pool, this call may drop values that other threads emitted
    /// too late.
    #[inline]
    #[allow(unsafe_code, reason = "the type of the pipe is the type of its node")]
    pub fn emit(&self, value: E) {
        // SAFETY: `Pipe::new` gets a node that takes an `E`, and `self.node` is a handle of that
        // node.
        unsafe { self.machine().emit(self.node.as_ptr(), value) };
    }

    /// Emits as [`Pipe::emit`] does, but returns the value if the circuit is closed, or if its
    /// bounded queue is full and rejects.
    ///
    /// An accepted value reaches the pipe, even if another thread closes the circuit concurrently.
    /// There are two exceptions. A bounded circuit may drop the value and count it
    /// ([`Circuit::dropped`](crate::Circuit::dropped)). A circuit run by its owner drops unhandled
    /// values with the last handle that could run it.
    #[allow(unsafe_code, reason = "the type of the pipe is the type of its node")]
    pub fn try_emit(&self, value: E) -> Result<(), Refused<E>> {
        // SAFETY: as in `emit`.
        unsafe { self.machine().try_emit(self.node.as_ptr(), value, true) }
    }

    /// Emits as [`Pipe::try_emit`] does, but returns the value instead of waiting for space.
    #[cfg(feature = "stream")]
    #[allow(unsafe_code, reason = "the type of the pipe is the type of its node")]
    pub(crate) fn offer(&self, value: E) -> Result<(), Refused<E>> {
        // SAFETY: as in `emit`.
        unsafe { self.machine().try_emit(self.node.as_ptr(), value, false) }
    }

    /// Returns a new pipe whose values pass the recipe's operators on their way to this one. The
    /// operators have their own state and run in this pipe's circuit, under the same supervision.
    /// Fails if that circuit is closed, or if a factory among the operators refuses.
    pub fn prepend<R>(&self, recipe: &R) -> Result<Pipe<R::In>, Fault>
    where
        R: Recipe<Out = E>,
    {
        self.prepend_as(self.subject().name(), self.node.supervision(), recipe, &AsItIs)
    }

    pub(crate) fn prepend_as<R>(
        &self,
        name: Name,
        supervision: Option<Supervision>,
        recipe: &R,
        finish: &impl Finish<R::In>,
    ) -> Result<Pipe<R::In>, Fault>
    where
        R: Recipe<Out = E>,
    {
        let machine = self.machine();
        machine.check_open("pipe")?;
        let subject = self.subject();
        let bytes = size_of::<R::In>().saturating_add(recipe.bytes());
        let calls = self.node.depth().called_by(bytes);
        let attachment = Attachment {
            machine,
            subject: Subject::new(Kind::Pipe, name, Some(subject.clone())),
            site: Site { subject, seed: machine.seed_for(subject.name(), self.node.next_attachment()) },
            depth: Depth::of(bytes, calls),
            supervision,
        };
        let node = if calls.is_some() {
            attachment.node(recipe, finish, self, Self::forward)
        } else {
            attachment.node(recipe, finish, self, Self::clone)
        };
        Ok(Pipe::new(node?))
    }

    #[inline]
    pub(crate) fn machine(&self) -> &Machine {
        self.node.machine()
    }

    pub(crate) fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(self.machine(), machine)
    }

    /// Returns a receptor that runs this pipe directly, as part of its caller in the same circuit.
    pub(crate) fn forward(&self) -> Forward<E> {
        Forward(self.clone())
    }
}

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Returns a pipe in front of the target whose values pass these operators: see
    /// [`Pipe::prepend`].
    ///
    /// ```
    /// # use tidemark_circuit::{Circuit, Fiber};
    /// let circuit = Circuit::new();
    /// let highest = circuit.cell(0)?;
    /// let pipe = Fiber::new().high().pipe(highest.pipe())?;
    /// [3, 7, 5].into_iter().for_each(|value| pipe.emit(value));
    /// circuit.settle()?;
    /// assert_eq!(highest.get(), 7);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn pipe(&self, target: &Pipe<E>) -> Result<Pipe<E>, Fault> {
        target.prepend(self)
    }
}

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Returns a pipe in front of the target whose values pass these operators: see
    /// [`Pipe::prepend`].
    ///
    /// ```
    /// # use tidemark_circuit::{Circuit, Flow};
    /// let circuit = Circuit::new();
    /// let length = circuit.cell(0)?;
    /// Flow::new().map(|text: &str| text.len()).pipe(length.pipe())?.emit("four");
    /// circuit.settle()?;
    /// assert_eq!(length.get(), 4);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn pipe(&self, target: &Pipe<O>) -> Result<Pipe<I>, Fault> {
        target.prepend(self)
    }
}

/// Returns the name of the pipe.
impl<E: Send + 'static> From<&Pipe<E>> for Name {
    fn from(pipe: &Pipe<E>) -> Self {
        pipe.subject().name()
    }
}

impl Machine {
    /// Records a job's input in the journal, if there is one, as an emission to this pipe. In the
    /// context only.
    #[allow(unsafe_code, reason = "the type of the pipe is the type of its node")]
    pub(crate) fn record_as_emission<E: Send + 'static>(&self, pipe: &Pipe<E>, value: &mut E) {
        // SAFETY: the pipe takes an `E`.
        unsafe { self.record_as_emission_to(pipe.subject(), value) };
    }
}

/// Emits each received value to the pipe.
impl<E: Send + 'static> Receptor<E> for Pipe<E> {
    #[inline]
    fn receive(&mut self, value: E) {
        self.emit(value);
    }
}

/// Runs a pipe's receptor directly if its circuit is running on this thread, and emits to the pipe
/// otherwise.
///
/// Nodes that call each other this way never form a cycle: a node's targets exist before the node.
pub(crate) struct Forward<E>(Pipe<E>);

impl<E: Send + 'static> Receptor<E> for Forward<E> {
    #[inline]
    #[allow(unsafe_code, reason = "the node is run with a value of its type")]
    fn receive(&mut self, value: E) {
        if !self.0.machine().is_inside() {
            return self.0.emit(value);
        }
        // SAFETY: in its circuit's context.
        unsafe { self.run(value) };
    }
}

impl<E: Send + 'static> Forward<E> {
    /// Runs the pipe's receptor.
    ///
    /// # Safety
    ///
    /// In the context of the pipe's circuit.
    #[inline]
    #[allow(unsafe_code, reason = "the node is run with a value of its type")]
    pub(crate) unsafe fn run(&self, value: E) {
        debug_assert!(self.0.machine().is_inside());
        let mut value = std::mem::ManuallyDrop::new(value);
        // SAFETY: in its circuit's context. The handle keeps the node alive, the node is not
        // already running because there are no cycles, and the node moves the value out.
        unsafe { node::deliver(self.0.node.as_ptr(), (&raw mut value).cast()) };
    }
}
