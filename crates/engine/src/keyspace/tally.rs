//! What expiry, counters and pools of a shard do, as it is counted.

use super::churn::{Churn, KeyChurn, Mover};
use super::committing::CounterTotals;

/// What pools have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolTotals {
    /// Draws that were made, those that were set aside included.
    pub draws: u64,
    /// Draws and other changes that were refused.
    pub refusals: u64,
}

impl PoolTotals {
    /// Adds what others have done.
    pub fn add(&mut self, other: Self) {
        self.draws += other.draws;
        self.refusals += other.refusals;
    }
}

/// What was done with the keys of a shard.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many keys were removed because their time had come.
    expired: u64,
    totals: CounterTotals,
    pools: PoolTotals,
    /// Which of them, if that is asked for.
    churn: Option<Box<Churn>>,
}

impl Tally {
    /// Begins to count.
    pub(super) fn begin(&mut self) {
        (self.totals, self.pools) = (CounterTotals::default(), PoolTotals::default());
        self.expired = 0;
    }

    /// How many keys were removed because their time had come.
    pub(super) fn expired(&self) -> u64 {
        self.expired
    }

    /// Counts a key that was removed because its time had come.
    pub(crate) fn count_expired(&mut self) {
        self.expired += 1;
    }

    /// What all pools have done.
    pub(super) fn pools(&self) -> PoolTotals {
        self.pools
    }

    /// Counts draws that were made.
    #[inline]
    pub(crate) fn count_draws(&mut self, draws: u64) {
        self.pools.draws += draws;
    }

    /// Counts what a pool has refused.
    pub(crate) fn count_refusal(&mut self) {
        self.pools.refusals += 1;
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
