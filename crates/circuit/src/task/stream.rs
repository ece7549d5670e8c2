//! Emissions as a [`Stream`]: a task receives values from a circuit.
//!
//! The circuit never waits for the task. A buffer of a given capacity is between them; when it is
//! full, the oldest value is dropped and counted. So a slow task gets the newest values, and can
//! read how many it has missed.
//!
//! ```text
//!  circuit: receptor ──► [ oldest ... newest ] ──► task: poll_next
//! ```
//!
//! A stream does not keep its circuit alive. It ends, after the values in the buffer, when the
//! circuit ends, when the conduit is closed, or when nothing is left that could emit. Dropping it
//! ends its subscription with the next emission.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::stream::{FusedStream, Stream};

use crate::circuit::{Circuit, Naming};
use crate::error::{ArgumentError, Error};
use crate::execution::context::call_outside;
use crate::execution::event::Hearer;
use crate::execution::node::NodeRef;
use crate::failure::supervision::Supervision;
use crate::identity::name::Name;
use crate::identity::subject::{Kind, Subject};
use crate::observe::followers::Follower;
use crate::structure::conduit::Conduit;
use crate::structure::pipe::Pipe;
use crate::subscription::lifetime::WeakSubscription;
use crate::subscription::membership::OnClose;
use crate::subscription::receptor::Receptor;
use crate::subscription::registrar::Registrar;
use crate::sync::unpoisoned;

/// Emissions of a circuit as a stream, for a task. Made by [`Circuit::stream`] and
/// [`Conduit::stream`].
///
/// Implements `futures_core::Stream`, so stream combinators apply. Polls and emissions share a
/// lock, which is held while one value is moved.
#[must_use = "a stream that is dropped ends"]
pub struct Emissions<T> {
    buffer: Arc<Buffer<T>>,
}

impl<T> Emissions<T> {
    /// Returns how many values were dropped so far because the buffer was full.
    pub fn dropped(&self) -> u64 {
        self.buffer.lock().dropped
    }
}

impl<T> Stream for Emissions<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if let Poll::Ready(next) = self.buffer.lock().take() {
            return Poll::Ready(next);
        }
        // Cloning and dropping a waker calls user code, which must not run under the lock.
        let waker = context.waker().clone();
        let mut state = self.buffer.lock();
        let next = state.take();
        // Under the lock under which the buffer was found empty, so the next push sees the waker.
        let before = if next.is_pending() { state.waker.replace(waker) } else { state.waker.take() };
        drop(state);
        drop(before);
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let state = self.buffer.lock();
        (state.values.len(), state.ended.then_some(state.values.len()))
    }
}

impl<T> FusedStream for Emissions<T> {
    fn is_terminated(&self) -> bool {
        let state = self.buffer.lock();
        state.ended && state.values.is_empty()
    }
}

impl<T> Drop for Emissions<T> {
    fn drop(&mut self) {
        let mut state = self.buffer.lock();
        state.deserted = true;
        let left = (std::mem::take(&mut state.values), state.waker.take());
        drop(state);
        drop(left);
    }
}

impl<T> fmt::Debug for Emissions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.buffer.lock();
        f.debug_struct("Emissions")
            .field("waiting", &state.values.len())
            .field("dropped", &state.dropped)
            .field("ended", &state.ended)
            .finish()
    }
}

impl Circuit {
    /// Creates a pipe whose values the stream returns, in order. At most `capacity` of them wait
    /// for the task; beyond that, the oldest is dropped and counted. Fails if the circuit is closed
    /// or the capacity is 0.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use std::pin::pin;
    /// use futures_core::Stream;
    /// use tidemark_circuit::{Circuit, Emissions};
    ///
    /// async fn sum(numbers: Emissions<u64>) -> u64 {
    ///     let mut numbers = pin!(numbers);
    ///     let mut sum = 0;
    ///     while let Some(number) = poll_fn(|context| numbers.as_mut().poll_next(context)).await {
    ///         sum += number;
    ///     }
    ///     sum
    /// }
    ///
    /// let circuit = Circuit::new();
    /// let (pipe, numbers) = circuit.stream(100)?;
    /// (1..=4).for_each(|number| pipe.emit(number));
    /// circuit.close_and_settle()?;
    ///
    /// let mut sum = pin!(sum(numbers));
    /// let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// assert_eq!(sum.as_mut().poll(&mut context), std::task::Poll::Ready(10));
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn stream<E: Send + 'static>(&self, capacity: usize) -> Result<(Pipe<E>, Emissions<E>), Error> {
        self.unnamed().stream(capacity)
    }
}

impl Naming<'_> {
    /// See [`Circuit::stream`].
    pub fn stream<E: Send + 'static>(&self, capacity: usize) -> Result<(Pipe<E>, Emissions<E>), Error> {
        let buffer = Buffer::new(capacity)?;
        let subject = self.component(Kind::Pipe, "pipe")?;
        let feed = Feed(Arc::new(Ending(Arc::clone(&buffer))));
        let pipe = Pipe::new(NodeRef::built_in(self.machine(), subject, None, feed));
        Ok((pipe, Emissions { buffer }))
    }
}

