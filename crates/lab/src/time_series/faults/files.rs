//! Faults of a log in files, made by the log's own faulty storage.
//!
//! After a failed write a log accepts nothing more, and what a silent fault has done shows when it is
//! opened again. So each fault is followed by a recovery, whose points are compared with those that
//! were appended; what is missing is appended again, as a client repeats what was not acknowledged.

use super::{Fault, Level, drawn, planned};
use crate::random::Random;
use crate::time_series::fault_tally::FaultTally;
use crate::time_series::files::{GROUP, LogFolder, Place, append, folder_of, replayed};
use crate::time_series::options::TimeSeriesOptions;
use crate::time_series::points::{Lookups, expect_all, value_at};
use crate::time_series::row::{Findings, Row, Work};
use anyhow::Context;
use std::sync::Arc;
use tidemark_log::storage::faulty::{Plan, Site};
use tidemark_log::tools::plan_repair;
use tidemark_log::{FaultyStorage, Log, OpenError, Storage};
use tidemark_series::Series;

/// Stream of random numbers of these scenarios.
const STREAM: u64 = 0xf11e;

pub(super) fn rows(level: Level, options: &TimeSeriesOptions) -> [Row; 2] {
    let (points, keep) = (options.fault_points, !options.like_tau);
    let (name, folder) = (level.name, folder_of(options));
    let place = Place { parent: folder, points };
    let other = place.clone();
    [
        Row {
            name: format!("faults/file_backend_ingest_{name}"),
            measures: format!(
                "appending points to a log in files, whose writes meet {name} faults, with all recoveries"
            ),
            operation: "point",
            operations: points,
            iterations: options.file_iterations,
            start: Box::new(move || Ok(Box::new(Ingesting::new(level, place.clone())))),
        },
        Row {
            name: format!("faults/file_backend_query_{name}"),
            measures: format!(
                "looking up random points in a series from a log in files; a {name} fault makes it recover the series again"
            ),
            operation: "lookup",
            operations: points,
            iterations: options.file_iterations,
            start: Box::new(move || Ok(Box::new(Querying::new(level, other.clone(), keep)))),
        },
    ]
}

/// Closes a log that may have failed.
fn end(log: Log) {
    // A log that has failed says so again.
    let _ = log.close();
    drop(log);
}

/// A log with its faulty storage.
struct FaultyLog {
    storage: FaultyStorage,
    log: Log,
}

impl FaultyLog {
    fn open(place: &Place, inner: &Arc<dyn Storage>) -> Result<(Self, bool), OpenError> {
        let storage = FaultyStorage::new(Arc::clone(inner), None);
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let (log, recovery) = place.open(&shared)?;
        Ok((FaultyLog { storage, log }, recovery.torn.is_some()))
    }
}

/// A log that gets points.
struct Ingesting {
    level: Level,
    place: Place,
    faults: Vec<(u64, Fault)>,
    random: Random,
    tally: FaultTally,
    folder: Option<LogFolder>,
    log: Option<FaultyLog>,
}

impl Ingesting {
    fn new(level: Level, place: Place) -> Self {
        Ingesting {
            level,
            place,
            faults: Vec::new(),
            random: Random::new(42, STREAM),
            tally: FaultTally::default(),
            folder: None,
            log: None,
        }
    }

    /// Appends a point whose write meets the fault, and settles what it did. All points before are
    /// durable. Returns the log that goes on: all points up to this one are in it.
    fn append_at_fault(&mut self, held: FaultyLog, time: i64, fault: Fault) -> anyhow::Result<FaultyLog> {
        let next = held.storage.calls_at(Site::WriteAt) + 1;
        held.storage.set_plan(Some(planned(fault, Site::WriteAt, next, self.random.next())));
        self.tally.injected += 1;
        let result = append(&held.log, time).and_then(|lsn| held.log.wait_durable(lsn));
        let was_met = held.storage.fired();
        held.storage.set_plan(None);
        if result.is_ok() && (fault == Fault::Short || !was_met) {
            self.tally.absorbed += 1;
            return Ok(held);
        }
        end(held.log);
        let folder = self.folder.as_ref().context("the folder is made before")?;
        let inner = Arc::clone(&folder.storage);
        let (held, was_found) = match FaultyLog::open(&self.place, &inner) {
            Ok((held, was_torn)) => (held, was_torn),
            Err(OpenError::Damaged(_) | OpenError::Missing(_)) => {
                let cut = plan_repair(&inner, &mut |_| {})?.context("the damage can be repaired")?;
                cut.apply(&*inner)?;
                (FaultyLog::open(&self.place, &inner)?.0, true)
            }
            Err(error) => return Err(error.into()),
        };
        let points = replayed(&held.log)?;
        let count = points.len();
        expect_all(&points, count)?;
        if result.is_err() {
            self.tally.refused += 1;
        } else if was_found {
            self.tally.detected += 1;
        } else {
            anyhow::ensure!(
                count > time as u64,
                "{fault:?} lost an acknowledged point, and nothing found it"
            );
            self.tally.absorbed += 1;
            return Ok(held);
        }
        for time in count as i64..=time {
            append(&held.log, time)?;
        }
        held.log.wait_durable(held.log.appended())?;
        self.tally.repaired += 1;
        Ok(held)
    }
}

