//! How a circuit's own thread is reached, which may sleep.

use std::sync::OnceLock;

use crate::sync::thread::Thread;

/// How to reach a circuit's thread.
#[derive(Default)]
pub(crate) struct Parker(OnceLock<Thread>);

impl Parker {
    /// Wakes the thread, if it has started.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// Says which thread it is, once it has started.
    pub(super) fn set(&self, thread: Thread) {
        // The thread does not need to know: whoever finds it asleep finds this set.
        let _ = self.0.set(thread);
    }
}
