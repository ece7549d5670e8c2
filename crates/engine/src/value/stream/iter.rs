//! Iteration over entries between two IDs.

use super::block::Block;
use super::id::Id;
use super::{EntryRef, Stream};

impl Stream {
    /// Iterates over the entries from one ID to another, both included.
    pub fn range(&self, from: Id, to: Id) -> Forward<'_> {
        let block = self.block_of(from);
        let at = self.state.blocks.get(block).map(|found| found.seek(from));
        match at {
            None => Forward { stream: self, block: usize::MAX, at: 0, to },
            Some(Some(at)) => Forward { stream: self, block, at, to },
            // The block ends with deleted entries.
            Some(None) => {
                let block = block + 1;
                let at = self.state.blocks.get(block).map_or(0, |next| next.start());
                Forward { stream: self, block, at, to }
            }
        }
    }

    /// Estimates the number of entries from one ID to another, both included: that of the blocks that may have
    /// them. O(log n).
    pub fn estimate(&self, from: Id, to: Id) -> usize {
        let blocks = self.state.blocks.len();
        let (first, end) = (self.block_of(from), self.block_of(to).saturating_add(1).min(blocks));
        end.saturating_sub(first).saturating_mul(self.len().div_ceil(blocks.max(1))).min(self.len())
    }

    /// As [`Stream::range`], from the last entry to the first.
    pub fn range_back(&self, from: Id, to: Id) -> Backward<'_> {
        let end = self.block_of(to).saturating_add(1).min(self.state.blocks.len());
        Backward { stream: self, from, to, blocks: end, places: Vec::new() }
    }
}

/// Iterator from the first entry to the last.
#[derive(Debug, Clone)]
pub struct Forward<'a> {
    stream: &'a Stream,
    block: usize,
    at: usize,
    to: Id,
}

impl<'a> Iterator for Forward<'a> {
    type Item = EntryRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<EntryRef<'a>> {
        let blocks = &self.stream.state.blocks;
        loop {
            let block = blocks.get(self.block)?;
            if let Some(found) = block.live_from(self.at) {
                if found.entry.id() > self.to {
                    self.block = usize::MAX;
                    return None;
                }
                self.at = found.next;
                return Some(found.entry);
            }
            self.block += 1;
            self.at = blocks.get(self.block)?.start();
        }
    }
}

/// Iterator from the last entry to the first.
#[derive(Debug, Clone)]
pub struct Backward<'a> {
    stream: &'a Stream,
    from: Id,
    to: Id,
    /// Number of blocks that are not visited yet; the last of them is next.
    blocks: usize,
    /// Offsets of the entries of the block behind them that are still to come.
    places: Vec<u32>,
}

impl<'a> Iterator for Backward<'a> {
    type Item = EntryRef<'a>;

    fn next(&mut self) -> Option<EntryRef<'a>> {
        let blocks = &self.stream.state.blocks;
        loop {
            if let Some(at) = self.places.pop() {
                let found = blocks[self.blocks].live_from(at as usize)?;
                return Some(found.entry);
            }
            let block: &Block = blocks.get(self.blocks.checked_sub(1)?)?;
            if block.last() < self.from {
                return None;
            }
            self.blocks -= 1;
            let mut at = block.start();
            while let Some(found) = block.live_from(at)
                && found.entry.id() <= self.to
            {
                if found.entry.id() >= self.from {
                    self.places.push(found.at as u32);
                }
                at = found.next;
            }
        }
    }
}
