//! `core/file_backend`: points whose every record is in a log in files.

use super::options::TimeSeriesOptions;
use super::points::{Lookups, expect_all, value_at};
use super::row::{Findings, Row, Work};
use crate::folder::Folder;
use anyhow::Context;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_log::tools::inspect;
use tidemark_log::{
    AppendError, Durability, FileStorage, Log, Lsn, OpenError, Options, Recovery, ReplayError, Storage,
};
use tidemark_series::Series;

/// Kind of a record that is a point.
const POINT: u8 = 1;
/// Kind of a record that is several points: their times, and then their values.
const POINTS: u8 = 2;
/// Bytes of a point in a record: time and value.
const POINT_BYTES: usize = 16;
/// Points that are synced together: 64 KiB of them.
pub(super) const GROUP: u64 = (64 << 10) / POINT_BYTES as u64;
/// More than a record of a point needs in the log. Bytes.
const RECORD_BYTES: u64 = 48;

pub(super) fn rows(options: &TimeSeriesOptions) -> Vec<Row> {
    let folder = folder_of(options);
    let (points, synced, lookups) = (options.ingest_points, options.synced_points, options.queries);
    let keep = !options.like_tau;
    let ingest = |name: &str, measures: String, points: u64, group: u64| {
        let folder = folder.clone();
        Row {
            name: format!("core/{name}"),
            measures,
            operation: "point",
            operations: points,
            iterations: options.file_iterations,
            start: Box::new(move || {
                let place = Place { parent: folder.clone(), points };
                Ok(Box::new(Ingesting { place, points, group, opened: None }))
            }),
        }
    };
    let measures = |of: &str| format!("appending points to a log in files, {of}");
    let mut rows = vec![
        ingest("file_backend_ingest", measures("each synced before the next"), synced, 1),
        ingest(
            "file_backend_ingest_grouped",
            measures("a record and a sync for every 64 KiB of points"),
            points,
            GROUP,
        ),
    ];
    rows.push(Row {
        name: "core/file_backend_point_query".to_owned(),
        measures: "looking up random points in the series that recovery made of such a log".to_owned(),
        operation: "lookup",
        operations: lookups,
        iterations: options.file_iterations,
        start: Box::new(move || {
            let place = Place { parent: folder.clone(), points };
            let lookups = Lookups::draw(lookups, points, |value| value);
            Ok(Box::new(Querying { place, points, lookups, keep, recovered: None }))
        }),
    });
    rows
}

/// Returns the folder in which logs get folders of their own.
pub(super) fn folder_of(options: &TimeSeriesOptions) -> PathBuf {
    options.dir.clone().unwrap_or_else(std::env::temp_dir)
}

/// Returns the type of the file system that a folder is on, such as `ext4`.
pub(super) fn file_system(folder: &Path) -> String {
    let unknown = || "an unknown file system".to_owned();
    let (Ok(folder), Ok(mounts)) = (folder.canonicalize(), fs::read_to_string("/proc/self/mounts")) else {
        return unknown();
    };
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    // The last of equal ones hides those before it.
    let nearest = mounts
        .lines()
        .filter_map(mount)
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.len());
    nearest.map_or_else(unknown, |(_, kind)| kind)
}

/// Where logs are written.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) parent: PathBuf,
    /// Number of points that a log will have.
    pub(super) points: u64,
}

/// A folder for a log, removed on drop.
pub(super) struct LogFolder {
    folder: Folder,
    pub(super) storage: Arc<dyn Storage>,
}

impl Place {
    pub(super) fn create(&self) -> anyhow::Result<LogFolder> {
        let folder = Folder::new_in(&self.parent)
            .with_context(|| format!("cannot create a folder in {}", self.parent.display()))?;
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder.path())?);
        Ok(LogFolder { folder, storage })
    }

    /// Returns options of a log whose one segment has room for all points.
    pub(super) fn options(&self) -> Options {
        let segment_bytes = (self.points * RECORD_BYTES).next_multiple_of(1 << 20);
        Options { durability: Durability::Always, segment_bytes, ..Options::default() }
    }

    pub(super) fn open(&self, storage: &Arc<dyn Storage>) -> Result<(Log, Recovery), OpenError> {
        Log::open(Arc::clone(storage), self.options())
    }

    /// Returns a closed log with all points.
    pub(super) fn filled(&self) -> anyhow::Result<LogFolder> {
        let folder = self.create()?;
        let (log, _) = self.open(&folder.storage)?;
        append_all(&log, self.points, GROUP)?;
        log.close()?;
        Ok(folder)
    }
}

