//! Snapshots: the whole state at one LSN, in a file next to the log.
//!
//! The container is independent of the frames' meaning. It provides checksums, sections that can be
//! read in parallel, and a name that appears only when the whole file is durable.
//!
//! ```text
//! header │ frame │ frame │ … │ index: one entry a frame │ trailer: where the index is
//!
//! header   magic "TIDESNAP", version u32, zeros u32, lsn u64, zeros u32, crc u32            (32 bytes)
//! frame    crc u32 (of the rest), len u32, section u32, len bytes of payload
//! entry    offset u64, len u32, section u32
//! trailer  index offset u64, entries u64, crc u32 of the index, zeros u32, crc u32 of the trailer's front,
//!          magic "DONE"                                                                      (32 bytes)
//! ```
//!
//! An *incremental* snapshot has only the sections that differ from an older full one, its *base*.
//! The base's LSN is in its name and, after its own LSN, in its header, which is 8 bytes longer and
//! has version 2. An entry with offset and length 0 means that the section is unchanged from the
//! base. A section without an entry does not exist.
//!
//! What never changes may be in [block files](BlockFiles), which snapshots list and share.

mod blocks;
mod name;
mod read;
mod write;

use std::io;
use std::sync::Arc;

pub(crate) use blocks::name_of as block_file_name;
pub use blocks::{BLOCK_FILE_HEADER_BYTES, BLOCK_OVERHEAD_BYTES, BlockFile, BlockFileUse, BlockFiles};
pub(crate) use name::{Name, covered};
pub use read::{FrameEntry, Snapshot};
pub use write::SnapshotWriter;

use crate::Lsn;
use crate::error::Failure;
use crate::storage::{Storage, is_shortage};

const HEADER_MAGIC: [u8; 8] = *b"TIDESNAP";
const TRAILER_MAGIC: [u8; 4] = *b"DONE";
const VERSION_WHOLE: u32 = 1;
const VERSION_INCREMENTAL: u32 = 2;
/// Suffix of a snapshot that was set aside.
const ASIDE_SUFFIX: &str = ".unusable";
const TRAILER_BYTES: usize = 32;
const FRAME_OVERHEAD_BYTES: usize = 12;
const ENTRY_BYTES: usize = 16;

/// Largest payload of a frame: the maximum of its length field.
pub const FRAME_BYTES_MAX: usize = u32::MAX as usize;

/// The snapshots of a directory.
#[derive(Clone, Debug)]
pub struct Snapshots {
    storage: Arc<dyn Storage>,
}

impl Snapshots {
    /// Accesses the snapshots in `storage`.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// Returns the LSNs of all snapshots, full and incremental, oldest first.
    pub fn list(&self) -> Result<Vec<Lsn>, SnapshotError> {
        let mut lsns: Vec<Lsn> = self.names()?.into_iter().map(|name| name.lsn).collect();
        lsns.dedup();
        Ok(lsns)
    }

    /// Returns the size of the full snapshot at `lsn`, in bytes.
    pub fn bytes(&self, lsn: Lsn) -> Result<u64, SnapshotError> {
        let name = Name::whole(lsn).to_string();
        let bytes = self.storage.open(&name).and_then(|file| file.len());
        Ok(bytes.map_err(|error| Failure::new(format!("measuring {}", self.storage.path(&name)), error))?)
    }

    /// Opens one snapshot and its base. Checks headers and indexes, but not the frames.
    pub fn open(&self, lsn: Lsn) -> Result<Snapshot, SnapshotError> {
        let found = self.names()?.into_iter().find(|name| name.lsn == lsn);
        Snapshot::open(&*self.storage, found.unwrap_or(Name::whole(lsn)))
    }

    pub(crate) fn open_named(&self, name: Name) -> Result<Snapshot, SnapshotError> {
        Snapshot::open(&*self.storage, name)
    }

