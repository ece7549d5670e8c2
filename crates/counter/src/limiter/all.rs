//! Several limits for one request: all of them admit it, or none counts it.

use super::{Decision, Limiter, Time};
use std::time::Duration;

/// One of the limits that a request must pass.
#[derive(Debug)]
pub struct Request<'a, L: Limiter> {
    /// The rule.
    pub limiter: &'a L,
    /// The key's state.
    pub state: &'a mut L::State,
    /// The requested amount. Units.
    pub amount: u64,
}

/// A [`Request`] to any limiter, or an [`Acquire`](super::Acquire).
pub trait Ask {
    /// [`Limiter::wait`] for the amount; zero for an amount of 0.
    fn wait(&self, now: Time) -> Option<Duration>;

    /// Counts the amount, if [`wait`](Self::wait) is zero.
    fn grant(&mut self, now: Time);

    /// [`Limiter::decision`] for the present state.
    fn decision(&self, now: Time, wait: Option<Duration>) -> Decision;
}

impl<L: Limiter> Ask for Request<'_, L> {
    fn wait(&self, now: Time) -> Option<Duration> {
        if self.amount == 0 { Some(Duration::ZERO) } else { self.limiter.wait(self.state, now, self.amount) }
    }

    fn grant(&mut self, now: Time) {
        if self.amount > 0 {
            self.limiter.grant(self.state, now, self.amount);
        }
    }

    fn decision(&self, now: Time, wait: Option<Duration>) -> Decision {
        self.limiter.decision(self.state, now, wait)
    }
}

/// The joint decision of several limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Index of the limit that determines the answer: of a refusal, the first with the longest
    /// wait; otherwise, the first with the least remaining. `None` if there are no limits.
    pub decisive: Option<usize>,
    /// Time until all of them have room without other requests: zero if the request is allowed,
    /// `None` if one of them never has. May be longer if all entries of a
    /// [`SlidingLog`](super::SlidingLog) are in use.
    pub retry_after: Option<Duration>,
    /// Least remaining amount of any limit, after this decision. Units; `u64::MAX` if there are no
    /// limits.
    pub remaining: u64,
}

impl Verdict {
    /// The verdict of no limits, which allows everything.
    pub(super) const UNLIMITED: Self =
        Self { decisive: None, retry_after: Some(Duration::ZERO), remaining: u64::MAX };

    /// Whether all limits have admitted and counted the request.
    pub fn is_allowed(&self) -> bool {
        self.retry_after == Some(Duration::ZERO)
    }

    /// Records the wait of a limit.
    pub(super) fn note_wait(&mut self, index: usize, wait: Option<Duration>) {
        let is_longer = match (self.retry_after, wait) {
            (None, other) => other.is_none() && self.decisive.is_none_or(|decisive| index < decisive),
            (Some(_), None) => true,
            (Some(longest), Some(wait)) => {
                wait > longest
                    || !wait.is_zero()
                        && wait == longest
                        && self.decisive.is_none_or(|decisive| index < decisive)
            }
        };
        if is_longer {
            (self.retry_after, self.decisive) = (wait, Some(index));
        }
    }

    /// Records what remains at a limit, once all waits are recorded.
    pub(super) fn note_remaining(&mut self, index: usize, remaining: u64) {
        let is_first = self.decisive.is_none_or(|decisive| index < decisive);
        if self.is_allowed() && (remaining < self.remaining || remaining == self.remaining && is_first) {
            self.decisive = Some(index);
        }
        self.remaining = self.remaining.min(remaining);
    }
}

/// Checks several limits: either all of them admit the request and count it, or nothing changes.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{FixedWindow, Gcra, Limiter, Rate, Request, Time, check_all};
///
/// let tenant = FixedWindow::new(1000, Duration::from_hours(24))?;
/// let user = Gcra::new(2, Rate::new(1, Duration::from_secs(1))?)?;
/// let (mut of_tenant, mut of_user) = (tenant.fresh(), user.fresh());
/// let now = Time::from_secs(1_700_000_000);
/// let mut ask = |amount| {
///     check_all(now, &mut [
///         &mut Request { limiter: &tenant, state: &mut of_tenant, amount },
///         &mut Request { limiter: &user, state: &mut of_user, amount },
///     ])
/// };
/// assert!(ask(2).is_allowed());
/// let refused = ask(1);
/// assert_eq!((refused.decisive, refused.retry_after), (Some(1), Some(Duration::from_secs(1))));
/// assert_eq!(of_tenant.used, 2);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
pub fn check_all(now: Time, requests: &mut [&mut dyn Ask]) -> Verdict {
    let mut verdict = Verdict::UNLIMITED;
    for (index, request) in requests.iter().enumerate() {
        verdict.note_wait(index, request.wait(now));
    }
    for (index, request) in requests.iter_mut().enumerate() {
        if verdict.is_allowed() {
            request.grant(now);
        }
        verdict.note_remaining(index, request.decision(now, verdict.retry_after).remaining);
    }
    verdict
}
