//! A key of any limiter that threads share: a state behind a lock.

use super::{Decision, Limiter, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A limiter and its state, for any number of threads. The lock is held for a check only, and never while anything is waited for.
///
/// For [`Gcra`](super::Gcra) alone [`SharedGcra`](super::SharedGcra) needs no lock.
#[derive(Debug)]
pub struct Shared<L: Limiter> {
    limiter: L,
    state: Mutex<L::State>,
}

impl<L: Limiter> Shared<L> {
    /// A key that nobody has used.
    pub fn new(limiter: L) -> Self {
        let state = limiter.fresh();
        Self::with_state(limiter, state)
    }

    /// A key of which the state is known.
    pub fn with_state(limiter: L, state: L::State) -> Self {
        Self { limiter, state: Mutex::new(state) }
    }

    /// The rule.
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    /// The state as it is now.
    pub fn state(&self) -> L::State {
        self.lock().clone()
    }

    /// Takes `amount` units, all or none. As [`Limiter::check`].
    pub fn check(&self, now: Time, amount: u64) -> Decision {
        self.limiter.check(&mut self.lock(), now, amount)
    }

    /// What [`check`](Self::check) would say. As [`Limiter::peek`].
    pub fn peek(&self, now: Time, amount: u64) -> Decision {
        self.limiter.peek(&self.lock(), now, amount)
    }

    /// Gives back `amount` units that were taken and not used. As [`Limiter::refund`].
    pub fn refund(&self, now: Time, amount: u64) {
        self.limiter.refund(&mut self.lock(), now, amount);
    }

    /// A state is written as a whole, so one that a panic has left behind is one.
    pub(super) fn lock(&self) -> MutexGuard<'_, L::State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
