//! Sorted sets.

use super::{Collection, Type, collection};
use crate::record::Cursor;

/// A sorted set.
#[derive(Debug, Default)]
pub struct SortedSet {}

impl SortedSet {
    /// Redis's word for this shape.
    pub fn encoding(&self) -> &'static str {
        "listpack"
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        true
    }
}

impl Collection for SortedSet {
    const TYPE: Type = Type::SortedSet;
    collection!(SortedSet);

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn encode(&self, _into: &mut Vec<u8>) {}

    fn decode(_bytes: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {})
    }

    fn digest(&self) -> u64 {
        0
    }
}
