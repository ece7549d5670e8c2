//! Draws under rules: with barred items, guarantees and boosts.

use super::{Rule, Urn};
use crate::catalogue::item::AMOUNT_MAX;
use crate::draw::selector::Selector;
use foldhash::fast::RandomState;
use std::collections::HashSet;

/// Items that a call has drawn and will not draw again.
pub(crate) type Hidden = HashSet<u32, RandomState>;

/// How a draw differs from an ordinary one. Items are sorted.
#[derive(Debug, Default)]
pub(crate) struct Favour<'a> {
    /// Items that count as sold out.
    pub(crate) barred: &'a [u32],
    /// Items that are already hidden.
    pub(crate) hidden: Option<&'a Hidden>,
    /// If any of these items is left, draw only among them.
    pub(crate) alone: Option<&'a [u32]>,
    /// Items and the multiple of their weights that is added.
    pub(crate) boosts: &'a [(&'a [u32], u64)],
}

/// Reason why no draw is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotDrawn {
    /// Nothing is left that this caller may draw.
    Empty,
    /// The boosts make the total weight too large.
    TooHeavy,
}

impl Favour<'_> {
    fn bars(&self, item: u32) -> bool {
        self.barred.binary_search(&item).is_ok()
    }
}

impl<S: Selector> Urn<S> {
    /// As [`draw`](Self::draw), under rules. O(log n), plus a step for each item that the favour
    /// names, and O(log n) for each barred item.
    pub(crate) fn draw_favouring(
        &mut self,
        favour: &Favour<'_>,
        mut choose: impl FnMut(u64) -> u64,
    ) -> Result<Option<u32>, NotDrawn> {
        let rule = self.rule;
        let barred = self.bar(favour);
        let drawn = self.draw_with_barred(favour, &mut choose);
        barred.into_iter().for_each(|item| self.come_on_sale(item));
        // Items hidden before stay hidden; if odds are kept, barring hid nothing.
        let keeps = matches!(rule, Rule::Keep { .. });
        let was_hidden = |item: &u32| keeps || favour.hidden.is_some_and(|hidden| hidden.contains(item));
        self.show(favour.barred.iter().copied().filter(|item| !was_hidden(item)), rule);
        drawn
    }

    /// Draws once the barred items count as sold out.
    fn draw_with_barred(
        &mut self,
        favour: &Favour<'_>,
        choose: &mut impl FnMut(u64) -> u64,
    ) -> Result<Option<u32>, NotDrawn> {
        if let Some(items) = favour.alone {
            let total = self.weight_of(items, favour).ok_or(NotDrawn::TooHeavy)?;
            if total > 0 {
                let item = self.item_at(items, favour, choose(total));
                let item = self.tables.as_ref().map_or(item, |tables| tables.descend(item, choose));
                let was_there = self.take(item);
                assert!(was_there, "item {item} is chosen, and nothing is left of it");
                return Ok(Some(item));
            }
        }
        self.draw_boosted(favour, choose)
    }

    /// Makes the barred items count as sold out until they are shown again. Returns those to put
    /// back on sale.
    fn bar(&mut self, favour: &Favour<'_>) -> Vec<u32> {
        let mut off_sale = Vec::new();
        for &item in favour.barred {
            match &mut self.rule {
                Rule::Keep { fallback } => {
                    if *fallback == Some(item) {
                        *fallback = None;
                    }
                    if self.is_on_sale(item) {
                        off_sale.push(item);
                    }
                }
                Rule::Renormalise | Rule::PerUnit { .. } => self.hide(item),
            }
        }
        off_sale.iter().for_each(|&item| self.go_off_sale(item));
        off_sale
    }

    fn draw_boosted(
        &mut self,
        favour: &Favour<'_>,
        choose: &mut impl FnMut(u64) -> u64,
    ) -> Result<Option<u32>, NotDrawn> {
        let total = self.selector.total();
        let (spans, sum) = self.spans(favour).ok_or(NotDrawn::TooHeavy)?;
        if sum == 0 || self.on_sale == 0 {
            return self.draw_behind_all().map_err(|_| NotDrawn::Empty);
        }
        let point = choose(sum);
        let met = if point < total {
            self.selector.select(point) as u32
        } else {
            self.boosted_at(favour, &spans, point - total)
        };
        let met = self.tables.as_ref().map_or(met, |tables| tables.descend(met, choose));
        match self.rule {
            Rule::Keep { fallback } if favour.bars(met) => self.draw_at_the_end(met, 0, fallback),
            _ => self.meet(met),
        }
        .map_err(|_| NotDrawn::Empty)
    }

    /// Returns what each boost adds to the weights, and the total weight; `None` if that exceeds
    /// [`AMOUNT_MAX`].
    fn spans(&self, favour: &Favour<'_>) -> Option<(Vec<u64>, u64)> {
        let mut spans = Vec::with_capacity(favour.boosts.len());
        let mut sum = self.selector.total();
        for (items, times) in favour.boosts {
            let span = self.weight_of(items, favour)?.checked_mul(*times)?;
            sum = sum.checked_add(span).filter(|&sum| sum <= AMOUNT_MAX)?;
            spans.push(span);
        }
        Some((spans, sum))
    }

    /// Returns whether the total weight with these boosts is at most [`AMOUNT_MAX`].
    pub(crate) fn bears(&self, boosts: &[(&[u32], u64)]) -> bool {
        self.spans(&Favour { boosts, ..Favour::default() }).is_some()
    }

    /// Returns the item at a point after the ordinary weights.
    fn boosted_at(&self, favour: &Favour<'_>, spans: &[u64], mut point: u64) -> u32 {
        for ((items, times), &span) in favour.boosts.iter().zip(spans) {
            if point < span {
                return self.item_at(items, favour, point / times);
            }
            point -= span;
        }
        unreachable!("the point lies below the sum of the spans")
    }

    /// Returns the sum of these items' weights in force; items that this draw excludes have none.
    fn weight_of(&self, items: &[u32], favour: &Favour<'_>) -> Option<u64> {
        items.iter().try_fold(0_u64, |sum, &item| sum.checked_add(self.weight_for(item, favour)))
    }

    /// Returns the item at a point below the sum of these items' weights.
    fn item_at(&self, items: &[u32], favour: &Favour<'_>, mut point: u64) -> u32 {
        for &item in items {
            let weight = self.weight_for(item, favour);
            if point < weight {
                return item;
            }
            point -= weight;
        }
        unreachable!("the point lies below the sum of the weights")
    }

    fn weight_for(&self, item: u32, favour: &Favour<'_>) -> u64 {
        if self.stocks.left(item) == 0 || favour.bars(item) {
            return 0;
        }
        self.share(item)
    }
}
