//! What entries of listpacks and ziplists have in common.

use crate::value::{Decimal, Text};

/// An entry's value, and its length with the encoding.
pub(super) type Entry<'a> = (Text<'a>, usize);

/// Returns the string of an entry behind an encoding of `head` bytes.
pub(super) fn string(entry: &[u8], head: usize, len: usize) -> Option<Entry<'_>> {
    let end = head.checked_add(len)?;
    Some((Text::Bytes(entry.get(head..end)?), end))
}

/// Returns the integer of `len` bytes behind an encoding of one byte.
pub(super) fn wide(after: &[u8], len: usize) -> Option<Entry<'static>> {
    let mut wide = [0; 8];
    // To the upper end, so that the shift back keeps the sign.
    wide[8 - len..].copy_from_slice(after.get(..len)?);
    Some((integer(i64::from_le_bytes(wide) >> (64 - 8 * len)), 1 + len))
}

pub(super) fn integer(value: i64) -> Text<'static> {
    Text::Int(value, Decimal::of(value))
}
