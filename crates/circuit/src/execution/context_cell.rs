//! State that only one circuit's context accesses.
#![allow(unsafe_code, reason = "the context stands in for a lock")]

use std::cell::UnsafeCell;

use crate::execution::machine::Machine;

/// A value that is accessed only in the context of one circuit.
pub(crate) struct ContextCell<T>(UnsafeCell<T>);

// SAFETY: the value is accessed only in one circuit's context, where at most one thread is at a
// time.
unsafe impl<T: Send> Sync for ContextCell<T> {}

impl<T> ContextCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Calls `change` with the value.
    ///
    /// # Safety
    ///
    /// The caller is in the context of the circuit that this cell belongs to. `change` does not
    /// re-enter: it calls no user code and no other function that uses this cell.
    #[inline]
    pub(crate) unsafe fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        debug_assert!(Machine::with_inside(|machine| machine.is_some()), "in a circuit's context");
        // SAFETY: as the caller says.
        change(unsafe { &mut *self.0.get() })
    }
}
