//! Streams: entries in the order of their IDs, and groups of consumers.
//!
//! ```text
//! blocks   [ 1-0 1-1 … ]  [ … ]  [ … 7-3 ]        an entry: an ID, and fields with values
//!            ▲                          ▲
//!       trimmed here               added here
//! groups   name ─► last delivered ID, consumers, pending entries: delivered and not acknowledged
//! ```
//!
//! Entries are in blocks of up to 100, or 4 KiB, in a deque: adding changes the last block, trimming
//! drops the first ones, and an ID is found by a binary search. A deletion marks its entry, and drops
//! the block with its last one, which moves at most one reference for each other block.
//!
//! Blocks and pending entries are shared by reference, and copied when they change while they are. So
//! the copy that a snapshot writes, or `COPY` makes, costs a reference for each block.

mod block;
mod capture;
mod delivery;
mod group;
mod id;
mod image;
mod iter;
mod lag;
mod ordered;
mod restoring;
mod trim;

pub use block::{EntryRef, NodeLimits};
pub use group::{Consumer, Group, Pending};
pub use id::{Id, IdText};
pub use iter::{Backward, Forward};
pub(crate) use restoring::{BlockRef, Restoring};
pub use trim::{Keep, Trim, Trimmed};

use super::{Object, TypedValue, Value};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use block::Block;
use capture::StreamCapture;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// A stream. An empty one stays: it has a last ID, and groups.
#[derive(Debug, Default)]
pub struct Stream {
    state: Box<State>,
    /// Capture by a running snapshot.
    capture: Option<Box<StreamCapture>>,
}

/// A stream's contents. A copy is cheap: see the module.
#[derive(Debug, Clone, Default)]
struct State {
    /// None without an entry that is not deleted. IDs ascend, across blocks too.
    blocks: VecDeque<Arc<Block>>,
    /// Number of entries that are not deleted.
    length: u64,
    /// ID of the last entry that was ever added, or as `XSETID` has set it. No entry's is greater.
    last: Id,
    /// The greatest ID that `XDEL` has deleted, or as `XSETID` has set it.
    max_deleted: Id,
    /// Number of entries that were ever added.
    added: u64,
    groups: BTreeMap<Box<[u8]>, Group>,
}

/// Why an entry cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddError {
    /// Its ID is not greater than the last one.
    NotGreater,
    /// No greater ID is left.
    Exhausted,
}

/// The ID that a new entry is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewId {
    /// By the clock: `*`.
    Clock,
    /// The next one of a millisecond: `ms-*`.
    Next {
        /// The millisecond.
        ms: u64,
    },
    /// This one.
    Exact(Id),
}

