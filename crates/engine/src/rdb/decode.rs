//! Reads values of Redis's format, of all versions up to [`VERSION_MAX`](super::VERSION_MAX).
//!
//! A collection is made as its commands make it, so it has our own representation, whatever the payload's.
//! As in Redis, one that is empty or has an element twice is refused.

use super::error::RdbError;
use super::reader::Reader;
use super::{kind, listpack, node, streams, ziplist, zipmap};
use crate::command::parse;
use crate::value::{Decimal, End, Hash, List, Object, Set, SortedSet, Text, TypedValue};
use std::borrow::Cow;

/// A value that was read.
#[derive(Debug)]
pub(crate) enum Restored {
    String(Vec<u8>),
    Object(Object),
}

const EMPTY: RdbError = RdbError::Malformed("a collection has no elements");
const TWICE: RdbError = RdbError::Malformed("an element comes twice");
const UNPAIRED: RdbError = RdbError::Malformed("the last element of a pair is missing");
const NO_SCORE: RdbError = RdbError::Malformed("a score is no number");

/// Reads the type of a value and the value, and nothing behind it. O(bytes) and what the value's commands
/// take.
///
/// # Errors
/// The content is malformed, or has a type that does not exist here.
pub(crate) fn decode(content: &[u8]) -> Result<Restored, RdbError> {
    let mut reader = Reader::new(content);
    let value = read(&mut reader)?;
    if reader.is_empty() { Ok(value) } else { Err(RdbError::Malformed("bytes follow the value")) }
}

fn read(reader: &mut Reader<'_>) -> Result<Restored, RdbError> {
    let kind = reader.u8()?;
    match kind {
        kind::STRING => reader.string().map(|text| Restored::String(Cow::into_owned(text))),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            list(reader, kind)?.object()
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => set(reader, kind)?.object(),
        kind::HASH | kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK => {
            hash(reader, kind)?.object()
        }
        kind::HASH_METADATA | kind::HASH_LISTPACK_EX => timed_hash(reader, kind)?.object(),
        kind::SORTED_SET | kind::SORTED_SET_2 | kind::SORTED_SET_ZIPLIST | kind::SORTED_SET_LISTPACK => {
            sorted_set(reader, kind)?.object()
        }
        // Not [`Collection::object`]: a stream without entries is one.
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
            streams::decode(reader, kind).map(|stream| Restored::Object(stream.into_object()))
        }
        kind::MODULE | kind::MODULE_2 => Err(RdbError::Unsupported("a value of a module")),
        _ => Err(RdbError::Malformed("the type is unknown")),
    }
}

/// A collection that may not be empty.
trait Collection: TypedValue {
    fn object(self) -> Result<Restored, RdbError> {
        if self.is_empty() { Err(EMPTY) } else { Ok(Restored::Object(self.into_object())) }
    }
}

impl<T: TypedValue> Collection for T {}

fn list(reader: &mut Reader<'_>, kind: u8) -> Result<List, RdbError> {
    let mut list = List::default();
    match kind {
        kind::LIST => {
            for _ in 0..reader.length()? {
                list.push(End::Back, &reader.string()?);
            }
        }
        kind::LIST_ZIPLIST => {
            let bytes = reader.string()?;
            ziplist::each(&bytes, |element| add_to_list(&mut list, reader, &element))?;
        }
        _ => {
            for _ in 0..reader.length()? {
                let of_node = if kind == kind::LIST_QUICKLIST_2 { Some(reader.length()?) } else { None };
                let bytes = reader.string()?;
                let mut add = |element: Text<'_>| add_to_list(&mut list, reader, &element);
                match of_node {
                    None => ziplist::each(&bytes, add)?,
                    Some(node::PACKED) => listpack::each(&bytes, add)?,
                    Some(node::PLAIN) if !bytes.is_empty() => add(Text::Bytes(&bytes))?,
                    Some(_) => return Err(RdbError::Malformed("a node of a list is unknown")),
                }
            }
        }
    }
    Ok(list)
}

fn add_to_list(list: &mut List, reader: &mut Reader<'_>, element: &[u8]) -> Result<(), RdbError> {
    reader.charge(element.len())?;
    list.push(End::Back, element);
    Ok(())
}

fn set(reader: &mut Reader<'_>, kind: u8) -> Result<Set, RdbError> {
    let mut set = Set::default();
    let mut add = |member: &[u8]| if set.insert(member) { Ok(()) } else { Err(TWICE) };
    match kind {
        kind::SET => {
            for _ in 0..reader.length()? {
                add(&reader.string()?)?;
            }
        }
        kind::SET_INTSET => {
            let bytes = reader.string()?;
            each_integer(&bytes, |member| {
                reader.charge(member.len())?;
                add(&member)
            })?;
        }
        _ => {
            let bytes = reader.string()?;
            listpack::each(&bytes, |member| {
                reader.charge(member.len())?;
                add(&member)
            })?;
        }
    }
    Ok(set)
}

