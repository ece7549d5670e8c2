//! A stream as bytes: its head, runs of blocks, and runs of pending entries.
//!
//! ```text
//! element  0 u8 │ head
//!          1 u8 │ (first ID │ length varint │ bytes of the block)*
//!          2 u8 │ number of the group varint │ (ID │ time varint │ deliveries varint │ consumer varint)*
//! head     length │ last ID │ greatest deleted ID │ entries ever added │ number of groups │ group*
//! group    name │ last ID │ entries read + 1, 0: unknown │ number of consumers │ (name │ seen)*
//! ID       ms varint │ seq varint
//! ```
//!
//! Groups and consumers are in the order of their names, and numbered in it. All numbers are varints.

use super::block::Block;
use super::group::{Group, Pending};
use super::id::Id;
use super::{State, Stream};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::value::{Object, TypedValue};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

const HEAD: u8 = 0;
const BLOCKS: u8 = 1;
const PENDING: u8 = 2;

/// Most blocks of one element: about 64 KiB.
const RUN_BLOCKS: usize = 16;
/// Most chunks of pending entries of one element: about 32 KiB.
const RUN_CHUNKS: usize = 16;

fn put_id(into: &mut Vec<u8>, id: Id) {
    put_varint(into, id.ms);
    put_varint(into, id.seq);
}

fn get_id(bytes: &mut Cursor<'_>) -> Option<Id> {
    Some(Id { ms: bytes.varint()?, seq: bytes.varint()? })
}

impl State {
    /// Returns the number of elements.
    pub(super) fn elements(&self) -> usize {
        let pending = |group: &Group| group.pending.chunks().div_ceil(RUN_CHUNKS);
        1 + self.blocks.len().div_ceil(RUN_BLOCKS) + self.groups.values().map(pending).sum::<usize>()
    }

    /// Appends one of the elements.
    pub(super) fn encode_element(&self, number: usize, into: &mut Vec<u8>) {
        let Some(number) = number.checked_sub(1) else { return self.encode_head(into) };
        let runs = self.blocks.len().div_ceil(RUN_BLOCKS);
        if number < runs {
            into.push(BLOCKS);
            let blocks = number * RUN_BLOCKS..((number + 1) * RUN_BLOCKS).min(self.blocks.len());
            return self.blocks.range(blocks).for_each(|block| block.encode(into));
        }
        let mut number = number - runs;
        for (index, group) in self.groups.values().enumerate() {
            let chunks = group.pending.chunks();
            let runs = chunks.div_ceil(RUN_CHUNKS);
            if number < runs {
                into.push(PENDING);
                put_varint(into, index as u64);
                let chunks = number * RUN_CHUNKS..((number + 1) * RUN_CHUNKS).min(chunks);
                return encode_pending(group, group.pending.of_chunks(chunks), into);
            }
            number -= runs;
        }
        unreachable!("a stream has no element {number} behind its {} elements", self.elements());
    }

    fn encode_head(&self, into: &mut Vec<u8>) {
        into.push(HEAD);
        put_varint(into, self.length);
        put_id(into, self.last);
        put_id(into, self.max_deleted);
        put_varint(into, self.added);
        put_varint(into, self.groups.len() as u64);
        for (name, group) in &self.groups {
            put_bytes(into, name);
            put_id(into, group.last);
            put_varint(into, group.entries_read.map_or(0, |read| read.saturating_add(1)));
            put_varint(into, group.consumers().len() as u64);
            for consumer in group.consumers() {
                put_bytes(into, consumer.name());
                put_varint(into, consumer.seen_ms());
            }
        }
    }

    /// Adds what was logged, regardless of how it is divided into blocks and numbered.
    pub(super) fn hash(&self, hasher: &mut Xxh3) {
        let mut text = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        let mut scratch = Vec::new();
        for entry in self.blocks.iter().flat_map(|block| block.iter()) {
            scratch.clear();
            put_id(&mut scratch, entry.id());
            for (name, value) in entry.iter() {
                put_bytes(&mut scratch, &name);
                put_bytes(&mut scratch, &value);
            }
            text(&scratch);
        }
        for (name, group) in &self.groups {
            scratch.clear();
            put_id(&mut scratch, group.last);
            put_varint(&mut scratch, group.entries_read.map_or(0, |read| read.saturating_add(1)));
            text(name);
            text(&scratch);
            group.consumers().for_each(|consumer| text(consumer.name()));
            for pending in group.pending_from(Id::MIN) {
                scratch.clear();
                encode_one(pending, &mut scratch);
                text(&scratch);
                text(group.owner(pending));
            }
        }
        scratch.clear();
        put_id(&mut scratch, self.last);
        put_id(&mut scratch, self.max_deleted);
        put_varint(&mut scratch, self.added);
        put_varint(&mut scratch, self.length);
        text(&scratch);
    }
}

