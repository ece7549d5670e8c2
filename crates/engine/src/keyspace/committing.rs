//! What all counters have in common: the terms of those that say nothing themselves, when the next is due, and what has been counted.

use crate::value::Terms;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use tidemark_counter::Promise;

/// How counters are committed that say nothing themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterDefaults {
    /// How many units may be uncommitted, at least 1.
    pub cap: u64,
    /// How long less than the low threshold may stay uncommitted. Milliseconds, at least 1.
    pub max_age_ms: u64,
    /// How long what an exact counter has reserved may stay unused. Milliseconds, at least 1.
    pub idle_ms: u64,
    /// How long at least, after it has reached its low threshold, a counter gathers more before it is committed. Milliseconds.
    pub interval_ms: u64,
}

impl Default for CounterDefaults {
    fn default() -> Self {
        Self { cap: 1000, max_age_ms: 1000, idle_ms: 60_000, interval_ms: 10 }
    }
}

impl CounterDefaults {
    /// The terms of a promise with these thresholds: the upper one is half of what may be uncommitted unless it is given, the lower
    /// one half of that.
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

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Committing {
    cap: AtomicU64,
    max_age_ms: AtomicU64,
    idle_ms: AtomicU64,
    interval_ms: AtomicU64,
    /// Lower bound of when the next counter is due. Milliseconds since 1970; `u64::MAX`: none is.
    next_due_ms: AtomicU64,
    /// Commits that the log has refused.
    failed: AtomicU64,
    /// One of so many moves is looked at; 0: none is.
    churn_sample: AtomicU32,
    /// Since when. Milliseconds since 1970.
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
            next_due_ms: AtomicU64::new(u64::MAX),
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

    pub(crate) fn next_due(&self) -> Option<u64> {
        Some(self.next_due_ms.load(Relaxed)).filter(|&at| at != u64::MAX)
    }

    pub(crate) fn forget_next_due(&self) {
        self.next_due_ms.store(u64::MAX, Relaxed);
    }

    pub(crate) fn lower_next_due(&self, at_ms: u64) {
        self.next_due_ms.fetch_min(at_ms, Relaxed);
    }

    pub(crate) fn count_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// Of how many moves one is looked at, and since when.
    pub(crate) fn churn_sampling(&self) -> (u32, u64) {
        (self.churn_sample.load(Relaxed), self.churn_since_ms.load(Relaxed))
    }

    pub(crate) fn set_churn_sampling(&self, sample: u32, now_ms: u64) {
        self.churn_sample.store(sample, Relaxed);
        self.churn_since_ms.store(now_ms, Relaxed);
    }
}

/// What the counters of a shard have done since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterTotals {
    /// Moves: each would have been a record.
    pub moves: u64,
    /// Units that were moved, up or down.
    pub moved_units: u64,
    /// Records of commits.
    pub commits: u64,
    /// Units that these moved the committed positions by.
    pub committed_units: u64,
}

impl CounterTotals {
    /// Which share of the moves has needed no record of its own. 0 to 1; 0 if nothing has moved.
    pub fn write_reduction(&self) -> f64 {
        saved(self.commits, self.moves)
    }

    /// Which share of the units that were moved has never had to be committed, because others have cancelled it. 0 to 1; too small by
    /// what exact counters have reserved ahead, and by what is uncommitted it is too large. 0 if nothing has moved.
    pub fn churn(&self) -> f64 {
        saved(self.committed_units, self.moved_units)
    }

    /// Counts a move.
    #[inline]
    pub(crate) fn count_move(&mut self, units: u64) {
        self.moves += 1;
        self.moved_units = self.moved_units.wrapping_add(units);
    }

    /// Counts a commit.
    pub(crate) fn count_commit(&mut self, units: u64) {
        self.commits += 1;
        self.committed_units = self.committed_units.wrapping_add(units);
    }

    /// Adds another's.
    pub(crate) fn add(&mut self, other: Self) {
        self.moves += other.moves;
        self.moved_units = self.moved_units.wrapping_add(other.moved_units);
        self.commits += other.commits;
        self.committed_units = self.committed_units.wrapping_add(other.committed_units);
    }
}

/// Which share of `all` was saved if `spent` were spent.
fn saved(spent: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { all.saturating_sub(spent) as f64 / all as f64 }
}