impl<E: Clone + Send + 'static> Conduit<E> {
    /// Returns a stream of this conduit's emissions from now on, with the names of their pipes. At
    /// most `capacity` emissions wait for the task; beyond that, the oldest is dropped and counted.
    /// Fails if the conduit is closed or the capacity is 0.
    ///
    /// The journal of a [`crate::Recording`] has the stream as a reservoir of this conduit, and a
    /// replay provides its emissions through [`crate::Replay::on_reservoir`]. The journal does not
    /// record when the stream was dropped.
    ///
    /// ```
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll, Waker};
    /// use futures_core::Stream;
    /// use tidemark_circuit::{Circuit, name};
    ///
    /// let circuit = Circuit::new();
    /// let orders = circuit.conduit::<u64>()?;
    /// let mut stream = orders.stream(100)?;
    /// orders.get(name!("eu.berlin")).emit(3);
    /// circuit.settle()?;
    ///
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert_eq!(Pin::new(&mut stream).poll_next(&mut context), Poll::Ready(Some((name!("eu.berlin"), 3))));
    /// assert_eq!(Pin::new(&mut stream).poll_next(&mut context), Poll::Pending);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn stream(&self, capacity: usize) -> Result<Emissions<(Name, E)>, Error> {
        let buffer = Buffer::new(capacity)?;
        let feed = Feed(Arc::new(Ending(Arc::clone(&buffer))));
        let unwanted = Arc::new(OnceLock::<WeakSubscription<E>>::new());
        let circuit = Circuit::of(self.machine().clone());
        let known = Arc::clone(&unwanted);
        let subscriber = circuit.named(self.subject().name()).supervised(Supervision::Resume).subscriber(
            move |subject: &Subject, registrar: &mut Registrar<'_, E>| {
                let (name, feed, unwanted) = (subject.name(), feed.clone(), Arc::clone(&known));
                registrar.receptor(move |value| {
                    if !feed.0.0.push((name, value))
                        && let Some(subscription) = unwanted.get().and_then(WeakSubscription::upgrade_inside)
                    {
                        subscription.close();
                    }
                });
            },
        )?;
        let closed = Arc::clone(&buffer);
        let ended: OnClose<E> = Box::new(move |_| closed.end());
        let subscription = self.begin(&subscriber, Some(ended), Hearer::Reservoir { capacity })?;
        assert!(unwanted.set(subscription.downgrade()).is_ok(), "it is set here and nowhere else");
        let follower: Weak<Buffer<(Name, E)>> = Arc::downgrade(&buffer);
        self.machine().followers.add(follower);
        // Register first, then check: the thread that ends the circuit sets the flag first and then
        // reads the list of followers.
        if self.machine().has_ended() {
            buffer.end();
        }
        Ok(Emissions { buffer })
    }
}

struct Buffer<T> {
    capacity: usize,
    state: Mutex<StreamState<T>>,
}

struct StreamState<T> {
    values: VecDeque<T>,
    waker: Option<Waker>,
    dropped: u64,
    /// No more values follow.
    ended: bool,
    /// The stream was dropped.
    deserted: bool,
}

impl<T> StreamState<T> {
    /// Returns the next value, none if there are no more, or pending.
    fn take(&mut self) -> Poll<Option<T>> {
        match self.values.pop_front() {
            None if !self.ended => Poll::Pending,
            next => Poll::Ready(next),
        }
    }
}

impl<T> Buffer<T> {
    fn new(capacity: usize) -> Result<Arc<Self>, ArgumentError> {
        if capacity == 0 {
            return Err(ArgumentError::new(
                "stream",
                "the capacity is 0; at least one emission must have room",
            ));
        }
        let state =
            StreamState { values: VecDeque::new(), waker: None, dropped: 0, ended: false, deserted: false };
        Ok(Arc::new(Self { capacity, state: Mutex::new(state) }))
    }

    fn lock(&self) -> MutexGuard<'_, StreamState<T>> {
        unpoisoned(self.state.lock())
    }

    /// Appends a value and wakes the task. Returns false if the stream was dropped or has ended.
    fn push(&self, value: T) -> bool {
        let mut state = self.lock();
        if state.deserted || state.ended {
            return false;
        }
        let oldest = if state.values.len() < self.capacity { None } else { state.values.pop_front() };
        state.dropped += u64::from(oldest.is_some());
        state.values.push_back(value);
        debug_assert!(state.values.len() <= self.capacity);
        let waker = state.waker.take();
        drop(state);
        wake(waker);
        // Calls user code; the circuit reports a panic.
        drop(oldest);
        true
    }

    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let waker = state.waker.take();
        drop(state);
        wake(waker);
    }
}

impl<T: Send> Follower for Buffer<T> {
    fn ended(&self) {
        self.end();
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        call_outside(|| waker.wake());
    }
}

/// The receptor that fills a buffer. The stream ends when its last clone is dropped.
struct Feed<T>(Arc<Ending<T>>);

struct Ending<T>(Arc<Buffer<T>>);

impl<T> Clone for Feed<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<T: Send> Receptor<T> for Feed<T> {
    fn receive(&mut self, value: T) {
        self.0.0.push(value);
    }
}
