//! Weak handles of pipes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::execution::node::WeakNodeRef;
use crate::identity::subject::Subject;
use crate::structure::pipe::Pipe;
use crate::subscription::receptor::Receptor;

/// A handle of a pipe that keeps neither the pipe nor its circuit alive. Made by
/// [`Pipe::downgrade`].
///
/// For receptors that emit to their own circuit. A receptor that holds a [`Pipe`] of its own
/// circuit keeps the circuit until it is closed. With a weak pipe the circuit ends with its last
/// outside handle.
///
/// Whether a value arrives may depend on when the last handle of the pipe is dropped, which no
/// journal records. While a circuit is recorded or replayed, keep the pipes of weak handles until
/// the recording or replay is finished.
///
/// ```
/// use std::sync::{Arc, OnceLock};
/// use tidemark_circuit::{Circuit, RunBy, WeakPipe};
///
/// let circuit = Circuit::builder().run_by(RunBy::Waiters).build()?;
/// let memory = Arc::new(());
/// let (own, held) = (Arc::new(OnceLock::<WeakPipe<u64>>::new()), Arc::clone(&memory));
/// let again = Arc::clone(&own);
/// let countdown = circuit.pipe(move |number: u64| {
///     let _keeps = &held;
///     if number > 0 {
///         again.get().unwrap().emit(number - 1);
///     }
/// })?;
/// own.set(countdown.downgrade()).unwrap();
/// countdown.emit(3);
/// drop((countdown, circuit)); // this handles what is left to do, with all that it causes
/// assert_eq!(Arc::strong_count(&memory), 1); // and the circuit is gone, with all that it held
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WeakPipe<E> {
    node: WeakNodeRef,
    takes: PhantomData<fn(E)>,
}

impl<E: Send + 'static> Pipe<E> {
    /// Returns a handle that keeps neither the pipe nor its circuit alive. See [`WeakPipe`].
    pub fn downgrade(&self) -> WeakPipe<E> {
        WeakPipe { node: self.node().downgrade(), takes: PhantomData }
    }
}

impl<E: Send + 'static> WeakPipe<E> {
    /// Returns the subject of the pipe, which may be gone.
    pub fn subject(&self) -> &Subject {
        self.node.subject()
    }

    /// Returns the pipe, if it still has a handle.
    pub fn upgrade(&self) -> Option<Pipe<E>> {
        self.node.upgrade().map(Pipe::new)
    }

    /// Emits to the pipe; drops the value if the pipe is gone.
    ///
    /// Inside its own circuit the pipe exists until everything emitted to it is handled, with all
    /// that this causes, no matter when its last handle is dropped. Elsewhere it is gone with the
    /// last handle, and emitting costs two reference counts more than [`Pipe::emit`].
    #[allow(unsafe_code, reason = "the type of the pipe is the type of its node")]
    pub fn emit(&self, value: E) {
        // SAFETY: this handle was made from a pipe of `E`.
        unsafe { self.node.emit(value) };
    }
}

/// Emits each received value to the pipe.
impl<E: Send + 'static> Receptor<E> for WeakPipe<E> {
    fn receive(&mut self, value: E) {
        self.emit(value);
    }
}

impl<E> Clone for WeakPipe<E> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), takes: PhantomData }
    }
}

/// Returns whether both are handles of the same pipe.
impl<E> PartialEq for WeakPipe<E> {
    fn eq(&self, other: &Self) -> bool {
        self.node.subject() == other.node.subject()
    }
}

impl<E> Eq for WeakPipe<E> {}

impl<E> Hash for WeakPipe<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.subject().hash(state);
    }
}

impl<E> fmt::Debug for WeakPipe<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakPipe").field(self.node.subject()).finish()
    }
}
