//! A lease as one of the limits that a request must pass.

use super::all::Ask;
use super::{Concurrency, Decision, Lease, Time};
use std::time::Duration;

/// The counterpart of [`Request`](super::Request) for concurrency limits: a lease of some units
/// under a name. [`check_all`](super::check_all) acquires it if all other limits admit the request
/// as well.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Acquire, Concurrency, Gcra, Limiter, Rate, Request, Time, check_all};
///
/// let exports = Concurrency::new(2, Duration::from_mins(30))?;
/// let user = Gcra::new(1, Rate::new(1, Duration::from_secs(60))?)?;
/// let (mut leases, mut of_user, now) = (Vec::new(), user.fresh(), Time::from_secs(1_700_000_000));
/// let mut ask = |id| {
///     check_all(now, &mut [
///         &mut Acquire { limiter: &exports, leases: &mut leases, id, amount: 1 },
///         &mut Request { limiter: &user, state: &mut of_user, amount: 1 },
///     ])
/// };
/// assert!(ask(71).is_allowed());
/// assert!(!ask(72).is_allowed());
/// assert_eq!(leases.len(), 1);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Acquire<'a> {
    /// The rule.
    pub limiter: &'a Concurrency,
    /// The key's state.
    pub leases: &'a mut Vec<Lease>,
    /// Name of the lease.
    pub id: u64,
    /// The requested amount. Units.
    pub amount: u64,
}

impl Ask for Acquire<'_> {
    fn wait(&self, now: Time) -> Option<Duration> {
        self.limiter.wait(self.leases, now, self.id, self.amount)
    }

    fn grant(&mut self, now: Time) {
        self.limiter.acquire(self.leases, now, self.id, self.amount);
    }

    fn decision(&self, now: Time, wait: Option<Duration>) -> Decision {
        self.limiter.decision(self.leases, now, wait)
    }
}
