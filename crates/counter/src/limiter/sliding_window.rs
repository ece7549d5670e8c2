//! A sliding window, from the counts of two fixed ones.

use super::rate::{span_ns, valid_limit};
use super::{Invalid, Limiter, Time};
use std::time::Duration;

/// About `limit` units in the last period, whenever one looks: what was taken in this window of the clock, and of what was taken in the window
/// before the part that the period still reaches back to.
///
/// ```text
///       ├──── previous ────┼──── current ─────┤
///              ├────── last period ─────┤            counts current + previous × (1 − elapsed / period)
///                          ├─ elapsed ──┤
/// ```
///
/// # How exact it is
/// The count assumes that the previous window's units came evenly. It never goes beyond `limit`, and is computed without rounding. What
/// was really admitted in an interval of length *W* is at most `limit` × (1 + *W* / period): never more than `limit` in a moment, and in a whole
/// period less than twice as much, if all of the previous window's units came at its end. For exactly `limit` in every interval take a
/// [`SlidingLog`](super::SlidingLog).
///
/// While a clock is behind the window in which was granted last, it is as if that window had just begun.
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

/// What was taken in a window, and in the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Windows {
    /// When the current window began.
    pub start: Time,
    /// Units taken in it.
    pub current: u64,
    /// Units taken in the one before.
    pub previous: u64,
}

impl SlidingWindow {
    /// `limit` units, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), per period, 1 ns to 146 years.
    ///
    /// # Errors
    /// [`Invalid::Limit`], [`Invalid::Period`].
    pub fn new(limit: u64, period: Duration) -> Result<Self, Invalid> {
        Ok(Self { limit: valid_limit(limit)?, period_ns: span_ns(period)? })
    }

    /// How far back it looks.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    fn start(&self, at: Time) -> Time {
        Time::from_nanos(at.as_nanos() - at.as_nanos() % self.period_ns)
    }

    /// The windows that count at a moment that is not before the state.
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

    /// What of the limit the current window has not used: the previous one and who asks share it.
    fn free(&self, windows: &Windows) -> u64 {
        self.limit.saturating_sub(windows.current)
    }

    /// How long after their start such windows have room for `amount` units: a period or more if they never have. Nanoseconds.
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
            // In the next window, or in the one behind it, which remembers nothing of this one.
            let next = Windows { start: windows.start, current: 0, previous: windows.current };
            after += self.room_after(&next, amount);
        }
        Some(windows.start.wait_until(Duration::from_nanos(after), now))
    }

    fn grant(&self, state: &mut Windows, now: Time, amount: u64) {
        let windows = self.windows(state, now.max(state.start));
        *state = Windows { current: windows.current.saturating_add(amount), ..windows };
    }

    /// Of the current window first.
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
