//! Basins: the newest values of a pipe, kept until they are drained.
#![allow(unsafe_code, reason = "state of the circuit's context is reached in receptors, which run there")]

use std::collections::VecDeque;
use std::sync::Arc;

use crate::circuit::{Circuit, Naming};
use crate::error::{ArgumentError, Error};
use crate::execution::context_cell::ContextCell;
use crate::execution::node::NodeRef;
use crate::identity::subject::{Kind, Subject};
use crate::structure::handle::handle;
use crate::structure::newest::push_newest;
use crate::structure::pipe::Pipe;

/// Keeps the newest values of its pipe, up to its capacity, until they are drained. When it is
/// full, a new value replaces the oldest.
///
/// A value costs no lock, and no allocation once the basin has been full. Memory grows with the
/// values and is not released. Clones are handles of the same basin.
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let (sender, receiver) = mpsc::channel();
/// let drain = circuit.pipe(move |value: u64| sender.send(value).unwrap())?;
/// let basin = circuit.basin(3)?;
/// (1..=5).for_each(|value| basin.pipe().emit(value));
/// basin.drain(&drain);
/// circuit.settle()?;
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [3, 4, 5]);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Basin<E> {
    inner: Arc<BasinInner<E>>,
}

struct BasinInner<E> {
    /// Fills the basin. Shares the values with `drains`.
    pipe: Pipe<E>,
    /// Receives the targets of drains. Has the basin's subject.
    drains: Pipe<Pipe<E>>,
}

impl Circuit {
    /// Creates a basin for `capacity` values. Fails if `capacity` is 0. See [`Basin`].
    pub fn basin<E: Send + 'static>(&self, capacity: usize) -> Result<Basin<E>, Error> {
        self.unnamed().basin(capacity)
    }
}

impl Naming<'_> {
    /// See [`Circuit::basin`].
    pub fn basin<E: Send + 'static>(&self, capacity: usize) -> Result<Basin<E>, Error> {
        if capacity == 0 {
            return Err(ArgumentError::new("basin", "the capacity is 0; it must be at least 1").into());
        }
        let subject = self.component(Kind::Basin, "basin")?;
        let pipe_subject = Subject::new(Kind::Pipe, subject.name(), Some(subject.clone()));
        // Oldest first.
        let values = Arc::new(ContextCell::new(VecDeque::new()));
        let kept = Arc::clone(&values);
        let fill = move |value: E| {
            // SAFETY: receptors run in their circuit's context.
            let oldest = unsafe { kept.with(|values| push_newest(values, capacity, value)) };
            // Dropping calls user code.
            drop(oldest);
        };
        let drain = move |target: Pipe<E>| {
            // SAFETY: as above.
            while let Some(value) = unsafe { values.with(VecDeque::pop_front) } {
                target.emit(value);
            }
        };
        let pipe = Pipe::new(NodeRef::built_in(self.machine(), pipe_subject, None, fill));
        let drains = Pipe::new(NodeRef::built_in(self.machine(), subject, None, drain));
        Ok(Basin { inner: Arc::new(BasinInner { pipe, drains }) })
    }
}

impl<E: Send + 'static> Basin<E> {
    /// Returns the subject of the basin.
    pub fn subject(&self) -> &Subject {
        self.inner.drains.subject()
    }

    /// Returns the pipe that fills the basin.
    pub fn pipe(&self) -> &Pipe<E> {
        &self.inner.pipe
    }

    /// Emits the basin's values to the target, oldest first, and empties the basin. This happens
    /// after what the caller emitted before. Counts as an emission in a bounded circuit; dropped if
    /// the circuit is closed.
    pub fn drain(&self, target: &Pipe<E>) {
        self.inner.drains.emit(target.clone());
    }
}

handle!(Basin<E>, |basin| basin.subject(), where E: Send + 'static);
