//! A stream from another server's blocks, and its own blocks for another server.

use super::block::{Block, EntryRef, NodeLimits};
use super::group::Group;
use super::id::Id;
use super::{State, Stream};
use std::sync::Arc;

/// A longer block of another server is divided: a change copies a block.
const BLOCK: NodeLimits = NodeLimits { entries: 400, bytes: 16 << 10 };

/// A block, as another server gets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRef<'a>(&'a Block);

impl<'a> BlockRef<'a> {
    /// The ID from which the others count.
    pub(crate) fn first(self) -> Id {
        self.0.first()
    }

    /// Number of entries that are not deleted, and of those that are.
    pub(crate) fn counts(self) -> (usize, usize) {
        (self.0.live(), self.0.deleted())
    }

    /// The names of the fields of its first entry.
    pub(crate) fn names(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.0.names()
    }

    /// All entries, deleted ones too.
    pub(crate) fn entries(self) -> impl Iterator<Item = EntryRef<'a>> {
        self.0.with_deleted()
    }
}

/// Makes a stream of entries and groups.
#[derive(Debug, Default)]
pub(crate) struct Restoring {
    state: State,
    /// The block that entries are added to.
    open: Option<Block>,
    /// Deleted entries of it.
    deleted: Vec<Id>,
}

impl Restoring {
    /// Number of entries so far that are not deleted.
    pub(crate) fn len(&self) -> u64 {
        self.state.length
    }

    /// Adds an entry. `fields` alternates names and values. Returns `None` if it is not behind those before, or
    /// has no fields.
    pub(crate) fn add(&mut self, id: Id, fields: &[&[u8]], is_deleted: bool) -> Option<()> {
        if id <= self.state.last || fields.is_empty() || !fields.len().is_multiple_of(2) {
            return None;
        }
        let bytes = fields.iter().map(|field| field.len()).sum();
        match &mut self.open {
            Some(block) if block.has_room(bytes, BLOCK) => block.push(id, fields),
            _ => {
                self.end_block();
                self.open = Some(Block::of(id, fields));
            }
        }
        self.state.last = id;
        if is_deleted {
            self.deleted.push(id);
        } else {
            self.state.length += 1;
        }
        Some(())
    }

    /// Ends a block of the other server.
    pub(crate) fn end_block(&mut self) {
        let Some(mut block) = self.open.take() else { return };
        for id in self.deleted.drain(..) {
            let is_deleted = block.delete(id);
            assert!(is_deleted, "entry {id} is not in the block to which it was added");
        }
        if block.live() > 0 {
            block.shrink();
            self.state.blocks.push_back(Arc::new(block));
        }
    }

    /// Sets what further entries continue. Returns `None` if an entry is behind `last`.
    pub(crate) fn continue_from(&mut self, last: Id, added: u64, max_deleted: Id) -> Option<()> {
        self.end_block();
        let is_last = self.state.blocks.back().is_none_or(|block| block.last_live() <= last);
        is_last.then(|| {
            let mut stream = Stream { state: Box::new(std::mem::take(&mut self.state)), capture: None };
            stream.continue_from(last, Some(added), Some(max_deleted));
            self.state = *stream.state;
        })
    }

    /// How many entries were ever added up to an ID, if that is known.
    pub(crate) fn added_up_to(&mut self, id: Id) -> Option<u64> {
        let stream = Stream { state: Box::new(std::mem::take(&mut self.state)), capture: None };
        let added = stream.added_up_to(id);
        self.state = *stream.state;
        added
    }

    /// Adds a group; `None` if it is there already.
    pub(crate) fn add_group(
        &mut self,
        name: &[u8],
        last: Id,
        entries_read: Option<u64>,
    ) -> Option<&mut Group> {
        if self.state.groups.contains_key(name) {
            return None;
        }
        Some(self.state.groups.entry(name.into()).or_insert(Group::new(last, entries_read)))
    }

    /// Returns the stream.
    pub(crate) fn finish(mut self) -> Stream {
        self.end_block();
        Stream { state: Box::new(self.state), capture: None }
    }
}

impl Stream {
    /// Iterates over the blocks.
    pub(crate) fn block_refs(&self) -> impl ExactSizeIterator<Item = BlockRef<'_>> {
        self.state.blocks.iter().map(|block| BlockRef(block))
    }
}
