//! What records a pool's log has, and in which form a pool stands in it and in snapshots.

use tidemark_pool::{Chain, Pool, PoolImage, Selector};

/// A pool as it was made: the chain behind which its log goes on, and its head. Its items follow.
pub(super) const HEAD: u8 = 1;
/// Some of its items, behind those before.
pub(super) const ITEMS: u8 = 2;
/// A frame.
pub(super) const FRAME: u8 = 3;
/// A frame in words.
pub(super) const WORDS: u8 = 4;

/// The section of a snapshot that has the head. Those behind it have the blocks of items, in their order.
pub(super) const HEAD_SECTION: u32 = 0;

/// So many items are one record.
const ITEMS_AT_ONCE: usize = 1024;

/// The section of a block.
pub(super) fn block_section(block: usize) -> u32 {
    // Items have numbers of 32 bits, and a block has many of them.
    HEAD_SECTION + 1 + block as u32
}

/// The form of a head.
pub(super) fn put_head(chain: Chain, head: &[u8]) -> Vec<u8> {
    [&chain.bytes()[..], head].concat()
}

/// What a head says.
pub(super) fn head(bytes: &[u8]) -> Option<(Chain, &[u8])> {
    bytes.split_first_chunk::<32>().map(|(chain, head)| (Chain::from(*chain), head))
}

/// Reads a head on its own.
pub(super) fn read_head(bytes: &[u8]) -> Option<Result<(Chain, PoolImage), tidemark_pool::Unreadable>> {
    let (chain, head) = head(bytes)?;
    Some(PoolImage::read(head).map(|image| (chain, image)))
}

/// The items of a pool, as records have them.
pub(super) fn items<S: Selector>(pool: &Pool<S>) -> impl Iterator<Item = Vec<u8>> {
    let count = pool.urn().len();
    (0..count).step_by(ITEMS_AT_ONCE).map(move |first| {
        let mut items = Vec::new();
        pool.write_items(first as u32..(first + ITEMS_AT_ONCE).min(count) as u32, &mut items);
        items
    })
}
