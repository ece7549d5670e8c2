//! Rate limiters: which requests may pass now, which must wait, and exactly how long.
//!
//! A limiter separates its *configuration* (a value of a type that implements [`Limiter`]), its
//! *state* (plain data, one per key), and the *time*, which is an argument. Nothing here reads a
//! clock or uses randomness: the same calls with the same times give the same answers, so a state
//! may live in a log, a snapshot or another process.
//!
//! | limiter | state | an interval of length *W* admits at most | use it for |
//! |---|---|---|---|
//! | [`Gcra`] | 8 bytes | `limit` + rate × *W* | the default: smooth, cheap, exact waits |
//! | [`TokenBucket`] | 24 bytes | `limit` + rate × *W* | rates above 1/ns; raised limits fill slowly |
//! | [`LeakyBucket`] | 24 bytes | `limit` + rate × *W* | the same; raised limits are free immediately |
//! | [`FixedWindow`] | 16 bytes | `limit` per window; twice at an edge | daily quotas, billing |
//! | [`SlidingWindow`] | 24 bytes | `limit` × (1 + *W* / period) | "n per minute" without the edge |
//! | [`SlidingLog`] | 16 bytes per grant | `limit`, if *W* < period | small limits, exact everywhere |
//!
//! [`Concurrency`] limits how much may be in progress at once, by leases that expire.
//!
//! Threads share a limiter as [`SharedGcra`], one atomic word, or as [`Shared`] or
//! [`SharedConcurrency`], behind a lock. A request that several limits of any kind must admit uses
//! [`check_all`] or [`check_all_shared`]: all of them count it, or none does.
//!
//! # What holds for all of them
//! - A refused check changes nothing, to the bit.
//! - An amount of 0 is always allowed and changes nothing.
//! - [`Decision::retry_after`] is exact: without other requests, a check after that time is
//!   allowed, and one a nanosecond earlier is not.
//! - The clock may step. If it steps back, the limiter's time stands still, or it is stricter,
//!   until the clock has caught up: it never admits more. A step forward counts as elapsed time.
//! - A configuration may change under a state: the new one judges what was admitted before.
//! - No configuration, state, time or amount causes a panic or wraps around.

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

/// The greatest limit of a limiter, which fits a signed 64-bit integer. Units.
pub const MAX_LIMIT: u64 = i64::MAX as u64;

/// A rule that admits units over time. For the guarantees of all limiters, see the [module](self).
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
    /// The state of one key: plain data.
    type State: Clone + Debug + PartialEq;

    /// Returns the state of an unused key.
    fn fresh(&self) -> Self::State;

    /// Returns the most units that are ever granted at once.
    fn limit(&self) -> u64;

    /// Returns the units that can be taken at `now`, at most the limit.
    fn remaining(&self, state: &Self::State, now: Time) -> u64;

    /// Returns the time until `amount` units can be taken without other requests: zero if they can
    /// be at `now`, `None` if they never can.
    fn wait(&self, state: &Self::State, now: Time, amount: u64) -> Option<Duration>;

    /// Counts `amount` units for which [`wait`](Self::wait) is zero at `now`.
    /// [`check`](Self::check) does both.
    fn grant(&self, state: &mut Self::State, now: Time, amount: u64);

    /// Refunds `amount` units that were taken and not used: as many of them as the limiter still
    /// counts at `now`. A key with all its units gains nothing.
    fn refund(&self, state: &mut Self::State, now: Time, amount: u64);

    /// Returns when the state becomes equivalent to a fresh one without other requests: the key may
    /// be dropped then. Not in the future if it already is. [`Time::MAX`] if the time is out of
    /// range.
    fn idle_at(&self, state: &Self::State) -> Time;

    /// Takes `amount` units, all or none. A refusal leaves the state unchanged.
    #[inline]
    fn check(&self, state: &mut Self::State, now: Time, amount: u64) -> Decision {
        let wait = if amount == 0 { Some(Duration::ZERO) } else { self.wait(state, now, amount) };
        if amount > 0 && wait == Some(Duration::ZERO) {
            self.grant(state, now, amount);
        }
        self.decision(state, now, wait)
    }

    /// Returns what [`check`](Self::check) would. [`Decision::remaining`] and
    /// [`Decision::reset_after`] describe the present state.
    #[inline]
    fn peek(&self, state: &Self::State, now: Time, amount: u64) -> Decision {
        let wait = if amount == 0 { Some(Duration::ZERO) } else { self.wait(state, now, amount) };
        self.decision(state, now, wait)
    }

    /// Returns the decision for a request with this wait, in the present state.
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
