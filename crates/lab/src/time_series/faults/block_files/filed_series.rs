//! A series whose points are only in block files: an engine over a log in files, without memory for
//! points.

use crate::time_series::files::{LogFolder, Place};
use crate::time_series::points::value_at;
use anyhow::Context;
use std::sync::Arc;
use tidemark_engine::section::KEYSPACE;
use tidemark_engine::{Call, Engine, Reply, command};
use tidemark_log::{FaultyStorage, Log, Lsn, Snapshot, Snapshots, Storage};

const KEY: &str = "points";

/// Points of a command.
const TOGETHER: usize = 500;

/// How an engine answers if a block cannot be read.
const UNREADABLE: &str = "-ERR a block of a series is damaged or cannot be read: ";

/// The series, with the storage that its files are read from.
pub(super) struct FiledSeries {
    place: Place,
    /// Removed with the series.
    folder: LogFolder,
    pub(super) storage: FaultyStorage,
    engine: Engine,
}

impl FiledSeries {
    /// Makes a series of all points of the place, in a folder of its own.
    pub(super) fn create(place: &Place) -> anyhow::Result<Self> {
        let folder = place.create()?;
        let storage = FaultyStorage::new(Arc::clone(&folder.storage), None);
        let (engine, _) = start(place, &storage)?;
        let series = FiledSeries { place: place.clone(), folder, storage, engine };
        series.run(&["TS.CREATE", KEY])?;
        let times: Vec<i64> = (0..place.points as i64).collect();
        for some in times.chunks(TOGETHER) {
            let numbers = some.iter().map(|time| (time.to_string(), value_at(*time).to_string()));
            let words: Vec<String> =
                numbers.flat_map(|(time, value)| [KEY.to_owned(), time, value]).collect();
            let words = ["TS.MADD"].into_iter().chain(words.iter().map(String::as_str));
            let answer = series.run(&words.collect::<Vec<_>>())?;
            anyhow::ensure!(!answer.contains('-'), "points were refused: {answer:.200}");
        }
        series.leave_memory()?;
        Ok(series)
    }

    /// Writes the blocks to files, and drops their points.
    fn leave_memory(&self) -> anyhow::Result<()> {
        self.engine.take_snapshot(false, || (), || true)?;
        let left = self.engine.drop_points(|| ());
        anyhow::ensure!(left == 0, "{left} bytes of blocks are in memory");
        Ok(())
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<String> {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let command = command::resolve(&args).map_err(|error| anyhow::anyhow!("{error}"))?;
        let mut reply = Reply::default();
        self.engine.execute(&Call { command, args: &args, db: 0, now_us: 1 }, &mut reply);
        Ok(String::from_utf8(reply.bytes().to_vec())?)
    }

    /// Looks up the points of a range and returns whether they are served; `false` if they are refused
    /// because a block cannot be read. A value that is missing, of another point or not the right one to
    /// the bit is an error.
    pub(super) fn serves(&self, from: i64, to: i64) -> anyhow::Result<bool> {
        let answer = self.run(&["TS.RANGE", KEY, &from.to_string(), &to.to_string()])?;
        if answer.starts_with(UNREADABLE) {
            return Ok(false);
        }
        let mut lines = answer.split("\r\n");
        let count = format!("*{}", to - from + 1);
        anyhow::ensure!(lines.next() == Some(&count), "{answer:.200} was served from {from} to {to}");
        for time in from..=to {
            let (pair, stamp, value) = (lines.next(), lines.next(), lines.next());
            let stamp = stamp.and_then(|line| line.strip_prefix(':')?.parse().ok());
            let value = value.and_then(|line| line.strip_prefix('+')?.parse::<f64>().ok());
            let is_right = pair == Some("*2")
                && stamp == Some(time)
                && value.is_some_and(|value| value.to_bits() == value_at(time).to_bits());
            anyhow::ensure!(is_right, "{value:?} was served at {stamp:?} where {time} was asked for");
        }
        Ok(true)
    }

    /// Returns the name of the newest block file.
    pub(super) fn newest_file(&self) -> anyhow::Result<String> {
        let names = self.storage.list()?;
        names.into_iter().filter(|name| name.starts_with("blocks-")).max().context("there is no block file")
    }

    /// Ends the engine, and starts another from the same files. Returns whether it had to pass over a
    /// snapshot: the points come from the log then, and are written to a new file.
    pub(super) fn restart(self) -> anyhow::Result<(Self, bool)> {
        let FiledSeries { place, folder, storage, engine } = self;
        engine.log().close()?;
        drop(engine);
        let (engine, is_passed_over) = start(&place, &storage)?;
        let series = FiledSeries { place, folder, storage, engine };
        if is_passed_over {
            series.leave_memory()?;
        }
        Ok((series, is_passed_over))
    }

    /// Replaces the value at a time.
    #[cfg(test)]
    pub(super) fn add(&self, time: &str, value: &str) -> anyhow::Result<()> {
        let answer = self.run(&["TS.ADD", KEY, time, value, "ON_DUPLICATE", "LAST"])?;
        anyhow::ensure!(answer.starts_with(':'), "{answer}");
        Ok(())
    }
}

/// Starts an engine as the server does: from the newest snapshot that can be loaded, and the log behind
/// it. Returns whether a snapshot was passed over.
fn start(place: &Place, storage: &FaultyStorage) -> anyhow::Result<(Engine, bool)> {
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let (log, _) = place.open(&shared)?;
    let (log, snapshots) = (Arc::new(log), Snapshots::new(shared));
    let newest = snapshots.list()?.last().copied();
    let mut below = None;
    let (engine, covered) = loop {
        let engine = Engine::new(Arc::clone(&log), 1, 1);
        engine.limit_series_memory(0);
        let (snapshot, _) = snapshots.latest_below(log.floor(), below)?;
        let Some(snapshot) = snapshot else { break (engine, Lsn::ZERO) };
        if load(&engine, &snapshot).is_ok() {
            break (engine, snapshot.lsn());
        }
        below = Some(snapshot.lsn());
    };
    replay(&engine, &log, covered)?;
    let is_passed_over = newest.is_some_and(|newest| newest != covered);
    if is_passed_over {
        snapshots.set_aside(Some(covered).filter(|lsn| *lsn > Lsn::ZERO))?;
        log.block_files().remove_unused()?;
    }
    Ok((engine, is_passed_over))
}

fn load(engine: &Engine, snapshot: &Snapshot) -> anyhow::Result<()> {
    let loader = engine.load(1);
    let mut buffer = Vec::new();
    for frame in snapshot.frames().iter().filter(|frame| frame.section == KEYSPACE) {
        snapshot.read_frame(frame, &mut buffer)?;
        loader.load_frame(&buffer)?;
    }
    loader.finish()?;
    engine.continue_behind(snapshot.lsn());
    Ok(())
}

fn replay(engine: &Engine, log: &Log, covered: Lsn) -> anyhow::Result<()> {
    if covered < log.appended() {
        let (mut replay, mut scratch) = (log.replay(covered.next())?, Reply::default());
        while let Some(batch) = replay.next_batch()? {
            for record in batch {
                engine.apply(&record, &mut scratch)?;
            }
        }
    }
    Ok(())
}
