//! Rate limiters: who may go on now, who must wait, and for how long exactly.
//!
//! A limiter is three things apart: its *configuration* (a value of a type that implements [`Limiter`]), its *state* (plain data, one per key),
//! and the *time*, which is an argument. Nothing here reads a clock or is random: the same calls
//! with the same times give the same answers, so a state may live in a log, a snapshot or another process.
//!
//! | limiter | state | an interval of length *W* admits at most | use it for |
//! |---|---|---|---|
//! | [`Gcra`] | 8 bytes | `limit` + rate × *W* | the default: smooth, cheap, exact waits |
//! | [`TokenBucket`] | 24 bytes | `limit` + rate × *W* | rates above one unit a nanosecond; a raised limit that fills slowly |
//! | [`LeakyBucket`] | 24 bytes | `limit` + rate × *W* | the same, with a raised limit that is free at once |
//! | [`FixedWindow`] | 16 bytes | `limit` per window: twice in a moment, at the edge | quotas of a day, what a bill says |
//! | [`SlidingWindow`] | 24 bytes | `limit` × (1 + *W* / period) | "so many per minute" without the edge |
//! | [`SlidingLog`] | 16 bytes per request | `limit`, if *W* < period | small limits that must hold in every interval |
//!
//! How much may be under way at once is another question: [`Concurrency`] answers it, by leases that end by themselves.
//!
//! Threads share a limiter as [`SharedGcra`], one atomic word, or as [`Shared`] or [`SharedConcurrency`], behind a lock. A request that several
//! limits must admit, of whatever kinds, asks them by [`check_all`] or [`check_all_shared`]: all of them count it, or none does.
//!
//! # What holds for all of them
//! - A refused check changes nothing, to the bit.
//! - An amount of 0 is allowed always and changes nothing.
//! - [`Decision::retry_after`] is exact: if nobody else comes, a check that long after is allowed, and one that comes a nanosecond before that
//!   is not.
//! - Time may step. Where a clock goes back, time stands still for the limiter, or it is stricter, until the clock has caught up: going back
//!   never admits more. A step forward is time that has passed.
//! - A configuration may change under a state: what was admitted before is judged by the new one.
//! - Nothing panics or wraps around for any configuration, state, time or amount.

mod acquire;
mod all;
mod all_shared;
mod concurrency;
mod decision;
mod fixed_window;
mod gcra;
mod invalid;
mod leaky_bucket;
mod level;
mod monotonic;
mod rate;
mod shared;
mod shared_concurrency;
mod shared_gcra;
mod sliding_log;
mod sliding_window;
mod time;
mod token_bucket;

pub use acquire::Acquire;
pub use all::{Ask, Request, Verdict, check_all};
pub use all_shared::{Lock, MAX_TOGETHER, check_all_shared};
pub use concurrency::{Concurrency, Lease};
pub use decision::Decision;
pub use fixed_window::{FixedWindow, Window};
pub use gcra::Gcra;
pub use invalid::Invalid;
pub use leaky_bucket::{LeakyBucket, Water};
pub use level::Level;
pub use monotonic::Monotonic;
pub use rate::Rate;
pub use shared::Shared;
pub use shared_concurrency::{Named, SharedConcurrency};
pub use shared_gcra::{Ruled, SharedGcra};
pub use sliding_log::{Entry, SlidingLog};
pub use sliding_window::{SlidingWindow, Windows};
pub use time::Time;
pub use token_bucket::{TokenBucket, Tokens};

use std::fmt::Debug;
use std::time::Duration;

/// The greatest limit that a limiter may have: what fits a signed 64-bit integer. Units.
pub const MAX_LIMIT: u64 = i64::MAX as u64;

/// A rule that admits units as time goes by. The [module](self) says what holds for all of them.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Gcra, Limiter, Rate, Time};
///
/// // 10 units at once, and 5 more every second.
/// let limiter = Gcra::new(10, Rate::new(5, Duration::from_secs(1))?)?;
/// let mut state = limiter.fresh();
/// let now = Time::from_millis(1_700_000_000_000);
///
/// assert!(limiter.check(&mut state, now, 10).is_allowed);
/// let refused = limiter.check(&mut state, now, 2);
/// assert!(!refused.is_allowed);
/// assert_eq!(refused.retry_after, Some(Duration::from_millis(400)));
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
pub trait Limiter {
    /// What is remembered of one key: plain data.
    type State: Clone + Debug + PartialEq;

    /// The state of a key that nobody has used.
    fn fresh(&self) -> Self::State;

    /// The most that is ever granted at once. Units.
    fn limit(&self) -> u64;

    /// What can be taken at once at `now`. Units, at most the limit.
    fn remaining(&self, state: &Self::State, now: Time) -> u64;

    /// After how long `amount` units can be taken, if nobody else comes: zero if they can be at `now`, `None` if they never can.
    fn wait(&self, state: &Self::State, now: Time, amount: u64) -> Option<Duration>;

    /// Counts `amount` units for which [`wait`](Self::wait) is zero at `now`. [`check`](Self::check) is both.
    fn grant(&self, state: &mut Self::State, now: Time, amount: u64);

    /// Gives back `amount` units that were taken and not used: as much of them as the limiter still counts at `now`. A key that has all its
    /// units gains nothing.
    fn refund(&self, state: &mut Self::State, now: Time, amount: u64);

    /// From when on the state answers as a fresh one does, if nobody comes until then: a key may be forgotten then. Not in the future
    /// for a state that already does. [`Time::MAX`] if that is not within what can be told.
    fn idle_at(&self, state: &Self::State) -> Time;

    /// Takes `amount` units, all or none. A refusal leaves the state as it was.
    #[inline]
    fn check(&self, state: &mut Self::State, now: Time, amount: u64) -> Decision {
        let wait = if amount == 0 { Some(Duration::ZERO) } else { self.wait(state, now, amount) };
        if amount > 0 && wait == Some(Duration::ZERO) {
            self.grant(state, now, amount);
        }
        self.decision(state, now, wait)
    }

    /// What [`check`](Self::check) would say. [`Decision::remaining`] and [`Decision::reset_after`] are of the state as it is.
    #[inline]
    fn peek(&self, state: &Self::State, now: Time, amount: u64) -> Decision {
        let wait = if amount == 0 { Some(Duration::ZERO) } else { self.wait(state, now, amount) };
        self.decision(state, now, wait)
    }

    /// What is to be said to who must wait that long, of a state as it is then.
    #[inline]
    fn decision(&self, state: &Self::State, now: Time, wait: Option<Duration>) -> Decision {
        Decision {
            is_allowed: wait == Some(Duration::ZERO),
            limit: self.limit(),
            remaining: self.remaining(state, now),
            retry_after: wait,
            reset_after: self.idle_at(state).since(now),
        }
    }
}
