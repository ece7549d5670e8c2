//! Wakes a thread that sleeps while there is nothing to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the module's documentation. Whoever has made something to do rings; one atomic exchange where it rings already.
#[derive(Default)]
pub(crate) struct Bell {
    /// There may be something to do that the thread has not seen.
    is_ringing: AtomicBool,
    /// Held by the thread from its last look at the bell until it waits.
    falling_asleep: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Lets the thread look whether there is something to do.
    pub(crate) fn ring(&self) {
        if !self.is_ringing.swap(true, Ordering::SeqCst) {
            // Under the lock, so that the thread is either awake or waiting.
            drop(self.lock());
            self.rung.notify_one();
        }
    }

    /// The thread is about to look at everything: what is done from now on rings anew.
    pub(crate) fn silence(&self) {
        self.is_ringing.store(false, Ordering::SeqCst);
    }

    /// Sleeps until it rings.
    pub(crate) fn wait(&self) {
        let is_silent = |(): &mut ()| !self.is_ringing.load(Ordering::SeqCst);
        drop(self.rung.wait_while(self.lock(), is_silent));
    }

    /// As [`Bell::wait`], for so long at most; returns whether it rings.
    pub(crate) fn wait_for(&self, longest: Duration) -> bool {
        let is_silent = |(): &mut ()| !self.is_ringing.load(Ordering::SeqCst);
        drop(self.rung.wait_timeout_while(self.lock(), longest, is_silent));
        self.is_ringing.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.falling_asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
