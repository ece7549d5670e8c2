//! A leaky bucket, as a meter: a level that drains at a steady rate.

use super::level::Level;
use super::rate::valid_limit;
use super::{Invalid, Limiter, Rate, Time};
use std::time::Duration;

/// A bucket that holds `limit` units, is empty at first, and leaks at a steady rate. A request
/// pours in its units, unless the bucket would overflow.
///
/// It decides as a [`TokenBucket`](super::TokenBucket) does, but stores what was *used*: if the
/// limit is raised, the difference is available immediately.
///
/// An interval of length *W* admits at most `limit` + rate × *W* units. While the clock is behind
/// the last grant, nothing leaks.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{LeakyBucket, Limiter, Rate, Time};
///
/// let rate = Rate::new(2, Duration::from_secs(1))?;
/// let bucket = LeakyBucket::new(10, rate)?;
/// let mut state = bucket.fresh();
/// assert!(bucket.check(&mut state, Time::ZERO, 10).is_allowed);
/// assert_eq!(bucket.peek(&state, Time::ZERO, 1).retry_after, Some(Duration::from_millis(500)));
///
/// let larger = LeakyBucket::new(15, rate)?;
/// assert_eq!(larger.peek(&state, Time::ZERO, 1).remaining, 5);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeakyBucket {
    limit: u64,
    rate: Rate,
}

/// The state of a leaky bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Water {
    /// Units that have not leaked, with the fraction of one.
    pub level: Level,
    /// Time of the level.
    pub updated: Time,
}

impl LeakyBucket {
    /// Creates a bucket for `limit` units, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), that leaks at
    /// `rate`.
    ///
    /// # Errors
    /// [`Invalid::Limit`]; [`Invalid::TooSlow`] if it takes more than 146 years to drain.
    pub fn new(limit: u64, rate: Rate) -> Result<Self, Invalid> {
        let limit = valid_limit(limit)?;
        rate.check_fill(limit)?;
        Ok(Self { limit, rate })
    }

    /// Returns the leak rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the level at a time not before the state. Parts; more than the limit if that was
    /// lowered.
    fn level(&self, state: &Water, at: Time) -> u128 {
        state.level.parts(self.rate).saturating_sub(self.rate.flow(at.since(state.updated)))
    }

    fn free(&self, state: &Water, at: Time) -> u128 {
        self.rate.parts(self.limit).saturating_sub(self.level(state, at))
    }
}

impl Limiter for LeakyBucket {
    type State = Water;

    fn fresh(&self) -> Water {
        Water::default()
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn remaining(&self, state: &Water, now: Time) -> u64 {
        Level::of(self.free(state, now.max(state.updated)), self.rate).units
    }

    fn wait(&self, state: &Water, now: Time, amount: u64) -> Option<Duration> {
        if amount > self.limit {
            return None;
        }
        let at = now.max(state.updated);
        let poured = self.level(state, at) + self.rate.parts(amount);
        match poured.saturating_sub(self.rate.parts(self.limit)) {
            0 => Some(Duration::ZERO),
            over => Some(at.wait_until(self.rate.time_for(over), now)),
        }
    }

    fn grant(&self, state: &mut Water, now: Time, amount: u64) {
        let at = now.max(state.updated);
        let poured = self.level(state, at) + self.rate.parts(amount.min(self.limit));
        *state = Water { level: Level::of(poured, self.rate), updated: at };
    }

    fn refund(&self, state: &mut Water, now: Time, amount: u64) {
        let at = now.max(state.updated);
        let left = self.level(state, at).saturating_sub(self.rate.parts(amount));
        *state = Water { level: Level::of(left, self.rate), updated: at };
    }

    fn idle_at(&self, state: &Water) -> Time {
        match state.level.parts(self.rate) {
            0 => Time::ZERO,
            level => state.updated + self.rate.time_for(level),
        }
    }
}
