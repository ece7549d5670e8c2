//! Streams.
//!
//! ```text
//! stream    count │ (first ID as string │ listpack as string)* │ length │ last ID
//!           │ first ID │ greatest deleted ID │ entries ever added          not in the first form
//!           │ count │ group*
//! group     name │ last ID │ entries read, u64::MAX: unknown (not in the first form)
//!           │ count │ (raw ID │ time i64 │ deliveries)* │ count │ consumer*
//! consumer  name │ seen i64 │ active i64 (only in the third form) │ count │ raw ID*
//! ID        two lengths; raw: two u64, the highest byte first
//!
//! listpack  live │ deleted │ number of names │ name* │ 0 │ entry*
//! entry     flags │ distance from the first ID in ms │ in seq │ content │ number of elements before this one
//! content   values of the names, if the flags say so: value*
//!           otherwise: number of fields │ (name │ value)*
//! ```

use super::error::RdbError;
use super::kind;
use super::listpack::{Entries, Listpack};
use super::reader::Reader;
use super::writer::{check, put_length, put_listpack, put_string};
use crate::value::stream::{BlockRef, Group, Id, Pending, Restoring};
use crate::value::{Stream, Text};

/// Flags of an entry.
const DELETED: i64 = 1;
const SAME_NAMES: i64 = 2;

const DAMAGED: RdbError = RdbError::Malformed("a block of a stream is damaged");
const PENDING: RdbError = RdbError::Malformed("pending entries of a stream are damaged");
const TWICE: RdbError = RdbError::Malformed("a group or consumer comes twice");
const LENGTH: RdbError = RdbError::Malformed("a stream has another length than it says");

fn put_u64(into: &mut Vec<u8>, value: u64) {
    put_length(into, usize::try_from(value).expect("a length has 64 bits"));
}

fn put_id(into: &mut Vec<u8>, id: Id) {
    put_u64(into, id.ms);
    put_u64(into, id.seq);
}

fn raw_id(id: Id) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes()
}

fn put_time(into: &mut Vec<u8>, ms: u64) {
    into.extend_from_slice(&i64::try_from(ms).unwrap_or(i64::MAX).to_le_bytes());
}

/// Appends the type and the stream. O(bytes).
pub(super) fn encode(stream: &Stream, into: &mut Vec<u8>) -> Result<(), RdbError> {
    into.push(kind::STREAM_LISTPACKS_2);
    let blocks = stream.block_refs();
    put_length(into, blocks.len());
    for block in blocks {
        put_string(into, &raw_id(block.first()));
        put_block(block, into)?;
    }
    put_length(into, stream.len());
    put_id(into, stream.last());
    put_id(into, stream.first());
    put_id(into, stream.max_deleted());
    put_u64(into, stream.added());
    put_length(into, stream.groups().len());
    for (name, group) in stream.groups() {
        put_string(into, name);
        put_group(group, into)?;
    }
    check(into)
}

fn put_block(block: BlockRef<'_>, into: &mut Vec<u8>) -> Result<(), RdbError> {
    let mut listpack = Listpack::new();
    let put_count = |listpack: &mut Listpack, count: usize| listpack.push_integer(count as i64);
    let ((live, deleted), first) = (block.counts(), block.first());
    put_count(&mut listpack, live);
    put_count(&mut listpack, deleted);
    let names = block.names();
    put_count(&mut listpack, names.len());
    names.for_each(|name| listpack.push(name));
    put_count(&mut listpack, 0);
    for entry in block.entries() {
        let same = entry.has_same_names();
        let flags = if entry.is_deleted() { DELETED } else { 0 } | if same { SAME_NAMES } else { 0 };
        listpack.push_integer(flags);
        listpack.push_integer(entry.id().ms.wrapping_sub(first.ms).cast_signed());
        listpack.push_integer(entry.id().seq.wrapping_sub(first.seq).cast_signed());
        let fields = entry.fields();
        if !same {
            put_count(&mut listpack, fields);
        }
        for (name, value) in entry.iter() {
            if !same {
                listpack.push(&name);
            }
            listpack.push(&value);
        }
        put_count(&mut listpack, elements_of(fields, same));
    }
    put_listpack(listpack, into)
}

/// Returns how many elements of a listpack an entry has before their number.
fn elements_of(fields: usize, same_names: bool) -> usize {
    if same_names { fields + 3 } else { 2 * fields + 4 }
}

fn put_group(group: &Group, into: &mut Vec<u8>) -> Result<(), RdbError> {
    put_id(into, group.last());
    put_u64(into, group.entries_read().unwrap_or(u64::MAX));
    put_length(into, group.pending());
    for pending in group.pending_from(Id::MIN) {
        into.extend_from_slice(&raw_id(pending.id));
        put_time(into, pending.delivered_ms);
        put_u64(into, pending.deliveries);
    }
    put_length(into, group.consumers().len());
    for consumer in group.consumers() {
        put_string(into, consumer.name());
        put_time(into, consumer.seen_ms());
        put_length(into, consumer.pending());
        for pending in group.pending_of(consumer, Id::MIN) {
            into.extend_from_slice(&raw_id(pending.id));
        }
        check(into)?;
    }
    check(into)
}

fn id(reader: &mut Reader<'_>) -> Result<Id, RdbError> {
    Ok(Id { ms: reader.length()?, seq: reader.length()? })
}

fn id_of(raw: [u8; 16]) -> Id {
    let both = u128::from_be_bytes(raw);
    Id { ms: (both >> 64) as u64, seq: both as u64 }
}

