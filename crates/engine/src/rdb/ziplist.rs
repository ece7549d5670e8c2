//! Ziplists, which Redis wrote before version 7. They are only read.
//!
//! ```text
//! length u32 │ offset of the last entry u32 │ number of entries u16, 65535: unknown │ entry* │ 11111111
//!
//! entry      length of the entry before u8, or 254 and u32 │ encoding │ bytes
//! 00nnnnnn                    a string of n bytes
//! 01nnnnnn nnnnnnnn           a string
//! 10------ u32                a string, the highest byte of its length first
//! 11000000, 11010000, 11100000, 11110000, 11111110
//!                             an integer of 16, 32, 64, 24 or 8 bits
//! 1111nnnn                    the integer n - 1, for n from 1 to 13
//! ```

use super::error::RdbError;
use super::packed;
use crate::value::Text;

/// Length of what precedes the entries. Bytes.
const HEADER: usize = 10;
const END: u8 = 0xff;
/// Number of entries that says nothing.
const UNKNOWN: u16 = u16::MAX;
/// First byte of a length before an entry that takes four more.
const LONG: u8 = 254;

const DAMAGED: RdbError = RdbError::Malformed("a ziplist is damaged");

/// Checks a ziplist and passes its entries on. O(bytes).
pub(super) fn each<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(Text<'a>) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let (header, entries) = bytes.split_first_chunk::<HEADER>().ok_or(DAMAGED)?;
    let [l0, l1, l2, l3, t0, t1, t2, t3, c0, c1] = *header;
    let entries = entries.strip_suffix(&[END]).ok_or(DAMAGED)?;
    if u32::from_le_bytes([l0, l1, l2, l3]) as usize != bytes.len() {
        return Err(DAMAGED);
    }
    let (mut offset, mut before, mut found) = (0, 0_usize, 0_usize);
    let mut last = 0;
    while offset < entries.len() {
        let (entry, len_before, len) = entry(&entries[offset..]).ok_or(DAMAGED)?;
        if len_before != before {
            return Err(DAMAGED);
        }
        (last, before) = (offset, len);
        offset += len;
        found += 1;
        visit(entry)?;
    }
    let count = u16::from_le_bytes([c0, c1]);
    let is_counted = count == UNKNOWN || found == usize::from(count);
    let tail = u32::from_le_bytes([t0, t1, t2, t3]) as usize;
    if is_counted && tail == HEADER + last { Ok(()) } else { Err(DAMAGED) }
}

/// Returns the first entry, the length of the one before it, and its own.
fn entry(bytes: &[u8]) -> Option<(Text<'_>, usize, usize)> {
    let (len_before, head) = match *bytes {
        [LONG, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 5),
        [short @ 0..LONG, ..] => (usize::from(short), 1),
        _ => return None,
    };
    let (text, len) = value(bytes.get(head..)?)?;
    Some((text, len_before, head.checked_add(len)?))
}

/// Returns the value of an entry, and its length with the encoding.
fn value(bytes: &[u8]) -> Option<(Text<'_>, usize)> {
    let (&first, after) = bytes.split_first()?;
    let string = |head: usize, len: usize| packed::string(bytes, head, len);
    let wide = |len: usize| packed::wide(after, len);
    match first {
        0..0x40 => string(1, usize::from(first)),
        0x40..0x80 => string(2, usize::from(u16::from_be_bytes([first & 0x3f, *after.first()?]))),
        0x80..0xc0 => string(5, u32::from_be_bytes(*after.first_chunk()?) as usize),
        0xc0 => wide(2),
        0xd0 => wide(4),
        0xe0 => wide(8),
        0xf0 => wide(3),
        0xfe => wide(1),
        0xf1..=0xfd => Some((packed::integer(i64::from(first & 0xf) - 1), 1)),
        _ => None,
    }
}
