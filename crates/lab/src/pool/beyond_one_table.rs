//! `TableOps` and `ScheduleOps`: draws through nested tables, and scheduled stock.

use super::stock::{items, with_secrets};
use crate::micro::benchmark::{Benchmark, Work, on};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Item, Lead, Pool, Release, Schedule, Stock, Table, Unsold};

/// Number of items in all tables together.
const ITEMS: u64 = 1_000;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all: Vec<Benchmark> = [(1, "draw_nested_1k"), (2, "draw_nested_deep_1k")]
        .into_iter()
        .map(|(depth, name)| {
            let measures = format!(
                "drawing among 1,000 items through {depth} tables besides the first, each with a random number of its own"
            );
            Benchmark::new(format!("TableOps.{name}"), measures, move |sizes| {
                draws(with_secrets(&nested(depth, ITEMS.min(sizes.items))?))
            })
            .of("draw")
        })
        .collect();
    all.push(
        Benchmark::new(
            "ScheduleOps.draw_scheduled_1k",
            "drawing among 1,000 items, to each of which something is still to come",
            |sizes| draws(with_secrets(&scheduled(ITEMS.min(sizes.items), LATER_MS)?)),
        )
        .of("draw"),
    );
    all.extend([(1, "1"), (1_000, "1k"), (60_000, "60k")].map(|(releases, name)| {
        let measures = format!("letting one unit come to each of {releases} items at once; of each item");
        Benchmark::new(format!("ScheduleOps.advance_{name}"), measures, move |sizes| {
            advances(releases.min(sizes.items))
        })
        .of("release")
    }));
    all
}

/// Later than all events here. Milliseconds since 1970.
const LATER_MS: u64 = 1 << 40;
/// More windows than the measurement can reach.
const WINDOWS: u64 = 1 << 40;

/// Returns a catalogue of `count` items in ten tables, reached from the first or through one of ten
/// others.
fn nested(depth: usize, count: u64) -> anyhow::Result<Catalogue> {
    const TABLES: u64 = 10;
    let (mut tables, mut leads) = (Vec::new(), Vec::new());
    let mut lead = |name: String, table: String| {
        leads.push(Lead { item: name.clone().into(), table: table.into() });
        Item::unlimited(name, 3)
    };
    let mut first = Vec::new();
    for number in 0..TABLES {
        first.push(lead(format!("to {number}"), format!("table {number} at 1")));
        for level in 1..depth {
            let further = lead(format!("to {number} at {level}"), format!("table {number} at {}", level + 1));
            tables.push(Table { name: format!("table {number} at {level}").into(), items: vec![further] });
        }
        let own = items(count).filter(|item| item.id.parse::<u64>().is_ok_and(|id| id % TABLES == number));
        tables.push(Table { name: format!("table {number} at {depth}").into(), items: own.collect() });
    }
    Ok(Catalogue::new(first)?.nested(tables, &leads)?)
}

/// Returns items that each gain one unit per millisecond from `from_ms`.
fn scheduled(count: u64, from_ms: u64) -> anyhow::Result<Catalogue> {
    let items: Vec<Item> = items(count).map(|item| Item { stock: Stock::Limited(WINDOWS), ..item }).collect();
    let release = |item: &Item| Release {
        item: item.id.clone(),
        units: WINDOWS,
        from_ms,
        every_ms: 1,
        times: WINDOWS,
        unsold: Unsold::Stays,
    };
    let schedule = Schedule::new(items.iter().map(release).collect())?;
    Ok(Catalogue::new(items)?.scheduled(schedule)?)
}

fn draws(pool: Pool<WideTree>) -> anyhow::Result<Work> {
    let (work, drawn) = on(1, pool, |pool, _| pool.draw())?;
    Ok(work.checked(move || {
        let (pool, calls) = drawn.finish()?;
        let taken: u64 = pool.urn().entries().map(|entry| entry.drawn).sum();
        anyhow::ensure!(
            (pool.next_draw(), taken) == (calls, calls),
            "{} draws were made and {taken} units are drawn where {calls} should be",
            pool.next_draw()
        );
        let leads = pool.urn().entries().filter(|entry| entry.leads_to.is_some());
        anyhow::ensure!(leads.map(|entry| entry.drawn).sum::<u64>() == 0, "what leads to a table was drawn");
        Ok(Vec::new())
    }))
}

fn advances(count: u64) -> anyhow::Result<Work> {
    let pool: Pool<WideTree> = with_secrets(&scheduled(count, 1)?);
    let (work, advanced) = on(count, pool, |pool, _| {
        let is_due = pool.advance((pool.urn().released_until_ms() + 1) * 1000);
        assert!(is_due, "a millisecond is over");
    })?;
    Ok(work.checked(move || {
        let (pool, calls) = advanced.finish()?;
        let whole = Stock::Limited(WINDOWS + calls);
        let is_whole = pool.urn().entries().all(|entry| entry.stock == whole);
        anyhow::ensure!(is_whole, "not of everything {calls} units have come");
        Ok(Vec::new())
    }))
}
