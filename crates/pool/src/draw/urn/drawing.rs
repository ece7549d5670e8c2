//! Drawing: from a number to an item.

use super::{Rule, Urn};
use crate::draw::selector::Selector;
use crate::refusal::Empty;

impl<S: Selector> Urn<S> {
    /// Draws an item. `choose` returns a uniformly distributed number below its argument. It is
    /// called once for each table that the draw passes, and not at all if every number would give
    /// the same result. Returns `None` if the draw meets a sold-out item and the rule is to give
    /// nothing.
    ///
    /// # Errors
    /// [`Empty`], if no draw is possible.
    #[inline]
    pub fn draw(&mut self, mut choose: impl FnMut(u64) -> u64) -> Result<Option<u32>, Empty> {
        let total = self.selector.total();
        if total == 0 || self.on_sale == 0 {
            return self.draw_behind_all();
        }
        if let Some(weight) = self.unit_weight {
            return Ok(Some(self.draw_unit(choose(total), weight.get())));
        }
        let mut met = self.selector.select(choose(total)) as u32;
        if let Some(tables) = &self.tables {
            met = tables.descend(met, &mut choose);
        }
        self.meet(met)
    }

    /// Draws if all units weigh the same: finds the item and lowers its weight in one step.
    #[inline]
    fn draw_unit(&mut self, number: u64, weight: u64) -> u32 {
        let met = self.selector.take(number, weight) as u32;
        // Only in debug builds: every draw of a raffle runs this.
        debug_assert_eq!(self.weights[met as usize], weight, "all units weigh the same");
        if self.stocks.take_one(met) == 1 {
            self.go_off_sale(met);
        }
        met
    }

    /// Returns the total weight if draws do not change it until an item sells out, each draw takes
    /// one number below it, and something is left. Then [`draw_each`](Self::draw_each) can be used.
    #[inline]
    pub(crate) fn lasting_weight(&self) -> Option<u64> {
        let total = self.selector.total();
        let is_lasting = self.tables.is_none() && !matches!(self.rule, Rule::PerUnit { .. });
        (is_lasting && total > 0 && self.on_sale > 0).then_some(total)
    }

    /// As [`draw`](Self::draw), with a number below the [lasting weight](Self::lasting_weight).
    #[inline]
    pub(crate) fn draw_below(&mut self, number: u64) -> Result<Option<u32>, Empty> {
        let met = self.selector.select(number) as u32;
        self.meet(met)
    }

    /// Draws with several numbers below the [lasting weight](Self::lasting_weight), as
    /// [`draw`](Self::draw) would with one after the other. Stops once an item sells out, as later
    /// numbers may be too large then. `items` is a buffer of the same length. Calls `drew` with
    /// each result; returns the number of draws.
    ///
    /// # Errors
    /// [`Empty`], if nothing is left for a further draw.
    #[inline]
    pub(crate) fn draw_each(
        &mut self,
        numbers: &[u64],
        items: &mut [usize],
        mut drew: impl FnMut(Option<u32>),
    ) -> Result<usize, Empty> {
        assert!(self.lasting_weight().is_some(), "each draw leaves the weights as they are");
        self.selector.select_each(numbers, items);
        let on_sale = self.on_sale;
        for (before, &mut met) in items.iter_mut().enumerate() {
            drew(self.meet(met as u32)?);
            if self.on_sale != on_sale {
                return Ok(before + 1);
            }
        }
        Ok(items.len())
    }

    /// Returns the result of a draw that has met this item.
    #[expect(clippy::inline_always, reason = "a draw among four items takes a sixth longer by a call")]
    #[inline(always)]
    pub(super) fn meet(&mut self, met: u32) -> Result<Option<u32>, Empty> {
        match self.rule {
            // A sold-out item has no weight, so it is never met.
            Rule::Renormalise => {
                if self.stocks.take_one(met) == 1 {
                    self.sell_out(met);
                }
                Ok(Some(met))
            }
            Rule::PerUnit { .. } => {
                let weight = self.weights[met as usize];
                self.selector.lower(met as usize, weight);
                if self.stocks.take_one(met) == 1 {
                    self.go_off_sale(met);
                }
                Ok(Some(met))
            }
            Rule::Keep { fallback } => {
                let before = self.stocks.take(met);
                if before > 1 {
                    return Ok(Some(met));
                }
                self.draw_at_the_end(met, before, fallback)
            }
        }
    }

    /// Takes one unit of an item, for a replayed draw. Returns whether one was left.
    #[inline]
    pub(crate) fn take(&mut self, item: u32) -> bool {
        let before = self.stocks.take(item);
        if before == 0 {
            return false;
        }
        let weight = self.weights[item as usize];
        match self.rule {
            Rule::Renormalise if before == 1 => self.set_share(item, 0),
            Rule::PerUnit { .. } => self.selector.lower(item as usize, weight),
            Rule::Renormalise | Rule::Keep { .. } => (),
        }
        if before == 1 && weight > 0 {
            self.go_off_sale(item);
        }
        true
    }

    /// Returns the result of a draw that has met an item with at most one unit left.
    #[cold]
    pub(super) fn draw_at_the_end(
        &mut self,
        met: u32,
        before: u64,
        fallback: Option<u32>,
    ) -> Result<Option<u32>, Empty> {
        if before == 1 {
            if self.weights[met as usize] > 0 {
                self.go_off_sale(met);
            }
            return Ok(Some(met));
        }
        if let Some(fallback) = fallback.filter(|&fallback| self.stocks.left(fallback) > 0) {
            return Ok(Some(self.take_fallback(fallback)));
        }
        if self.on_sale == 0 { Err(Empty) } else { Ok(None) }
    }

    /// Returns the result of a draw if no weight is in force, or all items with weight are sold
    /// out. Uses no number, as the result is the same for all: a refusal takes the same time
    /// whatever the secret.
    #[cold]
    pub(super) fn draw_behind_all(&mut self) -> Result<Option<u32>, Empty> {
        let fallback = match self.rule {
            Rule::PerUnit { fallback } => fallback,
            Rule::Keep { fallback } if self.selector.total() > 0 => fallback,
            Rule::Keep { .. } | Rule::Renormalise => None,
        };
        match fallback.filter(|&fallback| self.stocks.left(fallback) > 0) {
            Some(fallback) => Ok(Some(self.take_fallback(fallback))),
            None => Err(Empty),
        }
    }

    /// Takes one unit of the fallback item, which must have some left.
    fn take_fallback(&mut self, item: u32) -> u32 {
        if self.stocks.take_one(item) == 1 && self.weights[item as usize] > 0 {
            self.go_off_sale(item);
        }
        item
    }

    /// Hides an item from draws until it is [shown](Self::show) again. Only draws are allowed
    /// meanwhile.
    pub(crate) fn hide(&mut self, item: u32) {
        self.set_share(item, 0);
        if let Rule::Keep { fallback } | Rule::PerUnit { fallback } = &mut self.rule
            && *fallback == Some(item)
        {
            *fallback = None;
        }
    }

    /// Shows all hidden items again, and restores the rule.
    pub(crate) fn show(&mut self, items: impl Iterator<Item = u32>, rule: Rule) {
        self.rule = rule;
        items.for_each(|item| self.refresh(item));
    }

    #[cold]
    fn sell_out(&mut self, item: u32) {
        self.go_off_sale(item);
        self.set_share(item, 0);
    }
}
