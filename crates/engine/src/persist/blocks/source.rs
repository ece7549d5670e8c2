//! A block file as the source of blocks.

use super::WORD_BYTES;
use super::address::Where;
use super::directory::{Directory, Extent};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidemark_log::BlockFile;
use tidemark_log::snapshot::BLOCK_OVERHEAD_BYTES;
use tidemark_series::{Beside, Block, BlockSource, BundleTimes, Place, StoredBundle};

/// Bundles that stay decompressed while a reading goes on: as many as threads read in turn, at a start. A
/// bundle is some tens of kilobytes, at most half a megabyte.
const RECENT_BUNDLES: usize = 8;

/// Times that stay decompressed, which many series may share.
const RECENT_TIMES: usize = 16;

/// A block file as the source of blocks.
#[derive(Debug)]
pub(super) struct FileOfBlocks {
    file: Arc<BlockFile>,
    /// Read when a bundle is looked for first.
    directory: OnceLock<Directory>,
}

/// Number of a file, and of a bundle in it.
type Key = (u64, u32);

/// What a reading has decompressed last, the newest first.
#[derive(Debug, Default)]
pub(super) struct Recent {
    bundles: VecDeque<(Key, Arc<StoredBundle>)>,
    times: VecDeque<(Key, BundleTimes)>,
}

/// Where a reading keeps what it has decompressed: threads may share it.
pub(super) trait Keep {
    fn with<T>(&mut self, look: impl FnOnce(&mut Recent) -> T) -> T;
}

impl Keep for &mut Recent {
    fn with<T>(&mut self, look: impl FnOnce(&mut Recent) -> T) -> T {
        look(self)
    }
}

