//! Values in the format of Redis's dumps and RDB files. Knows no keys: `DUMP` and `RESTORE` put a
//! `payload`'s frame around one value, and a file has many values, each behind its key.
//!
//! ```text
//! type u8 │ value                    integers and strings as in `reader`
//! ```
//!
//! | file | content |
//! |---|---|
//! | `payload`, `crc64` | the frame of a dump: version and checksum |
//! | `reader`, `writer` | lengths and strings, in both directions |
//! | `lzf` | compression of strings |
//! | `listpack`, `ziplist`, `zipmap` | small collections in one string |
//! | `decode`, `encode` | values |
//! | `streams` | streams |
//! | `libraries` | libraries of functions |
//!
//! **Nothing is believed.** Bytes may come from any client. Memory grows with the bytes that are there,
//! never by a length that they claim, and what they expand to is limited: see [`Reader`].

mod crc64;
mod decode;
mod encode;
mod error;
mod libraries;
mod listpack;
mod lzf;
mod packed;
mod payload;
mod reader;
mod streams;
mod writer;
mod ziplist;
mod zipmap;

pub use crc64::crc64;
pub(crate) use decode::{Restored, decode};
pub(crate) use encode::encode;
pub use error::RdbError;
pub(crate) use libraries::{next_library, put_library};
pub(crate) use payload::is_of_newer_form;
pub use payload::{VERSION_MAX, VERSION_WRITTEN, open, seal};
pub use reader::Reader;
pub use writer::{put_length, put_string};

/// The types of values, each by its byte.
mod kind {
    pub(super) const STRING: u8 = 0;
    /// Elements one by one.
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    /// Scores as text.
    pub(super) const SORTED_SET: u8 = 3;
    pub(super) const HASH: u8 = 4;
    /// Scores in binary.
    pub(super) const SORTED_SET_2: u8 = 5;
    pub(super) const MODULE: u8 = 6;
    pub(super) const MODULE_2: u8 = 7;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    /// Ziplists.
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const STREAM_LISTPACKS: u8 = 15;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const SORTED_SET_LISTPACK: u8 = 17;
    /// Listpacks, and single elements.
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const STREAM_LISTPACKS_2: u8 = 19;
    /// Since version 11.
    pub(super) const SET_LISTPACK: u8 = 20;
    pub(super) const STREAM_LISTPACKS_3: u8 = 21;
    /// Since version 12: fields with times, one by one.
    pub(super) const HASH_METADATA: u8 = 24;
    /// Since version 12: fields with times, in a listpack.
    pub(super) const HASH_LISTPACK_EX: u8 = 25;
}

/// What a node of a list is: [`kind::LIST_QUICKLIST_2`].
mod node {
    pub(super) const PLAIN: u64 = 1;
    pub(super) const PACKED: u64 = 2;
}

#[cfg(test)]
mod tests;
