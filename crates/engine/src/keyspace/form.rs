//! Encoding of entries in a snapshot.
//!
//! ```text
//! entry            type u8 │ deadline + 1 varint (0: none) │ key │ value
//! value            bytes; an integer's 64 bits; or as its type encodes it
//! value in parts   7 │ type u8 │ number varint │ deadline + 1 varint │ key │ element count varint
//! part             8 │ type u8 │ number varint │ [ordered: place varint] │ count u32 │ element*
//! ```
//!
//! A value in parts and its parts may be anywhere in a snapshot, in any order; they share a number
//! that no other value has.

use super::{Entry, MAX_BYTES, Payload, ValueRef};
use crate::persist::blocks::Blocks;
use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::value::Type;
use crate::value::capture::PART;

const RAW: u8 = 0;
const INT: u8 = 1;
// 2 to 6, and codes above 8, are types.
const IN_PARTS: u8 = 7;

/// One item of a frame.
pub(crate) enum Form<'a> {
    Whole(Entry),
    /// An entry whose elements are in separate parts.
    InParts(Head<'a>),
    /// Some of a value's elements; they follow.
    Part(Part),
}

/// An entry without its elements.
pub(crate) struct Head<'a> {
    pub(crate) number: u64,
    pub(crate) kind: Type,
    /// Time at which the key expires, in milliseconds since 1970.
    pub(crate) deadline: Option<u64>,
    pub(crate) key: &'a [u8],
    /// Number of elements in all parts.
    pub(crate) count: u64,
}

/// Head of a part.
pub(crate) struct Part {
    pub(crate) number: u64,
    pub(crate) kind: Type,
    /// Index of the part, if the value's parts are ordered.
    pub(crate) place: u64,
    pub(crate) count: u32,
}

/// Appends a whole entry.
pub(crate) fn encode(entry: &Entry, into: &mut Vec<u8>) {
    encode_with(entry, &Blocks::default(), into);
}

/// Like [`encode`], for a snapshot that may refer to blocks instead of having them.
pub(crate) fn encode_with(entry: &Entry, blocks: &Blocks, into: &mut Vec<u8>) {
    into.push(match entry.value() {
        ValueRef::Raw(_) | ValueRef::Unit | ValueRef::Float(_) => RAW,
        ValueRef::Int(_) => INT,
        ValueRef::Object(object) => object.kind().code(),
    });
    put_deadline(into, entry.deadline());
    put_bytes(into, entry.key());
    match entry.value() {
        ValueRef::Raw(bytes) => put_bytes(into, bytes),
        ValueRef::Int(value) => into.extend_from_slice(&value.to_le_bytes()),
        ValueRef::Object(object) => object.value().encode_with(blocks, into),
        ValueRef::Unit | ValueRef::Float(_) => {
            unreachable!("a key of {} bytes holds a bare member or score", entry.key().len());
        }
    }
}

/// Appends an entry without its elements.
pub(crate) fn encode_head(head: &Head<'_>, into: &mut Vec<u8>) {
    into.extend_from_slice(&[IN_PARTS, head.kind.code()]);
    put_varint(into, head.number);
    put_deadline(into, head.deadline);
    put_bytes(into, head.key);
    put_varint(into, head.count);
}

/// Reads the next item, up to the elements if it is a part. `None` if the bytes are malformed.
pub(crate) fn decode<'a>(bytes: &mut Cursor<'a>) -> Option<Form<'a>> {
    match bytes.u8()? {
        IN_PARTS => {
            let kind = kind_in_parts(bytes.u8()?)?;
            let number = bytes.varint()?;
            let deadline = get_deadline(bytes)?;
            Some(Form::InParts(Head { number, kind, deadline, key: get_key(bytes)?, count: bytes.varint()? }))
        }
        PART => {
            let kind = kind_in_parts(bytes.u8()?)?;
            let number = bytes.varint()?;
            let place = if kind.snapshot_form().has_ordered_parts() { bytes.varint()? } else { 0 };
            Some(Form::Part(Part { number, kind, place, count: bytes.u32()? }))
        }
        tag => decode_whole(tag, bytes).map(Form::Whole),
    }
}

/// What an item of a frame is about.
pub(crate) enum KeyOrNumber<'a> {
    /// The key of a whole entry.
    Key(&'a [u8]),
    /// The number of a value in parts.
    Number(u64),
}

/// Reads what the next item is about, without its value.
pub(crate) fn decode_key<'a>(bytes: &mut Cursor<'a>) -> Option<KeyOrNumber<'a>> {
    match bytes.u8()? {
        IN_PARTS | PART => {
            bytes.u8()?;
            bytes.varint().map(KeyOrNumber::Number)
        }
        _ => {
            get_deadline(bytes)?;
            get_key(bytes).map(KeyOrNumber::Key)
        }
    }
}

/// Decodes the type of a value that may be stored in parts.
fn kind_in_parts(code: u8) -> Option<Type> {
    Type::of_code(code).filter(|kind| kind.snapshot_form().has_parts())
}

fn decode_whole(tag: u8, bytes: &mut Cursor<'_>) -> Option<Entry> {
    let deadline = get_deadline(bytes)?;
    let key = get_key(bytes)?;
    let object = match tag {
        RAW => {
            let value = bytes.bytes().filter(|value| value.len() <= MAX_BYTES)?;
            return Some(Entry::new(key, Payload::Raw(value), deadline));
        }
        INT => return Some(Entry::new(key, Payload::Int(bytes.u64()?.cast_signed()), deadline)),
        code => Type::of_code(code)?.decode(bytes)?,
    };
    (!object.is_empty()).then(|| Entry::new(key, Payload::Object(Box::new(object)), deadline))
}

/// Returns a copy of the entry under another key.
pub(crate) fn copy(entry: &Entry, key: &[u8]) -> Entry {
    if let ValueRef::Object(object) = entry.value()
        && let Some(shared) = object.value().share()
    {
        return Entry::new(key, Payload::Object(Box::new(shared)), entry.deadline());
    }
    let mut form = Vec::new();
    encode(entry, &mut form);
    let mut bytes = Cursor::new(&form);
    let copy = bytes.u8().and_then(|tag| decode_whole(tag, &mut bytes)).expect("what was encoded decodes");
    copy.renamed(key)
}

fn put_deadline(into: &mut Vec<u8>, deadline: Option<u64>) {
    put_varint(into, deadline.map_or(0, |at| at.saturating_add(1)));
}

/// `None` if the bytes are malformed, `Some(None)` if there is no deadline.
#[allow(clippy::option_option)]
fn get_deadline(bytes: &mut Cursor<'_>) -> Option<Option<u64>> {
    Some(bytes.varint()?.checked_sub(1))
}

fn get_key<'a>(bytes: &mut Cursor<'a>) -> Option<&'a [u8]> {
    bytes.bytes().filter(|key| key.len() <= MAX_BYTES)
}
