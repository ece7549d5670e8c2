//! `JournalOps`, `CallerOps` and `LatencyOps` with a log, in every format, storage and durability;
//! also `SnapshotOps`, the sizes of snapshots, and `RecoveryOps`, recovery from a log.
//!
//! Each log is in its own folder in the system's folder for temporary files (`TMPDIR`).

mod recovery;
mod snapshots;

use super::latency::{RATES, at_rate};
use super::served::Served;
use super::service::{CALLERS, by_callers, callers_phrase, calls};
use super::stock::{Scale, pool};
use crate::folder::Folder;
use crate::micro::benchmark::{Benchmark, Found, Work};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tidemark_log::tools::inspect;
use tidemark_log::{Durability, FileStorage, Format, MemoryStorage, MmapStorage, Options, Storage};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Pool, Selector};
use tidemark_stores::{OpenedPool, PoolJournal, PoolLogError, PoolLogOptions};

/// Draws per frame with few callers.
const FEW: u64 = 64;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = combinations();
    all.extend(rotating());
    all.push(bytes());
    all.extend(CALLERS.map(waiting));
    all.extend(RATES.map(late));
    all.extend(recovery::suite());
    all.extend(snapshots::suite());
    all
}

/// Storage, format and durability of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) kind: Kind,
    pub(super) format: Format,
    pub(super) durability: Durability,
}

impl Kept {
    /// In files, synced before every answer.
    const SAFELY: Self = Kept { kind: Kind::File, format: Format::Binary, durability: Durability::Always };
}

/// A storage of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Mmap,
    Memory,
}

impl Kind {
    const ALL: [(Self, &'static str); 3] =
        [(Kind::File, "file"), (Kind::Mmap, "mmap"), (Kind::Memory, "memory")];

    /// Returns its name in rows.
    pub(super) fn place(self) -> &'static str {
        match self {
            Kind::File => "in files",
            Kind::Mmap => "in files that are mapped into memory",
            Kind::Memory => "in memory",
        }
    }
}

/// Storage for one log, removed on drop.
struct JournalStorage {
    storage: Arc<dyn Storage>,
    _folder: Option<Folder>,
}

impl JournalStorage {
    fn new(kind: Kind) -> anyhow::Result<Self> {
        let folder = if kind == Kind::Memory { None } else { Some(Folder::new()?) };
        let storage: Arc<dyn Storage> = match (kind, &folder) {
            (Kind::File, Some(folder)) => Arc::new(FileStorage::new(folder.path())?),
            (Kind::Mmap, Some(folder)) => Arc::new(MmapStorage::new(folder.path())?),
            _ => Arc::new(MemoryStorage::new()),
        };
        Ok(JournalStorage { storage, _folder: folder })
    }

    /// Opens the pool in the log, or this one if the log is new.
    fn open<S: Selector>(
        &self,
        options: &PoolLogOptions,
        create: impl FnOnce() -> Pool<S>,
    ) -> Result<OpenedPool<S>, PoolLogError> {
        PoolJournal::open(Arc::clone(&self.storage), options, create)
    }

    /// Opens the existing pool in the log.
    fn reopen<S: Selector>(&self, options: &PoolLogOptions) -> Result<OpenedPool<S>, PoolLogError> {
        self.open(options, || unreachable!("a pool that was served is in its log"))
    }

    fn serve<S: Selector + Send + 'static>(
        &self,
        options: &PoolLogOptions,
        pool: Pool<S>,
    ) -> anyhow::Result<Served> {
        let (pool, journal, _) = self.open(options, || pool)?;
        Served::of(pool, journal)
    }

    /// Returns the log's length in bytes: its segments, each up to the end of its last record.
    /// Preallocated space does not count.
    fn log_bytes(&self) -> anyhow::Result<u64> {
        let inspection = inspect(&self.storage, &mut |_| {})?;
        Ok(inspection.segments.iter().map(|segment| segment.used_bytes).sum())
    }

    /// Fails unless the log has so many draws; returns their size in the log.
    fn expect_draws<S: Selector>(&self, options: &PoolLogOptions, draws: u64) -> anyhow::Result<Vec<Found>> {
        let written = self.log_bytes()? as f64;
        let (pool, _, _) = self.reopen::<S>(options)?;
        let found = pool.pool.next_draw();
        anyhow::ensure!(found == draws, "the log has {found} draws where {draws} were made");
        Ok(vec![
            Found { label: "wal_bytes/draw", unit: "B", value: written / draws as f64 },
            Found { label: "wal_file_size", unit: "B", value: written },
        ])
    }
}

fn options(kept: Kept) -> PoolLogOptions {
    let log = Options { durability: kept.durability, format: kept.format, ..PoolLogOptions::default().log };
    // Snapshots have separate rows.
    PoolLogOptions { log, snapshot_after_bytes: u64::MAX }
}

