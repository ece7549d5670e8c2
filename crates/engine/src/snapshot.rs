//! The whole state at one LSN, taken while commands go on.
//!
//! ```text
//! entry   type u8 │ deadline + 1 varint (0: none) │ key │ value
//! string  bytes                  integer  its 64 bits
//! others  as their type encodes them
//! ```

use crate::keyspace::{Entry, Payload, ValueRef};
use crate::record::{Cursor, put_bytes, put_varint};
use crate::value::{Collection, Hash, List, Object, Set, SortedSet};

const RAW: u8 = 0;
const INT: u8 = 1;
const BYTES: u8 = 2;
const LIST: u8 = 3;
const HASH: u8 = 4;
const SET: u8 = 5;
const SORTED_SET: u8 = 6;

/// Appends an entry's snapshot form.
pub(crate) fn encode_entry(entry: &Entry, into: &mut Vec<u8>) {
    let tag = match entry.value() {
        ValueRef::Raw(_) | ValueRef::Unit | ValueRef::Float(_) => RAW,
        ValueRef::Int(_) => INT,
        ValueRef::Object(Object::Bytes(_)) => BYTES,
        ValueRef::Object(Object::List(_)) => LIST,
        ValueRef::Object(Object::Hash(_)) => HASH,
        ValueRef::Object(Object::Set(_)) => SET,
        ValueRef::Object(Object::SortedSet(_)) => SORTED_SET,
    };
    into.push(tag);
    put_varint(into, entry.deadline().map_or(0, |at| at.saturating_add(1)));
    put_bytes(into, entry.key());
    match entry.value() {
        ValueRef::Raw(bytes) => put_bytes(into, bytes),
        ValueRef::Int(value) => into.extend_from_slice(&value.to_le_bytes()),
        ValueRef::Object(Object::Bytes(bytes)) => put_bytes(into, bytes),
        ValueRef::Object(Object::List(list)) => list.encode(into),
        ValueRef::Object(Object::Hash(hash)) => hash.encode(into),
        ValueRef::Object(Object::Set(set)) => set.encode(into),
        ValueRef::Object(Object::SortedSet(set)) => set.encode(into),
        ValueRef::Unit | ValueRef::Float(_) => {
            debug_assert!(false, "a key's value is never a bare member or score");
            put_bytes(into, &[]);
        }
    }
}

/// Reads an entry; `None` if the bytes are not one.
pub(crate) fn decode_entry(cursor: &mut Cursor<'_>) -> Option<Entry> {
    let tag = cursor.u8()?;
    let deadline = cursor.varint()?.checked_sub(1);
    let key = cursor.bytes().filter(|key| key.len() <= crate::keyspace::MAX_BYTES)?;
    let object = match tag {
        RAW => {
            let bytes = cursor.bytes().filter(|bytes| bytes.len() <= crate::keyspace::MAX_BYTES)?;
            return Some(Entry::new(key, Payload::Raw(bytes), deadline));
        }
        INT => return Some(Entry::new(key, Payload::Int(cursor.u64()?.cast_signed()), deadline)),
        BYTES => Object::Bytes(cursor.bytes()?.to_vec()),
        LIST => List::decode(cursor)?.into_object(),
        HASH => Hash::decode(cursor)?.into_object(),
        SET => Set::decode(cursor)?.into_object(),
        SORTED_SET => SortedSet::decode(cursor)?.into_object(),
        _ => return None,
    };
    (!object.is_empty()).then(|| Entry::new(key, Payload::Object(Box::new(object)), deadline))
}

/// The same value and deadline under another key.
pub(crate) fn copy_entry(entry: &Entry, key: &[u8]) -> Entry {
    let mut form = Vec::new();
    encode_entry(entry, &mut form);
    let copy = decode_entry(&mut Cursor::new(&form)).expect("what was encoded decodes");
    copy.renamed(key)
}
