//! Writes values in the format of Redis 7.0: with the types that it writes for a value of this
//! `OBJECT ENCODING`.

use super::error::RdbError;
use super::listpack::Listpack;
use super::writer::{check, put_length, put_listpack, put_string, put_text};
use super::{kind, node, streams};
use crate::keyspace::ValueRef;
use crate::value::{Decimal, Hash, List, Object, Set, SortedSet, Text};
use crate::wire::reply::format_double;

/// Longest listpack of a list, in bytes: Redis's default of `list-max-listpack-size`.
const NODE_MAX: usize = 8192;

/// Appends the type of a value and the value. O(bytes).
///
/// # Errors
/// The value is of our own, or takes more bytes than a string can have.
pub(crate) fn encode(value: ValueRef<'_>, into: &mut Vec<u8>) -> Result<(), RdbError> {
    match value {
        ValueRef::Raw(bytes) => string(&Text::Bytes(bytes), into),
        ValueRef::Int(integer) => string(&Text::Int(integer, Decimal::of(integer)), into),
        ValueRef::Object(Object::String(bytes)) => string(&Text::Bytes(bytes), into),
        ValueRef::Object(Object::List(value)) => list(value, into),
        ValueRef::Object(Object::Set(value)) => set(value, into),
        ValueRef::Object(Object::Hash(value)) => hash(value, into),
        ValueRef::Object(Object::SortedSet(value)) => sorted_set(value, into),
        ValueRef::Object(Object::Stream(value)) => streams::encode(value, into),
        ValueRef::Object(other) => Err(RdbError::Foreign(other.kind().name())),
        ValueRef::Unit | ValueRef::Float(_) => Err(RdbError::Foreign("element")),
    }
}

fn string(text: &Text<'_>, into: &mut Vec<u8>) -> Result<(), RdbError> {
    into.push(kind::STRING);
    put_text(into, text);
    check(into)
}

fn list(list: &List, into: &mut Vec<u8>) -> Result<(), RdbError> {
    into.push(kind::LIST_QUICKLIST_2);
    let (mut nodes, mut count) = (Vec::new(), 0);
    let mut listpack = Listpack::new();
    let mut put = |listpack: Listpack| {
        put_length(&mut nodes, node::PACKED as usize);
        count += 1;
        put_listpack(listpack, &mut nodes)
    };
    for element in list.iter_from(0) {
        if !listpack.is_empty() && listpack.len() + Listpack::most_for(element) > NODE_MAX {
            put(std::mem::replace(&mut listpack, Listpack::new()))?;
        }
        listpack.push(element);
    }
    put(listpack)?;
    put_length(into, count);
    into.append(&mut nodes);
    check(into)
}

fn set(set: &Set, into: &mut Vec<u8>) -> Result<(), RdbError> {
    if set.encoding() != "intset" {
        into.push(kind::SET);
        put_length(into, set.len());
        return set.iter().try_for_each(|member| {
            put_text(into, &member);
            check(into)
        });
    }
    into.push(kind::SET_INTSET);
    let integers: Vec<i64> = set
        .iter()
        .filter_map(|member| match member {
            Text::Int(integer, _) => Some(integer),
            Text::Bytes(_) => None,
        })
        .collect();
    let fits = |width: u32| {
        let bound = 1_i64 << (8 * width - 1);
        integers.iter().all(|integer| (-bound..bound).contains(integer))
    };
    let width = [2, 4].into_iter().find(|width| fits(*width)).unwrap_or(8);
    let mut intset = width.to_le_bytes().to_vec();
    intset.extend_from_slice(&(integers.len() as u32).to_le_bytes());
    for integer in integers {
        intset.extend_from_slice(&integer.to_le_bytes()[..width as usize]);
    }
    put_string(into, &intset);
    check(into)
}

/// Appends a hash with fields that expire, as Redis 7.4 does. Times are relative to the first of them, or in
/// a listpack absolute; there, fields are in their order.
fn timed_hash(hash: &Hash, first_ms: u64, into: &mut Vec<u8>) -> Result<(), RdbError> {
    if hash.encoding() == "listpackex" {
        into.push(kind::HASH_LISTPACK_EX);
        into.extend_from_slice(&first_ms.to_le_bytes());
        let mut fields: Vec<_> = hash.iter_timed().collect();
        fields.sort_by_key(|(.., at_ms)| at_ms.unwrap_or(u64::MAX));
        let mut listpack = Listpack::new();
        for (field, value, at_ms) in fields {
            listpack.push(field);
            listpack.push(value);
            listpack.push_integer(at_ms.map_or(0, |at_ms| i64::try_from(at_ms).unwrap_or(i64::MAX)));
        }
        return put_listpack(listpack, into);
    }
    into.push(kind::HASH_METADATA);
    into.extend_from_slice(&first_ms.to_le_bytes());
    put_length(into, hash.len());
    hash.iter_timed().try_for_each(|(field, value, at_ms)| {
        put_length(into, at_ms.map_or(0, |at_ms| (at_ms - first_ms) as usize + 1));
        put_string(into, field);
        put_string(into, value);
        check(into)
    })
}

fn hash(hash: &Hash, into: &mut Vec<u8>) -> Result<(), RdbError> {
    if let Some(first_ms) = hash.next_time() {
        return timed_hash(hash, first_ms, into);
    }
    if hash.encoding() == "listpack" {
        into.push(kind::HASH_LISTPACK);
        let mut listpack = Listpack::new();
        for (field, value) in hash.iter() {
            listpack.push(field);
            listpack.push(value);
        }
        return put_listpack(listpack, into);
    }
    into.push(kind::HASH);
    put_length(into, hash.len());
    hash.iter().try_for_each(|(field, value)| {
        put_string(into, field);
        put_string(into, value);
        check(into)
    })
}

fn sorted_set(set: &SortedSet, into: &mut Vec<u8>) -> Result<(), RdbError> {
    if set.encoding() == "listpack" {
        into.push(kind::SORTED_SET_LISTPACK);
        let mut listpack = Listpack::new();
        for (member, score) in set.iter() {
            listpack.push(member);
            let integer = score as i64;
            if (integer as f64).to_bits() == score.to_bits() {
                listpack.push_integer(integer);
            } else {
                listpack.push(format_double(score).as_bytes());
            }
        }
        return put_listpack(listpack, into);
    }
    into.push(kind::SORTED_SET_2);
    put_length(into, set.len());
    // As Redis does: it inserts the next one at the front of its list.
    set.iter().rev().try_for_each(|(member, score)| {
        put_string(into, member);
        into.extend_from_slice(&score.to_le_bytes());
        check(into)
    })
}
