//! One block file.
//!
//! ```text
//! header │ block │ block │ …
//!
//! header   magic "TIDEBLKS", version u32, zeros u32, number u64, zeros u32, crc u32         (32 bytes)
//! block    crc u32 (of the rest), len u32, len bytes of payload
//! ```

use std::io;
use std::sync::Arc;

use super::super::SnapshotError;
use super::{BlockFileUse, name_of};
use crate::error::Failure;
use crate::storage::{Storage, StorageFile, read_full};

const MAGIC: [u8; 8] = *b"TIDEBLKS";
const VERSION: u32 = 1;

/// Bytes before the first block.
pub const HEADER_BYTES: usize = 32;

/// Bytes of a block besides its payload.
pub const BLOCK_OVERHEAD_BYTES: usize = 8;

/// Bytes that checking a file reads at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// An open block file. It never changes.
#[derive(Debug)]
pub struct BlockFile {
    number: u64,
    path: String,
    file: Box<dyn StorageFile>,
    bytes: u64,
}

pub(crate) fn header(number: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..HEADER_BYTES - 4]);
    header[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Appends a block to `into`.
pub(crate) fn put_block(payload: &[u8], into: &mut Vec<u8>) {
    let length = (payload.len() as u32).to_le_bytes();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&length), payload);
    into.extend_from_slice(&checksum.to_le_bytes());
    into.extend_from_slice(&length);
    into.extend_from_slice(payload);
}

impl BlockFile {
    /// Opens the file of this number. Checks its header.
    pub(super) fn open(storage: &dyn Storage, number: u64) -> Result<Self, SnapshotError> {
        let name = name_of(number);
        let path = storage.path(&name);
        let file = storage.open(&name).map_err(|error| Failure::new(format!("opening {path}"), error))?;
        let bytes = file.len().map_err(|error| Failure::new(format!("measuring {path}"), error))?;
        let opened = Self { number, path, file, bytes };
        let mut found = [0; HEADER_BYTES];
        opened.read(&mut found, 0)?;
        if found != header(number) {
            return Err(opened.damaged(0, "the file does not begin like the block file of its name"));
        }
        Ok(opened)
    }

    /// Opens a file that a snapshot lists.
    pub(crate) fn find(storage: &dyn Storage, file: BlockFileUse) -> Result<Self, SnapshotError> {
        Self::open(storage, file.number)
    }

    /// Returns the number in the file's name.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the path for messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the payload of the block at `offset`, which has `length` bytes.
    pub fn read_block(&self, offset: u64, length: usize) -> Result<Vec<u8>, SnapshotError> {
        let end = offset.checked_add((BLOCK_OVERHEAD_BYTES + length) as u64);
        if offset < HEADER_BYTES as u64 || end.is_none_or(|end| end > self.bytes) {
            return Err(self.damaged(offset, "the file ends before the end of a block"));
        }
        let mut block = vec![0; BLOCK_OVERHEAD_BYTES + length];
        self.read(&mut block, offset)?;
        if block[4..8] != (length as u32).to_le_bytes() {
            return Err(self.damaged(offset, "the block is not the one that is looked for"));
        }
        if crc32c::crc32c(&block[4..]).to_le_bytes() != block[..4] {
            return Err(self.damaged(offset, "the block's checksum does not match"));
        }
        block.drain(..BLOCK_OVERHEAD_BYTES);
        Ok(block)
    }

