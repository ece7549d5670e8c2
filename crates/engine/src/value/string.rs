//! Strings that can grow in place. Other strings are stored in their entries.

use super::{InParts, Value};
use crate::persist::record::{Cursor, put_bytes};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes that count as one element.
const ELEMENT_BYTES: usize = 64;

/// Returns as how many elements a string of so many bytes counts.
pub(crate) fn elements_of(bytes: usize) -> usize {
    bytes / ELEMENT_BYTES
}

impl Value for Vec<u8> {
    /// Always `false`: a string without bytes is a value.
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        elements_of(self.len())
    }

    fn encoding(&self) -> &'static str {
        "raw"
    }

    fn encode(&self, into: &mut Vec<u8>) {
        put_bytes(into, self);
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        bytes.bytes().map(<[u8]>::to_vec)
    }

    fn digest(&self) -> u64 {
        xxh3_64(self)
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        None
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        None
    }
}
