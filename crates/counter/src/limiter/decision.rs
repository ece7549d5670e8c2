//! Decisions of limiters.

use std::time::Duration;

/// A limiter's decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Whether the units were granted or, for a peek, would be.
    pub is_allowed: bool,
    /// Most units that are ever granted at once.
    pub limit: u64,
    /// Units that can be taken now, after this decision; at most `limit`.
    pub remaining: u64,
    /// Time until the same request is allowed without other requests: zero if it is now. `None` if
    /// it exceeds the limit and never is.
    pub retry_after: Option<Duration>,
    /// Time until the state equals that of an unused key, without other requests.
    pub reset_after: Duration,
}

impl Decision {
    /// Returns `retry_after` for HTTP's `Retry-After`, in whole seconds rounded up: 0 if the
    /// request is allowed, `None` if it never is.
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after.map(secs_rounded_up)
    }

    /// Returns `reset_after` for HTTP's `RateLimit-Reset`, in whole seconds rounded up.
    pub fn reset_after_secs(&self) -> u64 {
        secs_rounded_up(self.reset_after)
    }

    /// Returns the five integers of a `CL.THROTTLE` reply: 1 if refused, else 0; the limit; the
    /// remaining units; seconds until a retry, −1 if the request was allowed or never is; seconds
    /// until the limit is whole.
    ///
    /// Rounds seconds as redis-cell does: up, but less than a millisecond is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidemark_counter::limiter::{Gcra, Limiter, Rate, Time};
    ///
    /// // CL.THROTTLE key 15 30 60
    /// let limiter = Gcra::with_max_burst(15, Rate::new(30, Duration::from_secs(60))?)?;
    /// let decision = limiter.check(&mut limiter.fresh(), Time::from_secs(1), 1);
    /// assert_eq!(decision.throttle_reply(), [0, 16, 15, -1, 2]);
    /// # Ok::<(), tidemark_counter::limiter::Invalid>(())
    /// ```
    pub fn throttle_reply(&self) -> [i64; 5] {
        let retry = match self.retry_after {
            Some(wait) if !self.is_allowed => throttle_secs(wait),
            _ => -1,
        };
        [
            i64::from(!self.is_allowed),
            signed(self.limit),
            signed(self.remaining),
            retry,
            throttle_secs(self.reset_after),
        ]
    }
}

fn secs_rounded_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn throttle_secs(duration: Duration) -> i64 {
    signed(duration.as_secs()).saturating_add(i64::from(duration.subsec_millis() > 0))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
