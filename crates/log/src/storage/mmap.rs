//! Storage in memory-mapped files: a write is a copy into the mapping, without a system call, and
//! immediately survives the end of the process.
//!
//! `unsafe` is needed for one call. A mapping has two hazards: the bytes change while a reference
//! into it exists, or a page has no backing storage and accessing it ends the process with SIGBUS.
//!
//! The bytes do not change behind a reference:
//! 1. Every process that changes the directory's files holds the directory's lock, so other
//!    Tidemark processes do not touch them.
//! 2. Within this process a file is written through one handle (a segment's), and its mapping is
//!    reachable only under the `RwLock` of that handle: changed under the write lock, and only read
//!    by the kernel's write-back under the read lock. No reference into it outlives the guard.
//!    Reading goes through the file and never maps it.
//!
//! Every page has backing storage:
//!
//! 3. The mapping is dropped before the file's size changes, and it is never longer than the file.
//! 4. A file is mapped only after `fallocate` has reserved every block of it, including holes that
//!    a copy may have made. Where the file system cannot reserve (`EOPNOTSUPP`) or has no space,
//!    nothing is mapped: writes go through the file, where a full disk is an error.
//!
//! Remaining hazards: a disk that fails under the mapping, a program that ignores the lock and
//! truncates a segment, and a copy-on-write file system (btrfs, ZFS, XFS under a reflinked copy)
//! that runs out of space despite the reservation. Each ends the process with SIGBUS, which is a
//! crash like any other: recovery starts from what was synced.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use memmap2::MmapMut;

use super::file::{FileStorage, allocate, reserve};
use super::{Storage, StorageFile, StorageLock};

/// A directory of files that are mapped into memory.
#[derive(Debug)]
pub struct MmapStorage {
    files: FileStorage,
}

impl MmapStorage {
    /// Uses `directory`, creating it if it is missing.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self { files: FileStorage::new(directory)? })
    }
}

impl Storage for MmapStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(MappedFile::new(self.files.open_plain(name, true)?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(MappedFile::new(self.files.open_plain(name, false)?)))
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

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        self.files.free_bytes()
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

#[derive(Debug, Default)]
struct Mapping {
    /// `None` before the first write, and if the file cannot be mapped safely.
    map: Option<MmapMut>,
    /// Whether a mapping was attempted since the size last changed.
    attempted: bool,
    /// Range written through the mapping since the last sync.
    dirty: Range<usize>,
    /// Whether anything was written through the file since the last sync.
    beyond: bool,
}

impl MappedFile {
    fn new(file: File) -> Self {
        Self { file, mapping: RwLock::default() }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Mapping> {
        self.mapping.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Mapping> {
        self.mapping.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the file's size; the next write maps it again. Earlier writes stay in the page cache
    /// until they are synced.
    fn resize<T>(&self, change: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let mut mapping = self.write();
        let beyond = mapping.beyond || !mapping.dirty.is_empty();
        *mapping = Mapping { beyond, ..Mapping::default() };
        change(&self.file)
    }
}

impl Mapping {
    /// Returns the target of a write in the mapping, which the first write creates; `None` if the
    /// write has to go through the file.
    fn target(&mut self, file: &File, place: Range<usize>) -> Option<&mut [u8]> {
        if !self.attempted {
            self.attempted = true;
            // If mapping fails, writes go through the file, which reports any problem as an error.
            self.map = map(file).unwrap_or_default();
        }
        self.map.as_mut()?.get_mut(place)
    }
}

impl StorageFile for MappedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        // Mapping and file share the page cache; reading through the file reports I/O errors as
        // errors.
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let mut mapping = self.write();
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let end = start.checked_add(data.len()).ok_or(io::ErrorKind::InvalidInput)?;
        let Some(target) = mapping.target(&self.file, start..end) else {
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

/// Maps a file after reserving every block; `None` if it is empty or cannot be reserved.
fn map(file: &File) -> io::Result<Option<MmapMut>> {
    let bytes = file.metadata()?.len();
    if bytes == 0 || !reserve(file, bytes)? {
        return Ok(None);
    }
    // SAFETY: invariants 1 to 4 above. The lock keeps other processes away, the `RwLock` orders our
    // own accesses, `resize`, the only place that changes the size, drops the mapping first, and
    // every block has just been reserved.
    unsafe { MmapMut::map_mut(file) }.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 64 << 10;

    fn sparse(directory: &tempfile::TempDir) -> (MmapStorage, Box<dyn StorageFile>) {
        let storage = MmapStorage::new(directory.path()).expect("a directory");
        let file = storage.create("sparse").expect("a file");
        file.set_len(BYTES).expect("a size");
        (storage, file)
    }

    fn blocks(directory: &tempfile::TempDir) -> u64 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(directory.path().join("sparse")).expect("the file").blocks() * 512
    }

    #[test]
    fn reading_reserves_nothing_and_the_first_write_reserves_the_whole_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let (_storage, file) = sparse(&directory);
        let mut page = [1; 4096];
        assert_eq!(file.read_at(&mut page, 0).expect("a page"), 4096);
        assert!(blocks(&directory) < BYTES, "the file begins as one hole");
        assert_eq!(file.write_at(b"here", 5000).expect("a write"), 4);
        assert!(blocks(&directory) >= BYTES, "a hole under the mapping would end the process on a full disk");
        file.sync_data().expect("a sync");
        assert_eq!(file.read_at(&mut page, 4998).expect("a page"), 4096);
        assert_eq!(&page[..8], b"\0\0here\0\0");
    }

    #[test]
    fn what_was_written_survives_every_change_of_size() {
        let directory = tempfile::tempdir().expect("a directory");
        let (storage, file) = sparse(&directory);
        file.write_at(b"front", 0).expect("a write");
        file.set_len(BYTES * 2).expect("a size");
        file.write_at(b"back", BYTES * 2 - 4).expect("a write");
        file.write_at(b"beyond", BYTES * 2).expect("a write behind the end goes through the file");
        file.set_len(5).expect("a size");
        file.allocate(BYTES).expect("space");
        file.write_at(b"new", BYTES - 3).expect("a write");
        file.sync_data().expect("a sync");
        drop(file);
        let file = storage.open("sparse").expect("the file");
        let mut bytes = vec![1; BYTES as usize];
        assert_eq!(super::super::read_full(&*file, &mut bytes, 0).expect("bytes"), BYTES as usize);
        let mut expected = vec![0; BYTES as usize];
        expected[..5].copy_from_slice(b"front");
        expected[BYTES as usize - 3..].copy_from_slice(b"new");
        assert!(bytes == expected);
    }
}
