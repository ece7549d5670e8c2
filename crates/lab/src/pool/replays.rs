//! `ReplayOps`: what a pool has done, done again.

use super::stock::{Scale, catalogue, expect_draws, with_secrets};
use crate::micro::benchmark::{Benchmark, Work};
use anyhow::Context;
use std::time::{Duration, Instant};
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Chain, Event, Events, Frame, Mode, Pool, SoldOut};

/// Draws of a frame.
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

/// What a pool has drawn, as it is written.
struct Log {
    catalogue: Catalogue,
    draws: u64,
    events: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl Log {
    fn of(items: u64, draws: u64) -> anyhow::Result<Self> {
        let catalogue = catalogue(items, Mode::FixedOdds, SoldOut::Renormalise)?;
        let (mut events, mut frames, mut chain) = (Vec::new(), Vec::new(), origin());
        let mut pool: Pool<WideTree> = with_secrets(&catalogue);
        while pool.next_draw() < draws {
            let first_draw = pool.next_draw();
            pool.stage();
            for _ in 0..FRAME.min(draws - first_draw) {
                pool.draw()?;
            }
            let mut bytes = Vec::new();
            chain = Frame { time_us: 1 << 50, first_draw, events: pool.staged() }.write(chain, &mut bytes);
            events.extend_from_slice(pool.staged());
            frames.push(bytes);
            pool.commit();
        }
        Ok(Log { catalogue, draws, events, frames })
    }

    fn replay(
        &self,
        again: impl Fn(&mut Pool<WideTree>, &Event<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        self.time(|pool| {
            for event in Events::new(&self.events) {
                again(pool, &event?)?;
            }
            Ok(())
        })
    }

    fn replay_frames(&self) -> anyhow::Result<Duration> {
        self.time(|pool| {
            let mut chain = origin();
            for bytes in &self.frames {
                let (frame, behind) = Frame::read(bytes, chain).context("a frame of the log")?;
                for event in Events::new(frame.events) {
                    pool.apply(&event?)?;
                }
                chain = behind;
            }
            Ok(())
        })
    }

    /// How long it takes a pool that is made before; all draws must be in it then.
    fn time(
        &self,
        replay: impl FnOnce(&mut Pool<WideTree>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let mut pool = with_secrets(&self.catalogue);
        let clock = Instant::now();
        replay(&mut pool)?;
        let took = clock.elapsed();
        expect_draws(&pool, self.draws)?;
        Ok(took)
    }
}

fn origin() -> Chain {
    Chain::begin(b"a catalogue")
}
