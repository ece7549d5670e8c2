//! Number of possible draws of one call, from the stock alone: no random number is used.

use super::{Rule, Urn};
use crate::catalogue::item::AMOUNT_MAX;
use crate::draw::selector::Selector;
use crate::repeats::Repeats;

impl<S: Selector> Urn<S> {
    /// Returns how many of `count` draws one call can make, if that is the same for every secret;
    /// otherwise `count`. `barred` are the items that limits of wins exclude now, sorted; `None` if
    /// the pool has no such limits. O(log n) for each item checked, until `count` is reached; each
    /// table is checked once.
    #[inline]
    pub(crate) fn possible(&self, count: usize, repeats: Repeats, barred: Option<&[u32]>) -> usize {
        // A draw that meets a sold-out item gives the fallback or nothing, and counts.
        if self.keeps_odds() && (repeats == Repeats::Allowed || barred.is_some()) {
            return count;
        }
        let barred = barred.unwrap_or_default();
        if self.tables.is_none() && self.on_sale.saturating_sub(barred.len()) >= count {
            return count;
        }
        self.count_possible(count, repeats, barred)
    }

    fn count_possible(&self, count: usize, repeats: Repeats, barred: &[u32]) -> usize {
        let mut counting = Counting { urn: self, count, repeats, barred, possible: 0, seen: Vec::new() };
        let is_enough = counting.items_of(None);
        let possible = if is_enough { count as u64 } else { counting.possible + self.behind(&counting) };
        possible.min(count as u64) as usize
    }

    /// Counts the draws of a raffle's fallback, which follows after the last ticket.
    fn behind(&self, tickets: &Counting<'_, S>) -> u64 {
        let Rule::PerUnit { fallback: Some(fallback) } = self.rule else { return 0 };
        if self.weights[fallback as usize] > 0 || tickets.bars(fallback) {
            return 0;
        }
        match tickets.repeats {
            Repeats::Allowed => self.stocks.left(fallback).min(AMOUNT_MAX),
            // Without repeats it is drawn only if there are no tickets at all.
            Repeats::Excluded => u64::from(tickets.possible == 0 && self.stocks.left(fallback) > 0),
        }
    }
}

/// Counts possible draws until there are enough.
struct Counting<'a, S> {
    urn: &'a Urn<S>,
    count: usize,
    repeats: Repeats,
    barred: &'a [u32],
    /// Less than `count` until enough are found.
    possible: u64,
    /// Tables already checked; empty until one is met.
    seen: Vec<bool>,
}

impl<S: Selector> Counting<'_, S> {
    /// Counts the draws of a table's items; `None` is the first table. Returns whether there are
    /// enough.
    fn items_of(&mut self, table: Option<u32>) -> bool {
        let (first, selector) = self.urn.selector_of(table);
        in_force(selector).any(|place| self.item(first + place as u32))
    }

    /// Counts the draws of an item that a draw can meet. Returns whether there are enough so far.
    fn item(&mut self, item: u32) -> bool {
        if let Some(table) = self.urn.leads_to(item) {
            self.seen.resize(self.urn.tables() as usize, false);
            return !std::mem::replace(&mut self.seen[table as usize], true) && self.items_of(Some(table));
        }
        if self.bars(item) {
            return false;
        }
        self.possible += match (self.urn.stocks.left(item), self.repeats) {
            // Sold out, but can be met any number of times: the count depends on the secret.
            (0, _) => return true,
            (left, Repeats::Allowed) => left.min(AMOUNT_MAX),
            (_, Repeats::Excluded) => 1,
        };
        self.possible >= self.count as u64
    }

    fn bars(&self, item: u32) -> bool {
        self.barred.binary_search(&item).is_ok()
    }
}

/// Returns the places with a weight. O(log n) for each, whatever the gaps; with an unordered
/// selector, O(1) for every place.
fn in_force<S: Selector>(selector: &S) -> impl Iterator<Item = usize> {
    let (total, len, in_order) = (selector.total(), selector.len(), selector.in_order());
    let (mut point, mut next) = (0, 0);
    std::iter::from_fn(move || {
        if in_order {
            let place = (point < total).then(|| selector.select(point))?;
            point += selector.weight(place);
            return Some(place);
        }
        let place = (next..len).find(|&place| selector.weight(place) > 0)?;
        next = place + 1;
        Some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::selector::{Alias, Fenwick, PrefixSum, WideTree};
    use proptest::prelude::*;

    fn found<S: Selector>(weights: &[u64]) -> Vec<usize> {
        in_force(&S::new(weights)).collect()
    }

    proptest! {
        #[test]
        fn all_that_has_a_weight_is_found(weights in prop::collection::vec(0..3_u64, 1..400)) {
            let expected: Vec<usize> = (0..weights.len()).filter(|&place| weights[place] > 0).collect();
            prop_assert_eq!(&found::<WideTree>(&weights), &expected);
            prop_assert_eq!(&found::<Fenwick>(&weights), &expected);
            prop_assert_eq!(&found::<PrefixSum>(&weights), &expected);
            prop_assert_eq!(&found::<Alias>(&weights), &expected);
        }
    }
}
