//! Cells: the last value of a pipe, to be read from anywhere.

use std::mem;
use std::sync::{Arc, Mutex};

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::execution::node::NodeRef;
use crate::identity::subject::{Kind, Subject};
use crate::structure::handle::handle;
use crate::structure::pipe::Pipe;
use crate::sync::unpoisoned;

/// A value that a pipe changes and anybody reads: always the last one that the circuit has handled, or the one that the cell
/// began with.
///
/// Reading and changing take a lock of the cell's own for as long as copying the value takes, some 10 ns for a small one. A
/// large value is best put into an `Arc`. Clones are the same cell.
///
/// ```
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let level = circuit.cell(20)?;
/// assert_eq!(level.get(), 20);
/// level.pipe().emit(21);
/// circuit.settle()?;
/// assert_eq!(level.get(), 21);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Cell<E> {
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    subject: Subject,
    /// Shared with the receptor of the pipe, which must not hold what holds the pipe.
    value: Arc<Mutex<E>>,
    pipe: Pipe<E>,
}

impl Circuit {
    /// A cell with its first value. See [`Cell`].
    pub fn cell<E: Clone + Send + 'static>(&self, seed: E) -> Result<Cell<E>, Fault> {
        self.unnamed().cell(seed)
    }
}

impl Naming<'_> {
    /// See [`Circuit::cell`].
    pub fn cell<E: Clone + Send + 'static>(&self, seed: E) -> Result<Cell<E>, Fault> {
        let subject = self.component(Kind::Cell, "cell")?;
        let value = Arc::new(Mutex::new(seed));
        let published = Arc::clone(&value);
        let receptor = move |value: E| {
            let before = mem::replace(&mut *unpoisoned(published.lock()), value);
            // Dropping calls code of users, which may read the cell.
            drop(before);
        };
        let pipe_subject = Subject::new(Kind::Pipe, subject.name(), Some(subject.clone()));
        let pipe = Pipe::new(NodeRef::built_in(self.machine(), pipe_subject, None, receptor));
        Ok(Cell { inner: Arc::new(Inner { subject, value, pipe }) })
    }
}

impl<E: Clone + Send + 'static> Cell<E> {
    /// Who this cell is.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// What changes the cell: always the same pipe.
    pub fn pipe(&self) -> &Pipe<E> {
        &self.inner.pipe
    }

    /// The last value. `E::clone` runs under the cell's lock, so it must not read the same cell.
    pub fn get(&self) -> E {
        unpoisoned(self.inner.value.lock()).clone()
    }
}

handle!(Cell<E>, |cell| &cell.inner.subject);
