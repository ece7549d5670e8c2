//! Listpacks: strings and integers in one block.
//!
//! ```text
//! length u32 │ number of entries u16, 65535: unknown │ entry* │ 11111111
//!
//! entry      encoding │ bytes │ length of both, so that the list can be read backwards
//! 0nnnnnnn                    an integer
//! 10nnnnnn                    a string of n bytes
//! 110nnnnn nnnnnnnn           an integer of 13 bits, with a sign
//! 1110nnnn nnnnnnnn           a string of n bytes
//! 11110000 u32                a string
//! 11110001 … 11110100         an integer of 16, 24, 32 or 64 bits
//! ```

use super::error::RdbError;
use super::packed::{self, integer};
use crate::command::parse::canonical_integer;
use crate::value::Text;

/// Length of what precedes the entries. Bytes.
const HEADER: usize = 6;
const END: u8 = 0xff;
/// Number of entries that says nothing.
const UNKNOWN: u16 = u16::MAX;

const DAMAGED: RdbError = RdbError::Malformed("a listpack is damaged");

/// Checks a listpack and passes its entries on. O(bytes).
pub(super) fn each<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(Text<'a>) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let mut entries = Entries::of(bytes)?;
    while let Some(entry) = entries.next()? {
        visit(entry)?;
    }
    Ok(())
}

/// Reads the entries of a listpack, which is checked on the way.
#[derive(Debug)]
pub(super) struct Entries<'a> {
    rest: &'a [u8],
    /// Number of entries that the listpack says it has; [`UNKNOWN`].
    count: u16,
    found: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, RdbError> {
        let (header, entries) = bytes.split_first_chunk::<HEADER>().ok_or(DAMAGED)?;
        let [l0, l1, l2, l3, c0, c1] = *header;
        let rest = entries.strip_suffix(&[END]).ok_or(DAMAGED)?;
        if u32::from_le_bytes([l0, l1, l2, l3]) as usize != bytes.len() {
            return Err(DAMAGED);
        }
        Ok(Self { rest, count: u16::from_le_bytes([c0, c1]), found: 0 })
    }

    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    /// The listpack is damaged here.
    pub(super) fn next(&mut self) -> Result<Option<Text<'a>>, RdbError> {
        if self.rest.is_empty() {
            let is_counted = self.count == UNKNOWN || self.found == usize::from(self.count);
            return if is_counted { Ok(None) } else { Err(DAMAGED) };
        }
        let (entry, len) = entry(self.rest).ok_or(DAMAGED)?;
        let backwards = Backwards::of(len);
        self.rest = self.rest[len..].strip_prefix(backwards.as_slice()).ok_or(DAMAGED)?;
        self.found += 1;
        Ok(Some(entry))
    }
}

/// Returns the first entry, and its length without the length at its end.
fn entry(bytes: &[u8]) -> Option<(Text<'_>, usize)> {
    let (&first, after) = bytes.split_first()?;
    let string = |head: usize, len: usize| packed::string(bytes, head, len);
    let wide = |len: usize| packed::wide(after, len);
    match first {
        0..0x80 => Some((integer(first.into()), 1)),
        0x80..0xc0 => string(1, usize::from(first & 0x3f)),
        0xc0..0xe0 => {
            let value = i64::from(u16::from_be_bytes([first & 0x1f, *after.first()?]));
            Some((integer(if value >= 1 << 12 { value - (1 << 13) } else { value }), 2))
        }
        0xe0..0xf0 => string(2, usize::from(u16::from_be_bytes([first & 0xf, *after.first()?]))),
        0xf0 => string(5, u32::from_le_bytes(*after.first_chunk()?) as usize),
        0xf1 => wide(2),
        0xf2 => wide(3),
        0xf3 => wide(4),
        0xf4 => wide(8),
        _ => None,
    }
}

/// The length of an entry, as it is written behind it: seven bits a byte, the highest first.
struct Backwards {
    bytes: [u8; 5],
    len: usize,
}

impl Backwards {
    fn of(len: usize) -> Self {
        // Redis's bounds: the last length of two, three and four bytes takes one more.
        let width = match len {
            0..128 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        };
        let mut bytes = [0; 5];
        for (at, byte) in bytes[..width].iter_mut().rev().enumerate() {
            let more = if at + 1 < width { 0x80 } else { 0 };
            *byte = (len >> (7 * at)) as u8 & 0x7f | more;
        }
        Self { bytes, len: width }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Writes a listpack.
#[derive(Debug)]
pub(super) struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Listpack {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; HEADER], count: 0 }
    }

    /// Length so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + 1
    }

    /// Returns how many bytes an entry takes at most.
    pub(super) fn most_for(bytes: &[u8]) -> usize {
        bytes.len() + 10
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a string, in binary if it is the digits of an integer. O(bytes).
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match canonical_integer(bytes) {
            Some(integer) => self.push_integer(integer),
            None => self.push_string(bytes),
        }
    }

    pub(super) fn push_integer(&mut self, integer: i64) {
        let start = self.bytes.len();
        let wide = integer.to_le_bytes();
        match integer {
            0..128 => self.bytes.push(integer as u8),
            -4096..4096 => self.bytes.extend_from_slice(&(integer as u16 & 0x1fff | 0xc000).to_be_bytes()),
            -32_768..32_768 => self.put(0xf1, &wide[..2]),
            -8_388_608..8_388_608 => self.put(0xf2, &wide[..3]),
            -2_147_483_648..2_147_483_648 => self.put(0xf3, &wide[..4]),
            _ => self.put(0xf4, &wide),
        }
        self.finish(start);
    }

    fn push_string(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        match bytes.len() {
            len @ 0..64 => self.bytes.push(0x80 | len as u8),
            len @ 64..4096 => self.bytes.extend_from_slice(&(len as u16 | 0xe000).to_be_bytes()),
            len => {
                let len = u32::try_from(len).expect("a string is at most 512 MiB long");
                self.put(0xf0, &len.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(bytes);
        self.finish(start);
    }

    fn put(&mut self, encoding: u8, bytes: &[u8]) {
        self.bytes.push(encoding);
        self.bytes.extend_from_slice(bytes);
    }

    fn finish(&mut self, start: usize) {
        let backwards = Backwards::of(self.bytes.len() - start);
        self.bytes.extend_from_slice(backwards.as_slice());
        self.count += 1;
    }

    /// Returns the bytes; `None` if they are too many for a listpack.
    pub(super) fn finished(mut self) -> Option<Vec<u8>> {
        self.bytes.push(END);
        let len = u32::try_from(self.bytes.len()).ok()?;
        self.bytes[..4].copy_from_slice(&len.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(UNKNOWN);
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
        Some(self.bytes)
    }
}
