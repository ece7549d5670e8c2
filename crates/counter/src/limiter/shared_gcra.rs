//! A key of the generic cell rate algorithm that threads share: one atomic word.

use super::{Decision, Gcra, Limiter, Time};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What [`Gcra`] remembers of a key, for any number of threads: 8 bytes. The rule is an argument, so all keys of a plan share one, and it
/// may change at any time.
///
/// Every check is linearizable: it happens at one moment between its call and its return, and what all threads are admitted is what one
/// thread would be that asks in the same order. A check that admits is one compare-and-swap, again for each other thread that was
/// quicker; one that refuses writes nothing. Nothing blocks.
///
/// Threads that read a clock before they ask may come in another order than their times: [`Gcra`] admits no more for it.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Gcra, Monotonic, Rate, SharedGcra};
///
/// let rule = Gcra::new(100, Rate::new(10, Duration::from_hours(1))?)?;
/// let (clock, key) = (Monotonic::new(), SharedGcra::default());
/// let admit = || (0..50).filter(|_| key.check(&rule, clock.now(), 1).is_allowed).count();
/// let admitted: usize = std::thread::scope(|threads| {
///     let threads: Vec<_> = (0..4).map(|_| threads.spawn(admit)).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// assert_eq!(admitted, 100);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Default)]
pub struct SharedGcra(AtomicU64);

// The word is all that there is: no other memory is published by it, so no ordering but that of the word itself is needed.
impl SharedGcra {
    /// A key of which the state is known: 0 for one that nobody has used.
    pub const fn new(state: u64) -> Self {
        Self(AtomicU64::new(state))
    }

    /// The state, as [`Gcra`] has it.
    #[inline]
    pub fn state(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes `amount` units, all or none. As [`Limiter::check`].
    #[inline]
    pub fn check(&self, rule: &Gcra, now: Time, amount: u64) -> Decision {
        match self.take(rule, now, amount) {
            Ok(state) => rule.decision(&state, now, Some(Duration::ZERO)),
            Err((state, wait)) => rule.decision(&state, now, wait),
        }
    }

    /// Whether `amount` units were taken, all or none: what [`check`](Self::check) decides, without what else it says.
    #[inline]
    pub fn is_allowed(&self, rule: &Gcra, now: Time, amount: u64) -> bool {
        self.take(rule, now, amount).is_ok()
    }

    /// The state in which a check has left the key, or has found it and how long must be waited.
    #[inline]
    fn take(&self, rule: &Gcra, now: Time, amount: u64) -> Result<u64, (u64, Option<Duration>)> {
        let mut state = self.state();
        if amount == 0 {
            return Ok(state);
        }
        loop {
            let next = rule.advance(state, now, amount).map_err(|at| (state, Gcra::wait_until(at, now)))?;
            match self.replace(state, next) {
                Ok(_) => return Ok(next),
                Err(other) => state = other,
            }
        }
    }

    /// What [`check`](Self::check) would say. As [`Limiter::peek`].
    #[inline]
    pub fn peek(&self, rule: &Gcra, now: Time, amount: u64) -> Decision {
        rule.peek(&self.state(), now, amount)
    }

    /// Gives back `amount` units that were taken and not used. As [`Limiter::refund`].
    pub fn refund(&self, rule: &Gcra, now: Time, amount: u64) {
        let mut state = self.state();
        loop {
            let mut next = state;
            rule.refund(&mut next, now, amount);
            match self.replace(state, next) {
                Ok(_) => return,
                Err(other) => state = other,
            }
        }
    }

    #[inline]
    fn replace(&self, state: u64, next: u64) -> Result<u64, u64> {
        self.0.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed)
    }
}

impl fmt::Debug for SharedGcra {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SharedGcra").field(&self.state()).finish()
    }
}
