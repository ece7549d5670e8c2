//! Faults of block files while the points of a series are only there: of reads, and of the files.

mod filed_series;

use super::{Fault, Level, drawn, planned};
use crate::random::Random;
use crate::time_series::fault_tally::FaultTally;
use crate::time_series::files::{Place, folder_of};
use crate::time_series::options::TimeSeriesOptions;
use crate::time_series::points::Lookups;
use crate::time_series::row::{Findings, Row, Work};
use anyhow::Context;
use filed_series::FiledSeries;
use tidemark_log::Storage;
use tidemark_log::storage::faulty::Site;
use tidemark_series::BLOCK_POINTS;

/// Stream of random numbers of this scenario.
const STREAM: u64 = 0xb10c;

/// Fewest points of the series: some blocks.
const POINTS_MIN: u64 = 4 * BLOCK_POINTS as u64;

pub(super) fn row(level: Level, options: &TimeSeriesOptions) -> Row {
    let place = Place { parent: folder_of(options), points: options.fault_points.max(POINTS_MIN) };
    let (lookups, keep, name) = (options.fault_points, !options.like_tau, level.name);
    Row {
        name: format!("faults/block_file_query_{name}"),
        measures: format!(
            "looking up random points in block files, whose reads meet {name} faults; a file that is damaged makes it start again from the log"
        ),
        operation: "lookup",
        operations: lookups,
        iterations: options.file_iterations,
        start: Box::new(move || Ok(Box::new(Querying::new(level, place.clone(), lookups, keep)))),
    }
}

/// A series in block files, which is looked into.
struct Querying {
    level: Level,
    place: Place,
    lookups: Lookups,
    keep: bool,
    faults: Vec<(u64, Fault)>,
    random: Random,
    tally: FaultTally,
    series: Option<FiledSeries>,
}

impl Querying {
    fn new(level: Level, place: Place, lookups: u64, keep: bool) -> Self {
        let lookups = Lookups::draw(lookups, place.points, |value| value);
        Querying {
            level,
            place,
            lookups,
            keep,
            faults: Vec::new(),
            random: Random::new(42, STREAM),
            tally: FaultTally::default(),
            series: None,
        }
    }

    /// Has a fault happen and settles what it did. Returns the series, whose points are all right.
    fn meet(&mut self, fault: Fault, series: FiledSeries) -> anyhow::Result<FiledSeries> {
        self.tally.injected += 1;
        let is_of_file = match fault {
            Fault::Error | Fault::Short => false,
            Fault::BitFlip => self.random.below(2) == 0,
            Fault::Torn | Fault::Lost => true,
        };
        if is_of_file {
            return self.damage(fault, series);
        }
        self.fail_read(fault, &series)?;
        Ok(series)
    }

    /// Looks up a point whose block is read with a fault, and then without one.
    fn fail_read(&mut self, fault: Fault, series: &FiledSeries) -> anyhow::Result<()> {
        // The newest points may be in no block yet.
        let time = self.random.below(self.place.points - 2 * BLOCK_POINTS as u64) as i64;
        let next = series.storage.calls_at(Site::ReadAt) + 1;
        series.storage.set_plan(Some(planned(fault, Site::ReadAt, next, self.random.next())));
        let is_served = series.serves(time, time)?;
        series.storage.set_plan(None);
        anyhow::ensure!(series.storage.calls_at(Site::ReadAt) >= next, "the point at {time} is in memory");
        match (is_served, fault) {
            (true, _) => self.tally.absorbed += 1,
            (false, Fault::Error) => self.tally.refused += 1,
            (false, _) => self.tally.detected += 1,
        }
        anyhow::ensure!(series.serves(time, time)?, "the point at {time} is refused without a fault");
        self.tally.repaired += u64::from(!is_served);
        Ok(())
    }