impl Stream {
    /// Returns Redis's name of this representation.
    pub fn encoding(&self) -> &'static str {
        "stream"
    }

    /// Returns the number of entries.
    // Emptiness is that of a value, by which its key would go: see `Stream::has_no_entries`.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        usize::try_from(self.state.length).unwrap_or(usize::MAX)
    }

    /// Whether there are no entries. The stream is there nevertheless.
    pub fn has_no_entries(&self) -> bool {
        self.state.length == 0
    }

    /// Returns the ID of the last entry that was ever added, or as `XSETID` has set it.
    pub fn last(&self) -> Id {
        self.state.last
    }

    /// Returns the greatest ID that was deleted.
    pub fn max_deleted(&self) -> Id {
        self.state.max_deleted
    }

    /// Returns the number of entries that were ever added.
    pub fn added(&self) -> u64 {
        self.state.added
    }

    /// Returns the ID of the first entry; the smallest ID if there is none.
    pub fn first(&self) -> Id {
        self.state.blocks.front().map_or(Id::MIN, |block| block.first_live())
    }

    /// Returns the ID of the last entry that is there.
    pub fn last_entry(&self) -> Option<Id> {
        self.state.blocks.back().map(|block| block.last_live())
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.state.blocks.len()
    }

    /// Returns the ID that a new entry gets.
    ///
    /// # Errors
    /// The ID is not greater than the last one, or none is left.
    pub fn next_id(&self, wanted: NewId, now_ms: u64) -> Result<Id, AddError> {
        let last = self.state.last;
        if last == Id::MAX {
            return Err(AddError::Exhausted);
        }
        let id = match wanted {
            NewId::Clock if now_ms > last.ms => Some(Id { ms: now_ms, seq: 0 }),
            NewId::Clock => last.next(),
            NewId::Next { ms } if ms == last.ms => last.seq.checked_add(1).map(|seq| Id { ms, seq }),
            NewId::Next { ms } => Some(Id { ms, seq: 0 }),
            NewId::Exact(id) => Some(id),
        };
        id.filter(|id| *id > last).ok_or(AddError::NotGreater)
    }

    /// Adds an entry. `fields` alternates names and values. O(1) amortised.
    ///
    /// # Panics
    /// The ID is not greater than the last one.
    #[inline]
    pub fn add(&mut self, id: Id, fields: &[&[u8]], limits: NodeLimits) {
        let state = &mut *self.state;
        let last = state.last;
        assert!(id > last, "entry {id} is added behind {last}");
        let bytes = fields.iter().map(|field| field.len()).sum();
        match state.blocks.back_mut() {
            Some(block) if block.has_room(bytes, limits) => Arc::make_mut(block).push(id, fields),
            full => {
                if let Some(full) = full {
                    Arc::make_mut(full).shrink();
                }
                state.blocks.push_back(Arc::new(Block::of(id, fields)));
            }
        }
        state.length += 1;
        state.added += 1;
        state.last = id;
    }

    /// Returns an entry.
    pub fn get(&self, id: Id) -> Option<EntryRef<'_>> {
        self.range(id, id).next()
    }

    /// Whether an entry is there.
    pub fn contains(&self, id: Id) -> bool {
        self.get(id).is_some()
    }

    /// Returns the number of the first block that may have an ID of at least `id`.
    fn block_of(&self, id: Id) -> usize {
        let blocks = &self.state.blocks;
        // Reads are mostly of the newest entries.
        match blocks.back() {
            Some(last) if last.first() <= id => blocks.len() - usize::from(last.last() >= id),
            _ => blocks.partition_point(|block| block.last() < id),
        }
    }

    /// Deletes an entry; `false` if it is not there. O(log n), and O(n / 10,000) now and then.
    pub fn delete(&mut self, id: Id) -> bool {
        if !self.contains(id) {
            return false;
        }
        let number = self.block_of(id);
        let state = &mut *self.state;
        let block = Arc::make_mut(&mut state.blocks[number]);
        let is_deleted = block.delete(id);
        assert!(is_deleted, "entry {id} is there, and is not in its block");
        if block.live() == 0 {
            state.blocks.remove(number);
        }
        state.length -= 1;
        state.max_deleted = state.max_deleted.max(id);
        true
    }

    /// Sets what further entries continue. `last` must be at least the ID of the last entry.
    pub fn continue_from(&mut self, last: Id, added: Option<u64>, max_deleted: Option<Id>) {
        let state = &mut *self.state;
        if let Some(block) = state.blocks.back_mut().filter(|block| block.last() > last) {
            Arc::make_mut(block).cut_deleted_end();
            let end = block.last();
            assert!(end <= last, "a stream continues from {last}, before its entry {end}");
        }
        state.last = last;
        state.added = added.unwrap_or(state.added);
        state.max_deleted = max_deleted.unwrap_or(state.max_deleted);
    }

    /// Returns a group.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.state.groups.get(name)
    }

    /// Iterates over the groups, by their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.state.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// Creates a group that has read up to an entry; `false` if it is there already.
    pub fn create_group(&mut self, name: &[u8], last: Id, entries_read: Option<u64>) -> bool {
        if self.state.groups.contains_key(name) {
            return false;
        }
        self.state.groups.insert(name.into(), Group::new(last, entries_read));
        true
    }

    /// Removes a group and returns it.
    pub fn delete_group(&mut self, name: &[u8]) -> Option<Group> {
        self.state.groups.remove(name)
    }

    /// Sets what a group has read; `false` if there is no such group.
    pub fn set_group(&mut self, name: &[u8], last: Id, entries_read: Option<u64>) -> bool {
        let group = self.state.groups.get_mut(name);
        group.map(|group| (group.last, group.entries_read) = (last, entries_read)).is_some()
    }

    /// Returns a group, to change what was delivered.
    pub(crate) fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.state.groups.get_mut(name)
    }

    /// Returns a copy that shares the blocks.
    fn copy(&self) -> Self {
        Self { state: self.state.clone(), capture: None }
    }
}

impl Value for Stream {
    /// Never: a stream without entries has a last ID and groups.
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        let pending: usize = self.state.groups.values().map(Group::pending).sum();
        self.len() + pending
    }

    fn encoding(&self) -> &'static str {
        self.encoding()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let elements = self.state.elements();
        put_varint(into, elements as u64);
        let mut element = Vec::new();
        for number in 0..elements {
            element.clear();
            self.state.encode_element(number, &mut element);
            put_bytes(into, &element);
        }
    }

    fn share(&self) -> Option<Object> {
        Some(self.copy().into_object())
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let count = bytes.varint()?;
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(image::decode_element(&mut bytes.nested()?)?);
        }
        Self::assemble(elements)
    }

    fn digest(&self) -> u64 {
        let mut hasher = Xxh3::new();
        self.state.hash(&mut hasher);
        hasher.digest()
    }

    fn in_parts(&self) -> Option<&dyn super::InParts> {
        Some(self)
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn super::InParts> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