/// Checks an intset, a sorted array of integers, and passes them on: `width u32 │ count u32 │ integer*`.
fn each_integer(
    bytes: &[u8],
    mut visit: impl FnMut(Text<'_>) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    const DAMAGED: RdbError = RdbError::Malformed("an intset is damaged");
    let (header, integers) = bytes.split_first_chunk::<8>().ok_or(DAMAGED)?;
    let [w0, w1, w2, w3, c0, c1, c2, c3] = *header;
    let width = match u32::from_le_bytes([w0, w1, w2, w3]) {
        width @ (2 | 4 | 8) => width as usize,
        _ => return Err(DAMAGED),
    };
    let chunks = integers.chunks_exact(width);
    let count = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
    if chunks.len() != count || !chunks.remainder().is_empty() {
        return Err(DAMAGED);
    }
    let mut before = None;
    for chunk in chunks {
        let mut wide = [0; 8];
        // To the upper end, so that the shift back keeps the sign.
        wide[8 - width..].copy_from_slice(chunk);
        let integer = i64::from_le_bytes(wide) >> (64 - 8 * width);
        if before.is_some_and(|before| before >= integer) {
            return Err(DAMAGED);
        }
        before = Some(integer);
        visit(Text::Int(integer, Decimal::of(integer)))?;
    }
    Ok(())
}

fn hash(reader: &mut Reader<'_>, kind: u8) -> Result<Hash, RdbError> {
    let mut hash = Hash::default();
    let mut set = |field: &[u8], value: &[u8]| if hash.set(field, value) { Ok(()) } else { Err(TWICE) };
    match kind {
        kind::HASH => {
            for _ in 0..reader.length()? {
                let field = reader.string()?;
                set(&field, &reader.string()?)?;
            }
        }
        kind::HASH_ZIPMAP => {
            let bytes = reader.string()?;
            zipmap::each(&bytes, |field, value| {
                reader.charge(field.len())?;
                reader.charge(value.len())?;
                set(field, value)
            })?;
        }
        _ => each_pair(reader, kind == kind::HASH_ZIPLIST, |field, value| set(&field, &value))?,
    }
    Ok(hash)
}

/// Latest time of a field in Redis's format. Milliseconds since 1970.
const LATEST_MS: u64 = (1 << 48) - 1;
const NO_TIME: RdbError = RdbError::Malformed("the time of a field is none");

/// Reads a hash with fields that expire: first the earliest time, which the others are relative to unless they
/// are in a listpack. A time of 0 is none.
fn timed_hash(reader: &mut Reader<'_>, kind: u8) -> Result<Hash, RdbError> {
    let mut hash = Hash::default();
    let mut set = |field: &[u8], value: &[u8], at_ms: u64| {
        if !hash.set(field, value) {
            return Err(TWICE);
        }
        if at_ms > LATEST_MS {
            return Err(NO_TIME);
        }
        if at_ms > 0 {
            hash.set_time(field, Some(at_ms));
        }
        Ok(())
    };
    let first_ms = u64::from_le_bytes(reader.array()?);
    if kind == kind::HASH_METADATA {
        for _ in 0..reader.length()? {
            let after = reader.length()?;
            let at_ms = if after == 0 { 0 } else { first_ms.checked_add(after - 1).ok_or(NO_TIME)? };
            let field = reader.string()?;
            set(&field, &reader.string()?, at_ms)?;
        }
        return Ok(hash);
    }
    let bytes = reader.string()?;
    let (mut field, mut value) = (None, None);
    let mut element = visitor_of(&bytes, |element| {
        reader.charge(element.len())?;
        match (field.take(), value.take()) {
            (None, _) => field = Some(element),
            (Some(first), None) => (field, value) = (Some(first), Some(element)),
            (Some(field), Some(value)) => {
                let Text::Int(at_ms, _) = element else { return Err(NO_TIME) };
                set(&field, &value, u64::try_from(at_ms).map_err(|_| NO_TIME)?)?;
            }
        }
        Ok(())
    });
    listpack::each(&bytes, &mut element)?;
    if field.is_some() { Err(UNPAIRED) } else { Ok(hash) }
}

/// Passes the pairs of a ziplist or listpack on.
fn each_pair(
    reader: &mut Reader<'_>,
    is_ziplist: bool,
    mut visit: impl FnMut(Text<'_>, Text<'_>) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let bytes = reader.string()?;
    let mut first = None;
    let mut pair = visitor_of(&bytes, |element| {
        reader.charge(element.len())?;
        match first.take() {
            None => first = Some(element),
            Some(first) => visit(first, element)?,
        }
        Ok(())
    });
    if is_ziplist {
        ziplist::each(&bytes, &mut pair)?;
    } else {
        listpack::each(&bytes, &mut pair)?;
    }
    if first.is_some() { Err(UNPAIRED) } else { Ok(()) }
}

/// Returns a function that may keep the elements of these bytes.
fn visitor_of<'a, V: FnMut(Text<'a>) -> Result<(), RdbError>>(_bytes: &'a [u8], visit: V) -> V {
    visit
}

fn sorted_set(reader: &mut Reader<'_>, kind: u8) -> Result<SortedSet, RdbError> {
    let mut set = SortedSet::default();
    let mut add = |member: &[u8], score: f64| {
        if score.is_nan() {
            return Err(NO_SCORE);
        }
        let mut is_new = false;
        set.update(member, |present| {
            is_new = present.is_none();
            is_new.then_some(score)
        });
        if is_new { Ok(()) } else { Err(TWICE) }
    };
    match kind {
        kind::SORTED_SET | kind::SORTED_SET_2 => {
            for _ in 0..reader.length()? {
                let member = reader.string()?;
                let score = match kind {
                    kind::SORTED_SET => score_as_text(reader)?,
                    _ => f64::from_le_bytes(reader.array()?),
                };
                add(&member, score)?;
            }
        }
        _ => each_pair(reader, kind == kind::SORTED_SET_ZIPLIST, |member, score| {
            let score = match score {
                Text::Int(score, _) => score as f64,
                Text::Bytes(text) => parse::float(text).map_err(|_| NO_SCORE)?,
            };
            add(&member, score)
        })?,
    }
    Ok(set)
}

/// Reads a score of the oldest form: a length and digits, or a special length.
fn score_as_text(reader: &mut Reader<'_>) -> Result<f64, RdbError> {
    match reader.u8()? {
        253 => Err(NO_SCORE),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        len => parse::float(reader.take(len.into())?).map_err(|_| NO_SCORE),
    }
}
