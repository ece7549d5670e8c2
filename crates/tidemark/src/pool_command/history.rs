//! The history of a key's pools in a data directory: the log from its first record, on top of a
//! snapshot if the log does not reach back to the beginning.
//!
//! Locks nothing and writes nothing, so a server may run on the same files; what it writes
//! meanwhile is not read.

use super::PoolName;
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use std::path::Path;
use std::sync::Arc;
use tidemark_engine::section::KEYSPACE;
use tidemark_engine::value::Value;
use tidemark_engine::watch::{PoolObserver, PoolSearch, PoolTrail, TrailError};
use tidemark_log::tools::Records;
use tidemark_log::{FileStorage, Log, Lsn, MemoryStorage, Options, Record, Snapshot, Snapshots, Storage};

/// A data directory, read up to one record.
pub(super) struct History {
    storage: Arc<dyn Storage>,
    /// Snapshot that the log builds on; `None` if the log reaches back to its beginning.
    base: Option<Snapshot>,
    /// Older damaged snapshots, any of which would have been preferred as the base.
    damaged: Vec<Lsn>,
    last: Lsn,
    search: PoolSearch,
    trail: PoolTrail,
}

/// Error of a record that cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("record {lsn}: {error}")]
pub(super) struct NotGood {
    pub(super) lsn: Lsn,
    pub(super) error: Box<TrailError>,
}

impl History {
    /// Reads the log once, to find the keys that are related to `key`.
    pub(super) fn open(dir: &Path, key: &[u8], bar: &ProgressBar) -> anyhow::Result<Self> {
        let files = FileStorage::existing(dir)
            .with_context(|| format!("cannot read the directory {}; give it with --dir", dir.display()))?;
        let storage: Arc<dyn Storage> = Arc::new(files);
        let mut records = Records::open(&storage, Lsn::FIRST, Lsn(u64::MAX))?;
        let (base, damaged) = base(&storage, records.floor())?;
        let from = base.as_ref().map_or(Lsn::FIRST, |base| base.lsn().next());
        let (mut search, mut last) = (PoolSearch::new(key), from.previous());
        while let Some(batch) = records.next_batch(&mut |bytes| bar.inc(bytes))? {
            for record in batch.iter().filter(|record| record.lsn >= from) {
                search.note(&record).with_context(|| format!("record {}", record.lsn))?;
                last = record.lsn;
            }
        }
        records.check_end()?;
        if last < from && base.is_none() {
            bail!("there is no log in {}; give its directory with --dir", dir.display());
        }
        let trail = search.trail(empty_log()?);
        Ok(Self { storage, base, damaged, last, search, trail })
    }

    /// Returns the last record of the snapshot that the log builds on, if it does not reach back to
    /// its beginning.
    pub(super) fn base(&self) -> Option<Lsn> {
        self.base.as_ref().map(Snapshot::lsn)
    }

    /// Describes what could not be read because the snapshot before it is damaged; `None` if no
    /// snapshot is.
    pub(super) fn unread(&self) -> Option<String> {
        let (damaged, base) = (self.damaged.first()?, self.base()?);
        Some(format!(
            "the snapshot at record {damaged} is damaged, so records before {base} were not checked; `tidemark log verify` shows the damage"
        ))
    }

    /// Returns the last record that is read.
    pub(super) fn last(&self) -> Lsn {
        self.last
    }

    /// Returns the state followed so far.
    pub(super) fn trail(&self) -> &PoolTrail {
        &self.trail
    }

    /// Replays the log and shows each event to a witness, beginning with the state of the snapshot.
    /// With a name, each later snapshot must have the same pool as the log at that point; returns
    /// the number of snapshots that agree.
    pub(super) fn follow(
        &mut self,
        observer: &mut impl PoolObserver,
        compared: Option<&PoolName>,
        bar: &ProgressBar,
    ) -> anyhow::Result<u64> {
        if let Some(base) = &self.base {
            load(&self.trail, base)?;
            observer.keys_changed(base.lsn(), 0, &self.trail)?;
        }
        let from = self.base.as_ref().map_or(Lsn::FIRST, |base| base.lsn().next());
        let mut later =
            if compared.is_some() { self.later_snapshots()? } else { Vec::new() }.into_iter().peekable();
        let mut agreeing = 0;
        let mut records = Records::open(&self.storage, from, self.last)?;
        while let Some(batch) = records.next_batch(&mut |bytes| bar.inc(bytes))? {
            for record in batch {
                while let (Some(snapshot), Some(name)) =
                    (later.next_if(|snapshot| snapshot.lsn() < record.lsn), compared)
                {
                    agreeing += u64::from(self.compare(&snapshot, name)?);
                }
                apply(&mut self.trail, &record, observer)?;
            }
        }
        for (snapshot, name) in later.zip(compared.into_iter().cycle()) {
            agreeing += u64::from(self.compare(&snapshot, name)?);
        }
        Ok(agreeing)
    }

