//! `SelectorOps`: costs of selectors alone, in turns with peers.
//!
//! Every figure includes a random number that chooses the point or the item; `SelectorOps.random`
//! is the cost of that number.

#[cfg(feature = "peers")]
mod peers;

use super::stock::{SCALES, Scale};
use crate::micro::benchmark::{Benchmark, Work, each, on};
use crate::random::Random;
use std::hint::black_box;
use tidemark_pool::selector::{Alias, Fenwick, PrefixSum, Selector, WideTree};

/// Points per bulk search.
const PARCEL: usize = 64;

pub(super) fn suite() -> Vec<Benchmark> {
    let random = "a random number below another, as the rows of this suite have it";
    let mut all = vec![Benchmark::new("SelectorOps.random", random, |_| {
        let mut random = Random::new(1, 1);
        each(move |number| random.below((1 << 40) + number))
    })];
    for scale in SCALES {
        for act in Act::ALL {
            all.push(of_selector(act, scale, "tree", WideTree::new));
            all.push(of_selector(act, scale, "tree_portable", WideTree::portable));
            all.push(of_selector(act, scale, "alias", Alias::new));
            all.push(of_selector(act, scale, "fenwick", Fenwick::new));
            all.push(of_selector(act, scale, "prefix_sum", PrefixSum::new));
            #[cfg(feature = "peers")]
            all.extend(peers::rows(act, scale));
        }
    }
    all
}

/// Operation on a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Build,
    Select,
    SelectEach,
    Set,
    Take,
}

impl Act {
    const ALL: [Self; 5] = [Act::Build, Act::Select, Act::SelectEach, Act::Set, Act::Take];

    /// Returns its name in rows.
    fn word(self) -> &'static str {
        match self {
            Act::Build => "build",
            Act::Select => "select",
            Act::SelectEach => "select_each",
            Act::Set => "set",
            Act::Take => "take",
        }
    }

    fn measures(self, items: u64) -> String {
        match self {
            Act::Build => format!("making a selector of {items} weights; of each weight"),
            Act::Select => format!("finding the item among {items} that a point belongs to"),
            Act::SelectEach => format!("the same for {PARCEL} points in one call; of each point"),
            Act::Set => format!("giving one of {items} items another weight"),
            Act::Take => {
                format!("finding the item among {items} that a point belongs to, and making it lighter by 1")
            }
        }
    }

    /// Returns the group. Selections are compared with a structure that can only select.
    fn group(self, Scale { name, .. }: Scale) -> Option<&'static str> {
        match (self, name) {
            (Act::Select, "4") => Some("selecting among 4"),
            (Act::Select, "1k") => Some("selecting among 1,000"),
            (Act::Select, "100k") => Some("selecting among 100,000"),
            (Act::Select, "1m") => Some("selecting among 1,000,000"),
            (Act::Take, "4") => Some("taking from among 4"),
            (Act::Take, "1k") => Some("taking from among 1,000"),
            (Act::Take, "100k") => Some("taking from among 100,000"),
            (Act::Take, "1m") => Some("taking from among 1,000,000"),
            _ => None,
        }
    }
}

fn of_selector<S: Selector + 'static>(
    act: Act,
    scale: Scale,
    name: &str,
    make: fn(&[u64]) -> S,
) -> Benchmark {
    row(act, scale, name, move |items| match act {
        Act::Build => building(items, make),
        Act::Select => selecting(make(&weights(items))),
        Act::SelectEach => selecting_each(make(&weights(items))),
        Act::Set => setting(make(&weights(items))),
        Act::Take => taking(make(&weights(items))),
    })
}

fn row(
    act: Act,
    scale: Scale,
    name: &str,
    start: impl Fn(u64) -> anyhow::Result<Work> + 'static,
) -> Benchmark {
    let row = format!("SelectorOps.{}_{name}_{}", act.word(), scale.name);
    let one =
        Benchmark::new(row, act.measures(scale.items), move |sizes| start(scale.items.min(sizes.items)));
    match act.group(scale) {
        Some(group) => one.in_group(group),
        None => one,
    }
}

/// Returns weights so large that an occasional decrement of 1 does not affect the result.
fn weights(items: u64) -> Vec<u64> {
    let mut random = Random::new(2, 2);
    (0..items).map(|_| weight(&mut random)).collect()
}

fn weight(random: &mut Random) -> u64 {
    (1 << 30) + random.below(1 << 31)
}

fn building<S: Selector + 'static>(items: u64, make: fn(&[u64]) -> S) -> anyhow::Result<Work> {
    let weights = weights(items);
    let sum: u64 = weights.iter().sum();
    let (work, last) = on(items, (weights, None), move |(weights, last), _| {
        *last = Some(make(black_box(weights)));
    })?;
    Ok(work.checked(move || {
        let ((_, last), _) = last.finish()?;
        anyhow::ensure!(last.is_none_or(|selector| selector.total() == sum), "a weight is missing");
        Ok(Vec::new())
    }))
}

fn selecting<S: Selector + 'static>(selector: S) -> anyhow::Result<Work> {
    let total = selector.total();
    let select = |selector: &mut S, random: &mut Random| selector.select(random.below(selector.total()));
    operating(selector, 1, select, move |_, _| total)
}

fn selecting_each<S: Selector + 'static>(selector: S) -> anyhow::Result<Work> {
    let (total, mut found) = (selector.total(), [0; PARCEL]);
    let select = move |selector: &mut S, random: &mut Random| {
        let points: [u64; PARCEL] = std::array::from_fn(|_| random.below(selector.total()));
        selector.select_each(&points, &mut found);
        found
    };
    operating(selector, PARCEL as u64, select, move |_, _| total)
}

fn setting<S: Selector + 'static>(selector: S) -> anyhow::Result<Work> {
    let set = |selector: &mut S, random: &mut Random| {
        selector.set(random.below(selector.len() as u64) as usize, weight(random));
    };
    operating(selector, 1, set, |selector, _| (0..selector.len()).map(|item| selector.weight(item)).sum())
}

fn taking<S: Selector + 'static>(selector: S) -> anyhow::Result<Work> {
    let total = selector.total();
    let take = |selector: &mut S, random: &mut Random| selector.take(random.below(selector.total()), 1);
    operating(selector, 1, take, move |_, calls| total - calls)
}

/// Creates work of operations on a selector whose total weight after so many calls is known.
fn operating<S: Selector + 'static, R>(
    selector: S,
    operations: u64,
    mut operation: impl FnMut(&mut S, &mut Random) -> R + 'static,
    weighs: impl FnOnce(&S, u64) -> u64 + 'static,
) -> anyhow::Result<Work> {
    let (work, done) = on(operations, (selector, Random::new(3, 3)), move |(selector, random), _| {
        operation(selector, random)
    })?;
    Ok(work.checked(move || {
        let ((selector, _), calls) = done.finish()?;
        let (found, expected) = (selector.total(), weighs(&selector, calls));
        anyhow::ensure!(found == expected, "the weights add up to {found} and should to {expected}");
        Ok(Vec::new())
    }))
}
