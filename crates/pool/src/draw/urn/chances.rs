//! Probability that a draw reaches each nested table. As floating point: products of weights may
//! not fit into integers.

use super::{Entry, Urn};
use crate::catalogue::item::Stock;
use crate::catalogue::nesting::TABLE_DEPTH_MAX;
use crate::draw::selector::Selector;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chances {
    /// The first table, then the others by number: probability that the next draw reaches it, and
    /// its weight.
    tables: Box<[(f64, u64)]>,
    /// Probability that the draw meets a sold-out item.
    lost: f64,
    /// Item that is given for a sold-out one, if any is left.
    fallback: Option<u32>,
    /// Whether the draw is refused.
    is_refused: bool,
}

impl Chances {
    /// Computes the chances of the next draw. O(leads · depth), and O(items) if sold-out items keep
    /// their weight.
    pub(super) fn of<S: Selector>(urn: &Urn<S>) -> Option<Self> {
        let layout = urn.layout()?;
        let place = |table: Option<u32>| table.map_or(0, |table| table as usize + 1);
        let totals: Vec<u64> = std::iter::once(None)
            .chain((0..urn.tables()).map(Some))
            .map(|table| urn.table_weight(table))
            .collect();
        let mut chances = vec![0.0; totals.len()];
        // After each round the chances are correct one level deeper.
        for _ in 0..=TABLE_DEPTH_MAX {
            let mut next = vec![0.0; totals.len()];
            next[0] = 1.0;
            for &(lead, to) in &layout.leads {
                let from = place(layout.table_of(lead));
                if totals[from] > 0 {
                    next[place(Some(to))] += chances[from] * urn.share(lead) as f64 / totals[from] as f64;
                }
            }
            chances = next;
        }
        let tables = chances.into_iter().zip(totals.iter().copied()).collect();
        let is_left = |item: &u32| urn.stocks.left(*item) > 0;
        let fallback = urn.fallback().filter(is_left);
        let is_empty = totals[0] == 0 || (urn.keeps_odds() && fallback.is_none() && urn.on_sale == 0);
        let mut chances = Self { tables, lost: 0.0, fallback, is_refused: is_empty };
        if urn.keeps_odds() {
            let sold_out = urn.entries().filter(|entry| entry.stock == Stock::Limited(0));
            chances.lost = sold_out.map(|entry| chances.of_weight(urn, &entry)).sum();
        }
        Some(chances)
    }

    /// Returns the probability that the draw meets an entry.
    fn of_weight<S>(&self, urn: &Urn<S>, entry: &Entry<'_>) -> f64
    where
        S: Selector,
    {
        let (chance, total) = self.tables[urn.table_of(entry.item).map_or(0, |table| table as usize + 1)];
        if total == 0 { 0.0 } else { chance * entry.weight_in_force as f64 / total as f64 }
    }

    /// Returns the probability that the draw gives an item, or passes through it to a table.
    pub(super) fn share_of<S: Selector>(&self, urn: &Urn<S>, entry: &Entry<'_>) -> f64 {
        if self.is_refused {
            return 0.0;
        }
        let own = if entry.stock == Stock::Limited(0) { 0.0 } else { self.of_weight(urn, entry) };
        own + if self.fallback == Some(entry.item) { self.lost } else { 0.0 }
    }

    pub(super) fn share_of_nothing(&self) -> f64 {
        if self.is_refused || self.fallback.is_some() { 0.0 } else { self.lost }
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::item::Item;
    use crate::catalogue::nesting::{Lead, Table};
    use crate::catalogue::{Catalogue, Mode, SoldOut};
    use crate::draw::selector::WideTree;
    use crate::draw::urn::Odds;
    use proptest::prelude::*;

    type Numbers = Vec<(u64, Option<u64>)>;

    fn items(prefix: &str, numbers: &Numbers) -> Vec<Item> {
        let item = |(number, &(weight, stock)): (usize, &(u64, Option<u64>))| Item {
            id: format!("{prefix}{number}").into(),
            weight,
            stock: stock.map_or(Stock::Unlimited, Stock::Limited),
        };
        numbers.iter().enumerate().map(item).collect()
    }

    /// A first table with two leads. The second nested table has an item that leads to the first
    /// one.
    fn urn(numbers: &[Numbers; 3], leads: [u64; 3], rule: u8) -> Option<Urn<WideTree>> {
        let [mut first, one, mut other] =
            [("a", 0), ("b", 1), ("c", 2)].map(|(prefix, list)| items(prefix, &numbers[list]));
        first.extend([Item::unlimited("to one", leads[0]), Item::unlimited("to other", leads[1])]);
        other.push(Item::unlimited("other to one", leads[2]));
        let sold_out =
            [SoldOut::Renormalise, SoldOut::NoPrize, SoldOut::Fallback("a0".into())][rule as usize].clone();
        let tables = [("one", one), ("other", other)].map(|(name, items)| Table { name: name.into(), items });
        let lead = |item: &str, table: &str| Lead { item: item.into(), table: table.into() };
        let leads = [lead("to one", "one"), lead("to other", "other"), lead("other to one", "one")];
        let catalogue =
            Catalogue::with(first, Mode::FixedOdds, sold_out).ok()?.nested(tables.into(), &leads).ok()?;
        Some(Urn::new(&catalogue))
    }

    /// Probability of each item, then of nothing, summed over all paths of a draw.
    fn counted(urn: &mut Urn<WideTree>) -> Option<Vec<f64>> {
        let mut shares = vec![0.0; urn.len() + 1];
        let mut digits: Vec<u64> = Vec::new();
        loop {
            let (mut bounds, mut level) = (Vec::new(), 0);
            let drawn = urn.draw(|bound| {
                bounds.push(bound);
                digits.resize(digits.len().max(level + 1), 0);
                level += 1;
                digits[level - 1]
            });
            let item = drawn.ok()?;
            item.inspect(|&item| urn.undo_draw(item));
            let place = item.map_or(urn.len(), |item| item as usize);
            shares[place] += bounds.iter().map(|&bound| 1.0 / bound as f64).product::<f64>();
            digits.truncate(level);
            while let Some(last) = digits.pop() {
                if last + 1 < bounds[digits.len()] {
                    digits.push(last + 1);
                    break;
                }
            }
            if digits.is_empty() {
                return Some(shares);
            }
        }
    }

    proptest! {
        #[test]
        fn odds_are_what_all_ways_together_come_to(
            numbers in prop::array::uniform3(prop::collection::vec((0..4_u64, prop::option::of(0..2_u64)), 1..4)),
            leads: [u8; 3], rule in 0..3_u8,
        ) {
            let Some(mut urn) = urn(&numbers, leads.map(|weight| u64::from(weight % 4)), rule) else { return Ok(()) };
            let odds = Odds::of(&urn);
            let shares: Vec<f64> = urn.entries().map(|entry| if entry.leads_to.is_some() { 0.0 } else { odds.share_of(&urn, &entry) }).collect();
            match counted(&mut urn) {
                None => prop_assert!(odds.total() == 0 && shares.iter().all(|share| *share == 0.0)),
                Some(expected) => {
                    let all = shares.iter().copied().chain([odds.share_of_nothing()]);
                    for (shares, expected) in all.zip(&expected) {
                        prop_assert!((shares - expected).abs() < 1e-9, "{} for {}", shares, expected);
                    }
                }
            }
        }
    }
}
