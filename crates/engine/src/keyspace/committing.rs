//! State that all counters share: default terms, when the next commit is due, and statistics.

use super::next_due::NextDue;
use crate::value::Terms;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use tidemark_counter::Promise;

/// Default terms of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterDefaults {
    /// Maximum uncommitted units, at least 1.
    pub cap: u64,
    /// How long less than the low threshold may stay uncommitted. Milliseconds, at least 1.
    pub max_age_ms: u64,
    /// How long the reservation of an exact counter may stay unused. Milliseconds, at least 1.
    pub idle_ms: u64,
    /// Minimum time that a counter accumulates changes after it reaches its low threshold.
    /// Milliseconds.
    pub interval_ms: u64,
}

impl Default for CounterDefaults {
    fn default() -> Self {
        Self { cap: 1000, max_age_ms: 1000, idle_ms: 60_000, interval_ms: 10 }
    }
}

impl CounterDefaults {
    /// Returns the terms of a promise with these thresholds. `high` defaults to half of what may be
    /// uncommitted, `low` to half of `high`.
    pub(crate) fn terms(
        &self,
        promise: Option<Promise>,
        high: Option<u64>,
        low: Option<u64>,
        max_age_ms: Option<u64>,
    ) -> Terms {
        let promise = promise.unwrap_or(Promise::Relaxed { cap: self.cap });
        let (slack, age_ms) = match promise {
            Promise::Relaxed { cap } => (cap, self.max_age_ms),
            Promise::Exact { block } => (block, self.idle_ms),
        };
        let high = high.unwrap_or(slack.div_ceil(2));
        let low = low.unwrap_or(high.div_ceil(2));
        Terms { promise, high, low, max_age_ms: max_age_ms.unwrap_or(age_ms), idle_ms: 0, settle_ms: 0 }
    }
}

/// State that all counters share.
#[derive(Debug)]
pub(crate) struct Committing {
    cap: AtomicU64,
    max_age_ms: AtomicU64,
    idle_ms: AtomicU64,
    interval_ms: AtomicU64,
    next_due: NextDue,
    /// Commits that the log has refused.
    failed: AtomicU64,
    /// One of this many moves is sampled; 0 samples none.
    churn_sample: AtomicU32,
    /// Time at which that was set, in milliseconds since 1970.
    churn_since_ms: AtomicU64,
}

impl Default for Committing {
    fn default() -> Self {
        let CounterDefaults { cap, max_age_ms, idle_ms, interval_ms } = CounterDefaults::default();
        Self {
            cap: AtomicU64::new(cap),
            max_age_ms: AtomicU64::new(max_age_ms),
            idle_ms: AtomicU64::new(idle_ms),
            interval_ms: AtomicU64::new(interval_ms),
            next_due: NextDue::default(),
            failed: AtomicU64::new(0),
            churn_sample: AtomicU32::new(0),
            churn_since_ms: AtomicU64::new(0),
        }
    }
}

impl Committing {
    pub(crate) fn defaults(&self) -> CounterDefaults {
        CounterDefaults {
            cap: self.cap.load(Relaxed),
            max_age_ms: self.max_age_ms.load(Relaxed),
            idle_ms: self.idle_ms.load(Relaxed),
            interval_ms: self.interval_ms(),
        }
    }

    pub(crate) fn set_defaults(&self, defaults: CounterDefaults) {
        self.cap.store(defaults.cap.clamp(1, tidemark_counter::MAX.unsigned_abs()), Relaxed);
        self.max_age_ms.store(defaults.max_age_ms.max(1), Relaxed);
        self.idle_ms.store(defaults.idle_ms.max(1), Relaxed);
        self.interval_ms.store(defaults.interval_ms, Relaxed);
    }

    #[inline]
    pub(crate) fn interval_ms(&self) -> u64 {
        self.interval_ms.load(Relaxed)
    }

    /// When the next counter is due.
    #[inline]
    pub(crate) fn next_due(&self) -> &NextDue {
        &self.next_due
    }

    pub(crate) fn count_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// The sampling rate of moves, and when it was set.
    pub(crate) fn churn_sampling(&self) -> (u32, u64) {
        (self.churn_sample.load(Relaxed), self.churn_since_ms.load(Relaxed))
    }

    pub(crate) fn set_churn_sampling(&self, sample: u32, now_ms: u64) {
        self.churn_sample.store(sample, Relaxed);
        self.churn_since_ms.store(now_ms, Relaxed);
    }
}

/// Totals of a shard's counters since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterTotals {
    /// Moves; without coalescing, each would be a record.
    pub moves: u64,
    /// Units moved, up or down.
    pub moved_units: u64,
    /// Commit records.
    pub commits: u64,
    /// Units by which the commits moved the committed positions.
    pub committed_units: u64,
}

impl CounterTotals {
    /// Share of the moves that needed no record of their own, 0 to 1; 0 without moves.
    pub fn write_reduction(&self) -> f64 {
        saved(self.commits, self.moves)
    }

    /// Share of the moved units that never had to be committed, because later moves cancelled them.
    /// 0 to 1; 0 without moves. Reservations of exact counters make it too small, uncommitted units
    /// too large.
    pub fn churn(&self) -> f64 {
        saved(self.committed_units, self.moved_units)
    }

    #[inline]
    pub(crate) fn count_move(&mut self, units: u64) {
        self.moves += 1;
        self.moved_units = self.moved_units.wrapping_add(units);
    }

    pub(crate) fn count_commit(&mut self, units: u64) {
        self.commits += 1;
        self.committed_units = self.committed_units.wrapping_add(units);
    }

    /// Adds another shard's totals.
    pub(crate) fn add(&mut self, other: Self) {
        self.moves += other.moves;
        self.moved_units = self.moved_units.wrapping_add(other.moved_units);
        self.commits += other.commits;
        self.committed_units = self.committed_units.wrapping_add(other.committed_units);
    }
}

/// Share of `all` that was saved if `spent` was spent.
fn saved(spent: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { all.saturating_sub(spent) as f64 / all as f64 }
}
