//! The pools of a name as a data directory has them: the log from as far back as it reaches, on top of a snapshot if it must be.
//!
//! Nothing is locked and nothing is written, so a server may be at work on the same files; what it writes meanwhile is not looked at.

use super::PoolName;
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use std::path::Path;
use std::sync::Arc;
use tidemark_engine::value::Value;
use tidemark_engine::watch::{PoolSearch, PoolTrail, PoolWitness, TrailError};
use tidemark_log::tools::Records;
use tidemark_log::{FileStorage, Log, Lsn, MemoryStorage, Options, Record, Snapshot, Snapshots, Storage};
use tidemark_server::KEYSPACE;

/// A data directory, of which the records up to one are looked at.
pub(super) struct History {
    storage: Arc<dyn Storage>,
    /// What the log builds on; `None` if it reaches back to its beginning.
    base: Option<Snapshot>,
    /// Older snapshots that cannot be read, on any of which it would have been built.
    damaged: Vec<Lsn>,
    last: Lsn,
    search: PoolSearch,
    trail: PoolTrail,
}

/// What a record was about that could not be followed.
#[derive(Debug, thiserror::Error)]
#[error("record {lsn}: {error}")]
pub(super) struct NotGood {
    pub(super) lsn: Lsn,
    pub(super) error: Box<TrailError>,
}

impl History {
    /// Reads the log once, to see which keys have to do with the one that is asked for.
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

    /// The last record of the snapshot that the log builds on, if it does not reach back to its beginning.
    pub(super) fn base(&self) -> Option<Lsn> {
        self.base.as_ref().map(Snapshot::lsn)
    }

    /// What could not be looked at, because the snapshot before it is damaged; `None` if there is nothing of that kind.
    pub(super) fn unread(&self) -> Option<String> {
        let (damaged, base) = (self.damaged.first()?, self.base()?);
        Some(format!(
            "the snapshot at record {damaged} is damaged, so what came before record {base} was not looked at; `tidemark log verify` shows the damage"
        ))
    }

    /// The last record that is looked at.
    pub(super) fn last(&self) -> Lsn {
        self.last
    }

    /// What is known by now.
    pub(super) fn trail(&self) -> &PoolTrail {
        &self.trail
    }

    /// Goes through all of it, under the eyes of a witness, who is first shown what the snapshot has. Where a name is given, each later
    /// snapshot must have its pool as the log leads to it; says how many have.
    pub(super) fn follow(
        &mut self,
        witness: &mut impl PoolWitness,
        compared: Option<&PoolName>,
        bar: &ProgressBar,
    ) -> anyhow::Result<u64> {
        if let Some(base) = &self.base {
            load(&self.trail, base)?;
            witness.changed(base.lsn(), 0, &self.trail)?;
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
                apply(&mut self.trail, &record, witness)?;
            }
        }
        for (snapshot, name) in later.zip(compared.into_iter().cycle()) {
            agreeing += u64::from(self.compare(&snapshot, name)?);
        }
        Ok(agreeing)
    }

    /// The snapshots that lie within what is looked at, the base aside.
    fn later_snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        let (all, base) = (Snapshots::new(Arc::clone(&self.storage)), self.base().unwrap_or(Lsn::ZERO));
        let lsns = all.list()?.into_iter().filter(|lsn| (base..=self.last).contains(lsn) && *lsn != base);
        let mut there = Vec::new();
        for lsn in lsns {
            match all.open(lsn) {
                Ok(snapshot) => there.push(snapshot),
                // A server at work has removed it since.
                Err(_) if !all.list()?.contains(&lsn) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(there)
    }

    /// Whether a snapshot of this moment has a pool, which is then the one that the log leads to.
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
            // Its time may have come without a word in the log yet.
            (Some(_), None) if self.trail.expires(name.db, &name.key) => Ok(false),
            (log, snapshot) if log == snapshot => Ok(true),
            _ => bail!(
                "pool {name}: not good\nthe snapshot at record {} does not have the pool as the log leads to it",
                snapshot.lsn()
            ),
        }
    }
}

fn apply(trail: &mut PoolTrail, record: &Record<'_>, witness: &mut impl PoolWitness) -> anyhow::Result<()> {
    trail.apply(record, witness).map_err(|error| match error {
        // Whoever reads our output may have seen enough, which is no failure.
        TrailError::Witness(error) => anyhow::Error::from(error),
        error => NotGood { lsn: record.lsn, error: Box::new(error) }.into(),
    })
}

/// The oldest snapshot that the log reaches back to, so that as much as possible is looked at; none if it reaches back to its beginning.
/// Where a repair has left no log, the newest snapshot is all there is. And those that are damaged and would have come before it.
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

/// Loads a snapshot's keys, as far as they are followed.
fn load(trail: &PoolTrail, snapshot: &Snapshot) -> anyhow::Result<()> {
    let (loader, mut buffer) = (trail.load(), Vec::new());
    let failed = || format!("the snapshot at record {}", snapshot.lsn());
    for frame in snapshot.frames().iter().filter(|frame| frame.section == KEYSPACE) {
        snapshot.read_frame(frame, &mut buffer)?;
        loader.load_frame(&buffer).with_context(failed)?;
    }
    loader.finish().with_context(failed)
}

/// An engine has a log; that of this one is never written.
fn empty_log() -> anyhow::Result<Arc<Log>> {
    let options = Options { segment_bytes: Options::SEGMENT_BYTES_MIN, ..Options::default() };
    Ok(Arc::new(Log::open(Arc::new(MemoryStorage::new()), options)?.0))
}
