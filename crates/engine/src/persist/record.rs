//! The form of a change in the log: the command, made deterministic, with its database.
//!
//! ```text
//! command      db u8 │ id u16 │ number of arguments varint │ (length varint │ bytes)*
//! transaction  (length of the command varint │ command)*
//! expiry       db u8 │ (length varint │ key)*
//! points       see `persist::points`
//! watch        protocol u8 │ filter words varint │ (length varint │ word)* │ command that reads
//! unwatch      LSN of the watch varint
//! named        length varint │ name │ LSN of the watch varint │ number before its first varint
//!              │ position varint │ guarantee u8 │ first answer done u8
//! unnamed      length varint │ name
//! wake         LSN of the watch varint │ emissions so far varint │ LSN of the last one varint
//!              │ with a filter: its state
//! ```
//!
//! Integers are little endian, varints LEB128. The command's name is not an argument: its id stands
//! for it and never changes its meaning.

use crate::persist::apply_error::{ApplyError, Malformed};
use crate::persist::blocks::BlockFinder;
use std::borrow::Cow;

pub use super::level;

/// The kinds of records that the engine writes; 0 is the log's own, 254 and 255 are a group's.
pub mod kind {
    /// One command.
    pub const COMMAND: u8 = 1;
    /// Commands that run atomically.
    pub const TRANSACTION: u8 = 2;
    /// Keys that were removed because they had expired.
    pub const EXPIRY: u8 = 3;
    /// Start of a watched read: see [`crate::watch`].
    pub const WATCH: u8 = 4;
    /// End of a watched read.
    pub const UNWATCH: u8 = 5;
    /// Start of a named subscription.
    pub const NAMED: u8 = 6;
    /// End of a named subscription.
    pub const UNNAMED: u8 = 7;
    /// Resumption of a dormant watched read after emissions that were derived from the log: see
    /// [`crate::watch`].
    pub const WAKE: u8 = 8;
    /// Points that one command, or a run of commands, added to series.
    pub const POINTS: u8 = 9;
    /// The time as of which a watched read is answered moves on: see [`crate::watch`].
    pub const TICK: u8 = 10;
    /// The first of the kinds that a group writes for itself, up to 255. They change no memory.
    pub const GROUP: u8 = 240;
}

/// The id of `EMITACK`, which moves a subscription's position and changes no key.
pub const ACKNOWLEDGEMENT: u16 = 965;

/// Appends one command.
pub fn encode_command(into: &mut Vec<u8>, db: u8, id: u16, args: &[&[u8]]) {
    into.push(db);
    into.extend_from_slice(&id.to_le_bytes());
    put_varint(into, args.len() as u64);
    for arg in args {
        put_bytes(into, arg);
    }
}

/// Appends the acknowledgement of a named subscription's emissions up to an LSN, in the form of a
/// command, so that a transaction can contain it.
pub fn encode_acknowledgement(into: &mut Vec<u8>, name: &[u8], lsn: tidemark_log::Lsn) {
    encode_command(into, 0, ACKNOWLEDGEMENT, &[name, lsn.to_string().as_bytes()]);
}

/// Appends bytes with their length.
#[inline]
pub fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

/// Appends an integer as a varint of 1 to 10 bytes.
#[inline]
pub fn put_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// A reader of encoded fields. Every method returns `None` if the bytes end too early.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    /// Offset at which `rest` ends, from the start of the payload or frame.
    end: usize,
    /// What finds blocks that the bytes refer to, if they may.
    blocks: Option<&'a BlockFinder>,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len(), blocks: None }
    }

    /// Like [`Cursor::new`], for bytes of a snapshot, which may refer to blocks.
    pub(crate) fn with_blocks(bytes: &'a [u8], blocks: &'a BlockFinder) -> Self {
        Self { blocks: Some(blocks), ..Self::new(bytes) }
    }

    /// Returns what finds blocks; `None` if the bytes may not refer to any.
    pub(crate) fn blocks(&self) -> Option<&'a BlockFinder> {
        self.blocks
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Offset of the next field in the payload or frame, in bytes.
    pub fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Creates the error for malformed bytes at or before the current offset.
    #[cold]
    pub fn malformed(&self, what: impl Into<Cow<'static, str>>) -> ApplyError {
        Malformed::at(self.offset(), what).into()
    }

    /// Returns an error if bytes are left.
    pub(crate) fn expect_end(&self) -> Result<(), ApplyError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.malformed(format!("{left} bytes are left behind the last field"))),
        }
    }

    /// Number of bytes left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Reads `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads two bytes.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    /// Reads four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Reads eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Reads a varint.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return (shift < 63 || byte <= 1).then_some(value);
            }
        }
        None
    }

    /// Reads bytes with their length.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.take(len)
    }

    /// Reads bytes with their length as a nested cursor; its offsets are those of the whole.
    pub(crate) fn nested(&mut self) -> Option<Self> {
        let rest = self.bytes()?;
        Some(Self { rest, end: self.offset(), blocks: self.blocks })
    }
}

