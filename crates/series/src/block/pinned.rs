//! Blocks that stay in memory while a change is made that has looked at them before.

use super::Block;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// Most memory of the blocks that a thread pins. Bytes.
const PINNED_BYTES_MAX: usize = 256 << 20;

thread_local! {
    static PINNED: RefCell<Pinned> = const { RefCell::new(Pinned { guards: 0, bytes: 0, blocks: BTreeMap::new() }) };
}

struct Pinned {
    guards: usize,
    /// Memory of the blocks with their points.
    bytes: usize,
    /// Blocks without and with their points, by the address of the first. It is kept so that no other
    /// block gets its address.
    blocks: BTreeMap<usize, (Block, Block)>,
}

/// While it lives, the blocks that this thread reads from their places stay in memory: they are read
/// once, and cannot fail after that.
///
/// At most 256 MiB of blocks are pinned. What is read beyond them is read again.
#[derive(Debug)]
pub struct PinnedBlocks {
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl PinnedBlocks {
    /// Begins to keep what this thread reads.
    pub fn begin() -> Self {
        PINNED.with_borrow_mut(|pinned| pinned.guards += 1);
        Self { _thread: PhantomData }
    }
}

impl Drop for PinnedBlocks {
    fn drop(&mut self) {
        PINNED.with_borrow_mut(|pinned| {
            pinned.guards -= 1;
            if pinned.guards == 0 {
                (pinned.bytes, pinned.blocks) = (0, BTreeMap::new());
            }
        });
    }
}

/// Returns a block with its points, if it is pinned.
pub(super) fn find(without_points: &Block) -> Option<Block> {
    PINNED.with_borrow(|pinned| Some(pinned.blocks.get(&address(without_points))?.1.clone()))
}

/// Keeps a block that was read, if this thread pins blocks.
pub(super) fn keep(without_points: &Block, block: &Block) {
    PINNED.with_borrow_mut(|pinned| {
        if pinned.guards > 0 && pinned.bytes + block.bytes() <= PINNED_BYTES_MAX {
            pinned.bytes += block.bytes();
            pinned.blocks.insert(address(without_points), (without_points.clone(), block.clone()));
        }
    });
}

fn address(block: &Block) -> usize {
    std::ptr::from_ref(&*block.stored).cast::<()>().addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Beside, BlockSource, Place};
    use crate::codec::Hints;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A file that can be read so often.
    #[derive(Debug)]
    struct Failing {
        words: Vec<u64>,
        left: AtomicUsize,
    }

    impl BlockSource for Failing {
        fn read(&self, _position: u64, _header: &Block, _beside: &mut Beside) -> Result<Vec<u64>, String> {
            let left =
                self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.map(|_| self.words.clone()).map_err(|_| "the disk has failed".to_owned())
        }

        fn describe(&self, position: u64) -> String {
            format!("at offset {position} of block file 1")
        }

        fn number(&self) -> u64 {
            1
        }
    }

    /// A block whose points are in a file that can be read so often.
    fn filed(value: f64, reads: usize) -> Block {
        let block = Block::encode(&[1, 2, 3], &[value; 3], &mut Hints::default());
        let source = Failing { words: block.words().to_vec(), left: reads.into() };
        block.set_place(Place { source: Arc::new(source), position: 0, bytes: 0 });
        block.without_points().unwrap()
    }

    fn value(block: &Block) -> Option<f64> {
        block.with_points(&mut Beside::default()).ok()?.get(2)
    }

    #[test]
    fn a_pinned_block_is_read_once() {
        let (one, other) = (filed(1.5, 2), filed(2.5, 1));
        let pinned = PinnedBlocks::begin();
        assert_eq!([value(&one), value(&other), value(&one), value(&other)], [1.5, 2.5, 1.5, 2.5].map(Some));
        assert_eq!(value(&one.clone()), Some(1.5), "a clone is the same block");
        let inner = PinnedBlocks::begin();
        drop(pinned);
        assert_eq!(value(&other), Some(2.5), "another guard keeps it");
        drop(inner);
        assert_eq!([value(&one), value(&one), value(&other)], [Some(1.5), None, None]);
        assert!(PINNED.with_borrow(|pinned| pinned.blocks.is_empty() && pinned.bytes == 0));
    }

    #[test]
    fn a_block_that_could_not_be_read_is_not_pinned() {
        let block = filed(1.5, 0);
        let _pinned = PinnedBlocks::begin();
        assert_eq!(value(&block), None);
        assert!(PINNED.with_borrow(|pinned| pinned.blocks.is_empty()));
    }
}
