//! How snapshots write the values of a type.

use super::{InParts, Object, TypedValue};
use crate::persist::record::Cursor;

/// How snapshots write the values of a type.
pub(crate) enum SnapshotForm {
    /// Always whole.
    Whole,
    /// Large values in parts of any order, whose elements are added to an empty value.
    Elements {
        /// Creates the empty value.
        empty: fn() -> Object,
    },
    /// Large values in parts that are joined in their order.
    Pieces {
        /// Parses a part of so many elements; `None` if it is invalid.
        decode: fn(&mut Cursor<'_>, u32) -> Option<Object>,
        /// Joins all parts; `None` if they form no value.
        join: fn(Vec<Object>) -> Option<Object>,
    },
}

impl SnapshotForm {
    /// Returns the form of a collection whose elements may be added in any order.
    pub(crate) fn of_elements<T: TypedValue + InParts + Default>() -> Self {
        Self::Elements { empty: || T::default().into_object() }
    }

    /// Returns the form of a value whose every part is a piece of its image, as one element of
    /// bytes.
    pub(crate) const fn of_image(join: fn(Vec<Object>) -> Option<Object>) -> Self {
        Self::Pieces { decode: decode_image_piece, join }
    }

    /// Whether values may be written in parts.
    pub(crate) fn has_parts(&self) -> bool {
        !matches!(self, Self::Whole)
    }

    /// Whether parts have an order, which they then state.
    pub(crate) fn has_ordered_parts(&self) -> bool {
        matches!(self, Self::Pieces { .. })
    }
}

fn decode_image_piece(bytes: &mut Cursor<'_>, count: u32) -> Option<Object> {
    (count == 1).then(|| bytes.bytes()).flatten().map(|piece| Object::String(piece.to_vec()))
}

/// Returns the bytes of pieces that [`SnapshotForm::of_image`] decoded; `None` if one is not bytes.
pub(crate) fn image_pieces(pieces: &[Object]) -> Option<Vec<&[u8]>> {
    pieces.iter().map(|piece| <Vec<u8>>::from_object(piece).map(Vec::as_slice)).collect()
}
