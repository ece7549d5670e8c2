//! `ImageOps`: creating a pool, and encoding, writing and reading its whole state.

use super::stock::{SCALES, Scale, expect_draws, items, pool, with_secrets};
use crate::micro::benchmark::{Benchmark, Work, on};
use std::time::Instant;
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Capture, Catalogue, Item, Pool, PoolImage};

/// Draws contained in an image.
const DRAWS: u64 = 1_000;
/// Nanoseconds per millisecond.
const MILLISECOND: f64 = 1e6;

pub(super) fn suite() -> Vec<Benchmark> {
    SCALES.into_iter().flat_map(rows).collect()
}

fn rows(Scale { name, items }: Scale) -> [Benchmark; 5] {
    let aims = name == Scale::MILLION.name;
    let aim = |one: Benchmark, millis: f64| {
        if aims { one.at_most(millis * MILLISECOND).in_summary() } else { one }
    };
    let row = |what: &str, measures: String, start: fn(u64) -> anyhow::Result<Work>| {
        Benchmark::new(format!("ImageOps.{what}_{name}"), measures, move |sizes| {
            start(items.min(sizes.items))
        })
    };
    [
        aim(row("state", format!("listing id, stock and odds of all of {items} items"), listing), 2.0),
        aim(
            row(
                "block",
                format!(
                    "writing a block of a pool of {items} items for a snapshot: a draw waits for few of them"
                ),
                capturing,
            ),
            2.0,
        ),
        row("write", format!("writing all of a pool of {items} items"), writing),
        aim(row("read", format!("reading a pool of {items} items from its image"), reading), 50.0),
        aim(
            row("make", format!("checking a catalogue of {items} items and making a pool of it"), making),
            500.0,
        ),
    ]
}

/// Returns a pool with some draws.
fn drawn_from(items: u64) -> anyhow::Result<Pool<WideTree>> {
    let mut pool = pool(items)?;
    for _ in 0..DRAWS {
        pool.draw()?;
    }
    Ok(pool)
}

fn listing(items: u64) -> anyhow::Result<Work> {
    let (work, measured) = on(1, (drawn_from(items)?, 0), |(pool, drawn), _| {
        let urn = pool.urn();
        let (mut sum, mut odds) = (0, 0);
        for entry in urn.entries() {
            sum += entry.drawn;
            odds += entry.weight_in_force;
            std::hint::black_box(entry);
        }
        *drawn += if odds == urn.total_weight() { sum } else { 0 };
    })?;
    Ok(work.checked(move || {
        let ((_, drawn), calls) = measured.finish()?;
        anyhow::ensure!(drawn == calls * DRAWS, "a state does not add up");
        Ok(Vec::new())
    }))
}

fn capturing(items: u64) -> anyhow::Result<Work> {
    let begin = move || Capture::new(items as usize);
    let (work, taken) = on(1, (drawn_from(items)?, begin(), 0_u64), move |(pool, capture, blocks), _| {
        if !capture.step(pool, |_, block| _ = std::hint::black_box(block)) {
            *capture = begin();
            capture.step(pool, |_, block| _ = std::hint::black_box(block));
        }
        *blocks += 1;
    })?;
    Ok(work.checked(move || {
        let ((pool, mut capture, blocks), calls) = taken.finish()?;
        anyhow::ensure!(blocks == calls, "a block is missing");
        // Includes the rest of the snapshot in progress.
        let mut left = 0;
        while capture.step(&pool, |_, _| left += 1) {}
        let all = Capture::blocks_of(items as usize) as u64;
        anyhow::ensure!(
            (blocks + left) % all == 0,
            "{} blocks are no whole snapshots of {all}",
            blocks + left
        );
        Ok(Vec::new())
    }))
}

/// Head and items.
type Image = (Vec<u8>, Vec<u8>);

fn write(pool: &Pool<WideTree>, (head, items): &mut Image) {
    head.clear();
    items.clear();
    pool.write_head(head);
    pool.write_items(0..pool.urn().len() as u32, items);
}

fn read((head, items): &Image) -> anyhow::Result<Pool<WideTree>> {
    let mut image = PoolImage::read(head)?;
    image.read_items(items)?;
    Ok(image.finish()?)
}

fn writing(items: u64) -> anyhow::Result<Work> {
    let state = (drawn_from(items)?, Image::default());
    let (work, written) = on(1, state, |(pool, image), _| write(pool, image))?;
    Ok(work.checked(move || {
        let ((_, image), _) = written.finish()?;
        expect_draws(&read(&image)?, DRAWS)
    }))
}

fn reading(items: u64) -> anyhow::Result<Work> {
    let mut image = Image::default();
    write(&drawn_from(items)?, &mut image);
    Work::calls(1, move || {
        let clock = Instant::now();
        let pool = read(&image)?;
        let took = clock.elapsed();
        expect_draws(&pool, DRAWS)?;
        Ok(took)
    })
}

fn making(count: u64) -> anyhow::Result<Work> {
    let all: Vec<Item> = items(count).collect();
    Work::calls(1, move || {
        let items = all.clone();
        let clock = Instant::now();
        let pool: Pool<WideTree> = with_secrets(&Catalogue::new(items)?);
        let took = clock.elapsed();
        expect_draws(&pool, 0)?;
        Ok(took)
    })
}
