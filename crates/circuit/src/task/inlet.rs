//! Pipes as a [`Sink`]: a task sends values into a circuit.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;

use crate::circuit::{Circuit, Settled};
use crate::error::{ContextError, Error, Refused};
use crate::structure::pipe::Pipe;

/// Number of consecutive attempts before the sink yields to other tasks.
const ATTEMPTS: u32 = 8;

const INSIDE: &str = "Cannot flush an inlet from within its circuit's context";

/// A pipe as a `futures_sink::Sink`. Made by [`Pipe::inlet`].
///
/// - It is always ready, unless the circuit is bounded and blocks or rejects when it is full
///   ([`Overflow::Block`](crate::Overflow::Block), [`Overflow::Reject`](crate::Overflow::Reject)).
///   Then the sink holds one value that found the queue full, and is ready again once the circuit
///   has accepted it. It never blocks the thread. It tries again when everything that was in the
///   queue is handled.
/// - Flushing waits until everything sent before is handled, with all that it caused.
/// - Closing flushes. It does not close the circuit.
#[must_use = "sinks do nothing unless something is sent"]
pub struct Inlet<E> {
    pipe: Pipe<E>,
    /// A value that found the queue full.
    held: Option<E>,
    /// The pending wait, if there is one.
    settled: Option<Settled>,
}

/// Values are moved, never pinned.
impl<E> Unpin for Inlet<E> {}

/// The reason why a sink failed.
pub enum InletError<E> {
    /// The circuit did not accept the value, which is returned here.
    Refused(Refused<E>),
    /// The sink was flushed inside its own circuit, which would wait for itself.
    Context(ContextError),
}

impl<E: Send + 'static> Pipe<E> {
    /// Returns this pipe as a sink, for tasks. See [`Inlet`].
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use std::pin::pin;
    /// use futures_sink::Sink;
    /// use tidemark_circuit::{Circuit, Pipe, InletError};
    ///
    /// async fn send_two(pipe: &Pipe<u64>) -> Result<(), InletError<u64>> {
    ///     let mut sink = pin!(pipe.inlet());
    ///     for value in 1..=2 {
    ///         poll_fn(|context| sink.as_mut().poll_ready(context)).await?;
    ///         sink.as_mut().start_send(value)?;
    ///     }
    ///     poll_fn(|context| sink.as_mut().poll_flush(context)).await
    /// }
    ///
    /// # use std::task::{Context, Poll, Waker};
    /// # use tidemark_circuit::RunBy;
    /// # let circuit = Circuit::builder().run_by(RunBy::Waiters).build()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let pipe = circuit.pipe(move |value| sender.send(value).unwrap())?;
    /// # let mut task = pin!(send_two(&pipe));
    /// # let mut context = Context::from_waker(Waker::noop());
    /// # assert!(matches!(task.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
    /// # assert_eq!(receiver.try_iter().collect::<Vec<u64>>(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inlet(&self) -> Inlet<E> {
        Inlet { pipe: self.clone(), held: None, settled: None }
    }
}

impl<E: Send + 'static> Sink<E> for Inlet<E> {
    type Error = InletError<E>;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        for _ in 0..ATTEMPTS {
            let Some(value) = self.held.take() else { return Poll::Ready(Ok(())) };
            self.offer(value)?;
            if self.held.is_some() {
                ready!(self.poll_settled(context))?;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn start_send(mut self: Pin<&mut Self>, value: E) -> Result<(), Self::Error> {
        if self.held.is_some() {
            return Err(InletError::Refused(Refused::Full(value)));
        }
        self.offer(value)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_ready(context))?;
        self.poll_settled(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_flush(context)
    }
}

impl<E: Send + 'static> Inlet<E> {
    /// Emits the value, or holds it if the queue is full.
    fn offer(&mut self, value: E) -> Result<(), InletError<E>> {
        match self.pipe.offer(value) {
            // The previous wait does not cover this value.
            Ok(()) => self.settled = None,
            Err(Refused::Full(value)) => self.held = Some(value),
            Err(closed) => return Err(InletError::Refused(closed)),
        }
        Ok(())
    }

    /// Waits until everything is handled that was in the queue when the wait began.
    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<Result<(), InletError<E>>> {
        let settled = match &mut self.settled {
            Some(settled) => settled,
            none => {
                let circuit = Circuit::of(self.pipe.node().machine_ref());
                none.insert(circuit.settled_in_steps(INSIDE).map_err(InletError::Context)?)
            }
        };
        ready!(Pin::new(settled).poll(context));
        self.settled = None;
        Poll::Ready(Ok(()))
    }
}

impl<E> fmt::Debug for Inlet<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet")
            .field("pipe", &self.pipe)
            .field("full", &self.held.is_some())
            .finish_non_exhaustive()
    }
}

impl<E> fmt::Debug for InletError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Context(error) => error.fmt(f),
        }
    }
}

impl<E> fmt::Display for InletError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => fmt::Display::fmt(refused, f),
            Self::Context(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl<E> std::error::Error for InletError<E> {}

impl<E> From<InletError<E>> for Error {
    fn from(error: InletError<E>) -> Self {
        match error {
            InletError::Refused(refused) => refused.into(),
            InletError::Context(error) => error.into(),
        }
    }
}