    /// Returns the snapshots within the range that is read, except the base.
    fn later_snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        let (all, base) = (Snapshots::new(Arc::clone(&self.storage)), self.base().unwrap_or(Lsn::ZERO));
        let lsns = all.list()?.into_iter().filter(|lsn| (base..=self.last).contains(lsn) && *lsn != base);
        let mut there = Vec::new();
        for lsn in lsns {
            match all.open(lsn) {
                Ok(snapshot) => there.push(snapshot),
                // A running server has removed it since.
                Err(_) if !all.list()?.contains(&lsn) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(there)
    }

    /// Returns whether a snapshot has the pool; fails if it differs from the pool that the log
    /// leads to.
    fn compare(&self, snapshot: &Snapshot, name: &PoolName) -> anyhow::Result<bool> {
        let there = self.search.trail(empty_log()?);
        load(&there, snapshot)?;
        let image = |trail: &PoolTrail| {
            trail.look(name.db, &name.key, |pool| {
                let mut image = Vec::new();
                pool?.encode(&mut image);
                Some(image)
            })
        };
        match (image(&self.trail), image(&there)) {
            (None, None) => Ok(false),
            // The key may have expired before the log has a record of it.
            (Some(_), None) if self.trail.expires(name.db, &name.key) => Ok(false),
            (log, snapshot) if log == snapshot => Ok(true),
            _ => bail!(
                "pool {name}: not good\nthe snapshot at record {} does not agree with the log",
                snapshot.lsn()
            ),
        }
    }
}

fn apply(trail: &mut PoolTrail, record: &Record<'_>, observer: &mut impl PoolObserver) -> anyhow::Result<()> {
    trail.apply(record, observer).map_err(|error| match error {
        // The reader of the output may have closed it, which is no failure.
        TrailError::Witness(error) => anyhow::Error::from(error),
        error => NotGood { lsn: record.lsn, error: Box::new(error) }.into(),
    })
}

/// Returns the snapshot to build on, and the damaged ones that were preferred to it.
///
/// This is the oldest snapshot that the log reaches back to, so that most is checked; none if the
/// log reaches back to its beginning. If a repair has left no log, it is the newest snapshot.
fn base(storage: &Arc<dyn Storage>, floor: Lsn) -> anyhow::Result<(Option<Snapshot>, Vec<Lsn>)> {
    let (all, names) = (Snapshots::new(Arc::clone(storage)), storage.list()?);
    let has_log = names.iter().any(|name| name.starts_with("segment-"));
    let mut lsns: Vec<Lsn> = all.list()?.into_iter().filter(|lsn| lsn.next() >= floor).collect();
    if !has_log {
        lsns.reverse();
    }
    if floor <= Lsn::FIRST && (has_log || lsns.is_empty()) {
        return Ok((None, Vec::new()));
    }
    let mut damaged = Vec::new();
    for lsn in lsns {
        match all.open(lsn) {
            Ok(snapshot) if snapshot.verify().is_ok() => return Ok((Some(snapshot), damaged)),
            _ => damaged.push(lsn),
        }
    }
    bail!(
        "the log begins at record {floor}, and no snapshot before it can be read; `tidemark log inspect` shows what there is"
    )
}

/// Loads those keys of a snapshot that are followed.
fn load(trail: &PoolTrail, snapshot: &Snapshot) -> anyhow::Result<()> {
    let (loader, mut buffer) = (trail.load(), Vec::new());
    let failed = || format!("the snapshot at record {}", snapshot.lsn());
    for frame in snapshot.frames().iter().filter(|frame| frame.section == KEYSPACE) {
        snapshot.read_frame(frame, &mut buffer)?;
        loader.load_frame(&buffer).with_context(failed)?;
    }
    loader.finish().with_context(failed)
}

/// Returns a log that is never written, because an engine needs one.
fn empty_log() -> anyhow::Result<Arc<Log>> {
    let options = Options { segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() };
    Ok(Arc::new(Log::open(Arc::new(MemoryStorage::new()), options)?.0))
}