impl Keep for &Mutex<Recent> {
    fn with<T>(&mut self, look: impl FnOnce(&mut Recent) -> T) -> T {
        look(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FileOfBlocks {
    pub(super) fn new(file: Arc<BlockFile>) -> Self {
        Self { file, directory: OnceLock::new() }
    }

    /// Like [`FileOfBlocks::new`], of a file whose directory is known.
    pub(super) fn with_directory(file: Arc<BlockFile>, directory: Directory) -> Self {
        Self { file, directory: directory.into() }
    }

    /// Returns the words of a block that is stored as it is.
    pub(super) fn read_alone(&self, offset: u64, words: usize) -> Result<Vec<u64>, String> {
        let length = words.checked_mul(WORD_BYTES).ok_or_else(|| format!("a block of {words} words"))?;
        let bytes = self.file.read_block(offset, length).map_err(|error| error.to_string())?;
        let (words, _) = bytes.as_chunks::<WORD_BYTES>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn extent(&self, bundle: u32) -> Result<Extent, String> {
        let directory = match self.directory.get() {
            Some(directory) => directory,
            None => {
                let read = Directory::read(&self.file)?;
                self.directory.get_or_init(|| read)
            }
        };
        let missing = || format!("{} has no bundle {bundle}", self.file.path());
        directory.find(bundle).ok_or_else(missing)
    }

    fn payload(&self, extent: Extent) -> Result<Vec<u8>, String> {
        self.file.read_block(extent.offset, extent.length as usize).map_err(|error| error.to_string())
    }

    fn bundle(&self, number: u32, mut recent: impl Keep) -> Result<Arc<StoredBundle>, String> {
        let key = (self.file.number(), number);
        if let Some(bundle) = recent.with(|recent| find(&recent.bundles, key)) {
            return Ok(bundle);
        }
        let extent = self.extent(number)?;
        let bytes = self.payload(extent)?;
        let malformed = |error| self.malformed(extent, error);
        let times_in = BundleTimes::elsewhere(&bytes).map_err(malformed)?;
        let times = times_in.map(|number| self.times(number, &mut recent)).transpose()?;
        let bundle = Arc::new(StoredBundle::read(&bytes, times.as_ref()).map_err(malformed)?);
        recent.with(|recent| {
            if times_in.is_none() {
                // Series that share them are probably read next.
                keep(&mut recent.times, RECENT_TIMES, key, bundle.times());
            }
            keep(&mut recent.bundles, RECENT_BUNDLES, key, &bundle);
        });
        Ok(bundle)
    }

    fn times(&self, number: u32, recent: &mut impl Keep) -> Result<BundleTimes, String> {
        let key = (self.file.number(), number);
        if let Some(times) = recent.with(|recent| find(&recent.times, key)) {
            return Ok(times);
        }
        let extent = self.extent(number)?;
        let times =
            BundleTimes::read(&self.payload(extent)?).map_err(|error| self.malformed(extent, error))?;
        recent.with(|recent| keep(&mut recent.times, RECENT_TIMES, key, &times));
        Ok(times)
    }

    fn malformed(&self, extent: Extent, error: impl std::fmt::Display) -> String {
        format!("{} at byte {}: {error}", self.file.path(), extent.offset)
    }
}

fn find<T: Clone>(recent: &VecDeque<(Key, T)>, key: Key) -> Option<T> {
    recent.iter().find(|(kept, _)| *kept == key).map(|(_, found)| found.clone())
}

/// Keeps the newest `most`.
fn keep<T: Clone>(recent: &mut VecDeque<(Key, T)>, most: usize, key: Key, new: &T) {
    if recent.iter().any(|(kept, _)| *kept == key) {
        return;
    }
    recent.truncate(most - 1);
    recent.push_front((key, new.clone()));
}

/// Returns the bytes that each of a bundle's blocks takes in a file.
pub(super) fn share(extent: Extent, blocks: usize) -> u32 {
    (extent.length + BLOCK_OVERHEAD_BYTES as u32).div_ceil(blocks as u32)
}

/// Returns the bytes that a block takes that is stored as it is.
fn bytes_alone(words: usize) -> u32 {
    (BLOCK_OVERHEAD_BYTES + words * WORD_BYTES) as u32
}

/// Returns a block's place in a file, and its words.
pub(super) fn read_at(
    source: &Arc<FileOfBlocks>,
    at: Where,
    words: usize,
    recent: impl Keep,
) -> Result<(Place, Vec<u64>), String> {
    let (words, bytes) = match at {
        Where::Alone(offset) => (source.read_alone(offset, words)?, bytes_alone(words)),
        Where::Bundled { bundle, index } => {
            let (extent, stored) = (source.extent(bundle)?, source.bundle(bundle, recent)?);
            let words = stored.words(usize::from(index)).map_err(|error| source.malformed(extent, error))?;
            (words, share(extent, stored.len()))
        }
    };
    let source: Arc<dyn BlockSource> = Arc::<FileOfBlocks>::clone(source);
    Ok((Place { source, position: at.position(), bytes }, words))
}

impl BlockSource for FileOfBlocks {
    fn read(&self, position: u64, header: &Block, beside: &mut Beside) -> Result<Vec<u64>, String> {
        match Where::of_position(position) {
            Where::Alone(offset) => self.read_alone(offset, header.stored_words()),
            Where::Bundled { bundle, index } => {
                let stored = self.bundle(bundle, beside.kept::<Recent>())?;
                let words = stored.words_behind(header, usize::from(index));
                words.or_else(|error| Err(self.malformed(self.extent(bundle)?, error)))
            }
        }
    }

    fn describe(&self, position: u64) -> String {
        let number = self.file.number();
        match Where::of_position(position) {
            Where::Alone(offset) => format!("at offset {offset} of block file {number}"),
            Where::Bundled { bundle, index } => {
                let offset =
                    self.extent(bundle).map_or_else(|_| "?".to_owned(), |extent| extent.offset.to_string());
                format!("at {index} in the bundle at offset {offset} of block file {number}")
            }
        }
    }

    fn number(&self) -> u64 {
        self.file.number()
    }
}
