//! A token bucket: a level that fills at a steady rate.

use super::level::Level;
use super::rate::valid_limit;
use super::{Invalid, Limiter, Rate, Time};
use std::time::Duration;

/// A bucket of up to `limit` tokens, full at first, which fills at a steady rate; a unit costs a
/// token.
///
/// It decides as [`Gcra`](super::Gcra) does, at any rate, and exactly, with a state of three words.
/// It stores what is *left*: if the limit is raised, the difference fills at the rate.
/// [`LeakyBucket`](super::LeakyBucket) stores what was *used*.
///
/// An interval of length *W* admits at most `limit` + rate × *W* units. While the clock is behind
/// the last grant, the bucket does not fill.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Limiter, Rate, Time, TokenBucket};
///
/// let bucket = TokenBucket::new(100, Rate::new(3, Duration::from_secs(1))?)?;
/// let mut state = bucket.fresh();
/// assert!(bucket.check(&mut state, Time::ZERO, 100).is_allowed);
/// let decision = bucket.check(&mut state, Time::from_secs(5), 16);
/// assert_eq!((decision.remaining, decision.retry_after), (15, Some(Duration::from_nanos(333_333_334))));
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    limit: u64,
    rate: Rate,
}

/// The state of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tokens {
    /// Tokens, with the fraction of one.
    pub level: Level,
    /// Time of the level.
    pub updated: Time,
}

impl TokenBucket {
    /// Creates a bucket for `limit` tokens, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), that fills at
    /// `rate`.
    ///
    /// # Errors
    /// [`Invalid::Limit`]; [`Invalid::TooSlow`] if it takes more than 146 years to fill.
    pub fn new(limit: u64, rate: Rate) -> Result<Self, Invalid> {
        let limit = valid_limit(limit)?;
        rate.check_fill(limit)?;
        Ok(Self { limit, rate })
    }

    /// Returns the fill rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the level at a time not before the state. Parts.
    fn filled(&self, state: &Tokens, at: Time) -> u128 {
        let filled = state.level.parts(self.rate) + self.rate.flow(at.since(state.updated));
        filled.min(self.rate.parts(self.limit))
    }
}

impl Limiter for TokenBucket {
    type State = Tokens;

    fn fresh(&self) -> Tokens {
        Tokens { level: Level { units: self.limit, fraction: 0 }, updated: Time::ZERO }
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn remaining(&self, state: &Tokens, now: Time) -> u64 {
        Level::of(self.filled(state, now.max(state.updated)), self.rate).units
    }

    fn wait(&self, state: &Tokens, now: Time, amount: u64) -> Option<Duration> {
        if amount > self.limit {
            return None;
        }
        let at = now.max(state.updated);
        match self.rate.parts(amount).saturating_sub(self.filled(state, at)) {
            0 => Some(Duration::ZERO),
            missing => Some(at.wait_until(self.rate.time_for(missing), now)),
        }
    }

    fn grant(&self, state: &mut Tokens, now: Time, amount: u64) {
        let at = now.max(state.updated);
        let left = self.filled(state, at).saturating_sub(self.rate.parts(amount));
        *state = Tokens { level: Level::of(left, self.rate), updated: at };
    }

    fn refund(&self, state: &mut Tokens, now: Time, amount: u64) {
        let at = now.max(state.updated);
        let filled = self.filled(state, at) + self.rate.parts(amount.min(self.limit));
        *state = Tokens { level: Level::of(filled.min(self.rate.parts(self.limit)), self.rate), updated: at };
    }

    fn idle_at(&self, state: &Tokens) -> Time {
        match self.rate.parts(self.limit) - self.filled(state, state.updated) {
            0 => Time::ZERO,
            missing => state.updated + self.rate.time_for(missing),
        }
    }
}
