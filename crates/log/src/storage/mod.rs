//! The only input and output of the log: one flat directory of files.

pub mod faulty;
pub mod file;
pub mod memory;
pub mod mmap;

use std::any::Any;
use std::fmt;
use std::io;

/// A directory of files that one process at a time owns.
///
/// Names are plain (no separators). Changes of names become durable only with `sync_dir`, contents
/// with [`StorageFile::sync_data`]; until then a power failure may keep or lose each change
/// independently.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Returns all names in the directory, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Creates an empty file; fails if the name exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Renames a file, replacing any file of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name. Open files stay readable.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all creations, renames and removals so far durable.
    fn sync_dir(&self) -> io::Result<()>;
    /// Locks the directory for this process; `WouldBlock` if it is locked already. Dropping the
    /// lock releases it.
    fn lock(&self) -> io::Result<StorageLock>;
    /// Returns the free bytes, if known.
    fn free_bytes(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Returns the path of a file for messages.
    fn path(&self, name: &str) -> String;
}

/// One open file. All methods may be called from several threads.
pub trait StorageFile: Send + Sync + fmt::Debug {
    /// Reads at most `buffer.len()` bytes; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes a prefix of `data`, at least one byte unless it is empty; returns its length.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;
    /// Returns when everything written so far survives a power failure.
    fn sync_data(&self) -> io::Result<()>;
    /// Size in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns whether the size is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Makes the file at least `bytes` long and reserves the space, so that writes within it do not
    /// run out of space. Returns whether it is reserved: not every file system can.
    fn allocate(&self, bytes: u64) -> io::Result<bool>;
}

/// Ownership of a directory while the value exists.
pub struct StorageLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl StorageLock {
    /// Wraps a guard that releases the directory when it is dropped.
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for StorageLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StorageLock")
    }
}

/// Returns whether an error reports a shortage that may end: of space, quota, descriptors or
/// memory, or a file size limit.
pub fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::FileTooLarge
    ) || matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Writes all of `data`.
pub fn write_all(file: &dyn StorageFile, mut data: &[u8], mut offset: u64) -> io::Result<()> {
    while !data.is_empty() {
        match file.write_at(data, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                data = data.get(written..).ok_or(io::ErrorKind::InvalidData)?;
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `buffer` is full or the file ends; returns the bytes read.
pub fn read_full(file: &dyn StorageFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Fills `from..to` with zeros.
pub(crate) fn write_zeros(file: &dyn StorageFile, from: u64, to: u64) -> io::Result<()> {
    const BLOCK_BYTES: u64 = 1 << 20;
    assert!(from <= to, "zeros are written from offset {from} to {to}");
    let zeros = vec![0; BLOCK_BYTES.min(to - from) as usize];
    let mut offset = from;
    while offset < to {
        let size = (to - offset).min(BLOCK_BYTES) as usize;
        write_all(file, &zeros[..size], offset)?;
        offset += size as u64;
    }
    Ok(())
}