    pub(crate) fn names(&self) -> Result<Vec<Name>, SnapshotError> {
        let names = self.storage.list().map_err(|error| Failure::new("listing the snapshots", error))?;
        let mut names: Vec<Name> = names.iter().filter_map(|name| Name::parse(name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the names of all files that a snapshot consists of: its own, its base's, and the block
    /// files that either refers to.
    pub fn files(&self, lsn: Lsn) -> Result<Vec<String>, SnapshotError> {
        let snapshot = self.open(lsn)?;
        let whole = snapshot.base().map(|base| self.open_named(Name::whole(base))).transpose()?;
        let mut names = std::collections::BTreeSet::new();
        for part in [Some(&snapshot), whole.as_ref()].into_iter().flatten() {
            names.insert(Name { lsn: part.lsn(), base: part.base() }.to_string());
            names.extend(part.block_files()?.into_iter().map(|file| block_file_name(file.number)));
        }
        Ok(names.into_iter().collect())
    }

    /// Returns the newest snapshot that is entirely valid, including the parts of its base that it
    /// uses, and the errors of newer ones, newest first.
    ///
    /// An older snapshot is usable only if the log reaches back to it: `floor` is the log's oldest
    /// record. `None` means that there is no snapshot and the log is complete.
    pub fn latest(&self, floor: Lsn) -> Result<(Option<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        self.latest_below(floor, None)
    }

    /// Like [`Snapshots::latest`], among the snapshots older than `below`: for callers that could
    /// not use that one.
    pub fn latest_below(
        &self,
        floor: Lsn,
        below: Option<Lsn>,
    ) -> Result<(Option<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        let older = |name: &Name| below.is_none_or(|below| name.lsn < below);
        let names = self.names()?.into_iter().rev().filter(older);
        let verified = names.map(|name| {
            let verify = move || {
                let snapshot = Snapshot::open(&*self.storage, name)?;
                snapshot.verify()?;
                snapshot.find_blocks(&*self.storage)?;
                Ok(snapshot)
            };
            (name.lsn, verify)
        });
        newest_usable(floor, verified)
    }

    /// Renames the snapshots newer than `used`, or all, so that they no longer count as kept: for
    /// callers that recovered without them. The files stay for inspection; returns the new paths.
    pub fn set_aside(&self, used: Option<Lsn>) -> Result<Vec<String>, SnapshotError> {
        let mut paths = Vec::new();
        for name in self.names()?.into_iter().filter(|name| used.is_none_or(|used| name.lsn > used)) {
            let name = name.to_string();
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

    /// Removes all but the newest `keep` full snapshots (at least one stays) and the newest `keep`
    /// incremental ones based on those. Returns the record up to which the log need not be kept:
    /// the one that the oldest full snapshot covers, or none until there are `keep`.
    pub fn prune(&self, keep: usize) -> Result<Lsn, SnapshotError> {
        let names = self.names()?;
        let surplus = name::surplus(&names, keep);
        for name in &surplus {
            let name = name.to_string();
            let failed = |error| Failure::new(format!("removing {}", self.storage.path(&name)), error);
            self.storage.remove(&name).map_err(failed)?;
        }
        if !surplus.is_empty() {
            self.storage.sync_dir().map_err(|error| sync_failed("removing old snapshots", error))?;
        }
        Ok(covered(names, keep))
    }
}

/// Returns the first readable snapshot from which a log that starts at `floor` can continue, and
/// the errors of those before it. `None` if there is none and the log is complete. `snapshots`
/// yields LSNs and readers, newest first.
pub(crate) fn newest_usable<T>(
    floor: Lsn,
    snapshots: impl Iterator<Item = (Lsn, impl FnOnce() -> Result<T, SnapshotError>)>,
) -> Result<(Option<T>, Vec<SnapshotError>), SnapshotError> {
    let mut damaged = Vec::new();
    for (_, read) in snapshots.take_while(|(lsn, _)| lsn.next() >= floor) {
        match read() {
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

/// Why a snapshot cannot be written or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The storage failed. This is not fatal for the log if the snapshot was being written.
    #[error("snapshot: {0}")]
    Storage(Failure),
    /// A sync failed: the disk can no longer be trusted, and the log that gets this error stops.
    #[error("snapshot: {0}; the log is stopped, because its disk cannot be trusted")]
    Sync(Failure),
    /// The file does not contain what was written.
    #[error("the snapshot {path} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// Byte offset of the damage.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A block file does not contain what was written.
    #[error("the block file {path} is damaged at byte {offset}: {what}")]
    DamagedBlock {
        /// The file.
        path: String,
        /// Byte offset of the block, or of what is wrong.
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
    /// The log up to the snapshot could not be made durable, so the snapshot was abandoned.
    #[error("the log before the snapshot is not durable: {0}")]
    Log(crate::AppendError),
}

impl From<Failure> for SnapshotError {
    fn from(failure: Failure) -> Self {
        Self::Storage(failure)
    }
}

/// Classifies a failed sync: a shortage abandons the snapshot, any other error condemns the disk.
fn sync_failed(what: impl Into<String>, error: io::Error) -> SnapshotError {
    let failure = Failure::new(what, error);
    if is_shortage(&failure.error) { SnapshotError::Storage(failure) } else { SnapshotError::Sync(failure) }
}
