//! A limiter of any kind that threads share: a state behind a lock.

use super::{Decision, Limiter, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A limiter and its state, for any number of threads. The lock is held for the duration of a
/// check, and never across a wait.
///
/// For [`Gcra`](super::Gcra), [`SharedGcra`](super::SharedGcra) needs no lock.
#[derive(Debug)]
pub struct Shared<L: Limiter> {
    limiter: L,
    state: Mutex<L::State>,
}

impl<L: Limiter> Shared<L> {
    /// Creates an unused key.
    pub fn new(limiter: L) -> Self {
        let state = limiter.fresh();
        Self::with_state(limiter, state)
    }

    /// Creates a key with a known state.
    pub fn with_state(limiter: L, state: L::State) -> Self {
        Self { limiter, state: Mutex::new(state) }
    }

    /// Returns the rule.
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    /// Returns a copy of the present state.
    pub fn state(&self) -> L::State {
        self.lock().clone()
    }

    /// Takes `amount` units, all or none. As [`Limiter::check`].
    pub fn check(&self, now: Time, amount: u64) -> Decision {
        self.limiter.check(&mut self.lock(), now, amount)
    }

    /// Returns what [`check`](Self::check) would. As [`Limiter::peek`].
    pub fn peek(&self, now: Time, amount: u64) -> Decision {
        self.limiter.peek(&self.lock(), now, amount)
    }

    /// Refunds `amount` units that were taken and not used. As [`Limiter::refund`].
    pub fn refund(&self, now: Time, amount: u64) {
        self.limiter.refund(&mut self.lock(), now, amount);
    }

    /// Ignores poisoning: a state is written as a whole, so it is valid after a panic.
    pub(super) fn lock(&self) -> MutexGuard<'_, L::State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
