//! The generic cell rate algorithm: a rate, a burst, and one word of state.

use super::rate::valid_limit;
use super::{Invalid, Limiter, Rate, Time};
use std::time::Duration;

/// Up to `limit` units at once, refilled at a steady rate: a token bucket whose only state is the
/// time at which it will be full, its *theoretical arrival time* (TAT).
///
/// ```text
///                     now          TAT                     A check of n units moves the TAT by n / rate, from now if it was past.
/// ─────────────────────┼────────────┼──────────────►       It is allowed if the TAT then lies at most limit / rate ahead: what lies
///                      ├── used ────┤◄─ free ──┤           between is free.
///                      ├───── limit / rate ────┤
/// ```
///
/// The answers are those of redis-cell's `CL.THROTTLE`
/// ([`throttle_reply`](super::Decision::throttle_reply)).
///
/// # Exactness
/// For any rate, an interval of length *W* admits at most `limit` + rate × *W* units, in whatever
/// order the times of the checks come. A client that always requests gets exactly the rate in the
/// long run. This is exact if the time between two units is a whole number of nanoseconds;
/// otherwise it is as if the clock were off by less than 2 ns, and errors do not accumulate.
///
/// # If the clock steps back
/// The TAT stays, so requests are refused until the clock is less than `limit` / rate behind it: at
/// most for the length of the step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gcra {
    limit: u64,
    rate: Rate,
    /// Ticks per unit: the whole nanoseconds between two units.
    unit: u64,
    /// Ticks until the limit is whole: `limit * unit`, at most 2^62.
    tolerance: u64,
    /// Ticks per period, at most `period_ns` and more than half of it.
    period: u64,
}

// If the time between two units is not a whole number of nanoseconds, time is scaled to *ticks*, of
// which there is a whole number between two units. A tick lasts from 1 ns to less than 2 ns, so its
// first nanosecond identifies it. The state is therefore kept in nanoseconds, and means the same
// under another configuration.
impl Gcra {
    /// Creates a limiter of up to `limit` units at once, 1 to [`MAX_LIMIT`](super::MAX_LIMIT),
    /// refilled at `rate`.
    ///
    /// # Errors
    /// [`Invalid::Limit`]; [`Invalid::TooFast`] above one unit a nanosecond;
    /// [`Invalid::TooSlow`] if the limit takes more than 146 years to refill.
    pub fn new(limit: u64, rate: Rate) -> Result<Self, Invalid> {
        let limit = valid_limit(limit)?;
        let unit = rate.period_ns() / rate.count();
        if unit == 0 {
            return Err(Invalid::TooFast);
        }
        rate.check_fill(limit)?;
        Ok(Self { limit, rate, unit, tolerance: limit * unit, period: unit * rate.count() })
    }

