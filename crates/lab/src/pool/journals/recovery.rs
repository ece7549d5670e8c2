//! `RecoveryOps`: recovery of a pool from its log.

use super::{JournalStorage, Kept, Kind, options, thousand};
use crate::micro::benchmark::{Benchmark, Work};
use std::time::Instant;
use tidemark_log::{Durability, Format};
use tidemark_pool::Pool;
use tidemark_pool::selector::WideTree;

pub(super) fn suite() -> Vec<Benchmark> {
    let formats = [(Format::Binary, "binary"), (Format::Jsonl, "jsonl"), (Format::Text, "text")];
    let rows = formats.map(|(format, name)| {
        let measures = format!(
            "opening a log in {name} in files that has 1,000,000 draws among 1,000 items and no snapshot behind the first; of each draw"
        );
        let one = Benchmark::new(format!("RecoveryOps.draws_{name}"), measures, move |sizes| {
            let kept = Kept { kind: Kind::File, format, durability: Durability::Off };
            recovering(kept, thousand(sizes.items)?, 100 * sizes.batch)
        });
        if format == Format::Binary { one.at_most(20.0).in_summary() } else { one }.of("draw")
    });
    rows.into()
}

fn recovering(kept: Kept, pool: Pool<WideTree>, draws: u64) -> anyhow::Result<Work> {
    let (place, options) = (JournalStorage::new(kept.kind)?, options(kept));
    let served = place.serve(&options, pool)?;
    served.by_callbacks(draws)?;
    served.finish()?;
    Work::calls(draws, move || {
        let clock = Instant::now();
        let (pool, _, recovery) = place.reopen::<WideTree>(&options)?;
        let took = clock.elapsed();
        let found = pool.pool.next_draw();
        anyhow::ensure!(found == draws, "{found} draws are there again where {draws} were made");
        anyhow::ensure!(recovery.frames > 0 && recovery.log.torn.is_none(), "the log's end was torn");
        Ok(took)
    })
}