impl Work for Ingesting {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        self.faults = drawn(&self.level.of_writes(), self.place.points, &mut self.random);
        self.tally = FaultTally::default();
        let folder = self.place.create()?;
        self.log = Some(FaultyLog::open(&self.place, &folder.storage)?.0);
        self.folder = Some(folder);
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut held = self.log.take().context("the log is opened before")?;
        let mut met = 0;
        for time in 0..self.place.points {
            if let Some((_, fault)) = self.faults.get(met).filter(|(point, _)| *point == time).copied() {
                met += 1;
                held.log.wait_durable(held.log.appended())?;
                held = self.append_at_fault(held, time as i64, fault)?;
                continue;
            }
            let lsn = append(&held.log, time as i64)?;
            if (time + 1).is_multiple_of(GROUP) {
                held.log.wait_durable(lsn)?;
            }
        }
        held.log.wait_durable(held.log.appended())?;
        self.log = Some(held);
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        end(self.log.take().context("the log is opened before")?.log);
        let folder = self.folder.as_ref().context("the folder is made before")?;
        let (held, _) = FaultyLog::open(&self.place, &folder.storage)?;
        expect_all(&replayed(&held.log)?, self.place.points)?;
        self.log = Some(held);
        Ok(Findings { faults: Some(self.tally.checked()?), ..Findings::default() })
    }

    fn release(&mut self) {
        if let Some(held) = self.log.take() {
            end(held.log);
        }
        self.folder = None;
    }
}

/// A series from a log, which is looked into.
struct Querying {
    level: Level,
    place: Place,
    lookups: Lookups,
    keep: bool,
    faults: Vec<(u64, Fault)>,
    random: Random,
    tally: FaultTally,
    recovered: Option<(LogFolder, Series<f64>)>,
    /// Reads of a recovery.
    reads: u64,
}

impl Querying {
    fn new(level: Level, place: Place, keep: bool) -> Self {
        let lookups = Lookups::draw(place.points, place.points, |value| value);
        Querying {
            level,
            place,
            lookups,
            keep,
            faults: Vec::new(),
            random: Random::new(42, STREAM + 1),
            tally: FaultTally::default(),
            recovered: None,
            reads: 0,
        }
    }

    /// Recovers the series from a storage with this plan. Returns it and the number of reads.
    fn recover(&self, inner: &Arc<dyn Storage>, plan: Option<Plan>) -> anyhow::Result<(Series<f64>, u64)> {
        let storage = FaultyStorage::new(Arc::clone(inner), plan);
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let (log, _) = self.place.open(&shared)?;
        let series = replayed(&log);
        end(log);
        Ok((series?, storage.calls_at(Site::ReadAt)))
    }

    /// Recovers the series twice: once with the fault, and once without. If the first recovery
    /// damages the log, it is written again from the start.
    fn recover_at_fault(
        &mut self,
        folder: LogFolder,
        fault: Fault,
    ) -> anyhow::Result<(LogFolder, Series<f64>)> {
        let at = 1 + self.random.below(self.reads);
        let plan = planned(fault, Site::ReadAt, at, self.random.next());
        self.tally.injected += 1;
        let faulty = self.recover(&folder.storage, Some(plan));
        if let Ok((series, _)) = &faulty {
            expect_all(series, self.place.points)
                .with_context(|| format!("{fault:?} of read {at} was not noticed"))?;
        }
        let whole = self.recover(&folder.storage, None);
        match (&faulty, &whole) {
            (Ok(_), Ok(_)) => self.tally.absorbed += 1,
            (Err(_), _) if fault == Fault::Error => self.tally.refused += 1,
            _ => self.tally.detected += 1,
        }
        self.tally.repaired += u64::from(faulty.is_err() || whole.is_err());
        if let Ok((series, _)) = whole {
            return Ok((folder, series));
        }
        self.tally.restored += 1;
        let folder = self.place.filled()?;
        let (series, _) = self.recover(&folder.storage, None)?;
        Ok((folder, series))
    }
}

impl Work for Querying {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        self.faults = drawn(&self.level.of_reads(), self.place.points, &mut self.random);
        self.tally = FaultTally::default();
        if self.recovered.is_none() {
            let folder = self.place.filled()?;
            let (series, reads) = self.recover(&folder.storage, None)?;
            self.reads = reads;
            self.recovered = Some((folder, series));
        }
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let (mut folder, mut series) = self.recovered.take().context("the series is recovered before")?;
        let mut met = 0;
        for number in 0..self.lookups.times.len() {
            if let Some((_, fault)) = self.faults.get(met).filter(|(at, _)| *at == number as u64).copied() {
                met += 1;
                (folder, series) = self.recover_at_fault(folder, fault)?;
            }
            let time = self.lookups.times[number];
            let served = series.get(time);
            let is_right = served.is_some_and(|value| value.to_bits() == value_at(time).to_bits());
            anyhow::ensure!(is_right, "{served:?} was served at {time}");
        }
        self.recovered = Some((folder, series));
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let (_, series) = self.recovered.as_ref().context("the series is recovered before")?;
        expect_all(series, self.place.points)?;
        Ok(Findings { faults: Some(self.tally.checked()?), ..Findings::default() })
    }

    fn release(&mut self) {
        if !self.keep {
            self.recovered = None;
        }
    }
}
