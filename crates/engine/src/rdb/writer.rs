//! Lengths and strings of Redis's format, as in [`super::reader`].

use super::error::RdbError;
use super::listpack::Listpack;
use super::lzf;
use crate::command::parse::canonical_integer;
use crate::keyspace::MAX_BYTES;
use crate::value::Text;

/// Strings up to this length are not worth compression. Bytes.
const COMPRESSED_MIN: usize = 20;

/// Fails if a payload is longer than a string can be.
pub(super) fn check(into: &[u8]) -> Result<(), RdbError> {
    if into.len() > MAX_BYTES { Err(RdbError::TooLong) } else { Ok(()) }
}

/// Appends a string that is a whole listpack.
pub(super) fn put_listpack(listpack: Listpack, into: &mut Vec<u8>) -> Result<(), RdbError> {
    put_string(into, &listpack.finished().ok_or(RdbError::TooLong)?);
    check(into)
}

/// Appends a length.
pub fn put_length(into: &mut Vec<u8>, length: usize) {
    if length < 1 << 6 {
        into.push(length as u8);
    } else if length < 1 << 14 {
        into.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes());
    } else if let Ok(length) = u32::try_from(length) {
        into.push(0x80);
        into.extend_from_slice(&length.to_be_bytes());
    } else {
        into.push(0x81);
        into.extend_from_slice(&(length as u64).to_be_bytes());
    }
}

/// Appends a string: the digits of a small integer in binary, a long string compressed if that saves
/// something. O(bytes).
pub fn put_string(into: &mut Vec<u8>, bytes: &[u8]) {
    if let Some(integer) = canonical_integer(bytes).and_then(|integer| i32::try_from(integer).ok()) {
        return put_integer(into, integer);
    }
    if bytes.len() > COMPRESSED_MIN
        && let Some(compressed) = lzf::compress(bytes)
    {
        into.push(0xc3);
        put_length(into, compressed.len());
        put_length(into, bytes.len());
        into.extend_from_slice(&compressed);
        return;
    }
    put_length(into, bytes.len());
    into.extend_from_slice(bytes);
}

/// Appends a string that may be kept as an integer.
pub(super) fn put_text(into: &mut Vec<u8>, text: &Text<'_>) {
    match text {
        Text::Int(integer, _) if i32::try_from(*integer).is_ok() => put_integer(into, *integer as i32),
        text => put_string(into, text),
    }
}

fn put_integer(into: &mut Vec<u8>, integer: i32) {
    if let Ok(integer) = i8::try_from(integer) {
        into.push(0xc0);
        into.extend_from_slice(&integer.to_le_bytes());
    } else if let Ok(integer) = i16::try_from(integer) {
        into.push(0xc1);
        into.extend_from_slice(&integer.to_le_bytes());
    } else {
        into.push(0xc2);
        into.extend_from_slice(&integer.to_le_bytes());
    }
}
