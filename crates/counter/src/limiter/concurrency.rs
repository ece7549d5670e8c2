//! A concurrency limit: how much may be in progress at once, by leases that expire.

use super::rate::{span_ns, valid_limit};
use super::{Decision, Invalid, Time};
use std::time::Duration;

/// At most `limit` units in progress at once. A client *acquires* a lease of some units under its
/// own name and *releases* it at the end. A lease that is not released ends after the limiter's
/// term, unless it is *renewed*.
///
/// It is not a [`Limiter`](super::Limiter): its units come back by a release, and by time only
/// without one.
///
/// # What holds
/// - The units of all live leases are at most `limit`, and their number is at most
///   [`leases_max`](Self::leases_max).
/// - A lease that has ended cannot be renewed. Work that continues without one is not counted:
///   choose a term longer than the work, or renew.
/// - A lease keeps its end, whatever the term of the limiter that reads it. Limiters that differ
///   only in their terms may share a state.
/// - A name has at most one lease. Acquiring again replaces the lease, if the new one fits beside
///   all the others; so a request that was sent twice counts once.
/// - If the clock steps back, leases last until it has caught up: it never admits more. A step
///   forward counts as elapsed time.
/// - A refusal changes nothing, and an amount of 0 is always allowed and changes nothing.
///
/// # Cost
/// 24 bytes for each lease, and time linear in their number.
///
/// ```
/// use std::time::Duration;
/// use tidemark_counter::limiter::{Concurrency, Time};
///
/// // Two exports at once, of half an hour at most.
/// let exports = Concurrency::new(2, Duration::from_mins(30))?;
/// let mut leases = Vec::new();
/// let now = Time::from_secs(0);
/// assert!(exports.acquire(&mut leases, now, 71, 1).is_allowed);
/// assert!(exports.acquire(&mut leases, now, 72, 1).is_allowed);
/// let refused = exports.acquire(&mut leases, now, 73, 1);
/// assert_eq!(refused.retry_after, Some(Duration::from_mins(30)));
///
/// assert_eq!(exports.release(&mut leases, now, 71), 1);
/// assert!(exports.acquire(&mut leases, now, 73, 1).is_allowed);
/// # Ok::<(), tidemark_counter::limiter::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Concurrency {
    limit: u64,
    term_ns: u64,
    leases_max: usize,
}

/// Units that a client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Name of the lease, unique within the state.
    pub id: u64,
    /// Units held.
    pub units: u64,
    /// End of the lease: nanoseconds since [`Time::ZERO`]. May exceed [`Time::MAX`], so that no
    /// term is cut short.
    pub end_ns: u64,
}

impl Lease {
    /// Whether it has not ended at `now`.
    pub fn is_live(&self, now: Time) -> bool {
        self.end_ns > now.as_nanos()
    }

    /// Returns the end, at most [`Time::MAX`].
    pub fn end(&self) -> Time {
        Time::from_nanos(self.end_ns)
    }

    /// Returns the remaining time: zero if it has ended.
    pub fn left(&self, now: Time) -> Duration {
        Duration::from_nanos(self.end_ns.saturating_sub(now.as_nanos()))
    }
}

impl Concurrency {
    /// Default of the most live leases.
    pub const DEFAULT_LEASES: usize = 1024;

    /// Creates a limiter of `limit` units, 1 to [`MAX_LIMIT`](super::MAX_LIMIT), whose leases end
    /// after `term`, 1 ns to 146 years.
    ///
    /// # Errors
    /// [`Invalid::Limit`], [`Invalid::Period`].
    pub fn new(limit: u64, term: Duration) -> Result<Self, Invalid> {
        let (limit, term_ns) = (valid_limit(limit)?, span_ns(term)?);
        Ok(Self { limit, term_ns, leases_max: Self::DEFAULT_LEASES })
    }

    /// Sets the most live leases, at least 1.
    #[must_use]
    pub fn with_leases(self, leases_max: usize) -> Self {
        Self { leases_max: leases_max.max(1), ..self }
    }

    /// Returns the most units that may be held at once.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns how long a lease lasts.
    pub fn term(&self) -> Duration {
        Duration::from_nanos(self.term_ns)
    }

    /// Returns the most live leases.
    pub fn leases_max(&self) -> usize {
        self.leases_max
    }

    /// Takes `amount` units under the name `id`, all or none, and replaces what that name holds.
    /// `leases` is a key's state: empty for an unused key, and ordered by the leases' ends.
    ///
    /// # Panics
    /// If `leases` are not in that order and the number of live leases is wrong for that reason.
    ///
    /// [`Decision::retry_after`] is exact if no lease is acquired, renewed or released until then;
    /// releases make room earlier.
    pub fn acquire(&self, leases: &mut Vec<Lease>, now: Time, id: u64, amount: u64) -> Decision {
        if amount == 0 {
            return self.decision(leases, now, Some(Duration::ZERO));
        }
        let (count, used) = beside(leases, now, id);
        let wait = self.wait_beside((count, used), leases, now, id, amount);
        if wait == Some(Duration::ZERO) {
            leases.retain(|lease| lease.id != id && lease.is_live(now));
            // The remaining leases are those that were counted, so the sum is within the limit.
            assert_eq!(
                leases.len(),
                count,
                "leases with {used} units have stayed, in the order of their ends"
            );
            insert(leases, Lease { id, units: amount, end_ns: self.end_ns(now) });
        }
        self.decision(leases, now, wait)
    }

