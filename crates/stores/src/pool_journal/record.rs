//! The records of a pool's log, and the encoding of a pool in it and in snapshots.

use tidemark_pool::{Chain, Pool, PoolImage, Selector};

/// The initial pool: its chain, and its head. Its items follow.
pub(super) const HEAD: u8 = 1;
/// A range of its items, after those before.
pub(super) const ITEMS: u8 = 2;
/// A frame.
pub(super) const FRAME: u8 = 3;
/// A frame in words.
pub(super) const WORDS: u8 = 4;

/// The section of a snapshot that has the head. Later sections have the blocks of items, in order.
pub(super) const HEAD_SECTION: u32 = 0;

/// Items per record.
const ITEMS_AT_ONCE: usize = 1024;

/// Returns the section of a block.
pub(super) fn block_section(block: usize) -> u32 {
    // Item numbers have 32 bits, and a block has many items, so this fits.
    HEAD_SECTION + 1 + block as u32
}

/// Encodes a head.
pub(super) fn put_head(chain: Chain, head: &[u8]) -> Vec<u8> {
    [&chain.bytes()[..], head].concat()
}

/// Decodes a head.
pub(super) fn head(bytes: &[u8]) -> Option<(Chain, &[u8])> {
    bytes.split_first_chunk::<32>().map(|(chain, head)| (Chain::from(*chain), head))
}

/// Decodes a head and reads its image.
pub(super) fn read_head(bytes: &[u8]) -> Option<Result<(Chain, PoolImage), tidemark_pool::Unreadable>> {
    let (chain, head) = head(bytes)?;
    Some(PoolImage::read(head).map(|image| (chain, image)))
}

/// Returns the items of a pool, encoded for records.
pub(super) fn items<S: Selector>(pool: &Pool<S>) -> impl Iterator<Item = Vec<u8>> {
    let count = pool.urn().len();
    (0..count).step_by(ITEMS_AT_ONCE).map(move |first| {
        let mut items = Vec::new();
        pool.write_items(first as u32..(first + ITEMS_AT_ONCE).min(count) as u32, &mut items);
        items
    })
}
