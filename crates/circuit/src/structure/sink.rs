//! Sinks: pipes by name that capture the origin of each value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::execution::current::Current;
use crate::execution::depth::Depth;
use crate::execution::machine::{Machine, MachineRef};
use crate::identity::name::Name;
use crate::identity::name_map::NameMap;
use crate::identity::subject::{Kind, Subject};
use crate::operator::recipe::{Recipe, Site};
use crate::structure::capture::Capture;
use crate::structure::handle::handle;
use crate::structure::pipe::Pipe;
use crate::structure::pool::Pool;
use crate::subscription::attachment::{AsItIs, Attachment};
use crate::subscription::receptor::Receptor;
use crate::subscription::registrar::{ReceiverPool, Registrar};

/// Pipes by name that turn each value into a [`Capture`] and emit it to one endpoint.
///
/// Values are captured on the caller's side, so a capture identifies the caller. The endpoint may
/// be of another circuit. Clones are handles of the same sink.
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::{Capture, Circuit, Current, name};
///
/// let circuit = Circuit::new();
/// let (sender, receiver) = mpsc::channel();
/// let endpoint = circuit.pipe(move |capture: Capture<u64>| sender.send(capture).unwrap())?;
/// let sink = circuit.sink(&endpoint)?;
/// sink.get(name!("orders")).emit(7);
/// circuit.settle()?;
///
/// let capture = receiver.recv()?;
/// assert_eq!((capture.name(), *capture.emission()), (name!("orders"), 7));
/// assert_eq!(*capture.current(), Current::of_thread());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sink<E> {
    inner: Arc<SinkInner<E>>,
}

struct SinkInner<E> {
    machine: MachineRef,
    subject: Subject,
    endpoint: Pipe<Capture<E>>,
    pipes: NameMap<SinkPipe<E>>,
}

/// A pipe of a [`Sink`]: captures each value on emission, and emits the capture to the sink's
/// endpoint.
///
/// Clones are handles of the same pipe.
pub struct SinkPipe<E> {
    inner: Arc<Channel<E>>,
}

struct Channel<E> {
    subject: Subject,
    endpoint: Pipe<Capture<E>>,
    /// Number of recipes attached so far. Each one draws its own random numbers.
    attachments: AtomicU32,
}

impl Circuit {
    /// Creates a sink of this circuit that emits to the endpoint. See [`Sink`].
    pub fn sink<E: Send + 'static>(&self, endpoint: &Pipe<Capture<E>>) -> Result<Sink<E>, Fault> {
        self.unnamed().sink(endpoint)
    }
}

impl Naming<'_> {
    /// See [`Circuit::sink`].
    pub fn sink<E: Send + 'static>(&self, endpoint: &Pipe<Capture<E>>) -> Result<Sink<E>, Fault> {
        let inner = SinkInner {
            machine: self.machine().clone(),
            subject: self.component(Kind::Sink, "sink")?,
            endpoint: endpoint.clone(),
            pipes: NameMap::default(),
        };
        Ok(Sink { inner: Arc::new(inner) })
    }
}

impl<E: Send + 'static> Sink<E> {
    /// Returns the subject of the sink.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    pub(crate) fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(&raw const *self.inner.machine, machine)
    }

    /// Returns the pipe of a name, creating it on the first call. Later calls return the same pipe
    /// and take no lock.
    #[inline]
    pub fn get(&self, name: impl Into<Name>) -> &SinkPipe<E> {
        let name = name.into();
        self.inner.pipes.get_or_make(name, || {
            let subject = Subject::new(Kind::Pipe, name, Some(self.inner.subject.clone()));
            let endpoint = self.inner.endpoint.clone();
            SinkPipe { inner: Arc::new(Channel { subject, endpoint, attachments: AtomicU32::new(0) }) }
        })
    }

    /// Returns a pool of pipes whose values pass the recipe's operators before they are captured.
    /// The operators run in the sink's circuit, with their own state for each name, so captures
    /// have that circuit as their context.
    pub fn pool<R>(&self, recipe: &R) -> Pool<Pipe<R::In>>
    where
        R: Recipe<Out = E>,
    {
        let (sink, recipe) = (self.clone(), recipe.clone());
        Pool::new(self.subject().clone(), move |name| sink.prepend(name, &recipe))
    }

    fn prepend<R>(&self, name: Name, recipe: &R) -> Result<Pipe<R::In>, Fault>
    where
        R: Recipe<Out = E>,
    {
        let machine = &self.inner.machine;
        machine.check_open("pipe")?;
        let channel = self.get(name);
        let subject = channel.subject();
        let number = channel.inner.attachments.fetch_add(1, Ordering::Relaxed);
        let attachment = Attachment {
            machine,
            subject: Subject::new(Kind::Pipe, name, Some(subject.clone())),
            site: Site { subject, seed: machine.seed_for(name, number) },
            depth: Depth::of(size_of::<R::In>().saturating_add(recipe.bytes()), None),
            supervision: None,
        };
        Ok(Pipe::new(attachment.node(recipe, &AsItIs, channel, SinkPipe::clone)?))
    }
}

impl<E: Send + 'static> SinkPipe<E> {
    /// Returns the subject of the pipe.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Captures the value and emits the capture to the endpoint. Costs two reference counts more
    /// than [`Pipe::emit`].
    pub fn emit(&self, value: E) {
        let capture = Capture::new(value, self.inner.subject.clone(), Current::here());
        self.inner.endpoint.emit(capture);
    }
}

/// Captures each received value.
impl<E: Send + 'static> Receptor<E> for SinkPipe<E> {
    #[inline]
    fn receive(&mut self, value: E) {
        self.emit(value);
    }
}

/// Captures: a subscriber to a sink has each pipe's emissions captured by the sink's pipe of the
/// same name, in the circuit's context.
impl<E: Clone + Send + 'static> ReceiverPool<E> for Sink<E> {
    fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, E>) {
        registrar.receptor(self.get(subject.name()).clone());
    }
}

/// Returns the name of the pipe.
impl<E: Send + 'static> From<&SinkPipe<E>> for Name {
    fn from(pipe: &SinkPipe<E>) -> Self {
        pipe.subject().name()
    }
}

handle!(Sink<E>, |sink| &sink.inner.subject);

handle!(SinkPipe<E>, |pipe| &pipe.inner.subject);
