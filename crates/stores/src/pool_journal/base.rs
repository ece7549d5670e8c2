//! The base of incremental snapshots: the last full snapshot of a pool, and the digests of its
//! blocks.

use sha2::{Digest, Sha256};
use tidemark_log::Lsn;

/// Most incremental snapshots on one base. Recovery and copies of the folder need both.
pub(super) const INCREMENTS_MAX: u32 = 3;
/// Below this number of blocks, a full snapshot is short.
const BLOCKS_MIN: usize = 16;

/// Collision-resistant: no two different blocks with the same digest can be found, even with chosen
/// ids.
type BlockDigest = [u8; 16];

/// A full snapshot that was taken since the start.
#[derive(Debug)]
pub(super) struct Base {
    lsn: Lsn,
    blocks: Vec<BlockDigest>,
    bytes: u64,
    /// Number of the incremental snapshots on it, and their total size.
    increments: u32,
    increment_bytes: u64,
    /// Whether the last snapshot found at least half of it unchanged.
    is_quiet: bool,
}

impl Base {
    /// Whether the next snapshot is incremental: while that saves space, and all increments
    /// together are not longer than the base.
    pub(super) fn takes_another(&self) -> bool {
        self.is_quiet
            && self.blocks.len() >= BLOCKS_MIN
            && self.increments < INCREMENTS_MAX
            && self.increment_bytes < self.bytes
    }
}

/// Compares the blocks of a snapshot in progress with those of its base.
pub(super) struct Comparison {
    base: Option<Base>,
    is_incremental: bool,
    blocks: Vec<BlockDigest>,
    bytes: u64,
    same_bytes: u64,
}

impl Comparison {
    pub(super) fn new(base: Option<Base>) -> Self {
        let is_incremental = base.as_ref().is_some_and(Base::takes_another);
        Self { base, is_incremental, blocks: Vec::new(), bytes: 0, same_bytes: 0 }
    }

    /// Returns the base's LSN if this snapshot is incremental.
    pub(super) fn on(&self) -> Option<Lsn> {
        self.base.as_ref().filter(|_| self.is_incremental).map(|base| base.lsn)
    }

    /// Whether this snapshot can omit a block because the base has it.
    pub(super) fn is_kept(&mut self, block: usize, items: &[u8]) -> bool {
        let digest = Sha256::digest(items);
        let digest: BlockDigest = *digest.first_chunk().expect("a digest has 32 bytes");
        let is_same = self.base.as_ref().is_some_and(|base| base.blocks.get(block) == Some(&digest));
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, BlockDigest::default());
        }
        self.blocks[block] = digest;
        self.bytes += items.len() as u64;
        self.same_bytes += if is_same { items.len() as u64 } else { 0 };
        is_same && self.is_incremental
    }

    /// Returns the base for the next snapshot, after this one was taken at `lsn`.
    pub(super) fn taken(self, lsn: Lsn) -> Base {
        let is_quiet = self.base.is_some() && self.same_bytes >= self.bytes.div_ceil(2);
        match self.base {
            Some(base) if self.is_incremental => Base {
                increments: base.increments + 1,
                increment_bytes: base.increment_bytes + (self.bytes - self.same_bytes),
                is_quiet,
                ..base
            },
            _ => Base {
                lsn,
                blocks: self.blocks,
                bytes: self.bytes,
                increments: 0,
                increment_bytes: 0,
                is_quiet,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a snapshot of blocks with these contents; returns its base, and which blocks it has.
    fn take(base: &mut Option<Base>, lsn: u64, blocks: &[u8]) -> (Option<u64>, Vec<usize>) {
        let mut comparison = Comparison::new(base.take());
        let on = comparison.on().map(|lsn| lsn.0);
        let has = (0..blocks.len()).rev().filter(|&block| !comparison.is_kept(block, &[blocks[block]; 100]));
        let mut has: Vec<usize> = has.collect();
        has.reverse();
        *base = Some(comparison.taken(Lsn(lsn)));
        (on, has)
    }

    #[test]
    fn a_pool_that_hardly_changes_has_incremental_snapshots_between_whole_ones() {
        let (mut base, mut blocks) = (None, [0; 20]);
        let all: Vec<usize> = (0..20).collect();
        assert_eq!(take(&mut base, 1, &blocks), (None, all.clone()));
        assert_eq!(take(&mut base, 2, &blocks), (None, all.clone()), "it was not known to be quiet");
        blocks[3] = 1;
        assert_eq!(take(&mut base, 3, &blocks), (Some(2), vec![3]));
        blocks[7] = 1;
        assert_eq!(take(&mut base, 4, &blocks), (Some(2), vec![3, 7]));
        blocks[3] = 0;
        assert_eq!(take(&mut base, 5, &blocks), (Some(2), vec![7]));
        assert_eq!(take(&mut base, 6, &blocks), (None, all), "three are on the last whole one");
        assert_eq!(take(&mut base, 7, &blocks), (Some(6), vec![]));
    }

    #[test]
    fn where_much_changes_snapshots_are_whole() {
        let mut base = None;
        for lsn in 1..6 {
            assert_eq!(take(&mut base, lsn, &[lsn as u8; 20]).0, None);
        }
        let mut blocks = [5; 20];
        take(&mut base, 6, &blocks);
        assert_eq!(take(&mut base, 7, &blocks), (Some(6), vec![]), "it has become quiet");
        blocks[..11].fill(6);
        assert_eq!(take(&mut base, 8, &blocks), (Some(6), (0..11).collect()));
        assert_eq!(take(&mut base, 9, &blocks).0, None, "over half of it has changed");
        take(&mut base, 10, &blocks);
        blocks[..10].fill(7);
        assert_eq!(take(&mut base, 11, &blocks).0, Some(10));
        assert_eq!(take(&mut base, 12, &blocks).0, Some(10));
        assert_eq!(take(&mut base, 13, &blocks).0, None, "the two are as long as what they are on");
    }

    #[test]
    fn blocks_that_are_new_are_not_in_the_base_and_small_pools_are_whole() {
        let mut base = None;
        take(&mut base, 1, &[0; 20]);
        take(&mut base, 2, &[0; 20]);
        assert_eq!(take(&mut base, 3, &[0; 22]), (Some(2), vec![20, 21]));
        let mut base = None;
        assert!((1..9).all(|lsn| take(&mut base, lsn, &[0; BLOCKS_MIN - 1]).0.is_none()));
    }
}