/// A command in a record, borrowed from it.
#[derive(Debug)]
pub struct LoggedCommand<'a> {
    /// Its database.
    pub db: u8,
    /// Its id.
    pub id: u16,
    /// Its arguments, without the name.
    pub args: Vec<&'a [u8]>,
}

impl<'a> LoggedCommand<'a> {
    /// Reads one command; `None` if the bytes are malformed.
    pub fn decode(cursor: &mut Cursor<'a>) -> Option<Self> {
        let (db, id, count) = (cursor.u8()?, cursor.u16()?, cursor.varint()?);
        // Each argument takes at least one byte, so a damaged count cannot reserve more than the
        // record's size.
        let count = usize::try_from(count).ok().filter(|&count| count <= cursor.remaining())?;
        let mut args = Vec::with_capacity(count);
        for _ in 0..count {
            args.push(cursor.bytes()?);
        }
        Some(Self { db, id, args })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::damage;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_command_reads_back(
            db in 0..16_u8,
            id: u16,
            args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
        ) {
            let mut bytes = Vec::new();
            let borrowed: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            encode_command(&mut bytes, db, id, &borrowed);
            let mut cursor = Cursor::new(&bytes);
            let read = LoggedCommand::decode(&mut cursor).expect("what was encoded decodes");
            prop_assert!(cursor.is_empty());
            prop_assert_eq!((read.db, read.id, read.args), (db, id, borrowed));
        }

        #[test]
        fn any_bytes_decode_to_what_they_are_or_are_refused(bytes in damage::bytes(100)) {
            let mut cursor = Cursor::new(&bytes);
            if let Some(LoggedCommand { db, id, args }) = LoggedCommand::decode(&mut cursor) {
                let mut form = Vec::new();
                encode_command(&mut form, db, id, &args);
                prop_assert!(form.len() <= cursor.offset());
                let again = LoggedCommand::decode(&mut Cursor::new(&form)).expect("what was encoded decodes");
                prop_assert_eq!((again.db, again.id, again.args), (db, id, args));
                for cut in 0..form.len() {
                    prop_assert!(LoggedCommand::decode(&mut Cursor::new(&form[..cut])).is_none());
                }
            }
        }

        #[test]
        fn offsets_are_those_of_the_whole(one in proptest::collection::vec(any::<u8>(), 0..300), other: u32) {
            let mut inner = Vec::new();
            put_bytes(&mut inner, &one);
            inner.extend_from_slice(&other.to_le_bytes());
            let mut bytes = vec![7];
            put_bytes(&mut bytes, &inner);
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!((cursor.offset(), cursor.u8(), cursor.offset()), (0, Some(7), 1));
            let mut nested = cursor.nested().expect("a length and bytes");
            prop_assert_eq!((cursor.offset(), nested.offset()), (bytes.len(), bytes.len() - inner.len()));
            prop_assert_eq!(nested.bytes(), Some(&one[..]));
            prop_assert_eq!(nested.offset(), bytes.len() - 4);
            prop_assert_eq!((nested.u32(), nested.offset()), (Some(other), bytes.len()));
        }

        #[test]
        fn a_varint_reads_back(value: u64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(Cursor::new(&bytes).varint(), Some(value));
        }
    }
}
