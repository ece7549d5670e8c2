//! Removal of the oldest entries.

use super::Stream;
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

impl Stream {
    /// Removes the oldest entries. Returns how many.
    ///
    /// O(1) for each block removed, and O(entries of one block) if not approximate.
    pub fn trim(&mut self, trim: Trim) -> u64 {
        let mut deleted = 0;
        while let Some(block) = self.state.blocks.front() {
            let entries = block.live() as u64;
            let length = self.state.length;
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
                self.state.blocks.pop_front();
                self.state.length -= entries;
                deleted += entries;
                continue;
            }
            if !trim.is_approximate {
                deleted += self.trim_first_block(trim.keep);
            }
            break;
        }
        deleted
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
