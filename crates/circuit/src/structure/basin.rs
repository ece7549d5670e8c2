//! Basins: the newest values of a pipe, kept until they are asked for.
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

/// Keeps the newest values that come through its pipe, up to its capacity, until they are drained. The oldest makes room.
///
/// A value costs no lock and no allocation once the basin was full. Memory is taken as values come, and kept. Clones are the same
/// basin.
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
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    /// What fills the basin. Shares the values with `drains`.
    pipe: Pipe<E>,
    /// Is given the targets of drains. Has the basin's subject.
    drains: Pipe<Pipe<E>>,
}

impl Circuit {
    /// A basin for so many values. Fails if that is none. See [`Basin`].
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
            // Dropping calls code of users.
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
        Ok(Basin { inner: Arc::new(Inner { pipe, drains }) })
    }
}

impl<E: Send + 'static> Basin<E> {
    /// Who this basin is.
    pub fn subject(&self) -> &Subject {
        self.inner.drains.subject()
    }

    /// What fills the basin: always the same pipe.
    pub fn pipe(&self) -> &Pipe<E> {
        &self.inner.pipe
    }

    /// Has what is in the basin then, behind what the caller emitted before, emitted to the target, oldest first, and the basin
    /// emptied. Counts as an emission where the circuit is bounded; dropped if it is closed.
    pub fn drain(&self, target: &Pipe<E>) {
        self.inner.drains.emit(target.clone());
    }
}

handle!(Basin<E>, |basin| basin.subject(), where E: Send + 'static);
