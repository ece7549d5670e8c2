//! Storage in memory, with simulated power failures.
//!
//! Each file keeps its live bytes and, if crashes are simulated, the bytes that a power failure
//! leaves:
//!
//! ```text
//! write_at ──► live bytes ──sync_data──► durable bytes
//!                   └── dirty 512-byte sectors: crash(seed) keeps each of them or not
//! rename… ───► live names ──sync_dir───► durable names
//!                   └── pending changes of names: crash(seed) keeps each of them or not
//! ```

use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Storage, StorageFile, StorageLock};

/// Unit of an atomic disk write: after a crash a sector is entirely new or entirely old.
const SECTOR_BYTES: usize = 512;

/// A directory in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryStorage {
    directory: Arc<Mutex<Directory>>,
    locked: Arc<AtomicBool>,
    /// Whether durable state is kept separately from live state.
    crashes: bool,
}

impl MemoryStorage {
    /// Creates an empty directory without crash simulation: cheapest, for caches and benchmarks.
    pub fn new() -> Self {
        Self::with(Directory::default(), false)
    }

    /// Creates an empty directory that tracks what is durable, for [`crash`](Self::crash).
    pub fn with_crashes() -> Self {
        Self::with(Directory::default(), true)
    }

    fn with(directory: Directory, crashes: bool) -> Self {
        Self { directory: Arc::new(Mutex::new(directory)), locked: Arc::new(AtomicBool::new(false)), crashes }
    }

