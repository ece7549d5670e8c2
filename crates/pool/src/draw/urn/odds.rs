//! Odds of the next draw, and of consecutive draws of one call.

use super::chances::Chances;
use super::{Entry, Rule, Urn, in_force};
use crate::catalogue::item::Stock;
use crate::draw::selector::Selector;
use crate::repeats::Repeats;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Odds of the next draw: an item's weight divided by [`total`](Self::total). With nested tables,
/// weights are relative to an item's own table, and only [shares](Self::share_of) say how likely it
/// is.
///
/// ```
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::{Catalogue, Item, Mode, Odds, SoldOut, Urn};
///
/// let items = vec![Item::limited("car", 1, 0), Item::unlimited("mug", 9)];
/// let catalogue = Catalogue::with(items, Mode::FixedOdds, SoldOut::Fallback("mug".into())).unwrap();
/// let urn = Urn::<WideTree>::new(&catalogue);
/// let odds = Odds::of(&urn);
/// let weights: Vec<u64> = urn.entries().map(|entry| odds.weight(&entry)).collect();
/// assert_eq!((weights, odds.total()), (vec![0, 10], 10), "what was the car's leads to the mug");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Odds {
    /// Whether sold-out items keep their weight.
    keeps: bool,
    /// Sum of all weights in force.
    in_force: u64,
    /// Part of that sum that is sold out.
    lost: u64,
    /// Item given in place of sold-out ones, if any is left.
    fallback: Option<u32>,
    /// Present if there are nested tables.
    chances: Option<Box<Chances>>,
}

impl Odds {
    /// Computes the odds of the next draw. O(items) if sold-out items keep their weight, otherwise
    /// O(1); nested tables add O(items that lead to them).
    pub fn of<S: Selector>(urn: &Urn<S>) -> Self {
        let keeps = urn.keeps_odds();
        let sold_out = urn.entries().filter(|entry| keeps && entry.stock == Stock::Limited(0));
        let lost = if keeps { sold_out.map(|entry| entry.weight_in_force).sum() } else { 0 };
        let is_left = |item: &u32| urn.entry(*item).is_some_and(|entry| entry.stock != Stock::Limited(0));
        let chances = Chances::of(urn).map(Box::new);
        Self { keeps, in_force: urn.total_weight(), lost, fallback: urn.fallback().filter(is_left), chances }
    }

    /// Updates the odds after the urn has drawn a unit of an item. O(log items).
    pub fn drawn<S: Selector>(&mut self, urn: &Urn<S>, item: u32) {
        if self.chances.is_some() {
            if urn.entry(item).is_some_and(|entry| entry.stock == Stock::Limited(0)) {
                *self = Self::of(urn);
            }
            return;
        }
        let entry = urn.entry(item).filter(|entry| entry.stock == Stock::Limited(0));
        if let Some(entry) = entry {
            self.lost += if self.keeps { entry.weight_in_force } else { 0 };
            self.fallback = self.fallback.filter(|&fallback| fallback != item);
        }
        self.in_force = urn.total_weight();
    }

    /// Returns the sum that weights are divided by; 0 if a draw would be refused.
    pub fn total(&self) -> u64 {
        if let Some(chances) = &self.chances {
            return if chances.is_refused() { 0 } else { self.in_force };
        }
        match self.fallback {
            // The fallback follows after the last ticket.
            Some(_) if !self.keeps && self.in_force == 0 => 1,
            // Nothing at all is left: a draw is refused.
            None if self.keeps && self.lost == self.in_force => 0,
            _ => self.in_force,
        }
    }

    /// Returns the weight of drawing nothing; 0 with nested tables.
    pub fn nothing(&self) -> u64 {
        if self.chances.is_some() {
            return 0;
        }
        if self.fallback.is_none() && self.total() > 0 { self.lost } else { 0 }
    }

    /// Returns the weight of an item of this urn, including what it gets as the fallback.
    pub fn weight(&self, entry: &Entry<'_>) -> u64 {
        let own = if entry.stock == Stock::Limited(0) { 0 } else { entry.weight_in_force };
        if self.chances.is_some() { own } else { own + self.in_place_of_others(entry.item) }
    }

    /// Returns the probability that the next draw gives an item of this urn, or passes through it
    /// to a table.
    pub fn share_of<S: Selector>(&self, urn: &Urn<S>, entry: &Entry<'_>) -> f64 {
        match &self.chances {
            Some(chances) => chances.share_of(urn, entry),
            None => self.share(self.weight(entry)),
        }
    }

    /// Returns the probability that the next draw gives nothing.
    pub fn share_of_nothing(&self) -> f64 {
        match &self.chances {
            Some(chances) => chances.share_of_nothing(),
            None => self.share(self.nothing()),
        }
    }

    /// Returns a weight as a share of the total, 0 to 1.
    fn share(&self, weight: u64) -> f64 {
        if self.total() == 0 { 0.0 } else { weight as f64 / self.total() as f64 }
    }

    fn in_place_of_others(&self, item: u32) -> u64 {
        match self.fallback {
            Some(fallback) if fallback != item => 0,
            Some(_) if self.keeps => self.lost,
            Some(_) if self.in_force == 0 => 1,
            _ => 0,
        }
    }
}

/// Odds of consecutive draws of one event, computed from the urn before the first of them.
#[derive(Debug)]
pub struct OddsInTurn<'a, S> {
    urn: &'a Urn<S>,
    odds: Odds,
    repeats: Repeats,
    /// Number of draws of each item so far.
    drawn: HashMap<u32, u64, RandomState>,
}

impl<'a, S: Selector> OddsInTurn<'a, S> {
    /// Starts before the first draw from this urn, which has these odds and no nested tables.
    pub fn new(urn: &'a Urn<S>, odds: Odds, repeats: Repeats) -> Self {
        Self { urn, odds, repeats, drawn: HashMap::default() }
    }

