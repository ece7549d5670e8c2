//! Standing of a caller: what the rules have counted, and how they change the next draw.

use super::{NEVER, Tallies, Tally};
use crate::catalogue::rules::{Guarantee, Limit, Rules, Scope};
use crate::draw::urn::{Favour, Hidden};
use crate::refusal::Refusal;

/// Counts of the rules for a user, if there is one, and for the pool. A working copy, which is
/// stored when the call succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pool) struct Standing {
    tallies: Tallies,
    /// Consecutive misses of each pool-wide guarantee; 0 for the others.
    tracks: Box<[u64]>,
    /// Milliseconds since 1970.
    now_ms: u64,
}

/// How the rules change a draw.
#[derive(Debug, Default)]
pub(in crate::pool) struct Terms<'r> {
    /// Items that count as sold out, sorted.
    barred: Vec<u32>,
    alone: Option<&'r [u32]>,
    boosts: Vec<(&'r [u32], u64)>,
}

/// A limit that has been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) struct Reached {
    pub(in crate::pool) max: u64,
    /// When its window ends, if it has one. Milliseconds since 1970.
    pub(in crate::pool) again_ms: Option<u64>,
}

impl Standing {
    /// Creates the standing of a user with these tallies, if any, at this time.
    pub(in crate::pool) fn new(
        rules: &Rules<u32>,
        known: Option<&[Tally]>,
        tracks: &[u64],
        now_ms: u64,
    ) -> Self {
        let rule_count = rules.limits().len() + rules.guarantees().len();
        let tallies = known.map_or_else(|| vec![Tally::default(); rule_count].into(), Box::from);
        let mut standing = Self { tallies, tracks: tracks.into(), now_ms };
        for (tally, limit) in standing.tallies.iter_mut().zip(rules.limits()) {
            let window = window(limit, now_ms);
            // If the clock went back, the current window continues.
            if tally.window < window {
                *tally = Tally { window, count: 0 };
            }
        }
        standing
    }

    /// Returns the limit of draws that is reached first, if any is reached before the last of
    /// `draws` draws.
    pub(in crate::pool) fn reached_within(&self, rules: &Rules<u32>, draws: usize) -> Option<Reached> {
        let limits = self.tallies.iter().zip(rules.limits()).filter(|(_, limit)| limit.wins_of.is_none());
        let left = |(tally, limit): &(&Tally, &Limit<u32>)| limit.max.saturating_sub(tally.count);
        let (tally, limit) = limits.min_by_key(left).filter(|limit| left(limit) < draws as u64)?;
        Some(Reached { max: limit.max, again_ms: window_end(limit, *tally) })
    }

