//! Budget of writers for answering watched reads.
//!
//! Three limits keep any set of watched reads from delaying writers, and with them all other
//! clients. A read beyond a limit becomes dormant (see [`crate::watch::dormancy`]): it is answered
//! later, not by writers.
//!
//! - One record spends at most [`WriteBudget::write_us`] on answers.
//! - Reads that have a subscriber share [`WriteBudget::heard_us`] of each second.
//! - Reads that have none share [`WriteBudget::unheard_us`] of each second.
//!
//! Costs are estimates that follow the measured time, but rise at most by a factor of [`RISE`] per
//! answer. So a thread that is preempted in the middle of an answer does not make a cheap read look
//! expensive.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Limits on the time that writers spend on answering watched reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBudget {
    /// Time per record, in microseconds.
    pub write_us: u64,
    /// Time per second for all reads with a subscriber, in microseconds over all threads.
    pub heard_us: u64,
    /// Time per second for all reads without a subscriber, in microseconds over all threads.
    pub unheard_us: u64,
}

impl WriteBudget {
    /// No limit: the default, for replays and for programs without other clients.
    pub const UNLIMITED: Self = Self { write_us: u64::MAX, heard_us: u64::MAX, unheard_us: u64::MAX };
}

/// Largest factor by which one answer raises an estimate.
const RISE: u64 = 8;
/// A record whose wall-clock time exceeds its budget by this factor answers no further read.
const CLOCK_FACTOR: u64 = 20;
/// Unspent time that a class of reads may accumulate.
const SAVED_UP: Duration = Duration::from_millis(2500);

/// Estimated cost of an answer as a one-byte floating-point number, rounded down by less than 1/8.
#[derive(Debug, Default)]
pub(super) struct Cost(AtomicU8);

impl Cost {
    /// Returns the least cost of an answer of `bytes`: to make and to compare it.
    pub(super) fn of_bytes(bytes: usize) -> Self {
        Self(AtomicU8::new(code(500 + bytes as u64 / 4)))
    }

    /// Returns the estimate in nanoseconds.
    pub(super) fn ns(&self) -> u64 {
        match u64::from(self.0.load(Ordering::Relaxed)) {
            code @ ..=15 => code,
            code => (8 + code % 8) << (code / 8 - 1),
        }
    }

    /// Updates the estimate with a measured time. Returns the new one, in nanoseconds.
    pub(super) fn note(&self, measured_ns: u64) -> u64 {
        self.0.store(code(measured_ns.min(self.ns().saturating_mul(RISE))), Ordering::Relaxed);
        self.ns()
    }
}

/// Encodes the three bits after the highest one, and how many bits follow them. The largest code
/// stands for 16 seconds and more.
fn code(ns: u64) -> u8 {
    if ns < 16 {
        return ns as u8;
    }
    let behind = u64::from(ns.ilog2() - 3);
    u8::try_from((behind + 1) * 8 + (ns >> behind) % 8).unwrap_or(u8::MAX)
}

/// Time per second that a class of reads may spend, and has spent: the generic cell rate algorithm
/// (ITU-T I.371), one word instead of a token bucket and its fill time.
struct Share {
    us: AtomicU64,
    /// Everything earned up to this time has been spent. Nanoseconds since the budget began.
    spent_until_ns: AtomicU64,
}

impl Share {
    const fn unlimited() -> Self {
        Self { us: AtomicU64::new(u64::MAX), spent_until_ns: AtomicU64::new(0) }
    }

    fn may_spend(&self, now_ns: u64) -> bool {
        match self.us.load(Ordering::Relaxed) {
            0 => false,
            u64::MAX => true,
            _ => self.spent_until_ns.load(Ordering::Relaxed) <= now_ns + nanoseconds(SAVED_UP),
        }
    }

    fn spend(&self, now_ns: u64, cost_ns: u64) {
        let us = self.us.load(Ordering::Relaxed);
        if us == 0 || us == u64::MAX {
            return;
        }
        // A cost of `us` takes a second to earn.
        let earned_in = cost_ns.saturating_mul(1_000_000) / us;
        let spent = |until: u64| Some(until.max(now_ns).saturating_add(earned_in));
        self.spent_until_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
            .expect("the update is never refused");
    }
}

/// Reads the system's clock itself: it measures how long work takes, which no test moves.
pub(super) struct Budget {
    write_ns: AtomicU64,
    heard: Share,
    unheard: Share,
    began: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            write_ns: AtomicU64::new(u64::MAX),
            heard: Share::unlimited(),
            unheard: Share::unlimited(),
            began: Instant::now(),
        }
    }
}

