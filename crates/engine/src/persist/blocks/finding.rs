//! Blocks that a snapshot refers to, found when it is loaded.

use super::address::Address;
use super::source::{FileOfBlocks, Recent, read_at};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_log::BlockFiles;
use tidemark_series::{Block, Part};

/// Finds the blocks that a snapshot refers to. Used by several threads.
#[derive(Debug)]
pub(crate) struct BlockFinder {
    files: Arc<BlockFiles>,
    recent: Mutex<Recent>,
    open: Mutex<BTreeMap<u64, Arc<FileOfBlocks>>>,
    /// Bytes of points above which further ones are left in their files.
    points_max: usize,
    /// Bytes of the blocks in memory.
    bytes: AtomicUsize,
    /// The first failure.
    failure: Mutex<Option<String>>,
}

impl BlockFinder {
    /// Looks in `files`. Leaves points there that are beyond `points_max` bytes.
    pub(crate) fn new(files: Arc<BlockFiles>, points_max: usize) -> Self {
        Self {
            files,
            recent: Mutex::default(),
            open: Mutex::default(),
            points_max,
            bytes: AtomicUsize::new(0),
            failure: Mutex::default(),
        }
    }

    /// Reads and checks a block; `None` if it cannot be read, or is none. One that is stored as it is has so
    /// many words.
    pub(crate) fn find(&self, address: Address, words: u64) -> Option<Part<f64>> {
        let found = self.read(address, words);
        found.map_err(|failure| lock(&self.failure).get_or_insert(failure).clone()).ok()
    }

    /// Refuses a part for a reason that the bytes do not tell.
    pub(crate) fn refuse(&self, why: &str) {
        lock(&self.failure).get_or_insert_with(|| why.to_owned());
    }

    /// Returns the bytes of the blocks in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes the description of the first failure.
    pub(crate) fn take_failure(&self) -> Option<String> {
        lock(&self.failure).take()
    }

    fn read(&self, address: Address, words: u64) -> Result<Part<f64>, String> {
        let words = usize::try_from(words).map_err(|_| format!("a block of {words} words"))?;
        let (place, words) = read_at(&self.source(address.file)?, address.at, words, &self.recent)?;
        let block = Block::from_words::<f64>(&words)
            .map_err(|error| format!("{}: {error}", place.source.describe(place.position)))?;
        block.set_place(place);
        let header = if self.bytes() > self.points_max { block.without_points() } else { None };
        let kept = header.unwrap_or(block);
        self.bytes.fetch_add(kept.bytes(), Ordering::Relaxed);
        Ok(Part::of_block(kept))
    }

    fn source(&self, number: u64) -> Result<Arc<FileOfBlocks>, String> {
        let mut open = lock(&self.open);
        if let Some(source) = open.get(&number) {
            return Ok(Arc::clone(source));
        }
        let file = self.files.open(number).map_err(|error| error.to_string())?;
        let source = Arc::new(FileOfBlocks::new(file));
        open.insert(number, Arc::clone(&source));
        Ok(source)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::blocks::Where;
    use tidemark_log::{Lsn, MemoryStorage, SnapshotWriter};
    use tidemark_series::{Direction, Options, Series};

    /// Files of builds before bundles have each block as it is in memory, and no directory.
    #[test]
    fn blocks_of_files_without_bundles_are_found() {
        let storage: Arc<dyn tidemark_log::Storage> = Arc::new(MemoryStorage::default());
        let mut series = Series::<f64>::new(Options::default());
        for time in 0..2_048 {
            series.append(time, (time % 100) as f64 / 10.0).expect("times rise");
        }
        series.seal_all();
        let mut writer = SnapshotWriter::create(Arc::clone(&storage), Lsn::ZERO).expect("memory writes");
        writer.set_block_file(1);
        let mut addresses = Vec::new();
        for block in (0..2).filter_map(|part| series.block(part)) {
            let bytes: Vec<u8> = block.words().iter().flat_map(|word| word.to_le_bytes()).collect();
            let offset = writer.write_block(&bytes).expect("memory writes");
            addresses.push((Address { file: 1, at: Where::Alone(offset) }, block.stored_words() as u64));
        }
        writer.refer_to(vec![tidemark_log::BlockFileUse { number: 1, used_bytes: 1 }]);
        writer.finish().expect("memory writes");
        let files = Arc::new(BlockFiles::new(storage));
        for points_max in [usize::MAX, 0] {
            let finder = BlockFinder::new(Arc::clone(&files), points_max);
            let parts: Vec<_> = addresses
                .iter()
                .map(|(address, words)| finder.find(*address, *words).expect("it is there"))
                .collect();
            let mut head = Vec::new();
            Series::<f64>::new(Options::default()).encode_head(&mut head);
            let found = Series::of_parts(Options::default(), &head, parts.into_iter().map(Ok));
            let found = found.expect("the blocks follow each other");
            let points = |series: &Series<f64>| {
                let mut points = Vec::new();
                series.read(i64::MIN..=i64::MAX, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
                    points.extend(times.iter().copied().zip(values.iter().copied()));
                    std::ops::ControlFlow::Continue(())
                });
                points
            };
            assert_eq!(points(&found), points(&series));
        }
        let finder = BlockFinder::new(files, 0);
        let bundled = Where::Bundled { bundle: 0, index: 0 };
        assert!(finder.find(Address { file: 1, at: bundled }, 0).is_none());
        let failure = finder.take_failure().expect("why");
        assert!(failure.contains("blocks-00000000000000000001.tide"), "{failure}");
    }
}
