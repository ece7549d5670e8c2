//! Faults of blocks in memory: their words are damaged before they are read.

use super::{Fault, Level, drawn};
use crate::random::Random;
use crate::time_series::fault_tally::FaultTally;
use crate::time_series::options::TimeSeriesOptions;
use crate::time_series::points::{Lookups, expect_all, series, value_at};
use crate::time_series::row::{Findings, Row, Work};
use anyhow::Context;
use std::sync::Arc;
use tidemark_series::{BLOCK_POINTS, Block, Options, Series};

/// Stream of random numbers of these scenarios.
const STREAM: u64 = 0x5e6;

pub(super) fn rows(level: Level, options: &TimeSeriesOptions) -> [Row; 2] {
    let (points, lookups, keep) = (options.ingest_points, options.queries, !options.like_tau);
    let name = level.name;
    [
        Row {
            name: format!("faults/segment_ingest_{name}"),
            measures: format!(
                "appending points and compressing them to blocks, whose writes meet {name} faults"
            ),
            operation: "point",
            operations: points,
            iterations: options.iterations,
            start: Box::new(move || Ok(Box::new(Ingesting::new(level, points)))),
        },
        Row {
            name: format!("faults/segment_query_{name}"),
            measures: format!(
                "looking up random points in compressed blocks, whose reads meet {name} faults"
            ),
            operation: "lookup",
            operations: lookups,
            iterations: options.iterations,
            start: Box::new(move || Ok(Box::new(Querying::new(level, points, lookups, keep)))),
        },
    ]
}

/// Returns the words of a block that a series wrote.
fn words(part: &[u8]) -> anyhow::Result<Vec<u64>> {
    let (kind, bytes) = part.split_first().context("a part is not empty")?;
    anyhow::ensure!(*kind == 0, "the part is not compressed");
    Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Damages the words of a block and has them read. Counts what became of it.
fn meet(fault: Fault, words: &[u64], random: &mut Random, tally: &mut FaultTally) -> anyhow::Result<()> {
    tally.injected += 1;
    let mut damaged: Arc<[u64]> = words.into();
    let held = Arc::get_mut(&mut damaged).context("no other owner")?;
    match fault {
        Fault::Error => {
            tally.refused += 1;
            return Ok(());
        }
        Fault::Lost => held.fill(0),
        Fault::Torn | Fault::Short => held[random.below(words.len() as u64) as usize..].fill(0),
        Fault::BitFlip => {}
    }
    // What was not written may have been zeros.
    if held == words {
        let bit = random.below(words.len() as u64 * 64);
        held[bit as usize / 64] ^= 1 << (bit % 64);
    }
    anyhow::ensure!(Block::from_words::<f64>(&damaged).is_err(), "a damaged block was read ({fault:?})");
    tally.detected += 1;
    Ok(())
}

/// Head of a series whose points are all in parts.
fn empty_head() -> Vec<u8> {
    let mut head = Vec::new();
    Series::<f64>::new(Options::default()).encode_head(&mut head);
    head
}

/// A series whose blocks are written.
struct Ingesting {
    level: Level,
    points: u64,
    faults: Vec<(u64, Fault)>,
    random: Random,
    tally: FaultTally,
    series: Option<Series<f64>>,
    written: Vec<Vec<u8>>,
}

impl Ingesting {
    fn new(level: Level, points: u64) -> Self {
        Ingesting {
            level,
            points,
            faults: Vec::new(),
            random: Random::new(42, STREAM),
            tally: FaultTally::default(),
            series: None,
            written: Vec::new(),
        }
    }

    /// Writes the block that is part `index`, with those of the faults that meet its points.
    fn write(&mut self, series: &Series<f64>, index: usize, met: usize) -> anyhow::Result<usize> {
        let mut part = Vec::new();
        series.encode_part(index, &mut part);
        let end = (index + 1) * BLOCK_POINTS;
        let due = self.faults[met..].iter().take_while(|(point, _)| (*point as usize) < end).count();
        if due > 0 {
            let words = words(&part)?;
            for (_, fault) in &self.faults[met..met + due] {
                meet(*fault, &words, &mut self.random, &mut self.tally)?;
            }
            // Written once more, and read back.
            Block::from_words::<f64>(&words)?;
            self.tally.repaired += due as u64;
        }
        self.written.push(part);
        Ok(met + due)
    }
}

impl Work for Ingesting {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        self.faults = drawn(&self.level.of_writes(), self.points, &mut self.random);
        self.tally = FaultTally::default();
        self.series = Some(Series::new(Options::default()));
        self.written.clear();
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut series = self.series.take().context("the series is made before")?;
        let mut met = 0;
        for time in 0..self.points as i64 {
            series.append(time, value_at(time))?;
            if series.parts() > self.written.len() {
                series.seal();
                met = self.write(&series, self.written.len(), met)?;
            }
        }
        series.seal_all();
        while self.written.len() < series.parts() {
            met = self.write(&series, self.written.len(), met)?;
        }
        self.series = Some(series);
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let parts = self.written.iter().map(Vec::as_slice);
        expect_all(&Series::assemble(Options::default(), &empty_head(), parts)?, self.points)?;
        anyhow::ensure!(self.tally.injected == self.faults.len() as u64, "a fault met no block");
        Ok(Findings { faults: Some(self.tally.checked()?), ..Findings::default() })
    }

    fn release(&mut self) {
        self.series = None;
        self.written.clear();
    }
}

