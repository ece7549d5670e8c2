//! Snapshots: the whole state at one LSN, in a file beside the log.
//!
//! What the frames mean is their owner's business; the container gives them checksums, sections that can be read in
//! parallel, and a name that appears only when everything in the file is durable.
//!
//! ```text
//! header │ frame │ frame │ … │ index: one entry a frame │ trailer: where the index is
//!
//! header   magic "TIDESNAP", version u32, zeros u32, lsn u64, zeros u32, crc u32            (32 bytes)
//! frame    crc u32 (of the rest), len u32, section u32, len bytes of payload
//! entry    offset u64, len u32, section u32
//! trailer  index offset u64, frames u64, crc u32 of the index, zeros u32, crc u32 of the trailer's front,
//!          magic "DONE"                                                                      (32 bytes)
//! ```

mod read;
mod write;

use std::io;
use std::sync::Arc;

pub use read::{FrameEntry, Snapshot};
pub use write::SnapshotWriter;

use crate::Lsn;
use crate::error::Failure;
use crate::segment::TEMPORARY_SUFFIX;
use crate::storage::{Storage, is_shortage};

const HEADER_MAGIC: [u8; 8] = *b"TIDESNAP";
const TRAILER_MAGIC: [u8; 4] = *b"DONE";
const VERSION: u32 = 1;
/// Ends the name of a snapshot that was passed over.
const ASIDE_SUFFIX: &str = ".unusable";
const HEADER_BYTES: usize = 32;
const TRAILER_BYTES: usize = 32;
const FRAME_OVERHEAD_BYTES: usize = 12;
const ENTRY_BYTES: usize = 16;

/// Largest payload of a frame: what its length field can say.
pub const FRAME_BYTES_MAX: usize = u32::MAX as usize;

/// The snapshots of a directory.
#[derive(Clone, Debug)]
pub struct Snapshots {
    storage: Arc<dyn Storage>,
}

impl Snapshots {
    /// Looks in `storage`.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// LSNs of all snapshots, oldest first.
    pub fn list(&self) -> Result<Vec<Lsn>, SnapshotError> {
        let names = self.storage.list().map_err(|error| Failure::new("listing the snapshots", error))?;
        let mut lsns: Vec<Lsn> = names.iter().filter_map(|name| parse_snapshot_name(name)).collect();
        lsns.sort_unstable();
        Ok(lsns)
    }

    /// Opens one snapshot: checks header and index, not yet the frames.
    pub fn open(&self, lsn: Lsn) -> Result<Snapshot, SnapshotError> {
        Snapshot::open(&*self.storage, lsn)
    }

    /// The newest snapshot of which every byte is verified, together with the damage of newer ones, newest first.
    ///
    /// An older snapshot will do only while the log reaches back to it: `floor` is the log's oldest record. `None`
    /// means that there is no snapshot and that the log reaches back to its very beginning.
    pub fn latest(&self, floor: Lsn) -> Result<(Option<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        self.latest_below(floor, None)
    }

    /// As [`Snapshots::latest`], among those older than `below`, for callers who could not use that one.
    pub fn latest_below(
        &self,
        floor: Lsn,
        below: Option<Lsn>,
    ) -> Result<(Option<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        let mut damaged = Vec::new();
        let older = |lsn: &Lsn| below.is_none_or(|below| *lsn < below);
        for lsn in self.list()?.into_iter().filter(older).rev() {
            if lsn.next() < floor {
                break;
            }
            match self.open(lsn).and_then(|snapshot| snapshot.verify().map(|()| snapshot)) {
                Ok(snapshot) => return Ok((Some(snapshot), damaged)),
                Err(error) => damaged.push(error),
            }
        }
        if floor <= Lsn::FIRST {
            return Ok((None, damaged));
        }
        match damaged.into_iter().next() {
            Some(newest) => Err(SnapshotError::NoneUsable { floor, newest: Box::new(newest) }),
            None => Err(SnapshotError::Missing { floor }),
        }
    }