    /// Returns what [`acquire`](Self::acquire) would. [`Decision::remaining`] and
    /// [`Decision::reset_after`] describe the present state.
    pub fn peek(&self, leases: &[Lease], now: Time, id: u64, amount: u64) -> Decision {
        self.decision(leases, now, self.wait(leases, now, id, amount))
    }

    /// Extends the lease to a whole term from `now`, unless it lasts longer already. Returns false,
    /// without a change, if there is no live lease of that name.
    pub fn renew(&self, leases: &mut Vec<Lease>, now: Time, id: u64) -> bool {
        let Some(index) = leases.iter().position(|lease| lease.id == id && lease.is_live(now)) else {
            return false;
        };
        let end_ns = self.end_ns(now);
        if end_ns > leases[index].end_ns {
            let lease = leases.remove(index);
            insert(leases, Lease { end_ns, ..lease });
        }
        true
    }

    /// Releases what a name holds, and returns how many units that was: 0 if there is no such
    /// lease, or it has ended.
    pub fn release(&self, leases: &mut Vec<Lease>, now: Time, id: u64) -> u64 {
        let Some(index) = leases.iter().position(|lease| lease.id == id) else { return 0 };
        let lease = leases.remove(index);
        if lease.is_live(now) { lease.units } else { 0 }
    }

    /// Returns when all leases have ended, if none is renewed: the key may be dropped then.
    pub fn idle_at(&self, leases: &[Lease]) -> Time {
        leases.last().map_or(Time::ZERO, Lease::end)
    }

    /// Returns the end of a lease that begins at `now`. Both terms are at most half of the range,
    /// so the sum fits.
    fn end_ns(&self, now: Time) -> u64 {
        now.as_nanos() + self.term_ns
    }

    pub(super) fn wait(&self, leases: &[Lease], now: Time, id: u64, amount: u64) -> Option<Duration> {
        if amount == 0 {
            return Some(Duration::ZERO);
        }
        self.wait_beside(beside(leases, now, id), leases, now, id, amount)
    }

    /// As [`wait`](Self::wait) for an amount above 0, given what [other names hold](beside).
    fn wait_beside(
        &self,
        (mut count, mut used): (usize, u128),
        leases: &[Lease],
        now: Time,
        id: u64,
        amount: u64,
    ) -> Option<Duration> {
        let room = u128::from(self.limit.checked_sub(amount)?);
        let has_room = |count, used| used <= room && count < self.leases_max;
        if has_room(count, used) {
            return Some(Duration::ZERO);
        }
        let mut wait = Duration::ZERO;
        for lease in others(leases, now, id) {
            count -= 1;
            used -= u128::from(lease.units);
            wait = lease.left(now);
            if has_room(count, used) {
                break;
            }
        }
        Some(wait)
    }

    pub(super) fn decision(&self, leases: &[Lease], now: Time, wait: Option<Duration>) -> Decision {
        let live = live(leases, now);
        let used = u64::try_from(held(live)).unwrap_or(u64::MAX);
        Decision {
            is_allowed: wait == Some(Duration::ZERO),
            limit: self.limit,
            remaining: if live.len() >= self.leases_max { 0 } else { self.limit.saturating_sub(used) },
            retry_after: wait,
            reset_after: self.idle_at(leases).since(now),
        }
    }
}

/// Returns the live leases.
fn live(leases: &[Lease], now: Time) -> &[Lease] {
    // In debug builds only: the check costs as much as the rest, and `acquire` asserts the count.
    debug_assert!(leases.is_sorted_by_key(|lease| lease.end_ns), "in the order of their ends");
    &leases[leases.partition_point(|lease| !lease.is_live(now))..]
}

/// Returns the live leases of other names.
fn others(leases: &[Lease], now: Time, id: u64) -> impl Iterator<Item = &Lease> {
    live(leases, now).iter().filter(move |lease| lease.id != id)
}

/// Returns the number of these leases, and the sum of their units.
fn beside(leases: &[Lease], now: Time, id: u64) -> (usize, u128) {
    let sum = |(count, used), lease: &Lease| (count + 1, used + u128::from(lease.units));
    others(leases, now, id).fold((0, 0), sum)
}

/// Returns the sum of the leases' units.
fn held(leases: &[Lease]) -> u128 {
    leases.iter().map(|lease| u128::from(lease.units)).sum()
}

/// Inserts a lease after all that end no later.
fn insert(leases: &mut Vec<Lease>, lease: Lease) {
    let index = leases.partition_point(|other| other.end_ns <= lease.end_ns);
    leases.insert(index, lease);
}
