//! Lengths and strings of Redis's format.
//!
//! ```text
//! 00nnnnnn                      a length of 6 bits
//! 01nnnnnn nnnnnnnn             of 14 bits
//! 10000000  u32                 of 32 bits, the highest byte first
//! 10000001  u64                 of 64 bits
//! 11000000  i8                  a string: the digits of an integer of 8 bits
//! 11000001  i16 │ 11000010 i32  of 16 or 32 bits, the lowest byte first
//! 11000011  length length bytes a string: compressed length, length, and LZF
//! ```

use super::error::RdbError;
use super::lzf;
use crate::keyspace::MAX_BYTES;
use crate::value::Decimal;
use std::borrow::Cow;

/// Bytes that each element of a value costs besides its own, at most: its share of a table.
const ELEMENT: usize = 32;
/// A value may take this many bytes for each of its payload's, besides [`MAX_BYTES`]. Without
/// compression, no value takes more.
const FACTOR: usize = 64;

/// A length, or the code of a special string.
enum Length {
    Plain(u64),
    Special(u8),
}

/// Reads fields from bytes of Redis's format. A method fails if the bytes end too early or are malformed.
///
/// What is read is charged: a value may take 512 MiB and 64 times its payload. Compressed bytes can expand
/// to 88 times as many, and each of those can be an element.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes that the value may still take.
    left: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, left: MAX_BYTES.saturating_add(bytes.len().saturating_mul(FACTOR)) }
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// As all methods: no bytes are left.
    pub fn u8(&mut self) -> Result<u8, RdbError> {
        let (&byte, rest) = self.rest.split_first().ok_or(SHORT)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Reads an array of bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Reads `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], RdbError> {
        let len = usize::try_from(len).map_err(|_| SHORT)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(SHORT)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn any_length(&mut self) -> Result<Length, RdbError> {
        let first = self.u8()?;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(first.into()),
            (1, _) => Length::Plain(u16::from_be_bytes([first & 0x3f, self.u8()?]).into()),
            (_, 0x80) => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            (3, _) => Length::Special(first & 0x3f),
            _ => return Err(RdbError::Malformed("a length begins with no known byte")),
        })
    }

    /// Reads a length. It is only claimed: nothing may be reserved by it.
    ///
    /// # Errors
    /// The bytes are no length.
    pub fn length(&mut self) -> Result<u64, RdbError> {
        match self.any_length()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(RdbError::Malformed("a string is where a length should be")),
        }
    }

    /// Reads a string of at most 512 MiB. O(bytes).
    ///
    /// # Errors
    /// The bytes are no string, or it expands too much.
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>, RdbError> {
        let digits = |number: i64| Ok(Cow::Owned(Decimal::of(number).as_bytes().to_vec()));
        match self.any_length()? {
            Length::Plain(length) => {
                let bytes = self.take(length)?;
                self.charge(bytes.len())?;
                Ok(Cow::Borrowed(bytes))
            }
            Length::Special(0) => digits(i8::from_le_bytes(self.array()?).into()),
            Length::Special(1) => digits(i16::from_le_bytes(self.array()?).into()),
            Length::Special(2) => digits(i32::from_le_bytes(self.array()?).into()),
            Length::Special(3) => self.compressed().map(Cow::Owned),
            Length::Special(_) => Err(RdbError::Malformed("a string has no known encoding")),
        }
    }

    fn compressed(&mut self) -> Result<Vec<u8>, RdbError> {
        let compressed = self.length()?;
        let length = self.length()?;
        let bytes = self.take(compressed)?;
        let length = usize::try_from(length).map_err(|_| RdbError::Expands)?;
        self.charge(length)?;
        lzf::decompress(bytes, length).ok_or(RdbError::Malformed("a compressed string is damaged"))
    }

    /// Charges an element of so many bytes.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), RdbError> {
        if bytes > MAX_BYTES {
            return Err(RdbError::Malformed("a string is longer than 512 MiB"));
        }
        self.left = self.left.checked_sub(ELEMENT + bytes).ok_or(RdbError::Expands)?;
        Ok(())
    }
}

/// The bytes end in the middle of a field.
const SHORT: RdbError = RdbError::Malformed("the bytes end too early");
