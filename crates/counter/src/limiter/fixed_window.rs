//! A fixed window: a limit per minute of the clock.

use super::rate::{span_ns, valid_limit};
use super::{Invalid, Limiter, Time};
use std::time::Duration;

/// Up to `limit` units in every window of time. Consecutive windows begin at multiples of the
/// period, plus an offset.
///
/// For limits of bills and plans: "10,000 a day". Each window admits at most `limit`; a short
/// interval across the edge of two windows may admit twice that. If this matters, use a
/// [`SlidingWindow`](super::SlidingWindow).
///
/// While the clock is before the window of the last grant, that window continues.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{FixedWindow, Limiter, Time};
///
/// let daily = FixedWindow::new(10_000, Duration::from_hours(24))?;
/// let mut state = daily.fresh();
/// let evening = Time::from_secs(19_675 * 86_400 + 22 * 3600); // 22:00
/// assert!(daily.check(&mut state, evening, 10_000).is_allowed);
/// assert_eq!(daily.peek(&state, evening, 1).retry_after, Some(Duration::from_hours(2)));
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    limit: u64,
    period_ns: u64,
    offset_ns: u64,
}

/// Usage of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Window {
    /// Start of the window.
    pub start: Time,
    /// Units taken in it.
    pub used: u64,
}

impl FixedWindow {
    /// Creates a limiter of `limit` units, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), per period, 1 ns
    /// to 146 years.
    ///
    /// # Errors
    /// [`Invalid::Limit`], [`Invalid::Period`].
    pub fn new(limit: u64, period: Duration) -> Result<Self, Invalid> {
        Ok(Self { limit: valid_limit(limit)?, period_ns: span_ns(period)?, offset_ns: 0 })
    }

    /// Shifts all windows later by `offset`: days that begin at 6:00 UTC, weeks that begin on
    /// Mondays.
    #[must_use]
    pub fn with_offset(self, offset: Duration) -> Self {
        let offset_ns = (offset.as_nanos() % u128::from(self.period_ns)) as u64;
        Self { offset_ns, ..self }
    }

    /// Returns the length of a window.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Returns the start of the window that contains `at`. The very first window may be partial.
    fn start(&self, at: Time) -> Time {
        match at.as_nanos().checked_sub(self.offset_ns) {
            Some(behind) => Time::from_nanos(at.as_nanos() - behind % self.period_ns),
            None => Time::ZERO,
        }
    }

    /// Returns the length of the window that begins at `start`.
    fn length(&self, start: Time) -> Duration {
        match self.offset_ns.checked_sub(start.as_nanos()) {
            Some(first) if first > 0 => Duration::from_nanos(first),
            _ => self.period(),
        }
    }

    /// Returns the window that counts at `now`.
    fn window(&self, state: &Window, now: Time) -> Window {
        let start = self.start(now.max(state.start));
        let used = if start == self.start(state.start) { state.used } else { 0 };
        Window { start, used }
    }
}

impl Limiter for FixedWindow {
    type State = Window;

    fn fresh(&self) -> Window {
        Window::default()
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn remaining(&self, state: &Window, now: Time) -> u64 {
        self.limit.saturating_sub(self.window(state, now).used)
    }

    fn wait(&self, state: &Window, now: Time, amount: u64) -> Option<Duration> {
        let window = self.window(state, now);
        if amount > self.limit {
            None
        } else if amount <= self.limit.saturating_sub(window.used) {
            Some(Duration::ZERO)
        } else {
            Some(window.start.wait_until(self.length(window.start), now))
        }
    }

    fn grant(&self, state: &mut Window, now: Time, amount: u64) {
        let window = self.window(state, now);
        *state = Window { used: window.used.saturating_add(amount), ..window };
    }

    fn refund(&self, state: &mut Window, now: Time, amount: u64) {
        let window = self.window(state, now);
        *state = Window { used: window.used.saturating_sub(amount), ..window };
    }

    fn idle_at(&self, state: &Window) -> Time {
        let start = self.start(state.start);
        if state.used == 0 { Time::ZERO } else { start + self.length(start) }
    }
}