    /// Reads and checks every block. Returns their number.
    pub fn verify(&self) -> Result<u64, SnapshotError> {
        let (mut blocks, mut offset) = (0, HEADER_BYTES as u64);
        let mut window = Vec::new();
        // Offset of the window in the file.
        let mut begin = offset;
        while offset < self.bytes {
            let at = (offset - begin) as usize;
            let length = window.get(at + 4..at + 8).and_then(|length| length.first_chunk());
            let length = length.map(|length| u32::from_le_bytes(*length) as usize);
            let block = length.and_then(|length| window.get(at..)?.get(..BLOCK_OVERHEAD_BYTES + length));
            let Some(block) = block else {
                let wanted = length.map_or(BLOCK_OVERHEAD_BYTES, |length| BLOCK_OVERHEAD_BYTES + length);
                let left = self.bytes - offset;
                if wanted as u64 > left {
                    return Err(
                        self.damaged(offset, "the file ends within a block, or its length is damaged")
                    );
                }
                window.resize(left.min(WINDOW_BYTES.max(wanted) as u64) as usize, 0);
                self.read(&mut window, offset)?;
                begin = offset;
                continue;
            };
            if crc32c::crc32c(&block[4..]).to_le_bytes() != block[..4] {
                return Err(self.damaged(offset, "the block's checksum does not match"));
            }
            offset += block.len() as u64;
            blocks += 1;
        }
        Ok(blocks)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), SnapshotError> {
        let failed = |error: io::Error| Failure::new(format!("reading {}", self.path), error);
        let filled = read_full(&*self.file, buffer, offset).map_err(failed)?;
        if filled == buffer.len() {
            return Ok(());
        }
        Err(self.damaged(offset + filled as u64, "the file is cut"))
    }

    fn damaged(&self, offset: u64, what: &'static str) -> SnapshotError {
        SnapshotError::DamagedBlock { path: self.path.clone(), offset, what }
    }
}

/// A block file that is being written, by the snapshot that it belongs to.
#[derive(Debug)]
pub(crate) struct BlockFileWriter {
    storage: Arc<dyn Storage>,
    number: u64,
    /// Created with the first block.
    file: Option<Box<dyn StorageFile>>,
    buffer: Vec<u8>,
    /// Offset of `buffer` in the file.
    offset: u64,
}

impl BlockFileWriter {
    pub(crate) fn new(storage: Arc<dyn Storage>, number: u64) -> Self {
        Self { storage, number, file: None, buffer: header(number).to_vec(), offset: 0 }
    }

    /// Appends a block and returns its offset.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Result<u64, SnapshotError> {
        if u32::try_from(payload.len()).is_err() {
            return Err(SnapshotError::FrameTooLarge { bytes: payload.len() });
        }
        let offset = self.offset + self.buffer.len() as u64;
        put_block(payload, &mut self.buffer);
        if self.buffer.len() >= WINDOW_BYTES || self.file.is_none() {
            self.flush()?;
        }
        Ok(offset)
    }

    /// Returns the file's number and its bytes if it has blocks.
    pub(crate) fn written(&self) -> Option<(u64, u64)> {
        self.file.as_ref().map(|_| (self.number, self.offset + self.buffer.len() as u64))
    }

    /// Makes the file and its name durable.
    pub(crate) fn finish(&mut self) -> Result<(), SnapshotError> {
        if self.file.is_none() {
            return Ok(());
        }
        self.flush()?;
        let what = |doing: &str| format!("{doing} {}", self.storage.path(&name_of(self.number)));
        if let Some(file) = &self.file {
            file.sync_data().map_err(|error| super::super::sync_failed(what("syncing"), error))?;
        }
        let failed = |error| super::super::sync_failed(what("syncing the directory of"), error);
        self.storage.sync_dir().map_err(failed)
    }

    /// Removes what was written, as well as it can: the next start removes it otherwise.
    pub(crate) fn give_up(&mut self) {
        if self.file.take().is_some() {
            let _ = self.storage.remove(&name_of(self.number));
        }
    }

    fn flush(&mut self) -> Result<(), SnapshotError> {
        let name = name_of(self.number);
        let failed =
            |doing: &str, error| Failure::new(format!("{doing} {}", self.storage.path(&name)), error);
        let file = match &self.file {
            Some(file) => file,
            None => {
                let file = self.storage.create(&name).map_err(|error| failed("creating", error))?;
                self.file.insert(file)
            }
        };
        crate::storage::write_all(&**file, &self.buffer, self.offset)
            .map_err(|error| failed("writing", error))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
