//! Reading a snapshot: from several threads at once; every frame is checked before it is returned.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{
    BlockFile, BlockFileUse, ENTRY_BYTES, FRAME_OVERHEAD_BYTES, HEADER_MAGIC, Name, SnapshotError,
    TRAILER_BYTES, TRAILER_MAGIC, blocks,
};
use crate::Lsn;
use crate::error::Failure;
use crate::storage::{Storage, StorageFile, read_full};

/// Location of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEntry {
    /// Section of the frame.
    pub section: u32,
    /// Size of its payload.
    pub bytes: u32,
    offset: u64,
    /// Whether the frame is in the base's file.
    is_of_base: bool,
}

/// An open snapshot. Clones share the file; all methods may be called from several threads.
#[derive(Clone, Debug)]
pub struct Snapshot {
    name: Name,
    path: String,
    file: Arc<dyn StorageFile>,
    file_bytes: u64,
    frames: Arc<[FrameEntry]>,
    /// For an incremental snapshot: its base.
    base: Option<Arc<Snapshot>>,
}

impl Snapshot {
    pub(crate) fn open(storage: &dyn Storage, name: Name) -> Result<Self, SnapshotError> {
        let file_name = name.to_string();
        let path = storage.path(&file_name);
        let file =
            storage.open(&file_name).map_err(|error| Failure::new(format!("opening {path}"), error))?;
        let file_bytes = file.len().map_err(|error| Failure::new(format!("measuring {path}"), error))?;
        let mut snapshot =
            Self { name, path, file: file.into(), file_bytes, frames: Arc::new([]), base: None };
        snapshot.check_header()?;
        // A base is full, so the recursion ends after one step.
        let base = name.base.map(|base| Self::open(storage, Name::whole(base))).transpose()?;
        snapshot.base = base.map(Arc::new);
        snapshot.frames = snapshot.read_index()?.into();
        Ok(snapshot)
    }

    /// Returns the last record that the snapshot covers.
    pub fn lsn(&self) -> Lsn {
        self.name.lsn
    }

    /// Returns the LSN of the base of an incremental snapshot.
    pub fn base(&self) -> Option<Lsn> {
        self.name.base
    }

    /// Returns every frame in the order in which it was written, or its section was kept from the
    /// base.
    pub fn frames(&self) -> &[FrameEntry] {
        &self.frames
    }

    /// Returns the sections that have frames, ascending.
    pub fn sections(&self) -> Vec<u32> {
        let mut sections: Vec<u32> = self.frames.iter().map(|frame| frame.section).collect();
        sections.sort_unstable();
        sections.dedup();
        sections
    }

