//! What a limiter says.

use std::time::Duration;

/// What a limiter says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Whether the units were granted, or in a peek would be.
    pub is_allowed: bool,
    /// The most that is ever granted at once. Units.
    pub limit: u64,
    /// What could be taken now, behind this decision. Units, at most `limit`.
    pub remaining: u64,
    /// After how long the same request is allowed, if nobody else comes: zero if it is now. `None` if it never is, because it asks
    /// for more than the limit.
    pub retry_after: Option<Duration>,
    /// After how long the state is that of a key which nobody has used, if nobody comes.
    pub reset_after: Duration,
}

impl Decision {
    /// Whole seconds for HTTP's `Retry-After`, rounded up, so that who waits that long is allowed: 0 if he is now, `None` if he
    /// never is.
    pub fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after.map(secs_rounded_up)
    }

    /// Whole seconds for HTTP's `RateLimit-Reset`, rounded up.
    pub fn reset_after_secs(&self) -> u64 {
        secs_rounded_up(self.reset_after)
    }

    /// The five integers that `CL.THROTTLE` answers: 1 if refused, else 0; the limit; what remains; seconds until a retry, −1 if
    /// it was allowed or never is; seconds until the limit is whole.
    ///
    /// Seconds are rounded as redis-cell rounds them: up, but what is under a millisecond is dropped.
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