/// A series of blocks that are read.
struct Querying {
    level: Level,
    points: u64,
    lookups: Lookups,
    keep: bool,
    faults: Vec<(u64, Fault)>,
    random: Random,
    tally: FaultTally,
    /// The series, its blocks as they were written, and an empty head.
    blocks: Option<(Series<f64>, Vec<Vec<u8>>)>,
}

impl Querying {
    fn new(level: Level, points: u64, lookups: u64, keep: bool) -> Self {
        Querying {
            level,
            points,
            lookups: Lookups::draw(lookups, points, |value| value),
            keep,
            faults: Vec::new(),
            random: Random::new(42, STREAM + 1),
            tally: FaultTally::default(),
            blocks: None,
        }
    }
}

impl Work for Querying {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        self.faults = drawn(&self.level.of_reads(), self.lookups.times.len() as u64, &mut self.random);
        self.tally = FaultTally::default();
        if self.blocks.is_none() {
            let mut series = series(self.points)?;
            series.seal_all();
            let part = |index| {
                let mut part = Vec::new();
                series.encode_part(index, &mut part);
                part
            };
            let parts = (0..series.parts()).map(part).collect();
            self.blocks = Some((series, parts));
        }
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let (series, parts) = self.blocks.as_ref().context("the blocks are made before")?;
        let mut faults = self.faults.iter().peekable();
        let head = empty_head();
        for (number, time) in self.lookups.times.iter().enumerate() {
            let served = match faults.next_if(|(operation, _)| *operation == number as u64) {
                None => series.get(*time),
                Some((_, fault)) => {
                    let part = &parts[*time as usize / BLOCK_POINTS];
                    meet(*fault, &words(part)?, &mut self.random, &mut self.tally)?;
                    // Read once more.
                    let block = Series::<f64>::assemble(Options::default(), &head, [&part[..]])?;
                    self.tally.repaired += 1;
                    block.get(*time)
                }
            };
            let is_right = served.is_some_and(|value| value.to_bits() == value_at(*time).to_bits());
            anyhow::ensure!(is_right, "{served:?} was served at {time}");
        }
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        anyhow::ensure!(self.tally.injected == self.faults.len() as u64, "a fault met no block");
        Ok(Findings { faults: Some(self.tally.checked()?), ..Findings::default() })
    }

    fn release(&mut self) {
        if !self.keep {
            self.blocks = None;
        }
    }
}
