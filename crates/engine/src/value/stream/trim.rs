//! Removal of the oldest entries.

use super::Stream;
use super::block::Block;
use super::id::Id;
use std::sync::Arc;

/// What to keep of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest entries.
    Newest(u64),
    /// Entries from an ID on.
    From(Id),
}

/// How to trim a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// What is to be kept.
    pub keep: Keep,
    /// Whether more may be kept, because only whole blocks are removed.
    pub is_approximate: bool,
    /// Most entries that may be removed; 0 for all.
    pub limit: u64,
}

/// What a trim has removed.
#[derive(Debug, Default)]
#[must_use]
pub struct Trimmed {
    /// Number of entries.
    pub entries: u64,
    /// Memory that takes long to free; empty if there are few blocks.
    blocks: Vec<Arc<Block>>,
}

impl Trimmed {
    /// Whether freeing it takes long enough to be moved to another thread.
    pub(crate) fn is_large(&self) -> bool {
        !self.blocks.is_empty()
    }
}

/// From so many blocks on, their memory is freed by the caller: a quarter of a megabyte.
const MANY_BLOCKS: usize = 64;

impl Stream {
    /// Removes the oldest entries.
    ///
    /// O(1) for each block removed, and O(entries of one block) if not approximate.
    pub fn trim(&mut self, trim: Trim) -> Trimmed {
        let (mut deleted, mut whole, mut is_exact) = (0, 0, false);
        let mut length = self.state.length;
        while let Some(block) = self.state.blocks.get(whole) {
            let entries = block.live() as u64;
            if matches!(trim.keep, Keep::Newest(count) if length <= count)
                || (trim.limit > 0 && deleted + entries > trim.limit)
            {
                break;
            }
            let is_whole = match trim.keep {
                Keep::Newest(count) => length - entries >= count,
                Keep::From(id) => block.last() < id,
            };
            if is_whole {
                whole += 1;
                length -= entries;
                deleted += entries;
                continue;
            }
            is_exact = !trim.is_approximate;
            break;
        }
        self.state.length = length;
        let removed = self.state.blocks.drain(..whole);
        let blocks = if whole < MANY_BLOCKS {
            // A few are freed here, and cost no allocation.
            drop(removed);
            Vec::new()
        } else {
            removed.collect()
        };
        if is_exact {
            deleted += self.trim_first_block(trim.keep);
        }
        Trimmed { entries: deleted, blocks }
    }

    /// Removes entries of the first block. Returns how many.
    fn trim_first_block(&mut self, keep: Keep) -> u64 {
        let (count, end) = match keep {
            Keep::Newest(count) => (self.state.length.saturating_sub(count), None),
            Keep::From(id) => (u64::MAX, Some(id)),
        };
        let is_due = |id: Id| end.is_none_or(|end| id < end);
        // A block that changes nothing is not copied for the sake of a snapshot.
        let Some(first) = self.state.blocks.front_mut().filter(|first| is_due(first.first_live())) else {
            return 0;
        };
        let block = Arc::make_mut(first);
        let deleted = block.delete_front(usize::try_from(count).unwrap_or(usize::MAX), is_due);
        if block.live() == 0 {
            self.state.blocks.pop_front();
        }
        self.state.length -= deleted as u64;
        deleted as u64
    }
}
