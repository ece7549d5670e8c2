//! Writing a snapshot: frames go to a temporary file, which is renamed when all of it is durable.

use std::io;
use std::mem;
use std::sync::Arc;

use super::{
    BlockFileUse, ENTRY_BYTES, FRAME_OVERHEAD_BYTES, Name, Snapshot, SnapshotError, TRAILER_BYTES,
    TRAILER_MAGIC,
    blocks::{self, BlockFileWriter},
    sync_failed,
};
use crate::Lsn;
use crate::error::Failure;
use crate::storage::{Storage, StorageFile, write_all};

/// Bytes collected before a write.
const BUFFER_BYTES: usize = 1 << 20;

/// A snapshot that is being written. Dropped without `finish`, it leaves nothing behind.
#[derive(Debug)]
pub struct SnapshotWriter {
    storage: Arc<dyn Storage>,
    name: Name,
    file: Box<dyn StorageFile>,
    buffer: Vec<u8>,
    /// Offset of `buffer` in the file.
    offset: u64,
    index: Vec<u8>,
    /// The file for blocks that no older file has.
    blocks: Option<BlockFileWriter>,
    /// The block files that the snapshot refers to.
    block_files: Vec<BlockFileUse>,
    finished: bool,
}

impl SnapshotWriter {
    /// Starts a snapshot of the state after `lsn`: that of all records up to it and none after it.
    pub fn create(storage: Arc<dyn Storage>, lsn: Lsn) -> Result<Self, SnapshotError> {
        Self::begin(storage, Name::whole(lsn))
    }

    /// Like [`create`](Self::create), for an incremental snapshot: it has the sections that differ
    /// from the older, full one at `base`, and names the unchanged ones
    /// ([`keep_section`](Self::keep_section)). Returns an error if there is no such full snapshot.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidemark_log::{Lsn, MemoryStorage, SnapshotWriter, Snapshots, Storage};
    ///
    /// let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    /// let mut whole = SnapshotWriter::create(storage.clone(), Lsn(10))?;
    /// whole.write_frame(1, b"quiet")?;
    /// whole.write_frame(2, b"busy")?;
    /// whole.finish()?;
    ///
    /// let mut incremental = SnapshotWriter::create_on(storage.clone(), Lsn(20), Lsn(10))?;
    /// incremental.keep_section(1);
    /// incremental.write_frame(2, b"busier")?;
    /// incremental.finish()?;
    ///
    /// let mut sections = Vec::new();
    /// let snapshot = Snapshots::new(storage).open(Lsn(20))?;
    /// for section in snapshot.sections() {
    ///     snapshot.read_section(section, |frame| sections.push(frame.to_vec()))?;
    /// }
    /// assert_eq!(sections, [&b"quiet"[..], b"busier"]);
    /// # Ok::<_, tidemark_log::SnapshotError>(())
    /// ```
    ///
    /// # Panics
    /// If the base is not older than the snapshot.
    pub fn create_on(storage: Arc<dyn Storage>, lsn: Lsn, base: Lsn) -> Result<Self, SnapshotError> {
        assert!(base < lsn, "a snapshot at record {lsn} has a base at record {base}");
        Snapshot::open(&*storage, Name::whole(base))?;
        Self::begin(storage, Name { lsn, base: Some(base) })
    }

    fn begin(storage: Arc<dyn Storage>, name: Name) -> Result<Self, SnapshotError> {
        let temporary = name.temporary();
        // An earlier attempt at the same LSN may have left a file.
        if let Err(error) = storage.remove(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(Failure::new(format!("removing {}", storage.path(&temporary)), error).into());
        }
        let file = storage
            .create(&temporary)
            .map_err(|error| Failure::new(format!("creating {}", storage.path(&temporary)), error))?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(&name.header());
        Ok(Self {
            storage,
            name,
            file,
            buffer,
            offset: 0,
            index: Vec::new(),
            blocks: None,
            block_files: Vec::new(),
            finished: false,
        })
    }

    /// Returns the LSN of the snapshot.
    pub fn lsn(&self) -> Lsn {
        self.name.lsn
    }

