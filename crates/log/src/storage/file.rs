//! Storage in a directory of the file system.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Storage, StorageFile, StorageLock};

const LOCK_NAME: &str = "LOCK";
/// Permissions of new directories and files, even under a permissive umask: a log contains all data
/// of its owner's clients, including secrets.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A directory of ordinary files, locked against other processes.
#[derive(Debug)]
pub struct FileStorage {
    directory: PathBuf,
    /// Kept open for syncs, which must not fail for lack of a descriptor.
    handle: File,
}

impl FileStorage {
    /// Uses `directory`, creating it if it is missing. Only its owner can read what is created
    /// there.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        if !directory.is_dir() {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&directory)?;
            // Without this a power failure could lose the directory itself.
            if let Some(parent) = directory.canonicalize()?.parent() {
                File::open(parent)?.sync_all()?;
            }
        }
        Self::existing(directory)
    }

    /// Uses `directory`, which must exist.
    pub fn existing(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        let only_directories = OFlags::DIRECTORY.bits().cast_signed();
        let handle = OpenOptions::new().read(true).custom_flags(only_directories).open(&directory)?;
        Ok(Self { directory, handle })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn open_plain(&self, name: &str, create: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(create).mode(FILE_MODE);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        options.open(self.directory.join(name)).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::other("it is a symbolic link; put the file itself there"),
            _ => error,
        })
    }
}

impl Storage for FileStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // A symbolic link, for example, is refused when it is opened: skipping it here would
            // hide its records.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(PlainFile(self.open_plain(name, true)?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(PlainFile(self.open_plain(name, false)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn lock(&self) -> io::Result<StorageLock> {
        // The lock file can be removed and recreated while it is held; the directory cannot,
        // without its content. Some file systems cannot lock directories: there the file must
        // suffice.
        let directory = match Locked::take(File::open(&self.directory)?) {
            Ok(directory) => Some(directory),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            Err(_) => None,
        };
        let path = self.directory.join(LOCK_NAME);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
        Ok(StorageLock::new((Locked::take(file)?, directory)))
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        let space = rustix::fs::fstatvfs(&self.handle)?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

/// A locked file or directory.
struct Locked(File);

impl Locked {
    fn take(file: File) -> io::Result<Self> {
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: between fork and exec, a child started by another thread holds the
        // file too. If unlocking fails, closing must suffice.
        let _ = self.0.unlock();
    }
}

#[derive(Debug)]
struct PlainFile(File);

impl StorageFile for PlainFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(data, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        allocate(&self.0, bytes)
    }
}

/// Reserves blocks where the file system can; otherwise only extends the file.
pub(super) fn allocate(file: &File, bytes: u64) -> io::Result<bool> {
    let reserved = reserve(file, bytes)?;
    if !reserved && file.metadata()?.len() < bytes {
        file.set_len(bytes)?;
    }
    Ok(reserved)
}

/// Reserves every block below `bytes`; returns `false` where the file system cannot.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<bool> {
    loop {
        return match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
            // A signal can interrupt the reservation of a large file.
            Err(Errno::INTR) => continue,
            Err(error) => Err(error.into()),
        };
    }
}