    /// Damages the file itself, looks into all blocks, and starts again.
    fn damage(&mut self, fault: Fault, series: FiledSeries) -> anyhow::Result<FiledSeries> {
        let name = series.newest_file()?;
        let file = series.storage.open(&name)?;
        let bytes = file.len()?;
        match fault {
            Fault::Torn => file.set_len(self.random.below(bytes))?,
            Fault::Lost => series.storage.remove(&name)?,
            Fault::BitFlip | Fault::Error | Fault::Short => {
                let mut whole = vec![0; usize::try_from(bytes)?];
                anyhow::ensure!(file.read_at(&mut whole, 0)? == whole.len(), "a part of {name} was read");
                let next = series.storage.calls_at(Site::WriteAt) + 1;
                let plan = planned(Fault::BitFlip, Site::WriteAt, next, self.random.next());
                series.storage.set_plan(Some(plan));
                anyhow::ensure!(file.write_at(&whole, 0)? == whole.len(), "a part of {name} was written");
                series.storage.set_plan(None);
            }
        }
        drop(file);
        let mut is_found = false;
        for from in (0..self.place.points as i64).step_by(BLOCK_POINTS) {
            let to = (from + BLOCK_POINTS as i64).min(self.place.points as i64) - 1;
            is_found |= !series.serves(from, to)?;
        }
        let (series, is_passed_over) = series.restart()?;
        anyhow::ensure!(
            is_passed_over || !is_found,
            "a start took {name}, of which a block could not be read"
        );
        anyhow::ensure!(
            series.serves(0, self.place.points as i64 - 1)?,
            "points are refused after a start from the log"
        );
        if is_passed_over {
            self.tally.detected += 1;
            self.tally.repaired += 1;
            self.tally.restored += 1;
        } else {
            self.tally.absorbed += 1;
        }
        Ok(series)
    }
}

impl Work for Querying {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        self.faults = drawn(&self.level.of_block_files(), self.lookups.times.len() as u64, &mut self.random);
        self.tally = FaultTally::default();
        if self.series.is_none() {
            self.series = Some(FiledSeries::create(&self.place)?);
        }
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut series = self.series.take().context("the series is made before")?;
        let mut met = 0;
        for number in 0..self.lookups.times.len() {
            if let Some((_, fault)) = self.faults.get(met).filter(|(at, _)| *at == number as u64).copied() {
                met += 1;
                series = self.meet(fault, series)?;
            }
            let time = self.lookups.times[number];
            anyhow::ensure!(series.serves(time, time)?, "the point at {time} is refused without a fault");
        }
        self.series = Some(series);
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let series = self.series.as_ref().context("the series is made before")?;
        let is_served = series.serves(0, self.place.points as i64 - 1)?;
        anyhow::ensure!(is_served, "points are refused without a fault");
        Ok(Findings { faults: Some(self.tally.checked()?), ..Findings::default() })
    }

    fn release(&mut self) {
        if !self.keep {
            self.series = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn querying() -> (Querying, FiledSeries) {
        let place = Place { parent: std::env::temp_dir(), points: POINTS_MIN };
        let series = FiledSeries::create(&place).unwrap();
        (Querying::new(Level::AGGRESSIVE, place, 1, true), series)
    }

    #[test]
    fn a_file_that_is_damaged_cut_off_or_removed_is_found_and_its_points_come_from_the_log() {
        let (mut work, mut series) = querying();
        for fault in [Fault::BitFlip, Fault::Torn, Fault::Lost, Fault::BitFlip, Fault::Torn] {
            let before = work.tally;
            series = work.damage(fault, series).unwrap();
            let after = work.tally;
            let found = (after.detected - before.detected, after.restored - before.restored);
            assert!(found == (1, 1) || after.absorbed == before.absorbed + 1, "{fault:?}: {after:?}");
            assert!(fault == Fault::BitFlip || found == (1, 1), "{fault:?}: {after:?}");
        }
    }

    #[test]
    fn a_read_that_fails_is_refused_a_changed_bit_is_detected_and_a_short_read_goes_on() {
        let (mut work, series) = querying();
        for _ in 0..20 {
            for fault in [Fault::Error, Fault::BitFlip, Fault::Short] {
                work.fail_read(fault, &series).unwrap();
            }
        }
        let FaultTally { refused, detected, absorbed, repaired, .. } = work.tally;
        assert_eq!([refused, detected, absorbed, repaired], [20, 20, 20, 40]);
    }

    #[test]
    fn a_value_that_is_served_wrong_fails_the_run() {
        let (_, series) = querying();
        assert!(series.serves(5, 9).unwrap());
        series.add("7", "0.25").unwrap();
        assert!(series.serves(5, 6).unwrap() && series.serves(8, 9).unwrap());
        let error = series.serves(5, 9).unwrap_err().to_string();
        assert!(error.contains("0.25"), "{error}");
        assert!(series.serves(POINTS_MIN as i64 - 1, POINTS_MIN as i64).is_err(), "a point is missing");
    }
}
