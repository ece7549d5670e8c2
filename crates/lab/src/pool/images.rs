//! `ImageOps`: all that a pool has, told, written and read back, and made in the first place.

use super::stock::{SCALES, Scale, expect_draws, items, pool, with_secrets};
use crate::micro::benchmark::{Benchmark, Work, on};
use std::time::Instant;
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Item, Pool, PoolImage};

/// Items of a slice that is written between two draws.
const SLICE: u32 = 1_024;
/// Draws that are in an image.
const DRAWS: u64 = 1_000;
/// Nanoseconds of a millisecond.
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
        aim(row("state", format!("telling id, stock and odds of all of {items} items"), telling), 2.0),
        aim(
            row(
                "slice",
                format!(
                    "writing a slice of {SLICE} of {items} items: what a draw waits for while a snapshot is made"
                ),
                writing_slices,
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

/// A pool of which something was drawn.
fn drawn_from(items: u64) -> anyhow::Result<Pool<WideTree>> {
    let mut pool = pool(items)?;
    for _ in 0..DRAWS {
        pool.draw()?;
    }
    Ok(pool)
}

fn telling(items: u64) -> anyhow::Result<Work> {
    let (work, told) = on(1, (drawn_from(items)?, 0), |(pool, drawn), _| {
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
        let ((_, drawn), calls) = told.finish()?;
        anyhow::ensure!(drawn == calls * DRAWS, "a state does not add up");
        Ok(Vec::new())
    }))
}

fn writing_slices(items: u64) -> anyhow::Result<Work> {
    let length = items as u32;
    let (work, written) = on(1, (drawn_from(items)?, Vec::new(), 0), move |(pool, bytes, begin), _| {
        let end = length.min(*begin + SLICE);
        bytes.clear();
        pool.write_items(*begin..end, bytes);
        *begin = if end == length { 0 } else { end };
    })?;
    Ok(work.checked(move || {
        let ((_, bytes, _), _) = written.finish()?;
        anyhow::ensure!(!bytes.is_empty(), "nothing was written");
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
