//! A sliding window, interpolated from the counts of two fixed ones.

use super::rate::{span_ns, valid_limit};
use super::{Invalid, Limiter, Time};
use std::time::Duration;

/// About `limit` units in the last period: the units of the current window of the clock, plus those
/// of the previous one in proportion to its overlap with the last period.
///
/// ```text
///       ├──── previous ────┼──── current ─────┤
///              ├────── last period ─────┤            counts current + previous × (1 − elapsed / period)
///                          ├─ elapsed ──┤
/// ```
///
/// # Exactness
/// The count assumes that the previous window's units were evenly distributed. It never exceeds
/// `limit`, and is computed without rounding. An interval of length *W* admits at most
/// `limit` × (1 + *W* / period): never more than `limit` at one instant, and less than twice as
/// much in a whole period, if all units of the previous window came at its end. For exactly `limit`
/// in every interval use a [`SlidingLog`](super::SlidingLog).
///
/// While the clock is before the window of the last grant, it is as if that window had just begun.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Limiter, SlidingWindow, Time};
///
/// let limiter = SlidingWindow::new(60, Duration::from_mins(1))?;
/// let mut state = limiter.fresh();
/// assert!(limiter.check(&mut state, Time::from_secs(50), 60).is_allowed);
/// // A quarter of the next window has passed: three quarters of the 60 still count.
/// assert_eq!(limiter.peek(&state, Time::from_secs(75), 1).remaining, 15);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    limit: u64,
    period_ns: u64,
}

/// Usage of a window and of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Windows {
    /// Start of the current window.
    pub start: Time,
    /// Units taken in it.
    pub current: u64,
    /// Units taken in the previous one.
    pub previous: u64,
}

impl SlidingWindow {
    /// Creates a limiter of `limit` units, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), per period, 1 ns
    /// to 146 years.
    ///
    /// # Errors
    /// [`Invalid::Limit`], [`Invalid::Period`].
    pub fn new(limit: u64, period: Duration) -> Result<Self, Invalid> {
        Ok(Self { limit: valid_limit(limit)?, period_ns: span_ns(period)? })
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    fn start(&self, at: Time) -> Time {
        Time::from_nanos(at.as_nanos() - at.as_nanos() % self.period_ns)
    }

    /// Returns the windows that count at a time not before the state.
    fn windows(&self, state: &Windows, at: Time) -> Windows {
        let start = self.start(at);
        let then = self.start(state.start);
        // In debug builds only: this is the hot path.
        debug_assert!(then <= start);
        if start == then {
            Windows { start, ..*state }
        } else if start == then + self.period() {
            Windows { start, current: 0, previous: state.current }
        } else {
            Windows { start, current: 0, previous: 0 }
        }
    }

    /// Returns the part of the limit that the current window has not used; the previous window
    /// still takes its share.
    fn free(&self, windows: &Windows) -> u64 {
        self.limit.saturating_sub(windows.current)
    }

    /// Returns how long after their start the windows have room for `amount` units: the period if
    /// they never have. Nanoseconds.
    fn room_after(&self, windows: &Windows, amount: u64) -> u64 {
        let Some(room) = self.free(windows).checked_sub(amount) else { return self.period_ns };
        // previous × (period − elapsed) ≤ room × period
        let period = u128::from(self.period_ns);
        let rest = (u128::from(room) * period).checked_div(u128::from(windows.previous)).unwrap_or(period);
        self.period_ns - rest.min(period) as u64
    }
}

impl Limiter for SlidingWindow {
    type State = Windows;

    fn fresh(&self) -> Windows {
        Windows::default()
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn remaining(&self, state: &Windows, now: Time) -> u64 {
        let at = now.max(state.start);
        let windows = self.windows(state, at);
        let rest = self.period_ns - at.since(windows.start).as_nanos() as u64;
        let carried = (u128::from(windows.previous) * u128::from(rest)).div_ceil(u128::from(self.period_ns));
        u128::from(self.free(&windows)).saturating_sub(carried) as u64
    }

    fn wait(&self, state: &Windows, now: Time, amount: u64) -> Option<Duration> {
        if amount > self.limit {
            return None;
        }
        let at = now.max(state.start);
        let windows = self.windows(state, at);
        let elapsed = at.since(windows.start).as_nanos() as u64;
        let mut after = self.room_after(&windows, amount);
        if after <= elapsed {
            return Some(Duration::ZERO);
        }
        if after == self.period_ns {
            // In the next window or the one after it, which counts nothing of this one.
            let next = Windows { start: windows.start, current: 0, previous: windows.current };
            after += self.room_after(&next, amount);
        }
        Some(windows.start.wait_until(Duration::from_nanos(after), now))
    }

    fn grant(&self, state: &mut Windows, now: Time, amount: u64) {
        let windows = self.windows(state, now.max(state.start));
        *state = Windows { current: windows.current.saturating_add(amount), ..windows };
    }

    /// Refunds units of the current window first.
    fn refund(&self, state: &mut Windows, now: Time, amount: u64) {
        let windows = self.windows(state, now.max(state.start));
        let rest = amount.saturating_sub(windows.current);
        let current = windows.current.saturating_sub(amount);
        *state = Windows { current, previous: windows.previous.saturating_sub(rest), ..windows };
    }

    fn idle_at(&self, state: &Windows) -> Time {
        let end = self.start(state.start) + self.period();
        match (state.current, state.previous) {
            (0, 0) => Time::ZERO,
            (0, _) => end,
            _ => end + self.period(),
        }
    }
}
