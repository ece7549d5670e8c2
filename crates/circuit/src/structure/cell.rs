//! Cells: the last value of a pipe, readable from anywhere.

use std::mem;
use std::sync::{Arc, Mutex};

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::execution::node::NodeRef;
use crate::identity::subject::{Kind, Subject};
use crate::structure::handle::handle;
use crate::structure::pipe::Pipe;
use crate::sync::unpoisoned;

/// The last value of a pipe that the circuit has handled, readable from any thread. It starts with
/// an initial value.
///
/// Reads and writes take the cell's lock while they copy the value, some 10 ns for a small one. Put
/// a large value into an `Arc`. Clones are handles of the same cell.
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
    inner: Arc<CellInner<E>>,
}

struct CellInner<E> {
    subject: Subject,
    /// Shared with the pipe's receptor, which must not hold anything that holds the pipe.
    value: Arc<Mutex<E>>,
    pipe: Pipe<E>,
}

impl Circuit {
    /// Creates a cell with its initial value. See [`Cell`].
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
            // Dropping calls user code, which may read the cell.
            drop(before);
        };
        let pipe_subject = Subject::new(Kind::Pipe, subject.name(), Some(subject.clone()));
        let pipe = Pipe::new(NodeRef::built_in(self.machine(), pipe_subject, None, receptor));
        Ok(Cell { inner: Arc::new(CellInner { subject, value, pipe }) })
    }
}

impl<E: Clone + Send + 'static> Cell<E> {
    /// Returns the subject of the cell.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Returns the pipe that changes the cell.
    pub fn pipe(&self) -> &Pipe<E> {
        &self.inner.pipe
    }

    /// Returns the last value. `E::clone` runs under the cell's lock, so it must not read the same
    /// cell.
    pub fn get(&self) -> E {
        unpoisoned(self.inner.value.lock()).clone()
    }
}

handle!(Cell<E>, |cell| &cell.inner.subject);
