//! `DrawOps`: draws from a pool that its caller owns, one at a time and many at once.

use super::stock::{SCALES, Scale, expect_draws, pool, pool_of, with_secrets};
use crate::allocations;
use crate::micro::benchmark::{Benchmark, Work, each, on};
use anyhow::Context;
use std::time::Instant;
use tidemark_pool::selector::{AnySelector, WideTree};
use tidemark_pool::{Catalogue, Item, Mode, Numbers, Pool, Repeats, Selector, SoldOut};

/// Draws between two commits, or draws per call of a bulk draw.
const MANY: u64 = 1_000;
/// Distinct items per call.
const DIFFERENT: u64 = 10;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = vec![number()];
    all.extend(at_fixed_odds());
    all.extend(raffles());
    all.extend(many_at_once());
    all.extend(allocating());
    all
}

fn number() -> Benchmark {
    Benchmark::new("DrawOps.number", "the random number of a draw alone: ChaCha with 12 rounds", |_| {
        let mut numbers = Numbers::new([1; 32]);
        each(move |draw| numbers.below(draw, 1 << 40))
    })
}

fn at_fixed_odds() -> Vec<Benchmark> {
    let targets = [
        (Scale::FOUR, 6.0),
        (Scale::SIX, 6.0),
        (Scale::THOUSAND, 12.0),
        (Scale::HUNDRED_THOUSAND, 30.0),
        (Scale::MILLION, 60.0),
    ];
    let mut all: Vec<Benchmark> = targets
        .into_iter()
        .map(|(Scale { name, items }, target)| {
            let measures = format!("drawing at fixed odds among {items} items, each with its random number");
            Benchmark::new(format!("DrawOps.draw_{name}"), measures, move |sizes| {
                draws(pool::<WideTree>(items.min(sizes.items))?)
            })
            .at_most(target)
            .in_summary()
        })
        .collect();
    all.extend(SCALES.map(|Scale { name, items }| {
        let measures =
            format!("drawing among {items} items from a pool that has whichever selector, as a server's has");
        Benchmark::new(format!("DrawOps.draw_any_{name}"), measures, move |sizes| {
            draws(pool::<AnySelector>(items.min(sizes.items))?)
        })
    }));
    all.push(Benchmark::new(
        "DrawOps.draw_no_prize_1k",
        "drawing among 1,000 items, where what is sold out leads to no prize",
        |sizes| {
            let items = Scale::THOUSAND.items.min(sizes.items);
            draws(pool_of::<WideTree>(items, Mode::FixedOdds, SoldOut::NoPrize)?)
        },
    ));
    all.push(Benchmark::new(
        "DrawOps.draw_staged_1k",
        "drawing among 1,000 items with what it takes to undo it and to do it again, which is kept every 1,000 draws",
        |sizes| staged(pool::<WideTree>(Scale::THOUSAND.items.min(sizes.items))?),
    ));
    all.into_iter().map(|one| one.of("draw")).collect()
}

fn raffles() -> Vec<Benchmark> {
    let mut all: Vec<Benchmark> = SCALES
        .into_iter()
        .map(|Scale { name, items }| {
            let measures = format!(
                "drawing in a raffle with {items} items of which there are many tickets each: the ticket that is drawn is gone"
            );
            Benchmark::new(format!("DrawOps.raffle_{name}"), measures, move |sizes| {
                draws(pool_of::<WideTree>(items.min(sizes.items), Mode::PerUnit, SoldOut::Renormalise)?)
            })
        })
        .collect();
    all.push(
        Benchmark::new(
            "DrawOps.raffle_tickets_100k",
            "drawing half of 100,000 tickets, each an item of its own of which there is one",
            |sizes| tickets(Scale::HUNDRED_THOUSAND.items.min(sizes.items)),
        )
        .at_most(40.0)
        .in_summary(),
    );
    all.into_iter().map(|one| one.of("draw")).collect()
}

