//! Writing a snapshot: frames into a temporary file, which gets its name when all of it is durable.

use std::io;
use std::mem;
use std::sync::Arc;

use super::{
    ENTRY_BYTES, FRAME_OVERHEAD_BYTES, HEADER_BYTES, HEADER_MAGIC, SnapshotError, TRAILER_BYTES,
    TRAILER_MAGIC, VERSION, snapshot_name, sync_failed, temporary_name,
};
use crate::Lsn;
use crate::error::Failure;
use crate::storage::{Storage, StorageFile, write_all};

/// What is collected before the storage is called.
const BUFFER_BYTES: usize = 1 << 20;

/// A snapshot that is being written. Dropped without `finish`, it leaves nothing behind.
#[derive(Debug)]
pub struct SnapshotWriter {
    storage: Arc<dyn Storage>,
    lsn: Lsn,
    file: Box<dyn StorageFile>,
    buffer: Vec<u8>,
    /// Where `buffer` goes in the file.
    offset: u64,
    index: Vec<u8>,
    finished: bool,
}

impl SnapshotWriter {
    /// Begins the snapshot of the state that every record up to `lsn` and none after it has made.
    pub fn create(storage: Arc<dyn Storage>, lsn: Lsn) -> Result<Self, SnapshotError> {
        let name = temporary_name(lsn);
        // An earlier attempt at the same LSN may have died half way.
        if let Err(error) = storage.remove(&name)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(Failure::new(format!("removing {}", storage.path(&name)), error).into());
        }
        let file = storage
            .create(&name)
            .map_err(|error| Failure::new(format!("creating {}", storage.path(&name)), error))?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(&HEADER_MAGIC);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&lsn.0.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&crc32c::crc32c(&buffer).to_le_bytes());
        debug_assert_eq!(buffer.len(), HEADER_BYTES);
        Ok(Self { storage, lsn, file, buffer, offset: 0, index: Vec::new(), finished: false })
    }

    /// The LSN of the state being written.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Adds a frame to a section. Frames of one section are read back in the order in which they were written.
    pub fn write_frame(&mut self, section: u32, payload: &[u8]) -> Result<(), SnapshotError> {
        let Ok(length) = u32::try_from(payload.len()) else {
            return Err(SnapshotError::FrameTooLarge { bytes: payload.len() });
        };
        self.index.extend_from_slice(&(self.offset + self.buffer.len() as u64).to_le_bytes());
        self.index.extend_from_slice(&length.to_le_bytes());
        self.index.extend_from_slice(&section.to_le_bytes());
        let mut head = [0; FRAME_OVERHEAD_BYTES];
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..12].copy_from_slice(&section.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&head[4..]), payload);
        head[..4].copy_from_slice(&checksum.to_le_bytes());
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(payload);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Makes the snapshot durable and visible under its name. The log up to its LSN must be durable by then;
    /// [`Log::finish_snapshot`](crate::Log::finish_snapshot) sees to it.
    pub fn finish(mut self) -> Result<(), SnapshotError> {
        let index_offset = self.offset + self.buffer.len() as u64;
        let index = mem::take(&mut self.index);
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(&index_offset.to_le_bytes());
        trailer.extend_from_slice(&((index.len() / ENTRY_BYTES) as u64).to_le_bytes());
        trailer.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
        trailer.extend_from_slice(&[0; 4]);
        trailer.extend_from_slice(&crc32c::crc32c(&trailer).to_le_bytes());
        trailer.extend_from_slice(&TRAILER_MAGIC);
        debug_assert_eq!(trailer.len(), TRAILER_BYTES);
        self.buffer.extend_from_slice(&index);
        self.buffer.extend_from_slice(&trailer);
        self.flush()?;
        let name = snapshot_name(self.lsn);
        let what = |doing: &str| format!("{doing} {}", self.storage.path(&name));
        self.file.sync_data().map_err(|error| sync_failed(what("syncing"), error))?;
        self.storage
            .rename(&temporary_name(self.lsn), &name)
            .map_err(|error| Failure::new(what("renaming"), error))?;
        self.finished = true;
        self.storage.sync_dir().map_err(|error| sync_failed(what("syncing the directory of"), error))
    }

    fn flush(&mut self) -> Result<(), SnapshotError> {
        write_all(&*self.file, &self.buffer, self.offset).map_err(|error| {
            let path = self.storage.path(&temporary_name(self.lsn));
            Failure::new(format!("writing {path}"), error)
        })?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Best effort: what stays is removed at the next open.
            let _ = self.storage.remove(&temporary_name(self.lsn));
        }
    }
}
