//! Wakes a circuit's own thread when it sleeps.

use std::sync::OnceLock;

use crate::sync::thread::Thread;

/// Handle to wake a circuit's thread.
#[derive(Default)]
pub(crate) struct Parker(OnceLock<Thread>);

impl Parker {
    /// Wakes the thread, if it has started.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// Sets the thread, once it has started.
    pub(super) fn set(&self, thread: Thread) {
        // The thread itself does not need this: a caller that finds it asleep finds this set.
        let _ = self.0.set(thread);
    }
}
