//! A concurrency limit that threads share.

use super::acquire::Acquire;
use super::all::Ask;
use super::all_shared::Lock;
use super::{Concurrency, Decision, Lease, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A [`Concurrency`] limit and its leases, for any number of threads. The lock is held while leases
/// are scanned, and never across a wait.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Concurrency, Monotonic, SharedConcurrency};
///
/// let exports = SharedConcurrency::new(Concurrency::new(1, Duration::from_mins(30))?);
/// let clock = Monotonic::new();
/// assert!(exports.acquire(clock.now(), 71, 1).is_allowed);
/// assert!(!exports.acquire(clock.now(), 72, 1).is_allowed);
/// assert_eq!(exports.release(clock.now(), 71), 1);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug)]
pub struct SharedConcurrency {
    limiter: Concurrency,
    leases: Mutex<Vec<Lease>>,
}

/// A [`SharedConcurrency`] with the name of a lease, for a joint check with other limits. If one
/// limit is named twice in a request, the first name gets the units of both.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    limit: &'a SharedConcurrency,
    id: u64,
}

impl SharedConcurrency {
    /// Creates a key without leases.
    pub fn new(limiter: Concurrency) -> Self {
        Self::with_leases(limiter, Vec::new())
    }

    /// Creates a key with known leases, in the order of their ends.
    pub fn with_leases(limiter: Concurrency, leases: Vec<Lease>) -> Self {
        Self { limiter, leases: Mutex::new(leases) }
    }

    /// Returns the rule.
    pub fn limiter(&self) -> &Concurrency {
        &self.limiter
    }

    /// Returns the present leases, in the order of their ends.
    pub fn leases(&self) -> Vec<Lease> {
        self.lock().clone()
    }

    /// As [`Concurrency::acquire`].
    pub fn acquire(&self, now: Time, id: u64, amount: u64) -> Decision {
        self.limiter.acquire(&mut self.lock(), now, id, amount)
    }

    /// As [`Concurrency::peek`].
    pub fn peek(&self, now: Time, id: u64, amount: u64) -> Decision {
        self.limiter.peek(&self.lock(), now, id, amount)
    }

    /// As [`Concurrency::renew`].
    pub fn renew(&self, now: Time, id: u64) -> bool {
        self.limiter.renew(&mut self.lock(), now, id)
    }

    /// As [`Concurrency::release`].
    pub fn release(&self, now: Time, id: u64) -> u64 {
        self.limiter.release(&mut self.lock(), now, id)
    }

    /// Returns the limit with the name of a lease, for
    /// [`check_all_shared`](super::check_all_shared).
    pub fn under(&self, id: u64) -> Named<'_> {
        Named { limit: self, id }
    }

    /// Ignores poisoning: leases are changed one by one, so they are valid after a panic.
    fn lock(&self) -> MutexGuard<'_, Vec<Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lock for Named<'_> {
    fn place(&self) -> usize {
        (&raw const *self.limit).addr()
    }

    fn with(&self, amount: u64, then: &mut dyn FnMut(&mut dyn Ask)) {
        let mut leases = self.limit.lock();
        then(&mut Acquire { limiter: &self.limit.limiter, leases: &mut leases, id: self.id, amount });
    }
}
