//! A log's storage that counts what is written to its files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidemark_log::Storage;
use tidemark_log::storage::{StorageFile, StorageLock};

/// Another storage, and how many bytes were written to it.
#[derive(Debug)]
pub(super) struct Counting {
    inner: Arc<dyn Storage>,
    bytes: Arc<AtomicU64>,
}

impl Counting {
    pub(super) fn new(inner: Arc<dyn Storage>) -> Self {
        Counting { inner, bytes: Arc::default() }
    }

    /// How many bytes were written to its files so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    fn counting(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(File { inner: file, bytes: Arc::clone(&self.bytes) })
    }
}

impl Storage for Counting {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.counting(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.counting(self.inner.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn lock(&self) -> io::Result<StorageLock> {
        self.inner.lock()
    }

    fn path(&self, name: &str) -> String {
        self.inner.path(name)
    }
}

/// A file of it.
#[derive(Debug)]
struct File {
    inner: Box<dyn StorageFile>,
    bytes: Arc<AtomicU64>,
}

impl StorageFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let written = self.inner.write_at(data, offset)?;
        self.bytes.fetch_add(written as u64, Relaxed);
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.inner.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.inner.allocate(bytes)
    }
}
