//! Latency of draws from a large pool during continuous snapshots, next to the same load without
//! them.
//!
//! Storage of snapshots is not measured: each is discarded when it is complete.

use super::latency::at_rate;
use super::served::Served;
use super::stock::{Scale, pool};
use crate::micro::benchmark::{Benchmark, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidemark_pool::Chain;
use tidemark_pool::journal::{Journal, JournalError, Listener, NoJournal, Position, SnapshotSink};
use tidemark_pool::selector::WideTree;

const PER_SECOND: u64 = 10_000;

pub(super) fn suite() -> Vec<Benchmark> {
    let rows = [("", "no log"), ("_snapshots", "no log, but one snapshot after the other is taken")];
    rows.map(|(suffix, how)| {
        let measures = format!(
            "how late a draw among 1,000,000 items is answered by a callback, of {PER_SECOND} that are due in a second; {how}"
        );
        let is_snapshot = !suffix.is_empty();
        Benchmark::new(format!("LatencyOps.at_10k_1m_items{suffix}"), measures, move |sizes| {
            let items = Scale::MILLION.items.min(sizes.items);
            if is_snapshot { beside_snapshots(items) } else { undisturbed(items) }
        })
        .in_group("draws while snapshots are taken")
        .of_latencies()
        .in_summary()
        .of("draw")
    })
    .into()
}

fn undisturbed(items: u64) -> anyhow::Result<Work> {
    at_rate(Served::new(pool::<WideTree>(items)?, NoJournal::default())?, PER_SECOND)
}

fn beside_snapshots(items: u64) -> anyhow::Result<Work> {
    let journal = Snapshots::default();
    let taken = Arc::clone(&journal.taken);
    let mut work = at_rate(Served::new(pool::<WideTree>(items)?, journal)?, PER_SECOND)?;
    let check = work.check.take();
    Ok(work.checked(move || {
        let blocks = taken.load(Relaxed);
        anyhow::ensure!(blocks > 0, "no snapshot was taken meanwhile");
        check.map_or(Ok(Vec::new()), |check| check())
    }))
}

/// A journal that stores nothing and always requests a snapshot.
#[derive(Default)]
struct Snapshots {
    kept: NoJournal,
    /// Number of item blocks written to snapshots.
    taken: Arc<AtomicU64>,
}

impl Journal for Snapshots {
    fn append(&mut self, time_us: u64, frame: &[u8]) -> Result<Position, JournalError> {
        self.kept.append(time_us, frame)
    }

    fn request(&mut self, position: Position) {
        self.kept.request(position);
    }

    fn settled(&self) -> Result<Position, JournalError> {
        self.kept.settled()
    }

    fn listen(&mut self, listener: Listener) {
        self.kept.listen(listener);
    }

    fn begin_snapshot(&mut self) -> Option<Box<dyn SnapshotSink>> {
        Some(Box::new(Sink(Arc::clone(&self.taken))))
    }

    fn close(&mut self) -> Result<(), JournalError> {
        self.kept.close()
    }
}

/// Destination of a snapshot.
struct Sink(Arc<AtomicU64>);

impl SnapshotSink for Sink {
    fn head(&mut self, _: Chain, _: &[u8]) {}

    fn block(&mut self, _: usize, items: &[u8]) {
        std::hint::black_box(items);
        self.0.fetch_add(1, Relaxed);
    }

    fn is_busy(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) {}
}
