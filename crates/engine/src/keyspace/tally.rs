//! Counts of what a shard's expiry, counters and pools do.

use super::churn::{Churn, KeyChurn, Mover};
use super::committing::CounterTotals;

/// Totals of pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolTotals {
    /// Draws that were made, including reservations.
    pub draws: u64,
    /// Draws and other changes that were refused.
    pub refusals: u64,
}

impl PoolTotals {
    /// Adds another shard's totals.
    pub fn add(&mut self, other: Self) {
        self.draws += other.draws;
        self.refusals += other.refusals;
    }
}

/// Counts for the keys of a shard.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Keys that were removed because they had expired.
    expired: u64,
    totals: CounterTotals,
    pools: PoolTotals,
    /// Moves per counter, if sampling is on.
    churn: Option<Box<Churn>>,
}

impl Tally {
    pub(super) fn begin(&mut self) {
        (self.totals, self.pools) = (CounterTotals::default(), PoolTotals::default());
        self.expired = 0;
    }

    /// Number of keys that were removed because they had expired.
    pub(super) fn expired(&self) -> u64 {
        self.expired
    }

    pub(crate) fn count_expired(&mut self) {
        self.expired += 1;
    }

    pub(super) fn pools(&self) -> PoolTotals {
        self.pools
    }

    #[inline]
    pub(crate) fn count_draws(&mut self, draws: u64) {
        self.pools.draws += draws;
    }

    pub(crate) fn count_refusal(&mut self) {
        self.pools.refusals += 1;
    }

    /// Samples one of `sample` moves, none if that is 0, and discards earlier samples.
    pub(super) fn set_sample(&mut self, sample: u32, seed: u64) {
        self.churn = (sample > 0).then(|| Box::new(Churn::new(sample, seed)));
    }

    pub(super) fn totals(&self) -> &CounterTotals {
        &self.totals
    }

    /// The counters that move most.
    pub(super) fn churn(&mut self, now_ms: u64) -> Vec<KeyChurn> {
        self.churn.as_mut().map(|churn| churn.keys(now_ms)).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn count_move(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        self.totals.count_move(units);
        if let Some(churn) = &mut self.churn {
            churn.see(mover, units, now_ms);
        }
    }

    pub(crate) fn count_commit(&mut self, mover: &Mover<'_>, units: u64, now_ms: u64) {
        self.totals.count_commit(units);
        if let Some(churn) = &mut self.churn {
            churn.see_commit(mover, units, now_ms);
        }
    }
}
