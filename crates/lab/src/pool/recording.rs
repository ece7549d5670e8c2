//! `RecordOps`: draws encoded as log frames without a log, in reused memory.

use super::stock::{Scale, expect_draws, pool};
use crate::micro::benchmark::{Benchmark, Work, on};
use anyhow::Context;
use tidemark_pool::selector::WideTree;
use tidemark_pool::{Chain, Event, Events, Frame, Pool};

/// Draws per frame when a batch waits for the disk.
const BATCH: u64 = 4_096;
/// Draws per frame with few callers.
const FEW: u64 = 64;

pub(super) fn suite() -> Vec<Benchmark> {
    let drawing = [(Scale::FOUR, BATCH), (Scale::THOUSAND, BATCH), (Scale::THOUSAND, FEW)].map(
        |(Scale { name, items }, draws)| {
            let measures = format!(
                "drawing among {items} items, and its event, in frames of {draws} draws with their chain of SHA-256; no log"
            );
            let one = Benchmark::new(format!("RecordOps.draw_{name}_by_{draws}"), measures, move |sizes| {
                recording(pool(items.min(sizes.items))?, draws)
            });
            if draws == BATCH { one.at_most(20.0).in_summary() } else { one }.of("draw")
        },
    );
    let bytes = [Scale::FOUR, Scale::THOUSAND, Scale::HUNDRED_THOUSAND].map(|Scale { name, items }| {
        let measures = format!("bytes of a draw among {items} items in frames of {FEW} draws, all included");
        Benchmark::new(format!("RecordOps.bytes_{name}_by_{FEW}"), measures, move |sizes| {
            let items = items.min(sizes.items);
            Work::amounts(FEW, move || Ok(Log::of_one_frame(pool(items)?, FEW)?.frame.len() as f64))
        })
        .in_unit("B/draw")
        .at_most(3.0)
        .in_summary()
    });
    drawing.into_iter().chain(bytes).collect()
}

/// A pool and the last frame of its steps.
struct Log {
    pool: Pool<WideTree>,
    before: Chain,
    behind: Chain,
    frame: Vec<u8>,
    first_draw: u64,
}

impl Log {
    fn new(mut pool: Pool<WideTree>) -> Self {
        pool.stage();
        let begin = Chain::begin(b"a catalogue");
        Log { pool, before: begin, behind: begin, frame: Vec::new(), first_draw: 0 }
    }

    fn of_one_frame(pool: Pool<WideTree>, draws: u64) -> anyhow::Result<Self> {
        let mut log = Log::new(pool);
        for _ in 0..draws {
            log.pool.draw()?;
        }
        log.write();
        log.expect(draws, draws)?;
        Ok(log)
    }

    /// Overwrites the previous frame with the staged steps.
    fn write(&mut self) {
        self.frame.clear();
        self.before = self.behind;
        let frame = Frame { time_us: 1 << 50, first_draw: self.first_draw, events: self.pool.staged() };
        self.behind = frame.write(self.before, &mut self.frame);
        self.pool.commit();
        self.first_draw = self.pool.next_draw();
        self.pool.stage();
    }

    /// Fails unless so many draws were made, and the last of them are in the frame.
    fn expect(&mut self, draws: u64, of_frame: u64) -> anyhow::Result<()> {
        self.pool.commit();
        expect_draws(&self.pool, draws)?;
        if self.frame.is_empty() {
            return Ok(());
        }
        let (frame, _) = Frame::read(&self.frame, self.before).context("the last frame")?;
        let mut written = 0;
        for event in Events::new(frame.events) {
            anyhow::ensure!(matches!(event?, Event::Drew(Some(_))), "something else than a draw is written");
            written += 1;
        }
        anyhow::ensure!(written == of_frame, "{written} draws are written where {of_frame} should be");
        Ok(())
    }
}

fn recording(pool: Pool<WideTree>, of_frame: u64) -> anyhow::Result<Work> {
    let (work, log) = on(1, Log::new(pool), move |log, _| {
        if log.pool.staged_draws() == of_frame {
            log.write();
        }
        log.pool.draw()
    })?;
    Ok(work.checked(move || {
        let (mut log, draws) = log.finish()?;
        log.expect(draws, of_frame)?;
        Ok(Vec::new())
    }))
}