    /// Adds a frame to a section. Frames of one section are read back in the order in which they
    /// were written.
    pub fn write_frame(&mut self, section: u32, payload: &[u8]) -> Result<(), SnapshotError> {
        let Ok(length) = u32::try_from(payload.len()) else {
            return Err(SnapshotError::FrameTooLarge { bytes: payload.len() });
        };
        self.put_entry(self.offset + self.buffer.len() as u64, length, section);
        let mut head = [0; FRAME_OVERHEAD_BYTES];
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..12].copy_from_slice(&section.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&head[4..]), payload);
        head[..4].copy_from_slice(&checksum.to_le_bytes());
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(payload);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes blocks to the block file of this number, which does not exist yet; it is created with the
    /// first one.
    pub fn set_block_file(&mut self, number: u64) {
        assert!(self.blocks.is_none(), "a snapshot writes one block file");
        self.blocks = Some(BlockFileWriter::new(Arc::clone(&self.storage), number));
    }

    /// Appends a block to the block file and returns its offset there.
    ///
    /// # Panics
    /// Without a block file.
    pub fn write_block(&mut self, payload: &[u8]) -> Result<u64, SnapshotError> {
        self.blocks.as_mut().expect("the snapshot has a block file").write(payload)
    }

    /// Sets the block files that the snapshot refers to, the written one among them if there is one.
    pub fn refer_to(&mut self, files: Vec<BlockFileUse>) {
        self.block_files = files;
    }

    /// Returns the size of the written block file in bytes; 0 without one.
    pub fn block_bytes(&self) -> u64 {
        self.blocks.as_ref().and_then(BlockFileWriter::written).map_or(0, |(_, bytes)| bytes)
    }

    /// Keeps a section, with all of its frames, as in the base. Call this once per section, and
    /// write no frame to it.
    ///
    /// # Panics
    /// If this is a full snapshot.
    pub fn keep_section(&mut self, section: u32) {
        assert!(self.name.base.is_some(), "a whole snapshot has no base");
        self.put_entry(0, 0, section);
    }

    /// Makes the snapshot durable and visible under its name. The log up to its LSN must be durable
    /// already; [`Log::finish_snapshot`](crate::Log::finish_snapshot) ensures that.
    pub fn finish(mut self) -> Result<(), SnapshotError> {
        if !self.block_files.is_empty() {
            let list = blocks::encode_list(&self.block_files);
            self.write_frame(blocks::SECTION, &list)?;
        }
        if let Some(blocks) = &mut self.blocks {
            let written = blocks.written().map(|(number, _)| number);
            let is_listed = |number| self.block_files.iter().any(|file| file.number == number);
            assert!(written.is_none_or(is_listed), "block file {written:?} is not in the snapshot's list");
            blocks.finish()?;
        }
        let index_offset = self.offset + self.buffer.len() as u64;
        let index = mem::take(&mut self.index);
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(&index_offset.to_le_bytes());
        trailer.extend_from_slice(&((index.len() / ENTRY_BYTES) as u64).to_le_bytes());
        trailer.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
        trailer.extend_from_slice(&[0; 4]);
        trailer.extend_from_slice(&crc32c::crc32c(&trailer).to_le_bytes());
        trailer.extend_from_slice(&TRAILER_MAGIC);
        assert!(trailer.len() == TRAILER_BYTES, "a trailer of {} bytes", trailer.len());
        self.buffer.extend_from_slice(&index);
        self.buffer.extend_from_slice(&trailer);
        self.flush()?;
        let name = self.name.to_string();
        let what = |doing: &str| format!("{doing} {}", self.storage.path(&name));
        self.file.sync_data().map_err(|error| sync_failed(what("syncing"), error))?;
        self.storage
            .rename(&self.name.temporary(), &name)
            .map_err(|error| Failure::new(what("renaming"), error))?;
        self.finished = true;
        self.storage.sync_dir().map_err(|error| sync_failed(what("syncing the directory of"), error))
    }

    fn put_entry(&mut self, offset: u64, length: u32, section: u32) {
        self.index.extend_from_slice(&offset.to_le_bytes());
        self.index.extend_from_slice(&length.to_le_bytes());
        self.index.extend_from_slice(&section.to_le_bytes());
    }

    fn flush(&mut self) -> Result<(), SnapshotError> {
        write_all(&*self.file, &self.buffer, self.offset).map_err(|error| {
            let path = self.storage.path(&self.name.temporary());
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
            // Best effort: a leftover is removed at the next open.
            let _ = self.storage.remove(&self.name.temporary());
            if let Some(blocks) = &mut self.blocks {
                blocks.give_up();
            }
        }
    }
}
