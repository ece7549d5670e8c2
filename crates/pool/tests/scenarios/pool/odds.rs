//! Pearson's chi-square test of draws against the odds, over ten million draws. The draws follow
//! from fixed secrets, so the outcome is always the same.

use tidemark_pool::selector::{Alias, Fenwick, PrefixSum, WideTree};
use tidemark_pool::{Catalogue, Item, Lead, Mode, Pool, Repeats, Secret, Selector, SoldOut, Table};

const DRAWS: u64 = 10_000_000;

/// Returns the value that chi-square exceeds by chance once in a million times, by Wilson and
/// Hilferty's approximation.
fn critical(degrees: usize) -> f64 {
    let (degrees, deviations) = (degrees as f64, 4.753);
    let spread = 2.0 / (9.0 * degrees);
    degrees * (1.0 - spread + deviations * spread.sqrt()).powi(3)
}

/// Asserts that these counts are likely for these expected shares of the total.
fn check(counts: &[u64], shares: &[u64]) {
    assert_eq!(counts.len(), shares.len());
    let (drawn, total): (u64, u64) = (counts.iter().sum(), shares.iter().sum());
    let statistic: f64 = counts
        .iter()
        .zip(shares)
        .map(|(&count, &share)| {
            let expected = drawn as f64 * share as f64 / total as f64;
            assert!(expected > 5.0, "the test is not one of rare items");
            (count as f64 - expected).powi(2) / expected
        })
        .sum();
    let critical = critical(counts.len() - 1);
    assert!(statistic < critical, "{statistic} of at most {critical}: {counts:?} for {shares:?}");
}

fn pool<S: Selector>(items: Vec<Item>, mode: Mode, sold_out: SoldOut) -> Pool<S> {
    let catalogue = Catalogue::with(items, mode, sold_out).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([42; 32]), Secret::new([43; 32]))
}

fn counts<S: Selector>(pool: &Pool<S>) -> Vec<u64> {
    pool.urn().entries().map(|entry| entry.drawn).collect()
}

/// Returns weights between 1 and some thousand, none of which divides the total.
fn weights() -> Vec<u64> {
    (1..=20).map(|place: u64| place.pow(3) % 7_919 + 100).collect()
}

fn named(weights: &[u64], item: impl Fn(String, u64) -> Item) -> Vec<Item> {
    weights.iter().enumerate().map(|(place, &weight)| item(place.to_string(), weight)).collect()
}

fn fixed_odds<S: Selector>() {
    let weights = weights();
    let items = named(&weights, Item::unlimited);
    let mut pool = pool::<S>(items, Mode::FixedOdds, SoldOut::Renormalise);
    for _ in 0..DRAWS {
        pool.draw().expect("without an end");
    }
    check(&counts(&pool), &weights);
}

/// Makes one draw in each of many raffles, and returns the unit before the next.
fn raffles<S: Selector>() {
    let weights = weights();
    let items =
        (0..).zip(&weights).map(|(place, &weight)| Item::limited(place.to_string(), weight % 7 + 1, weight));
    let shares: Vec<u64> = weights.iter().map(|weight| weight * (weight % 7 + 1)).collect();
    let mut pool = pool::<S>(items.collect(), Mode::PerUnit, SoldOut::Renormalise);
    let mut counts = vec![0; weights.len()];
    for _ in 0..DRAWS {
        let item = pool.draw().expect("there are tickets").item.expect("a ticket");
        counts[item as usize] += 1;
        let id = pool.urn().id(item).to_owned();
        pool.give_back(&id, 1).expect("it was drawn");
    }
    check(&counts, &shares);
}

