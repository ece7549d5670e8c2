//! A key of the generic cell rate algorithm that threads share: one atomic word.

use super::all::{Ask, Request};
use super::all_shared::Lock;
use super::{Decision, Gcra, Limiter, Time};
use crate::sync::{AtomicU64, Ordering, hint, thread};
use std::fmt;
use std::time::Duration;

/// Marks the state as locked for a joint decision. No check leaves such a state: it is beyond all
/// times.
const LOCKED: u64 = u64::MAX;

/// The state of a key of [`Gcra`], for any number of threads: 8 bytes. The rule is an argument, so
/// all keys of a plan share one, and it may change at any time.
///
/// Every check is linearizable: together, threads are admitted exactly what one thread would be
/// that makes the same requests in that order. A check that admits is one compare-and-swap,
/// repeated under contention; one that refuses writes nothing. Nothing blocks, except while
/// [`check_all_shared`](super::check_all_shared) decides about several limits of which this is one,
/// [with its rule](Self::by).
///
/// Threads that read a clock first may check in another order than that of their times: [`Gcra`]
/// does not admit more because of it.
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

/// A [`SharedGcra`] with its rule, for a joint check with other limits.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Concurrency, Gcra, Monotonic, Rate, SharedConcurrency, SharedGcra, check_all_shared};
///
/// let rule = Gcra::new(5, Rate::new(1, Duration::from_hours(1))?)?;
/// let (clock, tenant, user) = (Monotonic::new(), SharedGcra::default(), SharedGcra::default());
/// let exports = SharedConcurrency::new(Concurrency::new(1, Duration::from_mins(30))?);
/// let ask = |id| {
///     let limits: [(&dyn tidemark_counter::limiter::Lock, u64); 3] =
///         [(&tenant.by(&rule), 1), (&user.by(&rule), 2), (&exports.under(id), 1)];
///     check_all_shared(clock.now(), limits)
/// };
/// assert!(ask(71).is_allowed());
/// assert_eq!(ask(72).decisive, Some(2));
/// assert_eq!(tenant.peek(&rule, clock.now(), 1).remaining, 4);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ruled<'a> {
    key: &'a SharedGcra,
    rule: &'a Gcra,
}

// The word publishes no other memory. Acquire and release order the words of a joint decision: a
// thread that has seen one of them after the decision sees the others after it, or locked.
impl SharedGcra {
    /// Creates a key with a known state: 0 for an unused one.
    #[cfg(not(loom))]
    pub const fn new(state: u64) -> Self {
        Self(AtomicU64::new(if state == LOCKED { LOCKED - 1 } else { state }))
    }

    #[cfg(loom)]
    #[allow(missing_docs, reason = "loom's atomics are not made in constants")]
    pub fn new(state: u64) -> Self {
        Self(AtomicU64::new(state.min(LOCKED - 1)))
    }

    /// Returns the key with its rule, for [`check_all_shared`](super::check_all_shared).
    pub fn by<'a>(&'a self, rule: &'a Gcra) -> Ruled<'a> {
        Ruled { key: self, rule }
    }

    /// Returns the state, in the form of [`Gcra`].
    #[inline]
    pub fn state(&self) -> u64 {
        self.unlocked(self.0.load(Ordering::Acquire))
    }

    /// Returns the given state, or the next one if it is locked.
    #[inline]
    fn unlocked(&self, state: u64) -> u64 {
        if state == LOCKED { self.wait() } else { state }
    }

    /// Waits until the state is not locked, and returns it.
    #[cold]
    fn wait(&self) -> u64 {
        let mut looks = 0_u32;
        loop {
            looks = looks.saturating_add(1);
            if looks < 100 && !cfg!(loom) {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
            let state = self.0.load(Ordering::Acquire);
            if state != LOCKED {
                return state;
            }
        }
    }

    /// Locks the state until the guard is dropped.
    fn lock(&self) -> Taken<'_> {
        let mut state = self.state();
        loop {
            match self.replace(state, LOCKED) {
                Ok(_) => return Taken { key: self, state },
                Err(other) => state = self.unlocked(other),
            }
        }
    }

    /// Takes `amount` units, all or none. As [`Limiter::check`].
    #[inline]
    pub fn check(&self, rule: &Gcra, now: Time, amount: u64) -> Decision {
        match self.take(rule, now, amount) {
            Ok(state) => rule.decision(&state, now, Some(Duration::ZERO)),
            Err((state, wait)) => rule.decision(&state, now, wait),
        }
    }

    /// Takes `amount` units, all or none, and returns whether it did. As [`check`](Self::check),
    /// without the other figures.
    #[inline]
    pub fn is_allowed(&self, rule: &Gcra, now: Time, amount: u64) -> bool {
        self.take(rule, now, amount).is_ok()
    }

