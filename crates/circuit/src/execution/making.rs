//! What a thread is currently making.

use std::cell::RefCell;

use crate::identity::name::Name;
use crate::sync::thread_local;

thread_local! {
    /// What this thread is making: addresses of pools, and names.
    static MAKING: RefCell<Vec<(usize, Name)>> = const { RefCell::new(Vec::new()) };
}

/// Records what is being made, so that a factory that requests the same value fails instead of
/// waiting for itself. Records nothing once the thread's thread-locals are destroyed.
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

/// What a thread is making, to be passed to a thread that works for it.
pub(crate) struct Made(Vec<(usize, Name)>);

impl Made {
    /// Returns what this thread is making.
    pub(crate) fn here() -> Self {
        Self(MAKING.try_with(|making| making.borrow().clone()).unwrap_or_default())
    }

    /// Marks this thread, which makes nothing yet, as making this.
    pub(crate) fn take_over(self) {
        let _ = MAKING.try_with(|making| *making.borrow_mut() = self.0);
    }
}