impl LogFolder {
    /// Returns the bytes of the log up to its last record.
    fn used_bytes(&self) -> anyhow::Result<u64> {
        let inspection = inspect(&self.storage, &mut |_| {})?;
        Ok(inspection.segments.iter().map(|segment| segment.used_bytes).sum())
    }
}

/// Appends the point at a time.
#[inline]
pub(super) fn append(log: &Log, time: i64) -> Result<Lsn, AppendError> {
    log.append(1, POINT, |record| {
        record.extend_from_slice(&time.to_le_bytes());
        record.extend_from_slice(&value_at(time).to_le_bytes());
    })
}

/// Appends the points of a range of times as one record.
fn append_group(log: &Log, times: Range<i64>) -> Result<Lsn, AppendError> {
    log.append(1, POINTS, |record| {
        times.clone().for_each(|time| record.extend_from_slice(&time.to_le_bytes()));
        times.for_each(|time| record.extend_from_slice(&value_at(time).to_le_bytes()));
    })
}

/// Appends the first `points` points, in records of `group` points, and waits for a sync after each
/// record.
fn append_all(log: &Log, points: u64, group: u64) -> Result<(), AppendError> {
    for first in (0..points).step_by(group as usize) {
        let lsn = match group {
            1 => append(log, first as i64)?,
            _ => append_group(log, first as i64..(first + group).min(points) as i64)?,
        };
        log.wait_durable(lsn)?;
    }
    Ok(())
}

/// Returns the series whose points a log has.
pub(super) fn replayed(log: &Log) -> anyhow::Result<Series<f64>> {
    let mut series = Series::new(tidemark_series::Options::default());
    let mut replay = match log.replay(log.floor()) {
        // A log without records.
        Err(ReplayError::Beyond { .. }) => return Ok(series),
        replay => replay?,
    };
    while let Some(batch) = replay.next_batch()? {
        for record in batch {
            let (times, values) = record.payload.split_at(record.payload.len() / 2);
            let ((times, []), (values, [])) = (times.as_chunks::<8>(), values.as_chunks::<8>()) else {
                anyhow::bail!("record {} has no points", record.lsn)
            };
            for (time, value) in times.iter().zip(values) {
                series.append(i64::from_le_bytes(*time), f64::from_le_bytes(*value))?;
            }
        }
    }
    Ok(series)
}

/// A log that gets points.
struct Ingesting {
    place: Place,
    points: u64,
    group: u64,
    opened: Option<(LogFolder, Log)>,
}

impl Work for Ingesting {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        let folder = self.place.create()?;
        let (log, _) = self.place.open(&folder.storage)?;
        self.opened = Some((folder, log));
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let (_, log) = self.opened.as_ref().context("the log is opened before")?;
        append_all(log, self.points, self.group)?;
        Ok(())
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let (folder, log) = self.opened.take().context("the log is opened before")?;
        log.close()?;
        drop(log);
        let (log, recovery) = self.place.open(&folder.storage)?;
        anyhow::ensure!(recovery.torn.is_none(), "the log's end was torn");
        expect_all(&replayed(&log)?, self.points)?;
        let bytes = folder.used_bytes()? as f64 / self.points as f64;
        self.opened = Some((folder, log));
        Ok(Findings { bytes_per_point: Some(bytes), ..Findings::default() })
    }

    fn release(&mut self) {
        if let Some((folder, log)) = self.opened.take() {
            // Its files are removed next.
            let _ = log.close();
            drop(log);
            drop(folder.folder);
        }
    }
}

/// A series from a log, which is looked into.
struct Querying {
    place: Place,
    points: u64,
    lookups: Lookups,
    /// Whether the series serves all iterations.
    keep: bool,
    recovered: Option<Series<f64>>,
}

impl Work for Querying {
    fn prepare(&mut self, _iteration: u64) -> anyhow::Result<()> {
        if self.recovered.is_none() {
            let folder = self.place.filled()?;
            let (log, _) = self.place.open(&folder.storage)?;
            self.recovered = Some(replayed(&log)?);
            log.close()?;
        }
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let series = self.recovered.as_ref().context("the series is recovered before")?;
        self.lookups.run(|time| series.get(time))
    }

    fn check(&mut self) -> anyhow::Result<Findings> {
        let series = self.recovered.as_ref().context("the series is recovered before")?;
        expect_all(series, self.points)?;
        Ok(Findings::default())
    }

    fn release(&mut self) {
        if !self.keep {
            self.recovered = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::file_system;
    use std::path::Path;

    #[test]
    fn the_file_system_of_a_folder_is_that_of_its_mount() {
        assert_eq!(file_system(Path::new("/proc/self")), "proc");
        assert_eq!(file_system(Path::new("/no such folder")), "an unknown file system");
    }
}
