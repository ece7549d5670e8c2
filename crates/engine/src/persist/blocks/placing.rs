//! Blocks that a snapshot writes to its block file, and those that it refers to.

use super::address::Where;
use super::bundler::{Blocks, Placing};
use super::directory::{Directory, Extent};
use super::shared_times::SharedTimes;
use super::source::{FileOfBlocks, share};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidemark_log::{BlockFileUse, BlockFiles, SnapshotError, SnapshotWriter, Snapshots};
use tidemark_series::{Beside, Block, BlockSource, Bundle, Place, UnreadableBlock};

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

/// The blocks of a snapshot, for the thread that writes it.
///
/// Steps: [`BlockPlacement::begin_compacting`]; [`BlockPlacement::write`] after each frame of the snapshot;
/// [`BlockPlacement::list`] after the last one; [`BlockPlacement::settle`] when the snapshot is durable.
#[derive(Debug)]
pub(crate) struct BlockPlacement {
    placing: Arc<Placing>,
    files: Arc<BlockFiles>,
    /// Number and length of the bundles that are written.
    bundles: Vec<(u32, u32)>,
    times: SharedTimes,
    written: Vec<Written>,
}

/// A block that is written.
#[derive(Debug)]
struct Written {
    block: Block,
    at: Where,
    /// Bytes of the file that it takes.
    bytes: u32,
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
        Ok(Self {
            placing: Arc::new(Placing::new(files.next_number()?, rewritten)),
            files: Arc::clone(files),
            bundles: Vec::new(),
            times: SharedTimes::default(),
            written: Vec::new(),
        })
    }

    /// Returns what the walk needs.
    pub(crate) fn blocks(&self) -> Blocks {
        Blocks::of(&self.placing)
    }

    /// Tells the writer the number of its block file.
    pub(crate) fn prepare(&self, writer: &mut SnapshotWriter) {
        writer.set_block_file(self.placing.number);
    }

    /// Writes the bundles that were filled since the last call.
    ///
    /// # Errors
    /// A block cannot be written, or not be read from the file that it is to leave.
    pub(crate) fn write(&mut self, writer: &mut SnapshotWriter) -> Result<(), BlockWriteError> {
        let waiting = std::mem::take(&mut self.placing.lock().waiting);
        let (mut bytes, mut beside) = (Vec::new(), Beside::default());
        for (number, blocks) in waiting {
            let with_points = blocks.iter().map(|block| block.with_points(&mut beside));
            let with_points: Vec<Block> = with_points.collect::<Result<_, _>>()?;
            let bundle = Bundle::of(&with_points);
            bytes.clear();
            bundle.encode(self.times.find_or_keep(bundle.times(), number), &mut bytes);
            let extent = Extent { offset: writer.write_block(&bytes)?, length: bytes.len() as u32 };
            self.bundles.push((number, extent.length));
            let share = share(extent, blocks.len());
            let of_file = u64::from(share) * blocks.len() as u64;
            *self.placing.lock().used.entry(self.placing.number).or_default() += of_file;
            self.written.extend(blocks.into_iter().enumerate().map(|(index, block)| {
                let at = Where::Bundled { bundle: number, index: index as u8 };
                Written { block, at, bytes: share }
            }));
        }
        Ok(())
    }

    /// Writes where the bundles are, and tells the writer which block files the snapshot refers to, after
    /// all blocks are written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn list(&self, writer: &mut SnapshotWriter) -> Result<(), SnapshotError> {
        let state = self.placing.lock();
        assert!(state.waiting.is_empty(), "{} bundles are not written", state.waiting.len());
        assert_eq!(self.bundles.len(), state.bundles as usize, "every bundle is written");
        if !self.bundles.is_empty() {
            let directory = self.directory().encode();
            let offset = writer.write_block(&directory)?;
            writer.write_block(&Directory::end(offset, directory.len()))?;
        }
        let listed =
            state.used.iter().map(|(number, used)| BlockFileUse { number: *number, used_bytes: *used });
        writer.refer_to(listed.collect());
        Ok(())
    }

    fn directory(&self) -> Directory {
        let bundles = self.bundles.iter().copied();
        Directory::of(bundles).expect("every bundle is written once")
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
        let source: Arc<dyn BlockSource> = Arc::new(FileOfBlocks::with_directory(file, self.directory()));
        for Written { block, at, bytes } in self.written {
            block.set_place(Place { source: Arc::clone(&source), position: at.position(), bytes });
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
