//! `ReplayOps`: replay of a pool's record.

use super::stock::{Scale, catalogue, expect_draws, with_secrets};
use crate::micro::benchmark::{Benchmark, Work};
use std::time::{Duration, Instant};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, ChainedPool, Event, Events, Mode, Pool, SoldOut};

/// Draws per frame.
const FRAME: u64 = 4_096;

pub(super) fn suite() -> Vec<Benchmark> {
    let scales = [Scale::FOUR, Scale::THOUSAND, Scale::HUNDRED_THOUSAND];
    scales.into_iter().flat_map(rows).collect()
}

fn rows(Scale { name, items }: Scale) -> [Benchmark; 3] {
    let row = |what: &str, measures: String, replay: fn(&Log) -> anyhow::Result<Duration>| {
        Benchmark::new(format!("ReplayOps.{what}_{name}"), measures, move |sizes| {
            let log = Log::of(items.min(sizes.items), sizes.batch * 10)?;
            Work::calls(log.draws, move || replay(&log))
        })
        .of("draw")
    };
    let apply = row("apply", format!("doing again a draw among {items} items, as it is written"), |log| {
        log.replay(|pool, event| Ok(pool.apply(event)?))
    });
    [
        if name == Scale::THOUSAND.name { apply.at_most(20.0).in_summary() } else { apply },
        row(
            "verify",
            format!("making a draw among {items} items again, which must give what is written"),
            |log| log.replay(|pool, event| Ok(pool.verify(event)?)),
        ),
        row(
            "frames",
            format!("doing again a draw among {items} items, in frames of {FRAME} whose chain is followed"),
            Log::replay_frames,
        ),
    ]
}

/// The encoded draws of a pool.
struct Log {
    catalogue: Catalogue,
    draws: u64,
    events: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl Log {
    fn of(items: u64, draws: u64) -> anyhow::Result<Self> {
        let catalogue = catalogue(items, Mode::FixedOdds, SoldOut::Renormalise)?;
        let (mut events, mut frames) = (Vec::new(), Vec::new());
        let mut chained: ChainedPool<WideTree> = ChainedPool::new(with_secrets(&catalogue));
        while chained.pool.next_draw() < draws {
            chained.pool.stage();
            for _ in 0..FRAME.min(draws - chained.pool.next_draw()) {
                chained.pool.draw()?;
            }
            events.extend_from_slice(chained.pool.staged());
            let mut frame = Vec::new();
            chained.write_staged(1 << 50, &mut frame);
            frames.push(frame);
            chained.pool.commit();
        }
        Ok(Log { catalogue, draws, events, frames })
    }

    fn replay(
        &self,
        again: impl Fn(&mut Pool<WideTree>, &Event<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        self.time(|chained| {
            for event in Events::new(&self.events) {
                again(&mut chained.pool, &event?)?;
            }
            Ok(())
        })
    }

    fn replay_frames(&self) -> anyhow::Result<Duration> {
        self.time(|chained| Ok(self.frames.iter().try_for_each(|frame| chained.follow(frame))?))
    }

    /// Returns the time of a replay into a new pool, which must have all draws afterwards.
    fn time(
        &self,
        replay: impl FnOnce(&mut ChainedPool<WideTree>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let mut chained = ChainedPool::new(with_secrets(&self.catalogue));
        let clock = Instant::now();
        replay(&mut chained)?;
        let took = clock.elapsed();
        expect_draws(&chained.pool, self.draws)?;
        Ok(took)
    }
}