impl Budget {
    pub(super) fn set(&self, budget: WriteBudget) {
        self.write_ns.store(budget.write_us.saturating_mul(1000), Ordering::Relaxed);
        self.heard.us.store(budget.heard_us, Ordering::Relaxed);
        self.unheard.us.store(budget.unheard_us, Ordering::Relaxed);
    }

    /// Returns the time that one record may spend, in nanoseconds.
    pub(super) fn write_ns(&self) -> u64 {
        self.write_ns.load(Ordering::Relaxed)
    }

    /// Returns whether reads with a subscriber have time left.
    pub(super) fn may_be_heard(&self) -> bool {
        self.heard.may_spend(self.since_beginning(Instant::now()))
    }

    fn share(&self, is_heard: bool) -> &Share {
        if is_heard { &self.heard } else { &self.unheard }
    }

    fn since_beginning(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.began))
    }
}

/// Time that one record has spent on answers.
pub(super) struct Spending<'a> {
    budget: &'a Budget,
    began: Instant,
    /// End of the last answer.
    now: Instant,
    spent_ns: u64,
}

impl<'a> Spending<'a> {
    pub(super) fn begin(budget: &'a Budget) -> Self {
        let now = Instant::now();
        Self { budget, began: now, now, spent_ns: 0 }
    }

    /// Returns whether the budget allows another answer. `is_heard`: the read has a listener.
    pub(super) fn affords(&self, is_heard: bool) -> bool {
        let limit = self.budget.write_ns();
        let on_the_clock = nanoseconds(self.now.saturating_duration_since(self.began));
        self.spent_ns < limit
            && on_the_clock < limit.saturating_mul(CLOCK_FACTOR)
            && self.budget.share(is_heard).may_spend(self.budget.since_beginning(self.now))
    }

    /// Updates the read's cost with the time since the last answer, and charges it. Returns whether
    /// this answer alone exceeds the budget of a record.
    pub(super) fn note(&mut self, cost: &Cost, is_heard: bool) -> bool {
        let before = std::mem::replace(&mut self.now, Instant::now());
        let cost_ns = cost.note(nanoseconds(self.now.saturating_duration_since(before)));
        self.spent_ns = self.spent_ns.saturating_add(cost_ns);
        self.budget.share(is_heard).spend(self.budget.since_beginning(self.now), cost_ns);
        cost_ns > self.budget.write_ns()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_cost_is_rounded_down_by_less_than_an_eighth() {
        for ns in (0..5000).chain([123_456, 500 * MS, 3_900 * MS, 16_000 * MS]) {
            let kept = Cost(AtomicU8::new(code(ns))).ns();
            assert!(kept <= ns && ns - kept <= ns / 8, "{ns}: {kept}");
        }
        assert_eq!(code(u64::MAX), u8::MAX);
    }

    #[test]
    fn one_late_measurement_makes_no_read_expensive_and_three_do() {
        let cost = Cost::of_bytes(0);
        assert!(cost.note(100 * MS) < 5_000);
        assert!(cost.note(600) < 700, "it falls at once");
        for _ in 0..5 {
            cost.note(100 * MS);
        }
        assert!(cost.ns() > 10 * MS);
    }

    #[test]
    fn a_class_of_reads_spends_its_share_and_earns_it_again() {
        let share = Share::unlimited();
        assert!(share.may_spend(0), "there is no limit at first");
        // 20 ms per second: 50 ms can accumulate.
        share.us.store(20_000, Ordering::Relaxed);
        for _ in 0..51 {
            assert!(share.may_spend(0));
            share.spend(0, MS);
        }
        assert!(!share.may_spend(0) && !share.may_spend(49 * MS));
        assert!(share.may_spend(51 * MS), "a millisecond is earned in fifty");
        share.us.store(0, Ordering::Relaxed);
        assert!(!share.may_spend(1_000_000 * MS));
    }

    #[test]
    fn a_record_stops_at_its_budget() {
        let budget = Budget::default();
        let mut spending = Spending::begin(&budget);
        assert!(!spending.note(&Cost::of_bytes(1 << 30), true) && spending.affords(true));
        budget.set(WriteBudget { write_us: 0, ..WriteBudget::UNLIMITED });
        assert!(!spending.affords(true));
        assert!(spending.note(&Cost::of_bytes(0), true), "any cost is more than nothing");
        budget.set(WriteBudget { write_us: 3_600_000_000, heard_us: u64::MAX, unheard_us: 0 });
        assert!(spending.affords(true) && !spending.affords(false));
    }
}
