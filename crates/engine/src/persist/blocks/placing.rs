//! Blocks that a snapshot writes to its block file, and those that it refers to.

use super::{FileOfBlocks, WORD_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::snapshot::{BLOCK_FILE_HEADER_BYTES, BLOCK_OVERHEAD_BYTES};
use tidemark_log::{BlockFileUse, BlockFiles, SnapshotError, SnapshotWriter, Snapshots};
use tidemark_series::{Block, BlockSource, Place, UnreadableBlock};

/// Where a block is, or will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// Number of the block file.
    pub(crate) file: u64,
    /// Offset in it.
    pub(crate) offset: u64,
}

/// How a running snapshot writes blocks: by reference, or whole if it has no block file.
#[derive(Debug, Clone, Default)]
pub struct Blocks(Option<Arc<Placing>>);

/// Blocks of a running snapshot.
#[derive(Debug)]
struct Placing {
    /// Number of the snapshot's own block file.
    number: u64,
    /// Files whose blocks are written again.
    rewritten: BTreeSet<u64>,
    state: Mutex<PlacingState>,
}

#[derive(Debug)]
struct PlacingState {
    /// Where the next block will be in the file.
    end: u64,
    /// Blocks whose offsets are decided and that are not written yet.
    waiting: Vec<(Block, u64)>,
    /// Bytes that the snapshot refers to, by file.
    used: BTreeMap<u64, u64>,
}

/// A block could not be written to a snapshot's block file.
#[derive(Debug, thiserror::Error)]
pub enum BlockWriteError {
    /// It could not be read where it was.
    #[error("a block could not be copied to a new file: {0}")]
    Unreadable(#[from] UnreadableBlock),
    /// It could not be written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl Blocks {
    /// Returns where a block is or will be; `None` if the snapshot writes it whole.
    pub(crate) fn refer(&self, block: &Block) -> Option<Address> {
        let placing = self.0.as_ref()?;
        let bytes = (BLOCK_OVERHEAD_BYTES + block.stored_words() * WORD_BYTES) as u64;
        let known = block
            .with_place(|place| Address { file: place.source.number(), offset: place.offset })
            .filter(|address| !placing.rewritten.contains(&address.file));
        let mut state = placing.lock();
        let address = known.unwrap_or_else(|| {
            let offset = state.end;
            state.end += bytes;
            state.waiting.push((block.clone(), offset));
            Address { file: placing.number, offset }
        });
        *state.used.entry(address.file).or_default() += bytes;
        Some(address)
    }
}

impl Placing {
    fn lock(&self) -> MutexGuard<'_, PlacingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The blocks of a snapshot, for the thread that writes it.
///
/// Steps: [`BlockPlacement::begin_compacting`]; [`BlockPlacement::write`] after each frame of the snapshot;
/// [`BlockPlacement::list`] after the last one; [`BlockPlacement::settle`] when the snapshot is durable.
#[derive(Debug)]
pub(crate) struct BlockPlacement {
    placing: Arc<Placing>,
    files: Arc<BlockFiles>,
    /// Blocks that are written, and their offsets.
    written: Vec<(Block, u64)>,
}

impl BlockPlacement {
    /// Begins the block file of a snapshot, which writes blocks that are in no file.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub(crate) fn begin(files: &Arc<BlockFiles>) -> Result<Self, SnapshotError> {
        Self::with(files, BTreeSet::new())
    }

    /// Like [`BlockPlacement::begin`]. Blocks of files of which little is used, or of which there are
    /// many, are written again, so that those files can go.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub(crate) fn begin_compacting(
        files: &Arc<BlockFiles>,
        snapshots: &Snapshots,
    ) -> Result<Self, SnapshotError> {
        // What cannot be read stays as it is: the new snapshot may replace it.
        let sizes = sizes(files, snapshots).unwrap_or_default();
        Self::with(files, super::compaction::choose(&sizes))
    }

    fn with(files: &Arc<BlockFiles>, rewritten: BTreeSet<u64>) -> Result<Self, SnapshotError> {
        let placing = Placing {
            number: files.next_number()?,
            rewritten,
            state: Mutex::new(PlacingState {
                end: BLOCK_FILE_HEADER_BYTES as u64,
                waiting: Vec::new(),
                used: BTreeMap::new(),
            }),
        };
        Ok(Self { placing: Arc::new(placing), files: Arc::clone(files), written: Vec::new() })
    }

    /// Returns what the walk needs.
    pub(crate) fn blocks(&self) -> Blocks {
        Blocks(Some(Arc::clone(&self.placing)))
    }

    /// Tells the writer the number of its block file.
    pub(crate) fn prepare(&self, writer: &mut SnapshotWriter) {
        writer.set_block_file(self.placing.number);
    }

    /// Writes the blocks whose places were decided since the last call.
    ///
    /// # Errors
    /// A block cannot be written, or not be read from the file that it is to leave.
    pub(crate) fn write(&mut self, writer: &mut SnapshotWriter) -> Result<(), BlockWriteError> {
        let waiting = std::mem::take(&mut self.placing.lock().waiting);
        let mut bytes = Vec::new();
        for (block, offset) in waiting {
            bytes.clear();
            let with_points = block.with_points()?;
            bytes.extend(with_points.words().iter().flat_map(|word| word.to_le_bytes()));
            let at = writer.write_block(&bytes)?;
            assert_eq!(at, offset, "the walk decided where a block is before it was written");
            self.written.push((block, offset));
        }
        Ok(())
    }

    /// Tells the writer which block files the snapshot refers to, after all blocks are written.
    pub(crate) fn list(&self, writer: &mut SnapshotWriter) {
        let state = self.placing.lock();
        assert!(state.waiting.is_empty(), "{} blocks are not written", state.waiting.len());
        let listed =
            state.used.iter().map(|(number, used)| BlockFileUse { number: *number, used_bytes: *used });
        writer.refer_to(listed.collect());
    }

    /// Gives the written blocks their places, when the snapshot is durable.
    ///
    /// # Errors
    /// The file cannot be opened: the next snapshot writes the blocks again.
    pub(crate) fn settle(self) -> Result<(), SnapshotError> {
        if self.written.is_empty() {
            return Ok(());
        }
        let file = self.files.open(self.placing.number)?;
        let source: Arc<dyn BlockSource> = Arc::new(FileOfBlocks(file));
        for (block, offset) in self.written {
            block.set_place(Place { source: Arc::clone(&source), offset });
        }
        Ok(())
    }
}

/// Returns the files that the newest snapshot lists, each with its size in bytes.
fn sizes(files: &BlockFiles, snapshots: &Snapshots) -> Result<Vec<(BlockFileUse, u64)>, SnapshotError> {
    let Some(newest) = snapshots.list()?.last().copied() else { return Ok(Vec::new()) };
    let listed = snapshots.open(newest)?.block_files()?;
    listed.into_iter().map(|file| Ok((file, files.open(file.number)?.bytes()))).collect()
}