    /// Returns the size of all payloads, in bytes.
    pub fn payload_bytes(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.bytes)).sum()
    }

    /// Returns the size of its file in bytes, without the base.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the block files that the snapshot refers to.
    pub fn block_files(&self) -> Result<Vec<BlockFileUse>, SnapshotError> {
        let (mut files, mut buffer) = (Vec::new(), Vec::new());
        for frame in self.frames.iter().filter(|frame| frame.section == blocks::SECTION) {
            self.read_frame(frame, &mut buffer)?;
            let listed = blocks::decode_list(&buffer)
                .ok_or_else(|| self.damaged(frame.offset, "the list of block files is not well formed"))?;
            files.extend(listed);
        }
        Ok(files)
    }

    /// Checks that the block files are there, but not their blocks, which are checked when they are
    /// read.
    pub(crate) fn find_blocks(&self, storage: &dyn Storage) -> Result<(), SnapshotError> {
        for file in self.block_files()? {
            BlockFile::find(storage, file)?;
        }
        Ok(())
    }

    /// Reads and checks every block of the block files that the snapshot lists.
    pub fn verify_blocks(&self, storage: &dyn Storage) -> Result<(), SnapshotError> {
        self.block_files()?
            .into_iter()
            .try_for_each(|file| BlockFile::find(storage, file)?.verify().map(drop))
    }

    /// Reads one frame into `buffer`, replacing its content with the payload.
    pub fn read_frame(&self, frame: &FrameEntry, buffer: &mut Vec<u8>) -> Result<(), SnapshotError> {
        if let Some(base) = self.base.as_ref().filter(|_| frame.is_of_base) {
            return base.read_frame(frame, buffer);
        }
        buffer.resize(FRAME_OVERHEAD_BYTES + frame.bytes as usize, 0);
        self.read(buffer, frame.offset)?;
        let damaged = |what| self.damaged(frame.offset, what);
        let (checksum, covered) =
            buffer.split_first_chunk::<4>().ok_or_else(|| damaged("the frame is cut"))?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*checksum) {
            return Err(damaged("the frame's checksum does not match"));
        }
        let mut expected = [0; 8];
        expected[..4].copy_from_slice(&frame.bytes.to_le_bytes());
        expected[4..].copy_from_slice(&frame.section.to_le_bytes());
        if covered.first_chunk() != Some(&expected) {
            return Err(damaged("the frame is not the one that the index names"));
        }
        buffer.drain(..FRAME_OVERHEAD_BYTES);
        Ok(())
    }

    /// Calls `visit` with every payload of a section, in order.
    pub fn read_section(&self, section: u32, mut visit: impl FnMut(&[u8])) -> Result<(), SnapshotError> {
        let mut buffer = Vec::new();
        for frame in self.frames.iter().filter(|frame| frame.section == section) {
            self.read_frame(frame, &mut buffer)?;
            visit(&buffer);
        }
        Ok(())
    }

    /// Reads and checks every frame, on all cores.
    pub fn verify(&self) -> Result<(), SnapshotError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut buffer = Vec::new();
            while let Some(frame) = self.frames.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.read_frame(frame, &mut buffer)?;
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(self.frames.len());
        if threads <= 1 {
            return work();
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                // Propagate a panic of a thread.
                worker.join().unwrap_or_else(|panic| resume_unwind(panic))
            })
        })
    }

    fn check_header(&self) -> Result<(), SnapshotError> {
        let expected = self.name.header();
        let mut header = vec![0; expected.len()];
        self.read(&mut header, 0)?;
        let (covered, checksum) = header.split_at(header.len() - 4);
        if covered.first_chunk() != Some(&HEADER_MAGIC) {
            return Err(self.damaged(0, "the file does not begin like a snapshot"));
        }
        if checksum != crc32c::crc32c(covered).to_le_bytes() {
            return Err(self.damaged(0, "the header's checksum does not match"));
        }
        if header[8..12] != expected[8..12] {
            return Err(self.damaged(0, "the snapshot was written by another version of the format"));
        }
        if header != expected {
            return Err(self.damaged(0, "the header belongs to a snapshot of another name"));
        }
        Ok(())
    }

    fn read_index(&self) -> Result<Vec<FrameEntry>, SnapshotError> {
        let trailer_offset = self
            .file_bytes
            .checked_sub(TRAILER_BYTES as u64)
            .filter(|offset| *offset >= self.header_bytes())
            .ok_or_else(|| self.damaged(self.file_bytes, "the file is cut"))?;
        let mut trailer = [0; TRAILER_BYTES];
        self.read(&mut trailer, trailer_offset)?;
        let (fields, ending) = trailer.split_at(24);
        if ending != [crc32c::crc32c(fields).to_le_bytes(), TRAILER_MAGIC].concat() {
            return Err(self.damaged(trailer_offset, "the trailer's checksum does not match"));
        }
        let index_offset = u64_at(fields, 0);
        let index_bytes = u64_at(fields, 8).checked_mul(ENTRY_BYTES as u64);
        if index_bytes.and_then(|bytes| bytes.checked_add(index_offset)) != Some(trailer_offset) {
            return Err(self.damaged(trailer_offset, "the trailer does not fit the file"));
        }
        let mut index = vec![0; (trailer_offset - index_offset) as usize];
        self.read(&mut index, index_offset)?;
        if crc32c::crc32c(&index).to_le_bytes() != fields[16..20] {
            return Err(self.damaged(index_offset, "the index's checksum does not match"));
        }
        self.parse_index(&index, index_offset)
    }

    /// Frames must fill the space between header and index exactly, so that every byte of the file
    /// is checked.
    fn parse_index(&self, index: &[u8], index_offset: u64) -> Result<Vec<FrameEntry>, SnapshotError> {
        let damaged = |what| self.damaged(index_offset, what);
        let base = self.base.as_ref().map(|base| base.frames_by_section());
        let mut end = self.header_bytes();
        let mut frames = Vec::with_capacity(index.len() / ENTRY_BYTES);
        let mut kept = Vec::new();
        for entry in index.chunks_exact(ENTRY_BYTES) {
            let bytes = u64_at(entry, 8) as u32;
            let section = (u64_at(entry, 8) >> 32) as u32;
            let frame = FrameEntry { section, bytes, offset: u64_at(entry, 0), is_of_base: false };
            match &base {
                Some(base) if frame.offset == 0 && frame.bytes == 0 => {
                    let before = frames.len();
                    let from = base.partition_point(|frame| frame.section < section);
                    frames.extend(base[from..].iter().take_while(|frame| frame.section == section));
                    if frames.len() == before {
                        return Err(damaged("the index names a section that the base does not have"));
                    }
                    kept.push(section);
                }
                _ if frame.offset == end => {
                    end += FRAME_OVERHEAD_BYTES as u64 + u64::from(bytes);
                    frames.push(frame);
                }
                _ => return Err(damaged("the index does not fit the frames")),
            }
        }
        kept.sort_unstable();
        if kept.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(damaged("the index names a section of the base twice"));
        }
        if end == index_offset { Ok(frames) } else { Err(damaged("the index does not fit the frames")) }
    }

    /// Returns the frames, for a snapshot that has this one as its base.
    fn frames_by_section(&self) -> Vec<FrameEntry> {
        let mut frames: Vec<_> =
            self.frames.iter().map(|frame| FrameEntry { is_of_base: true, ..*frame }).collect();
        frames.sort_by_key(|frame| frame.section);
        frames
    }

    fn header_bytes(&self) -> u64 {
        self.name.header().len() as u64
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), SnapshotError> {
        let filled = read_full(&*self.file, buffer, offset).map_err(|error| self.failure(error))?;
        if filled == buffer.len() {
            Ok(())
        } else {
            Err(self.damaged(offset + filled as u64, "the file is cut"))
        }
    }

    fn damaged(&self, offset: u64, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged { path: self.path.clone(), offset, what }
    }

    fn failure(&self, error: io::Error) -> SnapshotError {
        Failure::new(format!("reading {}", self.path), error).into()
    }
}

/// Reads a number at `offset`, which must lie within `bytes`.
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(*bytes[offset..].first_chunk().expect("a block holds its fields"))
}