    /// Renames the snapshots newer than `used`, or all, so that they no longer count among those that are kept: for callers
    /// who passed them over and have come back without them. Their bytes stay for whoever wants to look at them; returns
    /// the new paths.
    pub fn set_aside(&self, used: Option<Lsn>) -> Result<Vec<String>, SnapshotError> {
        let mut paths = Vec::new();
        for lsn in self.list()?.into_iter().filter(|lsn| used.is_none_or(|used| *lsn > used)) {
            let name = snapshot_name(lsn);
            let aside = format!("{name}{ASIDE_SUFFIX}");
            let failed = |error| Failure::new(format!("renaming {}", self.storage.path(&name)), error);
            self.storage.rename(&name, &aside).map_err(failed)?;
            paths.push(self.storage.path(&aside));
        }
        if !paths.is_empty() {
            let failed = |error| sync_failed("setting aside snapshots that were passed over", error);
            self.storage.sync_dir().map_err(failed)?;
        }
        Ok(paths)
    }

    /// Removes all but the newest `keep` snapshots (at least one stays); returns the oldest that is left.
    pub fn prune(&self, keep: usize) -> Result<Option<Lsn>, SnapshotError> {
        let lsns = self.list()?;
        let surplus = lsns.len().saturating_sub(keep.max(1));
        for lsn in lsns.iter().take(surplus) {
            let name = snapshot_name(*lsn);
            let failed = |error| Failure::new(format!("removing {}", self.storage.path(&name)), error);
            self.storage.remove(&name).map_err(failed)?;
        }
        if surplus > 0 {
            self.storage.sync_dir().map_err(|error| sync_failed("removing old snapshots", error))?;
        }
        Ok(lsns.get(surplus).copied())
    }
}

/// Why a snapshot cannot be written or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The storage failed. For a snapshot being written this is not fatal for the log.
    #[error("snapshot: {0}")]
    Storage(#[from] Failure),
    /// A sync failed: the disk is not to be trusted any more, and the log that was told of it stops.
    #[error("snapshot: {0}; the log is stopped, because its disk cannot be trusted")]
    Sync(Failure),
    /// The file is not what was written.
    #[error("the snapshot {path} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// Byte offset of the damage in it.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// No snapshot can be read, and the log no longer reaches back to its beginning.
    #[error(
        "no usable snapshot: {newest}; the log begins only at record {floor}; \
         restore the directory from a backup"
    )]
    NoneUsable {
        /// The oldest record of the log.
        floor: Lsn,
        /// What is wrong with the newest snapshot.
        newest: Box<SnapshotError>,
    },
    /// There is no snapshot that the log continues.
    #[error(
        "there is no snapshot at record {} or later, where the log begins; restore the directory from a backup",
        floor.previous()
    )]
    Missing {
        /// The oldest record of the log.
        floor: Lsn,
    },
    /// A frame is larger than [`FRAME_BYTES_MAX`].
    #[error("a snapshot frame of {bytes} bytes is larger than the limit of {FRAME_BYTES_MAX} bytes")]
    FrameTooLarge {
        /// The frame's size.
        bytes: usize,
    },
    /// The log up to the snapshot could not be made durable, so the snapshot was given up.
    #[error("the log before the snapshot is not durable: {0}")]
    Log(crate::AppendError),
}

/// What a failed sync means: a shortage gives up the snapshot, anything else the disk.
fn sync_failed(what: impl Into<String>, error: io::Error) -> SnapshotError {
    let failure = Failure::new(what, error);
    if is_shortage(&failure.error) { SnapshotError::Storage(failure) } else { SnapshotError::Sync(failure) }
}

/// The LSN in a snapshot's file name.
pub(crate) fn parse_snapshot_name(name: &str) -> Option<Lsn> {
    let lsn = Lsn(name.strip_prefix("snapshot-")?.strip_suffix(".tide")?.parse().ok()?);
    (snapshot_name(lsn) == name).then_some(lsn)
}

pub(crate) fn snapshot_name(lsn: Lsn) -> String {
    format!("snapshot-{:020}.tide", lsn.0)
}

fn temporary_name(lsn: Lsn) -> String {
    format!("{}{TEMPORARY_SUFFIX}", snapshot_name(lsn))
}
