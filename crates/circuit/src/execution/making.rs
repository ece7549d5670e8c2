//! What a thread is in the middle of making.

use std::cell::RefCell;

use crate::identity::name::Name;
use crate::sync::thread_local;

thread_local! {
    /// What this thread is making: pools by their addresses, and names.
    static MAKING: RefCell<Vec<(usize, Name)>> = const { RefCell::new(Vec::new()) };
}

/// Notes what is being made, so that a factory that asks for just that fails instead of waiting for itself. Not while a thread
/// ends and its thread-local values are gone.
pub(crate) struct Making;

impl Making {
    pub(crate) fn begin(pool: usize, name: Name) -> Self {
        let _ = MAKING.try_with(|making| making.borrow_mut().push((pool, name)));
        Self
    }

    pub(crate) fn is_begun(pool: usize, name: Name) -> bool {
        MAKING.try_with(|making| making.borrow().contains(&(pool, name))).unwrap_or(false)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let _ = MAKING.try_with(|making| making.borrow_mut().pop());
    }
}

/// What a thread is making, for another one that works in its place.
pub(crate) struct Made(Vec<(usize, Name)>);

impl Made {
    /// What this thread is making.
    pub(crate) fn here() -> Self {
        Self(MAKING.try_with(|making| making.borrow().clone()).unwrap_or_default())
    }

    /// Has this thread, which makes nothing yet, be in the middle of this.
    pub(crate) fn take_over(self) {
        let _ = MAKING.try_with(|making| *making.borrow_mut() = self.0);
    }
}
