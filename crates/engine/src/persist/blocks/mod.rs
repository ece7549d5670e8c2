//! Blocks of series in block files: written with a snapshot, found when one is loaded.
//!
//! A snapshot's walk runs under locks, so it only decides where a block will be ([`Blocks`]). The
//! thread that writes the snapshot writes the blocks, and gives them their places when all of it is
//! durable ([`BlockPlacement`]).

mod compaction;
mod finding;
mod placing;

pub(crate) use finding::BlockFinder;
pub(crate) use placing::BlockPlacement;
pub use placing::BlockWriteError;
pub(crate) use placing::{Address, Blocks};

use std::sync::Arc;
use tidemark_log::BlockFile;
use tidemark_series::BlockSource;

/// Bytes of a word.
const WORD_BYTES: usize = size_of::<u64>();

/// A block file as the source of blocks.
#[derive(Debug)]
struct FileOfBlocks(Arc<BlockFile>);

impl BlockSource for FileOfBlocks {
    fn read(&self, offset: u64, words: usize) -> Result<Vec<u64>, String> {
        let length = words.checked_mul(WORD_BYTES).ok_or_else(|| format!("a block of {words} words"))?;
        let bytes = self.0.read_block(offset, length).map_err(|error| error.to_string())?;
        let (words, _) = bytes.as_chunks::<WORD_BYTES>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn number(&self) -> u64 {
        self.0.number()
    }
}