    /// Takes `amount` units. Returns the new state; or the unchanged one, with the wait.
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
                Err(other) => state = self.unlocked(other),
            }
        }
    }

    /// Returns what [`check`](Self::check) would. As [`Limiter::peek`].
    #[inline]
    pub fn peek(&self, rule: &Gcra, now: Time, amount: u64) -> Decision {
        rule.peek(&self.state(), now, amount)
    }

    /// Refunds `amount` units that were taken and not used. As [`Limiter::refund`].
    pub fn refund(&self, rule: &Gcra, now: Time, amount: u64) {
        let mut state = self.state();
        loop {
            let mut next = state;
            rule.refund(&mut next, now, amount);
            match self.replace(state, next) {
                Ok(_) => return,
                Err(other) => state = self.unlocked(other),
            }
        }
    }

    #[inline]
    fn replace(&self, state: u64, next: u64) -> Result<u64, u64> {
        // In debug builds only: this is the hot path, and callers pass an unlocked state.
        debug_assert_ne!(state, LOCKED);
        self.0.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
    }
}

/// A locked state. It is written back when this is dropped, also by a panic.
struct Taken<'key> {
    key: &'key SharedGcra,
    state: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        assert_ne!(self.state, LOCKED, "a state is given back as the sign that it is locked");
        self.key.0.store(self.state, Ordering::Release);
    }
}

impl Lock for Ruled<'_> {
    fn place(&self) -> usize {
        (&raw const *self.key).addr()
    }

    fn with(&self, amount: u64, then: &mut dyn FnMut(&mut dyn Ask)) {
        let mut taken = self.key.lock();
        then(&mut Request { limiter: self.rule, state: &mut taken.state, amount });
    }
}

impl fmt::Debug for SharedGcra {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SharedGcra").field(&self.state()).finish()
    }
}

/// All interleavings of two threads that decide about the same two words, explored by loom.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::limiter::{Rate, check_all_shared};
    use loom::sync::Arc;

    const NOW: Time = Time::from_secs(1000);

    fn rule(limit: u64) -> Gcra {
        Gcra::new(limit, Rate::new(1, Duration::from_secs(1)).unwrap()).unwrap()
    }

    fn pair() -> Arc<[SharedGcra; 2]> {
        Arc::new([SharedGcra::new(0), SharedGcra::new(0)])
    }

    fn remaining(keys: &[SharedGcra; 2], rules: [&Gcra; 2]) -> [u64; 2] {
        [0, 1].map(|at| keys[at].peek(rules[at], NOW, 1).remaining)
    }

    /// One of the two requests gets the only unit, whichever word each of them names first, and the
    /// other one takes nothing.
    #[test]
    fn loom_words_are_decided_about_together() {
        loom::model(|| {
            let (keys, rules) = (pair(), [rule(1), rule(2)]);
            let (other, others) = (keys.clone(), rules.clone());
            let thread = loom::thread::spawn(move || {
                check_all_shared(NOW, [(&other[1].by(&others[1]), 1), (&other[0].by(&others[0]), 1)])
                    .is_allowed()
            });
            let mine = check_all_shared(NOW, [(&keys[0].by(&rules[0]), 1), (&keys[1].by(&rules[1]), 1)])
                .is_allowed();
            assert!(mine != thread.join().unwrap());
            assert_eq!(remaining(&keys, [&rules[0], &rules[1]]), [0, 1]);
        });
    }

    /// A check of one word is admitted concurrently with a request that is refused, and both are
    /// counted correctly.
    #[test]
    fn loom_a_check_beside_a_decision_loses_nothing() {
        loom::model(|| {
            let (keys, rules) = (pair(), [rule(2), rule(1)]);
            let (other, others) = (keys.clone(), rules.clone());
            let thread = loom::thread::spawn(move || {
                let together = [(&other[0].by(&others[0]) as &dyn Lock, 1), (&other[1].by(&others[1]), 2)];
                assert!(!check_all_shared(NOW, together).is_allowed(), "two of one");
                check_all_shared(NOW, [(&other[0].by(&others[0]), 1)]).is_allowed()
            });
            assert!(keys[0].is_allowed(&rules[0], NOW, 1));
            keys[0].refund(&rules[0], NOW, 1);
            assert!(keys[0].is_allowed(&rules[0], NOW, 1));
            assert!(thread.join().unwrap());
            assert_eq!(remaining(&keys, [&rules[0], &rules[1]]), [0, 1]);
        });
    }

    /// A thread that has seen one word after a decision sees the other one after it.
    #[test]
    fn loom_a_decision_is_seen_as_a_whole() {
        loom::model(|| {
            let (keys, rules) = (pair(), [rule(5), rule(5)]);
            let (other, others) = (keys.clone(), rules.clone());
            let thread = loom::thread::spawn(move || {
                check_all_shared(NOW, [(&other[0].by(&others[0]), 1), (&other[1].by(&others[1]), 1)])
                    .is_allowed()
            });
            let seen = remaining(&keys, [&rules[0], &rules[1]]);
            assert!(seen[1] <= seen[0], "{seen:?}");
            assert!(thread.join().unwrap());
        });
    }
}
