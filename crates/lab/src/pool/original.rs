//! `PoolOps`: the benchmarks of tiny-reward-pool, under their names.
//!
//! As there, a caller requests many draws without waiting and then checks all answers. Two things
//! differ. The stock never runs out here, so every operation is a draw. With a log, every answer
//! follows the logging of its draw; there it may come earlier.

use super::served::Served;
use super::service::{Ask, calls};
use super::stock::{quantity, with_secrets};
use crate::micro::benchmark::Benchmark;
use tidemark_pool::journal::NoJournal;
use tidemark_pool::selector::{Fenwick, PrefixSum, WideTree};
use tidemark_pool::{Catalogue, CatalogueError, Item, Pool, Selector};

/// Catalogue of most of them.
const GOLD: [(&str, u64); 1] = [("gold", 1)];
/// Catalogue of those of selectors.
const FOUR: [(&str, u64); 4] = [("gold", 10), ("silver", 20), ("bronze", 30), ("rock", 90)];

pub(super) fn suite() -> Vec<Benchmark> {
    let (callback, future): (Ask, Ask) = (Served::callbacks, Served::by_futures);
    let unlogged = [
        row("DrawWithCallback", "each answered by a callback", gold::<WideTree>, callback),
        row("DrawChannel", "each answered by a future", gold::<WideTree>, future),
        row("PoolDrawNoWalChannel", "each answered by a future", gold::<WideTree>, future),
        row("PoolDrawNoWalCallback", "each answered by a callback", gold::<WideTree>, callback),
        row("DrawChannel_PrefixSumSelector", "each answered by a future", four::<PrefixSum>, future),
        row("DrawChannel_FenwickTreeSelector", "each answered by a future", four::<Fenwick>, future),
    ];
    unlogged.into_iter().chain(logged()).map(|one| one.of("draw").in_summary()).collect()
}

fn row<S: Selector + Send + 'static>(
    name: &str,
    how: &str,
    make: fn() -> Result<Pool<S>, CatalogueError>,
    ask: Ask,
) -> Benchmark {
    let measures =
        format!("asking a service without a log for 10,000 draws, {how}, and looking at all answers");
    Benchmark::new(format!("PoolOps.{name}"), measures, move |sizes| {
        calls(Served::new(make()?, NoJournal::default())?, sizes.batch, ask)
    })
}

fn gold<S: Selector>() -> Result<Pool<S>, CatalogueError> {
    pool_of(&GOLD)
}

fn four<S: Selector>() -> Result<Pool<S>, CatalogueError> {
    pool_of(&FOUR)
}

fn pool_of<S: Selector>(items: &[(&str, u64)]) -> Result<Pool<S>, CatalogueError> {
    let quantity = quantity(items.len() as u64);
    let items = items.iter().map(|&(id, weight)| Item::limited(id, weight, quantity));
    Ok(with_secrets(&Catalogue::new(items.collect())?))
}

/// Their benchmarks with a log: in files and in memory-mapped files, here in this log's format.
#[cfg(feature = "log")]
fn logged() -> impl Iterator<Item = Benchmark> {
    use super::journals::{Kept, Kind, logged};
    use tidemark_log::{Durability, Format};

    let rows = [("PoolDrawWithMmapWALCallback", Kind::Mmap), ("PoolDrawWithBasicWALCallback", Kind::File)];
    rows.into_iter().map(|(name, kind)| {
        let kept = Kept { kind, format: Format::Binary, durability: Durability::Always };
        let measures = format!(
            "asking a service with a log {} for 10,000 draws, each answered by a callback when it is synced, and waiting for all",
            kind.place()
        );
        Benchmark::new(format!("PoolOps.{name}"), measures, move |sizes| {
            logged(kept, gold::<WideTree>()?, sizes.batch)
        })
        .at_most(40.0)
    })
}

#[cfg(not(feature = "log"))]
fn logged() -> impl Iterator<Item = Benchmark> {
    std::iter::empty()
}