    /// Creates a limiter with redis-cell's parameters: one unit, plus `max_burst`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_max_burst(max_burst: u64, rate: Rate) -> Result<Self, Invalid> {
        Self::new(max_burst.saturating_add(1), rate)
    }

    /// Returns the refill rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the TAT after taking `amount` units, 1 or more; otherwise the time from which they
    /// can be taken, `None` if never. Nanoseconds.
    #[inline]
    pub(super) fn advance(&self, tat: u64, now: Time, amount: u64) -> Result<u64, Option<u64>> {
        if amount > self.limit {
            return Err(None);
        }
        let charge = amount * self.unit;
        // In debug builds only: this is the hot path, and the amount is at most the limit.
        debug_assert!(charge <= self.tolerance);
        let now = self.ticks(now.as_nanos());
        let next = self.ticks(tat).max(now).saturating_add(charge);
        // The right side is at most 2^63 + 2^62; a saturated sum exceeds it.
        if next <= now + self.tolerance {
            Ok(self.nanos(next))
        } else {
            // `next` exceeds the tolerance, or the request would have been allowed.
            Err(Some(self.nanos(next - self.tolerance)))
        }
    }

    /// Returns the time until `at`, if there is such a time.
    #[inline]
    pub(super) fn wait_until(at: Option<u64>, now: Time) -> Option<Duration> {
        at.map(|at| Duration::from_nanos(at.saturating_sub(now.as_nanos())))
    }

    /// Returns the tick that contains a time.
    #[inline]
    fn ticks(&self, nanos: u64) -> u64 {
        if self.period == self.rate.period_ns() {
            return nanos;
        }
        // At most `nanos`, because `period` is at most `period_ns`.
        (u128::from(nanos) * u128::from(self.period) / u128::from(self.rate.period_ns())) as u64
    }

    /// Returns the first nanosecond of a tick.
    #[inline]
    fn nanos(&self, ticks: u64) -> u64 {
        if self.period == self.rate.period_ns() {
            return ticks;
        }
        let nanos = (u128::from(ticks) * u128::from(self.rate.period_ns())).div_ceil(u128::from(self.period));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

impl Limiter for Gcra {
    /// The theoretical arrival time, nanoseconds on the scale of [`Time`]: when the limit is whole
    /// again. 0 is fresh.
    type State = u64;

    fn fresh(&self) -> u64 {
        0
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    #[inline]
    fn remaining(&self, state: &u64, now: Time) -> u64 {
        let used = self.ticks(*state).saturating_sub(self.ticks(now.as_nanos()));
        self.tolerance.saturating_sub(used) / self.unit
    }

    #[inline]
    fn wait(&self, state: &u64, now: Time, amount: u64) -> Option<Duration> {
        match self.advance(*state, now, amount) {
            Ok(_) => Some(Duration::ZERO),
            Err(at) => Self::wait_until(at, now),
        }
    }

    #[inline]
    fn grant(&self, state: &mut u64, now: Time, amount: u64) {
        if let Ok(tat) = self.advance(*state, now, amount) {
            *state = tat;
        }
    }

    fn refund(&self, state: &mut u64, now: Time, amount: u64) {
        if *state > now.as_nanos() {
            *state = self.nanos(self.ticks(*state).saturating_sub(amount.saturating_mul(self.unit)));
        }
    }

    fn idle_at(&self, state: &u64) -> Time {
        Time::from_nanos(*state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{Decision, MAX_LIMIT};

    fn per(count: u64, period: Duration) -> Rate {
        Rate::new(count, period).unwrap()
    }

    /// `(at ms, quantity, refused, remaining, reset ms, retry ms)` for a limit of 5 refilled at 1 a
    /// second, from redis-cell's own tests.
    #[test]
    fn answers_as_redis_cell_does() {
        let cases = [
            (0, 6, true, 5, 0, None),
            (0, 1, false, 4, 1000, Some(0)),
            (0, 1, false, 3, 2000, Some(0)),
            (0, 1, false, 2, 3000, Some(0)),
            (0, 1, false, 1, 4000, Some(0)),
            (0, 1, false, 0, 5000, Some(0)),
            (0, 1, true, 0, 5000, Some(1000)),
            (3000, 1, false, 2, 3000, Some(0)),
            (3100, 1, false, 1, 3900, Some(0)),
            (4000, 1, false, 1, 4000, Some(0)),
            (8000, 1, false, 4, 1000, Some(0)),
            (9500, 1, false, 4, 1000, Some(0)),
            (9500, 0, false, 4, 1000, Some(0)),
            (9500, 2, false, 2, 3000, Some(0)),
            (9500, 5, true, 2, 3000, Some(3000)),
        ];
        let limiter = Gcra::with_max_burst(4, per(1, Duration::from_secs(1))).unwrap();
        let mut state = limiter.fresh();
        for (index, (at, amount, refused, remaining, reset, retry)) in cases.into_iter().enumerate() {
            let decision = limiter.check(&mut state, Time::from_millis(1_500_000_000_000 + at), amount);
            let expected = Decision {
                is_allowed: !refused,
                limit: 5,
                remaining,
                retry_after: retry.map(Duration::from_millis),
                reset_after: Duration::from_millis(reset),
            };
            assert_eq!(decision, expected, "case {index}");
        }
    }

    #[test]
    fn a_reply_rounds_seconds_up_but_drops_microseconds() {
        let limiter = Gcra::new(1, per(1, Duration::from_secs(2))).unwrap();
        let mut state = limiter.fresh();
        let start = Time::from_secs(100);
        let mut reply = |after| limiter.check(&mut state, start + after, 1).throttle_reply();
        assert_eq!(reply(Duration::ZERO), [0, 1, 0, -1, 2]);
        assert_eq!(reply(Duration::ZERO), [1, 1, 0, 2, 2]);
        assert_eq!(reply(Duration::from_micros(998_500)), [1, 1, 0, 2, 2]);
        assert_eq!(reply(Duration::from_micros(999_500)), [1, 1, 0, 1, 1]);
        assert_eq!(reply(Duration::from_secs(2)), [0, 1, 0, -1, 2]);
        assert_eq!(
            limiter.check(&mut state, start, 2).throttle_reply()[3],
            -1,
            "more than the limit never goes"
        );
    }

    /// A third of a second is not a whole number of nanoseconds. Three a second are exactly three a
    /// second nevertheless, a million times.
    #[test]
    fn a_rate_without_whole_nanoseconds_does_not_drift() {
        for count in [3, 7, 11, 999_999_937, 700_000_000] {
            let limiter = Gcra::new(count, per(count, Duration::from_secs(1))).unwrap();
            let mut state = limiter.fresh();
            for second in 1..=10_000 {
                let now = Time::from_secs(1_700_000_000 + second);
                assert!(limiter.check(&mut state, now, count).is_allowed, "{count} in second {second}");
                assert!(!limiter.check(&mut state, now, 1).is_allowed, "{count} in second {second}");
            }
        }
    }

    #[test]
    fn extremes_are_refused_or_exact() {
        let year = Duration::from_hours(365 * 24);
        assert_eq!(Gcra::new(0, per(1, year)), Err(Invalid::Limit { limit: 0, max: MAX_LIMIT }));
        assert_eq!(Gcra::new(147, per(1, year)), Err(Invalid::TooSlow));
        assert_eq!(Gcra::new(1, per(1_000_000_001, Duration::from_secs(1))), Err(Invalid::TooFast));
        assert_eq!(
            Gcra::with_max_burst(u64::MAX, per(1, year)).unwrap_err(),
            Invalid::Limit { limit: u64::MAX, max: MAX_LIMIT }
        );

        let slow = Gcra::new(1, per(1, year)).unwrap();
        let mut state = slow.fresh();
        assert!(slow.check(&mut state, Time::ZERO, 1).is_allowed);
        assert_eq!(slow.check(&mut state, Time::ZERO, 1).retry_after, Some(year));

        let fast = Gcra::new(1 << 62, per(1_000_000_000, Duration::from_secs(1))).unwrap();
        let mut state = fast.fresh();
        assert!(fast.check(&mut state, Time::MAX, 1 << 62).is_allowed);
        assert_eq!(fast.check(&mut state, Time::MAX, 1).remaining, 0);
        assert_eq!(fast.check(&mut state, Time::MAX, u64::MAX).retry_after, None);
        fast.refund(&mut state, Time::MAX, u64::MAX);
        assert_eq!(fast.peek(&state, Time::MAX, 1).remaining, 1 << 62);
    }

    #[test]
    fn any_word_is_a_state() {
        let limiter = Gcra::new(3, per(7, Duration::from_secs(1))).unwrap();
        for mut state in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            for now in [Time::ZERO, Time::from_secs(1_700_000_000), Time::MAX] {
                for amount in [0, 1, 3, 4, 1 << 63, u64::MAX] {
                    let peeked = limiter.peek(&state, now, amount);
                    let decision = limiter.check(&mut state, now, amount);
                    assert_eq!(peeked.is_allowed, decision.is_allowed);
                    limiter.refund(&mut state, now, amount);
                }
            }
        }
    }

    #[test]
    fn a_refund_gives_back_what_is_still_counted() {
        let limiter = Gcra::new(10, per(1, Duration::from_secs(1))).unwrap();
        let mut state = limiter.fresh();
        let now = Time::from_secs(50);
        limiter.check(&mut state, now, 8);
        limiter.refund(&mut state, now, 3);
        assert_eq!(limiter.peek(&state, now, 1).remaining, 5);
        limiter.refund(&mut state, now, 100);
        assert_eq!(limiter.peek(&state, now, 1).remaining, 10);
    }
}
