//! Whether the draws fit the odds, within chance.
//!
//! Odds change: an item that is sold out leaves its share to others, a raffle has fewer tickets
//! with each draw, catalogues are changed. So draws are compared with the odds that were in force
//! when they were made: those between two readings with the odds that both readings show. If these
//! differ by more than a hundredth, or units were given back meanwhile, the draws between the
//! readings are left out and counted as such. So are all draws of a pool with limits or guarantees,
//! where odds depend on the user. Draws with `UNIQUE` are more even than the odds, because no item
//! comes twice in them.
//!
//! The rest is tested with chi-square over the items with 5 or more expected draws, the other items
//! taken together. The result is the number of standard deviations from the mean of a normal
//! variable (Wilson and Hilferty's approximation).

use super::reading::Pool;
use super::verdict::Verdict;
use std::collections::BTreeMap;

/// Draws between two readings are left out if the odds changed by more than this.
const MOVED_MAX: f64 = 0.01;
/// Fewest expected draws of a chi-square cell.
const CELL_MIN: f64 = 5.0;

/// Draws observed so far, against the odds.
#[derive(Debug, Clone, Default)]
pub(super) struct Drift {
    /// Expected and observed draws, by item; `None` is a draw of nothing.
    cells: BTreeMap<Option<Vec<u8>>, (f64, f64)>,
    compared: u64,
    left_out: u64,
}

impl Drift {
    /// Adds what was drawn between two readings of a pool.
    pub(super) fn note(&mut self, before: &Pool, now: &Pool) {
        let Some(draws) = now.summary.draws.checked_sub(before.summary.draws) else {
            // The key has another pool.
            *self = Self::default();
            return;
        };
        match between(before, now, draws) {
            Some(cells) => {
                self.compared += draws;
                for (id, (expected, came)) in cells {
                    let cell = self.cells.entry(id).or_default();
                    (cell.0, cell.1) = (cell.0 + expected, cell.1 + came);
                }
            }
            None => self.left_out += draws,
        }
    }

    /// Returns the verdict so far.
    pub(super) fn verdict(&self) -> Verdict {
        Verdict { compared: self.compared, left_out: self.left_out, deviation: self.deviation() }
    }

    fn deviation(&self) -> Option<f64> {
        let (large, small): (Vec<_>, Vec<_>) =
            self.cells.values().copied().partition(|cell| cell.0 >= CELL_MIN);
        let rest = small.iter().fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
        // An impossible draw that was made is beyond all chance.
        if small.iter().any(|&(expected, came)| expected == 0.0 && came > 0.0) {
            return Some(f64::from(u8::MAX));
        }
        let cells: Vec<(f64, f64)> = large.into_iter().chain((rest.0 >= CELL_MIN).then_some(rest)).collect();
        let freedom = cells.len().checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
        let squares = cells.iter().map(|(expected, came)| (came - expected).powi(2) / expected).sum::<f64>();
        let spread = 2.0 / (9.0 * freedom);
        Some(((squares / freedom).cbrt() - (1.0 - spread)) / spread.sqrt())
    }
}

/// An item, or nothing, with its expected and observed draws.
type Cell = (Option<Vec<u8>>, (f64, f64));

/// Returns the expected and observed draws by item; `None` where they cannot be known.
fn between(before: &Pool, now: &Pool, draws: u64) -> Option<Vec<Cell>> {
    let catalogue_of = |pool: &Pool| (pool.version, pool.released_until);
    let is_same = catalogue_of(before) == catalogue_of(now) && !before.is_beyond && !now.is_beyond;
    if !is_same || before.items.len() != now.items.len() {
        return None;
    }
    let mut nothing = draws;
    let mut cells = Vec::with_capacity(now.items.len() + 1);
    for (old, new) in before.items.iter().zip(&now.items) {
        if old.id != new.id {
            return None;
        }
        let came = new.drawn.checked_sub(old.drawn)?;
        nothing = nothing.checked_sub(came)?;
        cells.push((Some(new.id.clone()), (expected(old.odds, new.odds, draws)?, came as f64)));
    }
    let of_nothing = expected(before.nothing, now.nothing, draws)?;
    if of_nothing > 0.0 {
        cells.push((None, (of_nothing, nothing as f64)));
    } else if nothing > 0 {
        // A draw of nothing is impossible here, so a unit was given back.
        return None;
    }
    Some(cells)
}