/// Reads a time in milliseconds. Redis has it with a sign; before 1970 nothing was delivered.
fn time(reader: &mut Reader<'_>) -> Result<u64, RdbError> {
    Ok(u64::try_from(i64::from_le_bytes(reader.array()?)).unwrap_or(0))
}

/// Reads a stream, behind its type. O(bytes).
pub(super) fn decode(reader: &mut Reader<'_>, kind: u8) -> Result<Stream, RdbError> {
    let mut stream = Restoring::default();
    for _ in 0..reader.length()? {
        let first = reader.string()?;
        let first = id_of(<[u8; 16]>::try_from(&*first).map_err(|_| DAMAGED)?);
        let block = reader.string()?;
        read_block(&block, first, reader, &mut stream)?;
    }
    let length = reader.length()?;
    if stream.len() != length {
        return Err(LENGTH);
    }
    let last = id(reader)?;
    let (max_deleted, added) = if kind == kind::STREAM_LISTPACKS {
        (Id::MIN, length)
    } else {
        // The ID of the first entry, which is known.
        id(reader)?;
        (id(reader)?, reader.length()?)
    };
    stream.continue_from(last, added, max_deleted).ok_or(DAMAGED)?;
    for _ in 0..reader.length()? {
        read_group(reader, kind, &mut stream)?;
    }
    Ok(stream.finish())
}

/// Returns the next element, which is an integer.
fn integer(entries: &mut Entries<'_>) -> Result<i64, RdbError> {
    match entries.next()? {
        Some(Text::Int(integer, _)) => Ok(integer),
        _ => Err(DAMAGED),
    }
}

/// Returns the next element, which is a number of something.
fn count(entries: &mut Entries<'_>) -> Result<usize, RdbError> {
    usize::try_from(integer(entries)?).map_err(|_| DAMAGED)
}

fn text<'a>(entries: &mut Entries<'a>, reader: &mut Reader<'_>) -> Result<Text<'a>, RdbError> {
    let text = entries.next()?.ok_or(DAMAGED)?;
    reader.charge(text.len())?;
    Ok(text)
}

fn read_block(
    bytes: &[u8],
    first: Id,
    reader: &mut Reader<'_>,
    stream: &mut Restoring,
) -> Result<(), RdbError> {
    let mut entries = Entries::of(bytes)?;
    let (live, deleted, number) = (count(&mut entries)?, count(&mut entries)?, count(&mut entries)?);
    let mut names = Vec::new();
    for _ in 0..number {
        names.push(text(&mut entries, reader)?);
    }
    if integer(&mut entries)? != 0 {
        return Err(DAMAGED);
    }
    let (mut found_live, mut found_deleted) = (0, 0);
    while let Some(flags) = entries.next()? {
        let Text::Int(flags @ 0..=3, _) = flags else { return Err(DAMAGED) };
        let id = Id {
            ms: first.ms.wrapping_add(integer(&mut entries)?.cast_unsigned()),
            seq: first.seq.wrapping_add(integer(&mut entries)?.cast_unsigned()),
        };
        let same = flags & SAME_NAMES != 0;
        let number = if same { names.len() } else { count(&mut entries)? };
        let mut texts = Vec::new();
        for _ in 0..if same { number } else { number.checked_mul(2).ok_or(DAMAGED)? } {
            texts.push(text(&mut entries, reader)?);
        }
        if count(&mut entries)? != elements_of(number, same) {
            return Err(DAMAGED);
        }
        let fields: Vec<&[u8]> = if same {
            names.iter().zip(&texts).flat_map(|(name, value)| [&**name, &**value]).collect()
        } else {
            texts.iter().map(|text| &**text).collect()
        };
        let is_deleted = flags & DELETED != 0;
        stream.add(id, &fields, is_deleted).ok_or(DAMAGED)?;
        *if is_deleted { &mut found_deleted } else { &mut found_live } += 1;
    }
    stream.end_block();
    // Redis drops a block with its last entry.
    if live > 0 && (live, deleted) == (found_live, found_deleted) { Ok(()) } else { Err(DAMAGED) }
}

fn read_group(reader: &mut Reader<'_>, kind: u8, stream: &mut Restoring) -> Result<(), RdbError> {
    let name = reader.string()?;
    let last = id(reader)?;
    let entries_read = match kind {
        kind::STREAM_LISTPACKS => stream.added_up_to(last),
        _ => Some(reader.length()?).filter(|read| *read != u64::MAX),
    };
    let group = stream.add_group(&name, last, entries_read).ok_or(TWICE)?;
    let mut all = Vec::new();
    for _ in 0..reader.length()? {
        let id = id_of(reader.array()?);
        if all.last().is_some_and(|(before, _, _)| *before >= id) {
            return Err(PENDING);
        }
        all.push((id, time(reader)?, reader.length()?));
    }
    for _ in 0..reader.length()? {
        let name = reader.string()?;
        let seen_ms = time(reader)?;
        if kind == kind::STREAM_LISTPACKS_3 {
            time(reader)?;
        }
        let consumer = group.create_consumer(&name, seen_ms).ok_or(TWICE)?;
        for _ in 0..reader.length()? {
            let id = id_of(reader.array()?);
            let at = all.binary_search_by_key(&id, |(id, _, _)| *id).map_err(|_| PENDING)?;
            if group.pending_entry(id).is_some() {
                return Err(PENDING);
            }
            let (id, delivered_ms, deliveries) = all[at];
            group.assign(Pending { id, delivered_ms, deliveries, consumer });
        }
    }
    // Each has an owner.
    if group.pending() == all.len() { Ok(()) } else { Err(PENDING) }
}
