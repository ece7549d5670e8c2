//! What the counters of a shard do, as it is counted.

use super::churn::{Churn, KeyChurn, Mover};
use super::committing::CounterTotals;

/// What the counters of a shard have done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    totals: CounterTotals,
    /// Which of them, if that is asked for.
    churn: Option<Box<Churn>>,
}

impl Tally {
    /// Begins to count.
    pub(super) fn begin(&mut self) {
        self.totals = CounterTotals::default();
    }

    /// Looks from here on at one of `sample` moves, at none if that is 0, and forgets what has been seen.
    pub(super) fn set_sample(&mut self, sample: u32, seed: u64) {
        self.churn = (sample > 0).then(|| Box::new(Churn::new(sample, seed)));
    }

    /// What all together have done.
    pub(super) fn totals(&self) -> &CounterTotals {
        &self.totals
    }

    /// What those have done that move most.
    pub(super) fn churn(&mut self, now_ms: u64) -> Vec<KeyChurn> {
        self.churn.as_mut().map(|churn| churn.keys(now_ms)).unwrap_or_default()
    }

    /// Counts a move.
    #[inline]
    pub(crate) fn count_move(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        self.totals.count_move(units);
        if let Some(churn) = &mut self.churn {
            churn.see(mover, units, now_ms);
        }
    }

    /// Counts a commit.
    pub(crate) fn count_commit(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        self.totals.count_commit(units);
        if let Some(churn) = &mut self.churn {
            churn.see_commit(mover, units, now_ms);
        }
    }
}
