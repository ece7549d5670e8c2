//! Storage in memory-mapped files: a write is a copy into the mapping, without a system call, and survives the
//! process from that moment on.
//!
//! `unsafe` is needed for one call: a mapping is sound only while nobody else changes or truncates the file.
//! Invariants that make it so:
//! 1. The directory's lock is held by everyone who changes its files, so other processes leave them alone.
//! 2. Within this process the mapping is reachable only under the `RwLock` of its file: changed under the write lock,
//!    and only read by the kernel's write-back under the read lock. No reference into it outlives the guard.
//! 3. The mapping is dropped before the file is shortened, and it is never longer than the file.
//!
//! What stays is a read error of the disk under the mapping, which ends the process with SIGBUS. Segments are written
//! front to back and preallocated, so this concerns a failing disk only; recovery starts from what was synced.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use memmap2::MmapMut;

use super::file::{FileStorage, allocate};
use super::{Storage, StorageFile, StorageLock};

/// A directory of files that are mapped into memory.
#[derive(Debug)]
pub struct MmapStorage {
    files: FileStorage,
}

impl MmapStorage {
    /// Uses `directory`, which is made if it is missing.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self { files: FileStorage::new(directory)? })
    }
}

impl Storage for MmapStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(MappedFile::new(self.files.open_plain(name, true)?)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(MappedFile::new(self.files.open_plain(name, false)?)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.files.sync_dir()
    }

    fn lock(&self) -> io::Result<StorageLock> {
        self.files.lock()
    }

    fn path(&self, name: &str) -> String {
        self.files.path(name)
    }
}

#[derive(Debug)]
struct MappedFile {
    file: File,
    mapping: RwLock<Mapping>,
}

#[derive(Debug)]
struct Mapping {
    /// `None` for an empty file, which cannot be mapped.
    map: Option<MmapMut>,
    /// Written through the mapping since the last sync.
    dirty: Range<usize>,
    /// Whether something was written behind the mapping's end, through the file.
    beyond: bool,
}

impl MappedFile {
    fn new(file: File) -> io::Result<Self> {
        let map = map(&file)?;
        Ok(Self { file, mapping: RwLock::new(Mapping { map, dirty: 0..0, beyond: false }) })
    }

    fn write(&self) -> RwLockWriteGuard<'_, Mapping> {
        self.mapping.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Mapping> {
        self.mapping.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the file's size and maps it again. What was written before is still the page cache's to write back.
    fn resize<T>(&self, change: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let mut mapping = self.write();
        mapping.map = None;
        mapping.beyond |= !mapping.dirty.is_empty();
        mapping.dirty = 0..0;
        let changed = change(&self.file)?;
        mapping.map = map(&self.file)?;
        Ok(changed)
    }
}

impl StorageFile for MappedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        // Mapping and file share the page cache; reading through the file reports errors as errors.
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let mut mapping = self.write();
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let end = start.checked_add(data.len()).ok_or(io::ErrorKind::InvalidInput)?;
        let Some(target) = mapping.map.as_mut().and_then(|map| map.get_mut(start..end)) else {
            mapping.beyond = true;
            return self.file.write_at(data, offset);
        };
        target.copy_from_slice(data);
        mapping.dirty = if mapping.dirty.is_empty() {
            start..end
        } else {
            mapping.dirty.start.min(start)..mapping.dirty.end.max(end)
        };
        Ok(data.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (dirty, beyond) = {
            let mut mapping = self.write();
            (std::mem::take(&mut mapping.dirty), std::mem::take(&mut mapping.beyond))
        };
        if !dirty.is_empty()
            && let Some(map) = &self.read().map
        {
            map.flush_range(dirty.start, dirty.len())?;
        }
        if beyond { self.file.sync_data() } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.resize(|file| file.set_len(bytes))
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        self.resize(|file| allocate(file, bytes))
    }
}

fn map(file: &File) -> io::Result<Option<MmapMut>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: invariants 1 to 3 above: the lock keeps other processes away, `RwLock` orders our own accesses, and
    // `resize`, the only place that shortens the file, drops the mapping first.
    unsafe { MmapMut::map_mut(file) }.map(Some)
}
