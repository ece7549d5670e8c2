//! Pins: values that only their own circuit can access.
#![allow(unsafe_code, reason = "the context stands in for a lock")]

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use crate::circuit::{Circuit, Naming};
use crate::error::{ContextError, Fault};
use crate::execution::machine::MachineRef;
use crate::identity::subject::{Kind, Subject};
use crate::structure::handle::handle;

/// A value that is read and changed directly, without a lock, but only in its circuit's context.
///
/// The handle can be sent anywhere: through pipes, to other circuits, to other threads. Outside the
/// circuit each method fails with a [`ContextError`]. An access costs a check of the current
/// context. Clones are handles of the same pin.
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
    inner: Arc<PinInner<E>>,
}

struct PinInner<E> {
    machine: MachineRef,
    subject: Subject,
    value: Confined<E>,
}

/// Accessed in one circuit's context only. Counts its borrows, because user code runs while it is
/// borrowed.
struct Confined<E>(RefCell<E>);

// SAFETY: `Pin::open` gives access in one circuit's context only. At most one thread is in it at a
// time, and each thread sees what the previous one did there. The value moves between these
// threads, which `E: Send` allows.
unsafe impl<E: Send> Sync for Confined<E> {}

impl Circuit {
    /// Creates a pin with its initial value. See [`Pin`].
    pub fn pin<E: Send + 'static>(&self, seed: E) -> Result<Pin<E>, Fault> {
        self.unnamed().pin(seed)
    }
}

impl Naming<'_> {
    /// See [`Circuit::pin`].
    pub fn pin<E: Send + 'static>(&self, seed: E) -> Result<Pin<E>, Fault> {
        let subject = self.component(Kind::Pin, "pin")?;
        let value = Confined(RefCell::new(seed));
        Ok(Pin { inner: Arc::new(PinInner { machine: self.machine().clone(), subject, value }) })
    }
}

impl<E: Send + 'static> Pin<E> {
    /// Returns the subject of the pin.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Returns a copy of the value.
    pub fn get(&self) -> Result<E, ContextError>
    where
        E: Clone,
    {
        self.with(|value| value.clone())
    }

    /// Replaces the value.
    pub fn set(&self, value: E) -> Result<(), ContextError> {
        // The old value is dropped after the borrow has ended, because dropping calls user code.
        self.with(|held| mem::replace(held, value)).map(drop)
    }

    /// Calls `change` with the value. Also fails inside another call for the same pin.
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
