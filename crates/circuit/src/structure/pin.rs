//! Pins: state that only its own circuit can reach.
#![allow(unsafe_code, reason = "the context stands in for a lock")]

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use crate::circuit::{Circuit, Naming};
use crate::error::{ContextError, Fault};
use crate::execution::machine::MachineRef;
use crate::identity::subject::{Kind, Subject};
use crate::structure::handle::handle;

/// A value that is read and changed at once, without a lock, but only in the context of its circuit.
///
/// The handle may travel anywhere: through pipes, to other circuits, to other threads. There it cannot be opened: each method
/// fails with a [`ContextError`]. Opening one costs a look at whose context this is. Clones are the same pin.
///
/// ```
/// use tidemark_circuit::Circuit;
///
/// let circuit = Circuit::new();
/// let (count, seen) = (circuit.pin(0)?, circuit.cell(0)?);
/// let (inside, published) = (count.clone(), seen.pipe().clone());
/// let pipe = circuit.pipe(move |value: u64| {
///     let sum = inside.get().unwrap() + value;
///     inside.set(sum).unwrap();
///     published.emit(sum);
/// })?;
/// pipe.emit(20);
/// pipe.emit(22);
/// circuit.settle()?;
/// assert_eq!(seen.get(), 42);
/// assert!(count.get().is_err(), "we are not in the circuit");
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Pin<E> {
    inner: Arc<Inner<E>>,
}

struct Inner<E> {
    machine: MachineRef,
    subject: Subject,
    value: Confined<E>,
}

/// Reached in one circuit's context only. Counts its borrows, as code of users runs while it is borrowed.
struct Confined<E>(RefCell<E>);

// SAFETY: `Pin::open` gives access in one circuit's context only, where at most one thread is at a time; what one thread did
// there is seen by the next. The value moves between these threads, which `Send` allows.
unsafe impl<E: Send> Sync for Confined<E> {}

impl Circuit {
    /// A pin with its first value. See [`Pin`].
    pub fn pin<E: Send + 'static>(&self, seed: E) -> Result<Pin<E>, Fault> {
        self.unnamed().pin(seed)
    }
}

impl Naming<'_> {
    /// See [`Circuit::pin`].
    pub fn pin<E: Send + 'static>(&self, seed: E) -> Result<Pin<E>, Fault> {
        let subject = self.component(Kind::Pin, "pin")?;
        let value = Confined(RefCell::new(seed));
        Ok(Pin { inner: Arc::new(Inner { machine: self.machine().clone(), subject, value }) })
    }
}

impl<E: Send + 'static> Pin<E> {
    /// Who this pin is.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// A copy of the value.
    pub fn get(&self) -> Result<E, ContextError>
    where
        E: Clone,
    {
        self.with(|value| value.clone())
    }

    /// Replaces the value.
    pub fn set(&self, value: E) -> Result<(), ContextError> {
        // What was there is dropped when the borrow has ended: dropping calls code of users.
        self.with(|held| mem::replace(held, value)).map(drop)
    }

    /// Calls `change` with the value. Fails also if it is called from within another call for the same pin.
    pub fn with<R>(&self, change: impl FnOnce(&mut E) -> R) -> Result<R, ContextError> {
        let mut value = self
            .open()?
            .try_borrow_mut()
            .map_err(|_| ContextError::new("Cannot use a pin from within Pin::with of the same pin"))?;
        Ok(change(&mut value))
    }

    fn open(&self) -> Result<&RefCell<E>, ContextError> {
        if !self.inner.machine.is_inside() {
            return Err(ContextError::new("Cannot use a pin outside of its circuit's context"));
        }
        Ok(&self.inner.value.0)
    }
}

handle!(Pin<E>, |pin| &pin.inner.subject);
