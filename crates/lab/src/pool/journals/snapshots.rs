//! `SnapshotOps`: sizes of full and incremental snapshots.

use super::{JournalStorage, Kept, Kind, options};
use crate::micro::benchmark::{Benchmark, Work};
use crate::pool::served::Served;
use crate::pool::stock::{Scale, quantity, with_secrets};
use std::sync::Arc;
use tidemark_log::{Durability, Snapshots};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Item, Pool};
use tidemark_stores::PoolLogOptions;

/// Number of items below which all snapshots are full.
const ITEMS_MIN: u64 = 2_048;
/// Draws per frame.
const AT_ONCE: u64 = 1 << 16;
/// Draws per item after which a snapshot is certainly due,
const DRAWS_MAX: u64 = 200;
/// and frames of a small pool after which it is also written.
const FRAMES_MIN: u64 = 1_000;

pub(super) fn suite() -> [Benchmark; 2] {
    let rows = [
        ("whole", "all of which are drawn", false),
        (
            "incremental",
            "a thousandth of which is drawn and hardly any other, so that it is on a whole one",
            true,
        ),
    ];
    rows.map(|(name, of, is_incremental)| {
        let measures = format!("bytes of a snapshot's file for an item, of 1,000,000 {of}");
        Benchmark::new(format!("SnapshotOps.bytes_1m_{name}"), measures, move |sizes| {
            let items = Scale::MILLION.items.min(sizes.items).max(ITEMS_MIN);
            Work::amounts(items, move || Ok(snapshot_bytes(items, is_incremental)? as f64))
        })
        .in_unit("B/item")
        .of("item")
    })
}

/// Draws until such a snapshot exists, and returns its size.
fn snapshot_bytes(items: u64, is_incremental: bool) -> anyhow::Result<u64> {
    let place = JournalStorage::new(Kind::File)?;
    let kept = Kept { durability: Durability::Off, ..Kept::SAFELY };
    let options = PoolLogOptions { snapshot_after_bytes: 1, ..options(kept) };
    let often = if is_incremental { items / 1_000 } else { items };
    let item = |item: u64| {
        let weight = if item < often { 1 << 32 } else { 1 };
        Item::limited(item.to_string(), weight, quantity(items))
    };
    let pool: Pool<WideTree> = with_secrets(&Catalogue::new((0..items).map(item).collect())?);
    let (pool, journal, _) = place.open(&options, || pool)?;
    let snapshots = Snapshots::new(Arc::clone(journal.log().storage()));
    let served = Served::of(pool, journal)?;
    for _ in 0..(items * DRAWS_MAX / AT_ONCE).max(FRAMES_MIN) {
        served.by_parcels(1, AT_ONCE)?;
        let newest = snapshots.list()?.last().map(|lsn| snapshots.open(*lsn)).transpose()?;
        if let Some(snapshot) = newest.filter(|snapshot| snapshot.base().is_some() == is_incremental) {
            served.finish()?;
            return Ok(snapshot.file_bytes());
        }
    }
    anyhow::bail!("no such snapshot was taken")
}