    /// Returns the weight of a draw's result and the total weight, and goes on to the next draw.
    /// O(log items).
    pub fn given(&mut self, item: Option<u32>) -> (u64, u64) {
        // The draw was not refused, so with kept odds the whole weight counts.
        let total = if self.odds.keeps { self.odds.in_force } else { self.odds.total() };
        let Some(item) = item else { return (self.odds.lost, total) };
        let weight = self.own(item) + self.odds.in_place_of_others(item);
        self.take(item);
        (weight, total)
    }

    /// Returns an item's weight without what it gets as the fallback.
    fn own(&self, item: u32) -> u64 {
        let (Some(entry), drawn) = (self.urn.entry(item), self.drawn.get(&item).copied().unwrap_or(0)) else {
            return 0;
        };
        match entry.stock {
            _ if drawn > 0 && self.repeats == Repeats::Excluded => 0,
            Stock::Unlimited => entry.weight_in_force,
            Stock::Limited(left) if left <= drawn => 0,
            Stock::Limited(left) => in_force(self.urn.rule(), entry.weight, left - drawn),
        }
    }

    fn take(&mut self, item: u32) {
        let before = self.own(item);
        *self.drawn.entry(item).or_default() += 1;
        let behind = self.own(item);
        let is_over = behind == 0;
        if self.odds.keeps && self.repeats == Repeats::Allowed {
            self.odds.lost += if is_over { before } else { 0 };
        } else {
            self.odds.in_force -= before - behind;
        }
        let is_hidden = self.repeats == Repeats::Excluded;
        let is_left = |item: u32| {
            let left = self.urn.entry(item).map(|entry| entry.stock);
            let drawn = self.drawn.get(&item).copied().unwrap_or(0);
            !(is_hidden && drawn > 0) && left.is_some_and(|left| left != Stock::Limited(drawn))
        };
        self.odds.fallback = self.odds.fallback.filter(|&fallback| is_left(fallback));
        assert!(matches!(self.urn.rule(), Rule::Keep { .. }) == self.odds.keeps, "the odds are this urn's");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::item::Item;
    use crate::catalogue::{Catalogue, Mode, SoldOut};
    use crate::draw::selector::WideTree;
    use proptest::prelude::*;

    fn urn(items: &[(u64, Option<u64>)], rule: u8) -> Option<Urn<WideTree>> {
        let item = |(number, &(weight, stock)): (usize, &(u64, Option<u64>))| Item {
            id: number.to_string().into(),
            weight,
            stock: stock.map_or(Stock::Unlimited, Stock::Limited),
        };
        let items = items.iter().enumerate().map(item).collect();
        let (mode, sold_out) = match rule {
            0 => (Mode::FixedOdds, SoldOut::Renormalise),
            1 => (Mode::FixedOdds, SoldOut::NoPrize),
            2 => (Mode::FixedOdds, SoldOut::Fallback("0".into())),
            _ => (Mode::PerUnit, SoldOut::Fallback("0".into())),
        };
        Catalogue::with(items, mode, sold_out).ok().map(|catalogue| Urn::new(&catalogue))
    }

    fn all(urn: &Urn<WideTree>, odds: &Odds) -> u64 {
        urn.entries().map(|entry| odds.weight(&entry)).sum::<u64>() + odds.nothing()
    }

    proptest! {
        #[test]
        fn odds_are_what_points_lead_to(
            items in prop::collection::vec((0..4_u64, prop::option::of(0..3_u64)), 1..5), rule in 0..4_u8, points: [u64; 8],
        ) {
            let (Some(mut urn), Some(before)) = (urn(&items, rule), urn(&items, rule)) else { return Ok(()) };
            let mut odds = Odds::of(&urn);
            let mut in_turn = OddsInTurn::new(&before, odds.clone(), Repeats::Allowed);
            for point in points {
                prop_assert_eq!(&odds, &Odds::of(&urn), "as if it were looked at anew");
                prop_assert_eq!(all(&urn, &odds), odds.total());
                let weights: Vec<u64> = urn.entries().map(|entry| odds.weight(&entry)).collect();
                let Ok(item) = urn.draw(|total| point % total) else {
                    prop_assert_eq!(odds.total(), 0);
                    break;
                };
                let weight = item.map_or(odds.nothing(), |item| weights[item as usize]);
                prop_assert!(weight > 0);
                prop_assert_eq!(in_turn.given(item), (weight, odds.total()));
                match item {
                    Some(item) => odds.drawn(&urn, item),
                    None => prop_assert!(urn.keeps_odds()),
                }
            }
        }

        #[test]
        fn what_was_drawn_has_no_odds_where_nothing_comes_twice(
            items in prop::collection::vec((0..4_u64, prop::option::of(0..3_u64)), 1..5), rule in 0..4_u8, points: [u64; 4],
        ) {
            let (Some(mut urn), Some(before)) = (urn(&items, rule), urn(&items, rule)) else { return Ok(()) };
            let mut in_turn = OddsInTurn::new(&before, Odds::of(&before), Repeats::Excluded);
            for point in points {
                if urn.total_weight() == 0 {
                    break;
                }
                let mut total = 0;
                let Ok(item) = urn.draw(|bound| { total = bound; point % bound }) else { break };
                let (weight, of) = in_turn.given(item);
                // No number is used if all give the same result.
                let is_sure = total == 0 && weight == of;
                prop_assert!(is_sure || of == total, "{weight} of {of}, which is {total}");
                prop_assert!((1..=of).contains(&weight), "{weight} of {of}");
                item.into_iter().for_each(|item| urn.hide(item));
            }
        }
    }
}
