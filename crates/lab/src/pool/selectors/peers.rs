//! Peers that select items by weight: the crates `rand` and `rand_distr`.

use super::{Act, Scale, row, weight, weights};
use crate::micro::benchmark::{Benchmark, Work, on};
use crate::random::Random;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::rand_core::TryRng;
use rand_distr::weighted::{WeightedAliasIndex, WeightedTreeIndex};
use std::convert::Infallible;

/// Returns the peers' rows for this operation, if they have it.
pub(super) fn rows(act: Act, scale: Scale) -> Vec<Benchmark> {
    let row = |name, start: fn(u64) -> anyhow::Result<Work>| row(act, scale, name, start);
    match act {
        Act::Build => vec![
            row("rand_index", |items| building(items, |weights| Ok(WeightedIndex::new(weights)?))),
            row("rand_distr_alias", |items| building(items, |weights| Ok(WeightedAliasIndex::new(weights)?))),
            row("rand_distr_tree", |items| building(items, |weights| Ok(WeightedTreeIndex::new(weights)?))),
        ],
        Act::Select => vec![
            row("rand_index", |items| selecting(WeightedIndex::new(weights(items))?)),
            row("rand_distr_alias", |items| selecting(WeightedAliasIndex::new(weights(items))?)),
            row("rand_distr_tree", |items| selecting(WeightedTreeIndex::new(weights(items))?)),
        ],
        Act::Set => vec![row("rand_distr_tree", setting)],
        Act::Take => vec![row("rand_distr_tree", taking)],
        Act::SelectEach => Vec::new(),
    }
}

/// The same random numbers as for our selectors.
struct Numbers(Random);

impl TryRng for Numbers {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.next() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

fn numbers() -> Numbers {
    Numbers(Random::new(3, 3))
}

fn building<T: 'static>(items: u64, make: fn(Vec<u64>) -> anyhow::Result<T>) -> anyhow::Result<Work> {
    let state = (weights(items), Ok(()));
    let (work, made) = on(items, state, move |(weights, made), _| match make(weights.clone()) {
        Ok(made) => drop(std::hint::black_box(made)),
        Err(error) => *made = Err(error),
    })?;
    Ok(work.checked(move || made.finish()?.0.1.map(|()| Vec::new())))
}

fn selecting(weighted: impl Distribution<usize> + 'static) -> anyhow::Result<Work> {
    let (work, _) = on(1, (weighted, numbers()), |(weighted, numbers), _| weighted.sample(numbers))?;
    Ok(work)
}

fn setting(items: u64) -> anyhow::Result<Work> {
    let state = (WeightedTreeIndex::new(weights(items))?, numbers(), 0_u64);
    let (work, set) = on(1, state, move |(tree, numbers, refused), _| {
        let item = numbers.0.below(items) as usize;
        *refused += u64::from(tree.update(item, weight(&mut numbers.0)).is_err());
    })?;
    Ok(work.checked(move || none_refused(set.finish()?.0.2)))
}

/// Uses the peer's interface: an item and its new weight.
fn taking(items: u64) -> anyhow::Result<Work> {
    let state = (WeightedTreeIndex::new(weights(items))?, numbers(), 0_u64);
    let (work, taken) = on(1, state, |(tree, numbers, refused), _| {
        let item = tree.sample(numbers);
        let lighter = tree.get(item) - 1;
        *refused += u64::from(tree.update(item, lighter).is_err());
    })?;
    Ok(work.checked(move || none_refused(taken.finish()?.0.2)))
}

fn none_refused(refused: u64) -> anyhow::Result<Vec<crate::micro::benchmark::Found>> {
    anyhow::ensure!(refused == 0, "{refused} changes of weights were refused");
    Ok(Vec::new())
}
