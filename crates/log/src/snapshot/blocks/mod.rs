//! Block files: what snapshots share.
//!
//! A snapshot may have payloads that never change, *blocks*, in files of their own, which later
//! snapshots refer to. It lists the block files that it refers to. A block file lives while a snapshot
//! lists it or the process has it open.

mod file;

pub(crate) use file::BlockFileWriter;
pub use file::{BLOCK_OVERHEAD_BYTES, BlockFile, HEADER_BYTES as BLOCK_FILE_HEADER_BYTES};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{SnapshotError, Snapshots, sync_failed};
use crate::error::Failure;
use crate::storage::Storage;

/// Section of a snapshot that lists the block files it refers to: number u64 and used bytes u64 of each.
pub(crate) const SECTION: u32 = u32::MAX;

const PREFIX: &str = "blocks-";
const SUFFIX: &str = ".tide";

/// A block file as a snapshot lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFileUse {
    /// Number of the file.
    pub number: u64,
    /// Bytes of the blocks in it that the snapshot refers to; a block as often as it does.
    pub used_bytes: u64,
}

/// Name of a block file.
pub(crate) fn name_of(number: u64) -> String {
    format!("{PREFIX}{number:020}{SUFFIX}")
}

/// Parses exactly what [`name_of`] writes.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
    (name_of(number) == name).then_some(number)
}

pub(crate) fn encode_list(files: &[BlockFileUse]) -> Vec<u8> {
    files.iter().flat_map(|file| [file.number, file.used_bytes]).flat_map(u64::to_le_bytes).collect()
}

pub(crate) fn decode_list(bytes: &[u8]) -> Option<Vec<BlockFileUse>> {
    let (numbers, rest) = bytes.as_chunks::<16>();
    let number =
        |bytes: &[u8; 16], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"));
    let file = |bytes| BlockFileUse { number: number(bytes, 0), used_bytes: number(bytes, 8) };
    rest.is_empty().then(|| numbers.iter().map(file).collect())
}

/// The block files of a directory. One value serves all of a process, so that it knows what is open.
#[derive(Debug)]
pub struct BlockFiles {
    storage: Arc<dyn Storage>,
    open: Mutex<OpenFiles>,
}

#[derive(Debug, Default)]
struct OpenFiles {
    files: BTreeMap<u64, Weak<BlockFile>>,
    /// The highest number given to a file by this process.
    last: u64,
    /// What the numbers of new files begin with.
    part: u64,
    /// Numbers of files that a snapshot lists which is still to come.
    kept: BTreeSet<u64>,
}

/// Bits of a number that count the files of one directory.
const COUNT_BITS: u32 = 24;
/// Largest part of the numbers.
const PART_MAX: u64 = (1 << (u64::BITS - COUNT_BITS)) - 1;

impl BlockFiles {
    /// Accesses the block files in `storage`.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, open: Mutex::default() }
    }

    /// Returns the numbers of all block files, ascending.
    pub fn list(&self) -> Result<Vec<u64>, SnapshotError> {
        let names = self.storage.list().map_err(|error| Failure::new("listing the block files", error))?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| parse_name(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens a file, or returns it if it is open already.
    pub fn open(&self, number: u64) -> Result<Arc<BlockFile>, SnapshotError> {
        let mut open = self.lock();
        if let Some(file) = open.files.get(&number).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(BlockFile::open(&*self.storage, number)?);
        open.files.insert(number, Arc::downgrade(&file));
        Ok(file)
    }

    /// Gives new files numbers of this directory's own, which begin with the low 40 bits of `part`: files
    /// of several directories are to be kept in one.
    pub fn set_part(&self, part: u64) {
        self.lock().part = part & PART_MAX;
    }

    /// Returns a number that no file has or had in this process.
    pub fn next_number(&self) -> Result<u64, SnapshotError> {
        let numbers = self.list()?;
        let mut open = self.lock();
        let first = open.part << COUNT_BITS;
        let is_own = |number: &&u64| **number >> COUNT_BITS == open.part;
        let newest = numbers.iter().rfind(is_own).copied().unwrap_or(first);
        open.last = open.last.max(newest) + 1;
        Ok(open.last)
    }

    /// Keeps the files of these names until the next call, although no snapshot lists them yet. Other
    /// names are ignored.
    pub fn keep<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let kept = names.filter_map(parse_name).collect();
        self.lock().kept = kept;
    }

    /// Runs `install`, which adds block files and then a snapshot that lists them: none is removed
    /// meanwhile.
    pub fn while_kept<T>(&self, install: impl FnOnce() -> T) -> T {
        let _open = self.lock();
        install()
    }

    /// Removes the files that no snapshot lists and that are not open. Returns how many. Removes none if
    /// the list of a snapshot cannot be read. Not to be called while a snapshot is written.
    pub fn remove_unused(&self) -> Result<usize, SnapshotError> {
        // Held while the directory is looked at: see `while_kept`.
        let mut open = self.lock();
        let numbers = self.list()?;
        if numbers.is_empty() {
            return Ok(0);
        }
        let used = self.listed()?;
        open.files.retain(|_, file| file.strong_count() > 0);
        let is_used = |number: &u64| {
            used.contains(number) || open.files.contains_key(number) || open.kept.contains(number)
        };
        let is_unused = |number: &u64| !is_used(number);
        let unused: Vec<u64> = numbers.into_iter().filter(is_unused).collect();
        for number in &unused {
            let name = name_of(*number);
            let failed = |error| Failure::new(format!("removing {}", self.storage.path(&name)), error);
            self.storage.remove(&name).map_err(failed)?;
        }
        if !unused.is_empty() {
            self.storage.sync_dir().map_err(|error| sync_failed("removing old block files", error))?;
        }
        Ok(unused.len())
    }

    /// Returns the files that snapshots list.
    fn listed(&self) -> Result<BTreeSet<u64>, SnapshotError> {
        let snapshots = Snapshots::new(Arc::clone(&self.storage));
        let mut used = BTreeSet::new();
        for name in snapshots.names()? {
            used.extend(snapshots.open_named(name)?.block_files()?.iter().map(|file| file.number));
        }
        Ok(used)
    }

    fn lock(&self) -> MutexGuard<'_, OpenFiles> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