    /// Returns the largest boosts within the next `draws` draws (at least 1): items and the
    /// multiple of their weights that is added.
    pub(in crate::pool) fn boosts_within<'r>(
        &self,
        rules: &'r Rules<u32>,
        draws: usize,
    ) -> Vec<(&'r [u32], u64)> {
        let boosts = self.misses(rules).filter_map(|(guarantee, misses)| {
            let misses = guarantee.after.min(misses.saturating_add(draws as u64 - 1));
            Some((&*guarantee.of, guarantee.soft?.times(misses)?))
        });
        boosts.collect()
    }

    /// Returns, of the limits of wins that have been reached, the one whose window ends first.
    pub(in crate::pool) fn next_relief(&self, rules: &Rules<u32>) -> Option<Reached> {
        let reached = self.reached(rules).map(|(_, reached)| reached);
        reached.min_by_key(|reached| reached.again_ms.unwrap_or(NEVER))
    }

    /// Returns the items barred by limits of wins, sorted.
    pub(in crate::pool) fn barred(&self, rules: &Rules<u32>) -> Vec<u32> {
        let mut barred = Vec::new();
        self.reached(rules).for_each(|(limit, _)| barred.extend(limit.wins_of.iter().flatten()));
        barred.sort_unstable();
        barred.dedup();
        barred
    }

    /// Returns how the rules change the next draw.
    pub(in crate::pool) fn terms<'r>(&self, rules: &'r Rules<u32>) -> Terms<'r> {
        let mut terms = Terms { barred: self.barred(rules), ..Terms::default() };
        for (guarantee, misses) in self.misses(rules) {
            if misses >= guarantee.after {
                terms.alone = terms.alone.or(Some(&guarantee.of));
            }
            if let Some(times) = guarantee.soft.and_then(|soft| soft.times(misses)) {
                terms.boosts.push((&guarantee.of, times));
            }
        }
        terms
    }

    pub(in crate::pool) fn count(&mut self, rules: &Rules<u32>, item: Option<u32>) {
        let gives = |items: &[u32]| item.is_some_and(|item| items.binary_search(&item).is_ok());
        let (limits, tracks) = self.tallies.split_at_mut(rules.limits().len());
        for (tally, limit) in limits.iter_mut().zip(rules.limits()) {
            let counts = limit.wins_of.as_deref().is_none_or(gives);
            tally.count = tally.count.saturating_add(u64::from(counts));
        }
        let guarantees = rules.guarantees().iter().enumerate();
        for ((own, pools), (number, guarantee)) in tracks.iter_mut().zip(&mut self.tracks).zip(guarantees) {
            let misses = if guarantee.scope == Scope::Pool { pools } else { &mut own.count };
            let is_given = item.is_some_and(|item| rules.gives(number, item));
            *misses = if is_given { 0 } else { guarantee.after.min(*misses + 1) };
        }
    }

    /// Subtracts wins of an item drawn at `drawn_ms` from the limits that still count that window.
    pub(in crate::pool) fn take_back(&mut self, rules: &Rules<u32>, item: u32, count: u64, drawn_ms: u64) {
        for (tally, limit) in self.tallies.iter_mut().zip(rules.limits()) {
            let counts = limit.wins_of.as_ref().is_some_and(|items| items.binary_search(&item).is_ok());
            if counts && tally.window == window(limit, drawn_ms) {
                tally.count = tally.count.saturating_sub(count);
            }
        }
    }

    /// Returns what to store: the user's tallies, when the user becomes idle, and the pool-wide
    /// misses.
    pub(in crate::pool) fn into_parts(self, rules: &Rules<u32>) -> (Tallies, u64, Box<[u64]>) {
        let idle_ms = idle_ms(rules, &self.tallies);
        (self.tallies, idle_ms, self.tracks)
    }

    /// Returns for each limit its count and the end of its window, if it has one. Milliseconds
    /// since 1970.
    pub(in crate::pool) fn used(&self, rules: &Rules<u32>) -> Vec<(u64, Option<u64>)> {
        let limits = self.tallies.iter().zip(rules.limits());
        limits.map(|(tally, limit)| (tally.count, window_end(limit, *tally))).collect()
    }

    /// Returns the guarantees with their consecutive misses.
    pub(in crate::pool) fn misses<'r>(
        &self,
        rules: &'r Rules<u32>,
    ) -> impl Iterator<Item = (&'r Guarantee<u32>, u64)> {
        let own = self.tallies[rules.limits().len()..].iter().map(|tally| tally.count);
        own.zip(&self.tracks).zip(rules.guarantees()).map(|((own, &pools), guarantee)| {
            (guarantee, if guarantee.scope == Scope::Pool { pools } else { own })
        })
    }

    fn reached<'r>(&self, rules: &'r Rules<u32>) -> impl Iterator<Item = (&'r Limit<u32>, Reached)> {
        let limits = self.tallies.iter().zip(rules.limits());
        limits
            .filter(|(tally, limit)| tally.count >= limit.max)
            .map(|(tally, limit)| (limit, Reached { max: limit.max, again_ms: window_end(limit, *tally) }))
    }
}

impl Terms<'_> {
    pub(in crate::pool) fn favour<'t>(&'t self, hidden: Option<&'t Hidden>) -> Favour<'t> {
        Favour { barred: &self.barred, hidden, alone: self.alone, boosts: &self.boosts }
    }

    pub(in crate::pool) fn bar_something(&self) -> bool {
        !self.barred.is_empty()
    }
}

/// Returns when the user becomes idle: from then on none of the counts matters. Milliseconds since
/// 1970.
pub(super) fn idle_ms(rules: &Rules<u32>, tallies: &[Tally]) -> u64 {
    let (limits, tracks) = tallies.split_at(rules.limits().len());
    if tracks.iter().any(|tally| tally.count > 0) {
        return NEVER;
    }
    let counted = limits.iter().zip(rules.limits()).filter(|(tally, _)| tally.count > 0);
    counted.map(|(tally, limit)| window_end(limit, *tally).unwrap_or(NEVER)).max().unwrap_or(0)
}

fn window(limit: &Limit<u32>, now_ms: u64) -> u64 {
    limit.per_ms.map_or(0, |per_ms| now_ms / per_ms)
}

fn window_end(limit: &Limit<u32>, tally: Tally) -> Option<u64> {
    limit.per_ms.map(|per_ms| (tally.window.saturating_add(1)).saturating_mul(per_ms))
}

impl From<Reached> for Refusal {
    fn from(reached: Reached) -> Self {
        let Reached { max, again_ms } = reached;
        Self::Limited { max, again_ms }
    }
}
