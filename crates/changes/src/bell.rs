//! Wakes a thread that sleeps while it has nothing to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Wake-up signal for one thread. Ringing costs one atomic exchange if the bell rings already.
#[derive(Default)]
pub(crate) struct Bell {
    /// There may be work that the thread has not seen.
    is_ringing: AtomicBool,
    /// Held by the thread from its last check of the bell until it waits.
    falling_asleep: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Wakes the thread to check for work.
    pub(crate) fn ring(&self) {
        if !self.is_ringing.swap(true, Ordering::SeqCst) {
            // Under the lock, so that the thread is either awake or waiting.
            drop(self.lock());
            self.rung.notify_one();
        }
    }

    /// Silences the bell. The thread calls this before it checks for work: later work rings again.
    pub(crate) fn silence(&self) {
        self.is_ringing.store(false, Ordering::SeqCst);
    }

    pub(crate) fn wait(&self) {
        let is_silent = |(): &mut ()| !self.is_ringing.load(Ordering::SeqCst);
        drop(self.rung.wait_while(self.lock(), is_silent));
    }

    /// Like [`Bell::wait`], for at most `longest`. Returns whether the bell rings.
    pub(crate) fn wait_for(&self, longest: Duration) -> bool {
        let is_silent = |(): &mut ()| !self.is_ringing.load(Ordering::SeqCst);
        drop(self.rung.wait_timeout_while(self.lock(), longest, is_silent));
        self.is_ringing.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.falling_asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