fn expected(before: f64, now: f64, draws: u64) -> Option<f64> {
    let middle = f64::midpoint(before, now);
    ((now - before).abs() <= MOVED_MAX).then_some(middle * draws as f64)
}

#[cfg(test)]
mod tests {
    use super::{Drift, Pool};
    use crate::top::pools::test_pool::pool;

    fn at(car: u64, mug: u64) -> Pool {
        pool(&[("car", Some(1_000_000 - car), car, 0.1), ("mug", None, mug, 0.9)], 0.0, car + mug)
    }

    fn drift(readings: &[Pool]) -> Drift {
        let mut drift = Drift::default();
        readings.windows(2).for_each(|pair| drift.note(&pair[0], &pair[1]));
        drift
    }

    #[test]
    fn draws_as_the_odds_say_are_within_chance_and_others_are_not() {
        let verdict = drift(&[at(0, 0), at(105, 895), at(198, 1802)]).verdict();
        assert_eq!((verdict.compared, verdict.left_out), (2000, 0));
        assert_eq!(verdict.word(), "as the odds say, within chance");
        let verdict = drift(&[at(0, 0), at(128, 872)]).verdict();
        assert_eq!(verdict.word(), "unusual, but chance does that now and then", "{verdict:?}");
        let verdict = drift(&[at(0, 0), at(200, 800)]).verdict();
        assert!(verdict.is_alarming(), "{verdict:?}");
        assert_eq!(drift(&[at(0, 0), at(1, 9)]).verdict().word(), "too few draws to say");
        assert_eq!(drift(&[at(0, 0)]).verdict().deviation, None);
    }

    #[test]
    fn the_words_are_as_often_wrong_as_they_say() {
        // Of views that follow the odds, one of twenty is called unusual and next to none alarming.
        let (mut state, mut unusual, mut alarming) = (7_u64, 0, 0);
        for _ in 0..1000 {
            let mut drawn = [0; 4];
            for _ in 0..1000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let point = (state >> 33) % 100;
                drawn[[10, 30, 60, 100].iter().position(|&end| point < end).expect("below 100")] += 1;
            }
            let reading = |drawn: [u64; 4]| {
                let odds = [0.1, 0.2, 0.3, 0.4];
                let items: Vec<_> = ["a", "b", "c", "d"]
                    .iter()
                    .zip(drawn)
                    .zip(odds)
                    .map(|((id, drawn), odds)| (*id, None, drawn, odds))
                    .collect();
                pool(&items, 0.0, drawn.iter().sum())
            };
            let verdict = drift(&[reading([0; 4]), reading(drawn)]).verdict();
            unusual += u32::from(verdict.word().starts_with("unusual"));
            alarming += u32::from(verdict.is_alarming());
        }
        assert!((20..=90).contains(&unusual) && alarming <= 6, "{unusual} {alarming}");
    }

    #[test]
    fn draws_that_cannot_be_compared_are_left_out() {
        let mut changed = at(10, 90);
        changed.version = 2;
        let mut released = at(10, 90);
        released.released_until = 5;
        let mut moved = at(10, 90);
        (moved.items[0].odds, moved.items[1].odds) = (0.2, 0.8);
        let mut returned = at(10, 90);
        returned.items[1].drawn -= 1;
        let mut more = at(10, 90);
        more.is_beyond = true;
        for now in [changed, released, moved, returned, more] {
            let verdict = drift(&[at(0, 0), now]).verdict();
            assert_eq!((verdict.compared, verdict.left_out), (0, 100));
        }
        assert_eq!(drift(&[at(10, 90), at(1, 1)]).verdict().left_out, 0, "another pool begins anew");
    }

    #[test]
    fn nothing_is_an_outcome_where_the_odds_say_so() {
        let at = |car, nothing| pool(&[("car", Some(0), car, 0.5)], 0.5, car + nothing);
        let verdict = drift(&[at(0, 0), at(490, 510)]).verdict();
        assert_eq!((verdict.compared, verdict.is_alarming()), (1000, false));
        assert!(drift(&[at(0, 0), at(900, 100)]).verdict().is_alarming());
    }

    #[test]
    fn what_cannot_come_and_does_is_alarming() {
        let at = |car| pool(&[("car", None, car, 0.0), ("mug", None, 0, 1.0)], 0.0, car);
        assert!(drift(&[at(0), at(1)]).verdict().is_alarming());
    }
}