    /// Returns what a reader would find after a power failure now: everything durable, and a subset
    /// of the rest that depends only on `seed`. This directory is unchanged.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        assert!(self.crashes, "made by MemoryStorage::with_crashes");
        let mut random = Rng::with_seed(seed);
        // Some seeds lose nearly everything, some nearly nothing: each extreme exposes different
        // bugs.
        let keep_permille = [0, 100, 500, 900, 1000][random.usize(..5)];
        let directory = lock(&self.directory);
        let mut names = directory.durable.clone();
        for change in &directory.pending {
            if random.u64(..1000) < keep_permille {
                change.apply(&mut names);
            }
        }
        let mut contents: BTreeMap<u64, Arc<Mutex<Content>>> = BTreeMap::new();
        for inode in names.values() {
            let survivor = lock(&inode.content).crash(&mut random, keep_permille);
            contents.insert(inode.number, Arc::new(Mutex::new(survivor)));
        }
        let names: Names = names
            .into_iter()
            .map(|(name, inode)| {
                let content = contents[&inode.number].clone();
                (name, Inode { number: inode.number, content })
            })
            .collect();
        let survivor = Directory {
            durable: names.clone(),
            live: names,
            pending: Vec::new(),
            next_inode: directory.next_inode,
        };
        Self::with(survivor, true)
    }

    /// Returns the live bytes of a file, for tests that inspect or damage it.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let directory = lock(&self.directory);
        let inode = directory.live.get(name)?;
        Some(lock(&inode.content).live.clone())
    }

    /// Stores a durable file with these bytes, replacing any file of that name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut directory = lock(&self.directory);
        let durable = if self.crashes { bytes.clone() } else { Vec::new() };
        let content = Content { live: bytes, durable, dirty: BTreeSet::new() };
        let inode = directory.inode(content);
        directory.live.insert(name.to_owned(), inode.clone());
        directory.durable.insert(name.to_owned(), inode);
    }

    /// Returns a separate directory with the same live files, all durable.
    #[must_use]
    pub fn fork(&self) -> Self {
        let copy = Self::with(Directory::default(), self.crashes);
        for (name, inode) in &lock(&self.directory).live {
            copy.put(name, lock(&inode.content).live.clone());
        }
        copy
    }

    fn file(&self, inode: Inode) -> Box<dyn StorageFile> {
        Box::new(MemoryFile { content: inode.content, crashes: self.crashes })
    }

    fn change(&self, directory: &mut Directory, change: Change) {
        change.apply(&mut directory.live);
        if self.crashes {
            directory.pending.push(change);
        } else {
            change.apply(&mut directory.durable);
        }
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for MemoryStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.directory).live.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut directory = lock(&self.directory);
        if directory.live.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = directory.inode(Content::default());
        self.change(&mut directory, Change::Link(name.to_owned(), inode.clone()));
        Ok(self.file(inode))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let inode = lock(&self.directory).live.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(inode))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut directory = lock(&self.directory);
        if !directory.live.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(&mut directory, Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut directory = lock(&self.directory);
        if !directory.live.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(&mut directory, Change::Unlink(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut directory = lock(&self.directory);
        directory.pending.clear();
        directory.durable = directory.live.clone();
        Ok(())
    }

    fn lock(&self) -> io::Result<StorageLock> {
        if self.locked.swap(true, Ordering::AcqRel) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(StorageLock::new(Unlock(self.locked.clone())))
    }

    fn path(&self, name: &str) -> String {
        format!("memory:{name}")
    }
}

struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

type Names = BTreeMap<String, Inode>;

#[derive(Debug, Default)]
struct Directory {
    live: Names,
    durable: Names,
    /// Changes since the last `sync_dir`, oldest first.
    pending: Vec<Change>,
    next_inode: u64,
}

impl Directory {
    fn inode(&mut self, content: Content) -> Inode {
        self.next_inode += 1;
        Inode { number: self.next_inode, content: Arc::new(Mutex::new(content)) }
    }
}

#[derive(Clone, Debug)]
struct Inode {
    number: u64,
    content: Arc<Mutex<Content>>,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, Inode),
    Rename(String, String),
    Unlink(String),
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Link(name, inode) => {
                names.insert(name.clone(), inode.clone());
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Unlink(name) => {
                names.remove(name);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Content {
    live: Vec<u8>,
    /// Empty and unused when crashes are not simulated.
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

impl Content {
    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            copy_sector(&self.live, &mut self.durable, sector);
        }
    }

    fn crash(&self, random: &mut Rng, keep_permille: u64) -> Self {
        let mut bytes = self.durable.clone();
        if bytes.len() != self.live.len() && random.u64(..1000) < keep_permille {
            bytes.resize(self.live.len(), 0);
        }
        for &sector in &self.dirty {
            if random.u64(..1000) < keep_permille {
                copy_sector(&self.live, &mut bytes, sector);
            }
        }
        Self { durable: bytes.clone(), live: bytes, dirty: BTreeSet::new() }
    }
}

fn copy_sector(from: &[u8], to: &mut [u8], sector: usize) {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(from.len()).min(to.len());
    // A dirty sector may lie beyond the end of a file that was truncated later.
    if start < end {
        to[start..end].copy_from_slice(&from[start..end]);
    }
}

#[derive(Debug)]
struct MemoryFile {
    content: Arc<Mutex<Content>>,
    crashes: bool,
}

impl StorageFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = lock(&self.content);
        let rest = usize::try_from(offset).ok().and_then(|offset| content.live.get(offset..)).unwrap_or(&[]);
        let size = rest.len().min(buffer.len());
        buffer[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let mut content = lock(&self.content);
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let end = start.checked_add(data.len()).ok_or(io::ErrorKind::InvalidInput)?;
        if content.live.len() < end {
            content.live.resize(end, 0);
        }
        content.live[start..end].copy_from_slice(data);
        if self.crashes && !data.is_empty() {
            content.dirty.extend(start / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
        }
        Ok(data.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.crashes {
            lock(&self.content).sync();
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.content).live.len() as u64)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        lock(&self.content).live.resize(bytes, 0);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        if self.len()? < bytes {
            self.set_len(bytes)?;
        }
        Ok(true)
    }
}

/// Locks a mutex. Ignores poisoning: the plain bytes stay usable after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