fn encode_one(pending: &Pending, into: &mut Vec<u8>) {
    put_id(into, pending.id);
    put_varint(into, pending.delivered_ms);
    put_varint(into, pending.deliveries);
}

fn encode_pending<'a>(group: &Group, pending: impl Iterator<Item = &'a Pending>, into: &mut Vec<u8>) {
    let ordinals = group.ordinals();
    for one in pending {
        encode_one(one, into);
        put_varint(into, ordinals[one.consumer as usize]);
    }
}

/// Parses an element: a head and a run of pending entries as their bytes, a run of blocks as a stream
/// that has only those. `None` if it is none.
pub(super) fn decode_element(element: &mut Cursor<'_>) -> Option<Object> {
    let rest = element.take(element.remaining())?;
    if rest.first() != Some(&BLOCKS) {
        return Some(Object::String(rest.to_vec()));
    }
    let mut bytes = Cursor::new(&rest[1..]);
    let mut state = State::default();
    while !bytes.is_empty() {
        let block = Block::decode(get_id(&mut bytes)?, bytes.bytes()?)?;
        if state.blocks.back().is_some_and(|before| before.last() >= block.first()) {
            return None;
        }
        state.length += block.live() as u64;
        state.blocks.push_back(Arc::new(block));
    }
    Some(Stream { state: Box::new(state), capture: None }.into_object())
}

impl Stream {
    /// Joins all elements, in order; `None` if they form no stream.
    pub(super) fn assemble(elements: Vec<Object>) -> Option<Self> {
        let mut elements = elements.into_iter();
        let Object::String(head) = elements.next()? else { return None };
        let mut head = Cursor::new(&head);
        let (mut state, mut groups) = decode_head(&mut head)?;
        let mut length = 0;
        for element in elements {
            match element {
                Object::Stream(mut run) => {
                    let before = state.blocks.back().map(|block| block.last());
                    if before.zip(run.state.blocks.front()).is_some_and(|(last, next)| last >= next.first()) {
                        return None;
                    }
                    length += run.state.length;
                    state.blocks.append(&mut run.state.blocks);
                }
                Object::String(bytes) => decode_pending(&mut Cursor::new(&bytes), &mut groups)?,
                _ => return None,
            }
        }
        let is_last = state.blocks.back().is_none_or(|block| block.last() <= state.last);
        state.groups = groups.into_iter().collect();
        (length == state.length && is_last).then(|| Self { state: Box::new(state), capture: None })
    }
}

type Groups = Vec<(Box<[u8]>, Group)>;

fn decode_head(head: &mut Cursor<'_>) -> Option<(State, Groups)> {
    (head.u8()? == HEAD).then_some(())?;
    let state = State {
        blocks: VecDeque::new(),
        length: head.varint()?,
        last: get_id(head)?,
        max_deleted: get_id(head)?,
        added: head.varint()?,
        groups: BTreeMap::new(),
    };
    let mut groups: Groups = Vec::new();
    for _ in 0..head.varint()? {
        let name: Box<[u8]> = head.bytes()?.into();
        let mut group = Group::new(get_id(head)?, head.varint()?.checked_sub(1));
        if groups.last().is_some_and(|(before, _)| *before >= name) {
            return None;
        }
        for number in 0..head.varint()? {
            // In the order of their names, so that their numbers are those of the pending entries.
            let (name, seen_ms) = (head.bytes()?, head.varint()?);
            (group.create_consumer(name, seen_ms).map(u64::from) == Some(number)).then_some(())?;
        }
        groups.push((name, group));
    }
    head.is_empty().then_some((state, groups))
}

fn decode_pending(bytes: &mut Cursor<'_>, groups: &mut Groups) -> Option<()> {
    (bytes.u8()? == PENDING).then_some(())?;
    let (_, group) = groups.get_mut(usize::try_from(bytes.varint()?).ok()?)?;
    while !bytes.is_empty() {
        let (id, delivered_ms, deliveries) = (get_id(bytes)?, bytes.varint()?, bytes.varint()?);
        let consumer = u32::try_from(bytes.varint()?).ok()?;
        if u64::from(consumer) >= group.consumers().len() as u64 || group.pending_entry(id).is_some() {
            return None;
        }
        group.assign(Pending { id, delivered_ms, deliveries, consumer });
    }
    Some(())
}