fn many_at_once() -> Vec<Benchmark> {
    let mut all: Vec<Benchmark> = SCALES
        .into_iter()
        .map(|Scale { name, items }| {
            let measures =
                format!("drawing {MANY} times at once, all or none, among {items} items; of each draw");
            Benchmark::new(format!("DrawOps.many_{name}"), measures, move |sizes| {
                many(pool::<WideTree>(items.min(sizes.items))?, MANY, Repeats::Allowed)
            })
        })
        .collect();
    all.extend([Scale::THOUSAND, Scale::HUNDRED_THOUSAND, Scale::MILLION].map(|Scale { name, items }| {
        let measures =
            format!("drawing {DIFFERENT} different items at once, all or none, among {items}; of each draw");
        Benchmark::new(format!("DrawOps.many_different_{name}"), measures, move |sizes| {
            many(pool::<WideTree>(items.min(sizes.items))?, DIFFERENT, Repeats::Excluded)
        })
    }));
    all.into_iter().map(|one| one.of("draw")).collect()
}

/// Creates work that draws from a pool.
type Start = fn(Pool<WideTree>) -> anyhow::Result<Work>;

fn allocating() -> Vec<Benchmark> {
    let rows: [(&str, &str, Start); 3] = [
        ("draw", "a draw asks", draws::<WideTree>),
        ("staged", "a draw whose undoing is kept asks", staged),
        ("many", "each of 1,000 draws at once asks", |pool| many(pool, MANY, Repeats::Allowed)),
    ];
    let row = |(name, asking, start): (&str, &str, Start)| {
        let measures = format!(
            "how often {asking} the allocator for memory, once buffers are as large as they need to be"
        );
        Benchmark::new(format!("DrawOps.allocations_{name}"), measures, move |sizes| {
            let mut work = start(pool(Scale::THOUSAND.items.min(sizes.items))?)?;
            let (calls, operations) = (sizes.batch, work.operations);
            let check = work.check.take().context("these draws are checked")?;
            let amounts = Work::amounts(operations * calls, move || {
                (work.run)(2 * MANY)?;
                let (done, allocated) = allocations::during(|| (work.run)(calls));
                done?;
                Ok(allocated.context("this program's allocator does not count")?.count as f64)
            })?;
            Ok(amounts.checked(check))
        })
        .in_unit("allocs/op")
        .at_most(0.0)
        .in_summary()
    };
    rows.map(row).into()
}

fn draws<S: Selector + 'static>(pool: Pool<S>) -> anyhow::Result<Work> {
    let (work, drawn) = on(1, pool, |pool, _| pool.draw())?;
    Ok(work.checked(move || {
        let (pool, calls) = drawn.finish()?;
        expect_draws(&pool, calls)
    }))
}

fn staged(mut pool: Pool<WideTree>) -> anyhow::Result<Work> {
    pool.stage();
    let (work, drawn) = on(1, pool, |pool, _| {
        if pool.staged_draws() == MANY {
            pool.commit();
            pool.stage();
        }
        pool.draw()
    })?;
    Ok(work.checked(move || {
        let (mut pool, calls) = drawn.finish()?;
        pool.commit();
        expect_draws(&pool, calls)
    }))
}

fn many(pool: Pool<WideTree>, count: u64, repeats: Repeats) -> anyhow::Result<Work> {
    let mut drawn = Vec::with_capacity(count as usize);
    let (work, pool) = on(count, pool, move |pool, _| {
        drawn.clear();
        pool.draw_many(count as usize, repeats, &mut drawn)
    })?;
    Ok(work.checked(move || {
        let (pool, calls) = pool.finish()?;
        expect_draws(&pool, calls * count)
    }))
}

/// Draws half of the tickets of a raffle, each of which can be drawn once. The raffle is rebuilt
/// outside the measured time.
fn tickets(count: u64) -> anyhow::Result<Work> {
    let items = (0..count).map(|ticket| Item::limited(ticket.to_string(), 1, 1)).collect();
    let catalogue = Catalogue::with(items, Mode::PerUnit, SoldOut::Renormalise)?;
    Work::calls(count / 2, move || {
        let mut pool: Pool<WideTree> = with_secrets(&catalogue);
        let clock = Instant::now();
        for _ in 0..count / 2 {
            pool.draw()?;
        }
        let took = clock.elapsed();
        let drawn = || pool.urn().entries().map(|entry| entry.drawn);
        anyhow::ensure!(drawn().all(|times| times <= 1), "a ticket was drawn twice");
        anyhow::ensure!(drawn().sum::<u64>() == count / 2, "a ticket that was drawn is still there");
        Ok(took)
    })
}
