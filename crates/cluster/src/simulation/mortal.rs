//! Storage of a process that can end in the middle of anything: before, or within, the n-th call that
//! changes something.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tidemark_log::storage::{StorageFile, StorageLock};
use tidemark_log::{MemoryStorage, Storage};

use super::lock::lock;

type End = Box<dyn FnOnce() + Send>;

/// Ends a process at a call of its storage.
#[derive(Default)]
pub(super) struct Fuse {
    /// Calls until the end; 0 if none is planned.
    left: AtomicU64,
    end: Mutex<Option<End>>,
}

impl fmt::Debug for Fuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fuse").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Fuse {
    /// Calls `end` at the `calls`-th call from now on.
    pub(super) fn light(&self, calls: u64, end: End) {
        *lock(&self.end) = Some(end);
        self.left.store(calls, Ordering::Relaxed);
    }

    fn is_due(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 1
    }

    /// Counts a call. What it does afterwards, no later process sees.
    fn burn(&self) {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        if left == 1 {
            let end = lock(&self.end).take();
            end.into_iter().for_each(|end| end());
        }
    }
}

/// The storage of one process.
#[derive(Debug)]
pub(super) struct MortalStorage {
    disk: MemoryStorage,
    fuse: Arc<Fuse>,
}

impl MortalStorage {
    pub(super) fn new(disk: MemoryStorage, fuse: Arc<Fuse>) -> Self {
        Self { disk, fuse }
    }

    fn file(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(MortalFile { file, fuse: self.fuse.clone() })
    }
}

impl Storage for MortalStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.fuse.burn();
        self.disk.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.disk.open(name).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.fuse.burn();
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.fuse.burn();
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.fuse.burn();
        self.disk.sync_dir()
    }

    fn lock(&self) -> io::Result<StorageLock> {
        self.disk.lock()
    }

    fn path(&self, name: &str) -> String {
        self.disk.path(name)
    }
}

#[derive(Debug)]
struct MortalFile {
    file: Box<dyn StorageFile>,
    fuse: Arc<Fuse>,
}

impl StorageFile for MortalFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        if self.fuse.is_due() {
            self.file.write_at(&data[..data.len() / 2], offset)?;
        }
        self.fuse.burn();
        self.file.write_at(data, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fuse.burn();
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.fuse.burn();
        self.file.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.fuse.burn();
        self.file.allocate(bytes)
    }
}