/// Creates work of calls that request `draws` draws each, all of which must be in the log
/// afterwards.
pub(super) fn logged<S: Selector + Send + 'static>(
    kept: Kept,
    pool: Pool<S>,
    draws: u64,
) -> anyhow::Result<Work> {
    with_options(kept.kind, options(kept), pool, |served| calls(served, draws, Served::callbacks))
}

/// Creates work on a pool in a service with such a log. All draws must be there when it is
/// reopened.
fn with_options<S: Selector + Send + 'static>(
    kind: Kind,
    options: PoolLogOptions,
    pool: Pool<S>,
    work: impl FnOnce(Served) -> anyhow::Result<Work>,
) -> anyhow::Result<Work> {
    let place = JournalStorage::new(kind)?;
    let served = place.serve(&options, pool)?;
    let asked = served.asked();
    let mut work = work(served)?;
    let check = work.check.take();
    Ok(work.checked(move || {
        let mut found = check.map_or(Ok(Vec::new()), |check| check())?;
        found.extend(place.expect_draws::<S>(&options, asked.load(Relaxed))?);
        Ok(found)
    }))
}

fn thousand(most: u64) -> anyhow::Result<Pool<WideTree>> {
    pool(Scale::THOUSAND.items.min(most))
}

fn combinations() -> Vec<Benchmark> {
    let durabilities = [
        (Durability::Always, "always", "when it is synced"),
        (Durability::default(), "interval", "at once; synced every 50 ms"),
        (Durability::Off, "off", "at once; never synced"),
    ];
    let formats = [(Format::Binary, "binary"), (Format::Jsonl, "jsonl"), (Format::Text, "text")];
    let mut all = Vec::new();
    for (kind, storage) in Kind::ALL {
        for (format, spelling) in formats {
            for (durability, name, when) in durabilities {
                let kept = Kept { kind, format, durability };
                let measures = format!(
                    "asking a service with a log in {spelling} {} for 10,000 draws among 1,000 items, each answered by a callback {when}",
                    kind.place()
                );
                let row = format!("JournalOps.{storage}_{spelling}_{name}");
                let one = Benchmark::new(row, measures, move |sizes| {
                    logged(kept, thousand(sizes.items)?, sizes.batch)
                });
                let is_summarised = kind == Kind::File && format == Format::Binary;
                all.push(if is_summarised { one.at_most(40.0).in_summary() } else { one }.of("draw"));
            }
        }
    }
    all
}

fn rotating() -> [Benchmark; 2] {
    [("64k", 64 << 10), ("64m", 64 << 20)].map(|(name, segment_bytes)| {
        let measures = format!(
            "asking a service with a log in files of {name} bytes for 10,000 draws among 1,000 items; never synced"
        );
        Benchmark::new(format!("JournalOps.segments_{name}"), measures, move |sizes| {
            let kept = Kept { durability: Durability::Off, ..Kept::SAFELY };
            let mut options = options(kept);
            options.log.segment_bytes = segment_bytes;
            let batch = sizes.batch;
            with_options(kept.kind, options, thousand(sizes.items)?, |served| {
                calls(served, batch, Served::callbacks)
            })
        })
        .in_group("rotating a log's files")
        .of("draw")
    })
}

fn bytes() -> Benchmark {
    let measures = format!(
        "bytes that a log in files writes for a draw among 1,000 items, {FEW} to a record, all included"
    );
    Benchmark::new(format!("JournalOps.bytes_by_{FEW}"), measures, |sizes| {
        let (calls, pool) = (sizes.batch, thousand(sizes.items)?);
        let options = options(Kept { durability: Durability::Off, ..Kept::SAFELY });
        let place = JournalStorage::new(Kind::File)?;
        let served = place.serve(&options, pool)?;
        Work::amounts(calls * FEW, move || {
            let before = place.log_bytes()?;
            for _ in 0..calls {
                served.by_parcels(1, FEW)?;
            }
            served.finish()?;
            Ok((place.log_bytes()? - before) as f64)
        })
    })
    .in_unit("B/draw")
    .at_most(3.0)
    .in_summary()
}

fn waiting(callers: u64) -> Benchmark {
    let measures =
        format!("drawing among 1,000 items, each answered when it is synced, {}", callers_phrase(callers));
    let one = Benchmark::new(format!("CallerOps.file_always_{callers}"), measures, move |sizes| {
        with_options(Kind::File, options(Kept::SAFELY), thousand(sizes.items)?, |served| {
            by_callers(callers, served)
        })
    })
    .in_group("callers that wait until their draws are synced")
    .of("draw");
    if callers == 1_024 { one.at_most(1_000.0) } else { one }.in_summary()
}

fn late((name, rate): (&str, u64)) -> Benchmark {
    let measures = format!(
        "how late a draw among 1,000 items is answered when it is synced, of {rate} that are due in a second; a log in files"
    );
    Benchmark::new(format!("LatencyOps.at_{name}_file_always"), measures, move |sizes| {
        with_options(Kind::File, options(Kept::SAFELY), thousand(sizes.items)?, |served| {
            at_rate(served, rate)
        })
    })
    .of_latencies()
    .in_summary()
    .of("draw")
}