/// Draws raffles to their end: every order of the tickets is equally likely.
fn orders<S: Selector>() {
    let items = vec![Item::limited("a", 1, 2), Item::limited("b", 1, 1), Item::limited("c", 1, 1)];
    let mut pool = pool::<S>(items, Mode::PerUnit, SoldOut::Renormalise);
    let mut counts = std::collections::BTreeMap::new();
    let mut drawn = Vec::new();
    for _ in 0..DRAWS / 4 {
        drawn.clear();
        pool.draw_many(4, Repeats::Allowed, &mut drawn).expect("four tickets are there");
        let order: Vec<_> = drawn.iter().map(|draw| draw.item).collect();
        *counts.entry(order).or_insert(0) += 1;
        for (id, count) in [("a", 2), ("b", 1), ("c", 1)] {
            pool.give_back(id, count).expect("it was drawn");
        }
    }
    // 4! orders, of which those that differ only in the two tickets of "a" are the same.
    check(&counts.into_values().collect::<Vec<u64>>(), &[1; 12]);
}

/// Keeps the odds of the other items when the weight of a sold-out item leads to a fallback.
fn fallbacks<S: Selector>() {
    let items = vec![Item::limited("car", 30, 1), Item::unlimited("mug", 50), Item::unlimited("voucher", 20)];
    let mut pool = pool::<S>(items, Mode::FixedOdds, SoldOut::Fallback("voucher".into()));
    while pool.urn().entry(0).is_some_and(|car| car.drawn == 0) {
        pool.draw().expect("without an end");
    }
    let before = counts(&pool);
    for _ in 0..DRAWS {
        pool.draw().expect("without an end");
    }
    let after: Vec<u64> = counts(&pool).iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(after[0], 0);
    check(&after[1..], &[50, 50]);
}

/// Draws with weights near the limit, where up to every other random number is rejected.
fn large_weights<S: Selector>() {
    let weights = [3 << 60, 1 << 61, 1 << 60];
    let items = named(&weights, Item::unlimited);
    let mut pool = pool::<S>(items, Mode::FixedOdds, SoldOut::Renormalise);
    for _ in 0..DRAWS / 10 {
        pool.draw().expect("without an end");
    }
    check(&counts(&pool), &[3, 2, 1]);
}

/// Draws from nested tables: a draw that meets a table gets one of its items by the table's own
/// odds.
fn nested<S: Selector>() {
    let first = vec![Item::unlimited("mug", 60), Item::unlimited("rare", 40)];
    let rare = vec![Item::unlimited("hat", 3), Item::unlimited("rarer", 1)];
    let rarer = named(&[1, 2, 5], Item::unlimited);
    let tables = [("rare", rare), ("rarer", rarer)].map(|(name, items)| Table { name: name.into(), items });
    let leads = ["rare", "rarer"].map(|name| Lead { item: name.into(), table: name.into() });
    let catalogue =
        Catalogue::new(first).expect("a catalogue").nested(tables.into(), &leads).expect("they fit");
    let mut pool = Pool::<S>::new(&catalogue, Secret::new([42; 32]), Secret::new([43; 32]));
    for _ in 0..DRAWS {
        pool.draw().expect("without an end");
    }
    let drawn: Vec<u64> =
        pool.urn().entries().filter(|entry| entry.leads_to.is_none()).map(|entry| entry.drawn).collect();
    check(&drawn, &[60 * 8, 30 * 8, 10, 20, 50]);
}

macro_rules! for_selectors {
    ($($name:ident: $selector:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn fixed_odds() {
                super::fixed_odds::<$selector>();
            }

            #[test]
            fn raffles() {
                super::raffles::<$selector>();
            }

            #[test]
            fn orders() {
                super::orders::<$selector>();
            }

            #[test]
            fn fallbacks() {
                super::fallbacks::<$selector>();
            }

            #[test]
            fn nested() {
                super::nested::<$selector>();
            }

            #[test]
            fn large_weights() {
                super::large_weights::<$selector>();
            }
        }
    )*};
}

for_selectors! {
    tree: WideTree;
    alias: Alias;
    fenwick: Fenwick;
    prefix_sum: PrefixSum;
}

#[test]
#[should_panic(expected = "at most")]
fn odds_that_are_off_by_three_thousandths_are_found() {
    let (shares, off) = ([1_000, 1_000, 1_000], [1_003, 1_000, 997]);
    let counts = off.map(|share| DRAWS / 3_000 * share);
    check(&counts, &shares);
}
