//! A sliding log: every grant of the last period.

use super::rate::{span_ns, valid_limit};
use super::{Invalid, Limiter, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// At most `limit` units in every interval shorter than the period: exact, because every grant is
/// kept until it is a period old.
///
/// It costs 16 bytes for each grant, and time linear in their number, which is bounded too. At that
/// bound, a request waits until the oldest grant expires.
///
/// While the clock is behind the last grant, nothing expires.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Limiter, SlidingLog, Time};
///
/// // Three attempts to log in, in any ten minutes.
/// let limiter = SlidingLog::new(3, Duration::from_mins(10))?;
/// let mut state = limiter.fresh();
/// for minute in [0, 4, 9] {
///     assert!(limiter.check(&mut state, Time::from_secs(minute * 60), 1).is_allowed);
/// }
/// let refused = limiter.check(&mut state, Time::from_secs(9 * 60), 1);
/// assert_eq!(refused.retry_after, Some(Duration::from_mins(1)));
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    limit: u64,
    period_ns: u64,
    entries_max: usize,
}

/// A grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Time of the grant.
    pub time: Time,
    /// Units granted.
    pub units: u64,
}

impl SlidingLog {
    /// Default of the most grants that are kept.
    pub const DEFAULT_ENTRIES: usize = 1024;

    /// Creates a limiter of `limit` units, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), per period, 1 ns
    /// to 146 years.
    ///
    /// # Errors
    /// [`Invalid::Limit`], [`Invalid::Period`].
    pub fn new(limit: u64, period: Duration) -> Result<Self, Invalid> {
        let (limit, period_ns) = (valid_limit(limit)?, span_ns(period)?);
        Ok(Self { limit, period_ns, entries_max: Self::DEFAULT_ENTRIES })
    }

    /// Sets the most grants that are kept, at least 1.
    #[must_use]
    pub fn with_entries(self, entries_max: usize) -> Self {
        Self { entries_max: entries_max.max(1), ..self }
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Returns the most grants that are kept.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Returns the entries that count at `now`, and the log's time, which stands still while the
    /// clock is behind it.
    fn live<'a>(
        &self,
        state: &'a VecDeque<Entry>,
        now: Time,
    ) -> (Time, impl DoubleEndedIterator<Item = &'a Entry> + Clone) {
        let at = state.back().map_or(now, |last| now.max(last.time));
        let period = self.period();
        let gone = state.partition_point(|entry| at.since(entry.time) >= period);
        (at, state.range(gone..))
    }
}

impl Limiter for SlidingLog {
    /// The grants, oldest first.
    type State = VecDeque<Entry>;

    fn fresh(&self) -> VecDeque<Entry> {
        VecDeque::new()
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn remaining(&self, state: &VecDeque<Entry>, now: Time) -> u64 {
        let (at, live) = self.live(state, now);
        if live.clone().count() >= self.entries_max && state.back().is_none_or(|last| last.time != at) {
            return 0;
        }
        let used = live.fold(0_u64, |sum, entry| sum.saturating_add(entry.units));
        self.limit.saturating_sub(used)
    }

    fn wait(&self, state: &VecDeque<Entry>, now: Time, amount: u64) -> Option<Duration> {
        let room = self.limit.checked_sub(amount)?;
        let (at, live) = self.live(state, now);
        let mut used = live.clone().fold(0_u128, |sum, entry| sum + u128::from(entry.units));
        let mut count = live.clone().count();
        // A grant at the time of the last one is merged into it.
        let is_joined = count > 0 && state.back().is_some_and(|last| last.time == at);
        if used <= u128::from(room) && (count < self.entries_max || is_joined) {
            return Some(Duration::ZERO);
        }
        for entry in live {
            used -= u128::from(entry.units);
            count -= 1;
            if used <= u128::from(room) && count < self.entries_max {
                return Some(entry.time.wait_until(self.period(), now));
            }
        }
        None
    }

    fn grant(&self, state: &mut VecDeque<Entry>, now: Time, amount: u64) {
        let (time, live) = self.live(state, now);
        let gone = state.len() - live.count();
        state.drain(..gone);
        match state.back_mut() {
            Some(last) if last.time == time => last.units = last.units.saturating_add(amount),
            _ => state.push_back(Entry { time, units: amount }),
        }
    }

    /// Refunds the newest grants first.
    fn refund(&self, state: &mut VecDeque<Entry>, now: Time, mut amount: u64) {
        let (_, live) = self.live(state, now);
        let gone = state.len() - live.count();
        state.drain(..gone);
        while amount > 0
            && let Some(last) = state.back_mut()
        {
            let units = last.units.min(amount);
            amount -= units;
            last.units -= units;
            if last.units == 0 {
                state.pop_back();
            }
        }
    }

    fn idle_at(&self, state: &VecDeque<Entry>) -> Time {
        state.back().map_or(Time::ZERO, |last| last.time + self.period())
    }
}
