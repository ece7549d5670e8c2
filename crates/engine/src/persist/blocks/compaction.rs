//! Which block files the next snapshot writes again.

use std::collections::BTreeSet;
use tidemark_log::BlockFileUse;

/// Files of about the same size that are merged into one. With files that are 8 times as large as the
/// next smaller kind, there are at most 7 of a kind, and a block is written again at most as often as
/// there are kinds.
const MERGED: usize = 8;

/// Chooses among the files of a snapshot, each with its size in bytes: those of which less than half is
/// used, and those of a kind of which there are many.
pub(super) fn choose(files: &[(BlockFileUse, u64)]) -> BTreeSet<u64> {
    let is_sparse = |(file, bytes): &&(BlockFileUse, u64)| file.used_bytes < bytes / 2;
    let mut chosen: BTreeSet<u64> = files.iter().filter(is_sparse).map(|(file, _)| file.number).collect();
    let kind = |file: &BlockFileUse| file.used_bytes.max(1).ilog2() / MERGED.ilog2();
    let mut kinds: Vec<u32> = files.iter().map(|(file, _)| kind(file)).collect();
    kinds.sort_unstable();
    for same in kinds.chunk_by(|one, other| one == other).filter(|same| same.len() >= MERGED) {
        chosen.extend(files.iter().filter(|(file, _)| kind(file) == same[0]).map(|(file, _)| file.number));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(number: u64, used_bytes: u64, bytes: u64) -> (BlockFileUse, u64) {
        (BlockFileUse { number, used_bytes }, bytes)
    }

    #[test]
    fn files_that_are_mostly_unused_are_written_again() {
        let files = [file(1, 49, 100), file(2, 50, 100), file(3, 100, 100), file(4, 0, 100)];
        assert_eq!(choose(&files), BTreeSet::from([1, 4]));
    }

    proptest! {
        /// Snapshots of any sizes, each with new blocks in a new file: the number of files stays small.
        #[test]
        fn files_stay_few(sizes in proptest::collection::vec(1_u64..1_000_000, 1..2_000)) {
            let mut files: Vec<(BlockFileUse, u64)> = Vec::new();
            let (mut written, mut added) = (0, 0);
            for (number, size) in sizes.into_iter().enumerate() {
                let chosen = choose(&files);
                let again: u64 =
                    files.iter().filter(|(file, _)| chosen.contains(&file.number)).map(|(_, bytes)| bytes).sum();
                files.retain(|(file, _)| !chosen.contains(&file.number));
                files.push(file(number as u64, size + again, size + again));
                written += size + again;
                added += size;
                prop_assert!(files.len() <= 100, "{} files", files.len());
            }
            prop_assert!(written <= 12 * added, "{written} bytes written for {added}");
        }
    }
}
