//! Values: the types that a key can hold, as far as they are stored outside of their entries.
//!
//! A type is a folder with an implementation of [`Value`] and a line in the list in `types`.
//! Snapshots, copies, digests, `TYPE`, `OBJECT ENCODING` and freeing need nothing else.

/// Implements the methods of [`Value`] that a collection has itself, by the same names; its elements
/// may come in parts.
macro_rules! collection_methods {
    () => {
        fn is_empty(&self) -> bool {
            self.is_empty()
        }

        fn elements(&self) -> usize {
            self.len()
        }

        fn encoding(&self) -> &'static str {
            self.encoding()
        }

        fn in_parts(&self) -> Option<&dyn $crate::value::InParts> {
            Some(self)
        }

        fn in_parts_mut(&mut self) -> Option<&mut dyn $crate::value::InParts> {
            Some(self)
        }
    };
}

pub(crate) mod capture;
mod counter;
pub(crate) mod dict;
mod hash;
pub(crate) mod hyper_log_log;
mod integers;
mod labelled;
pub(crate) mod lens;
pub mod limit;
pub(crate) mod links;
mod list;
mod once_session;
mod packed;
pub mod pool;
pub(crate) mod series;
mod set;
mod snapshot_form;
mod sorted_set;
pub mod stream;
mod string;
mod text;
mod types;

pub use capture::{InParts, Pieces};
pub(crate) use counter::Listing;
pub use counter::{Counter, Terms};
pub use hash::Hash;
pub(crate) use labelled::Labelled;
pub use lens::Lens;
pub use limit::Limit;
pub use list::{End, List};
pub use once_session::{
    Known, NotedAnswer, NumberedAnswer, OnceSession, SESSION_ANSWERS_BYTES, SESSION_LIFE_MS, SESSION_WINDOW,
};
pub use pool::Pool;
pub use series::TimeSeries;
pub(crate) use series::{
    Definition, LabelFilter, Labels, Matcher, POLICIES, Pattern, Relations, Rule, Unit, Wanted,
};
pub use set::Set;
pub(crate) use snapshot_form::{SnapshotForm, image_pieces};
pub use sorted_set::SortedSet;
pub(crate) use sorted_set::compare as sorted_set_order;
pub use stream::Stream;
pub(crate) use string::elements_of as elements_of_string;
pub use text::{Decimal, Text};
pub use types::{Object, Type};

use crate::persist::blocks::Blocks;
use crate::persist::record::Cursor;
use std::fmt;

/// What the engine requires of a value, whatever its type.
///
/// `encode` and `decode` use the snapshot form. It contains the whole logged value, in an order
/// that depends only on the value, or that `digest` ignores.
pub trait Value: fmt::Debug {
    /// Whether the value is empty, so that its key must be deleted.
    fn is_empty(&self) -> bool;

    /// Returns how many elements a command visits that visits all of them.
    fn elements(&self) -> usize;

    /// Returns the name of the representation for `OBJECT ENCODING`: Redis's, if it has one.
    fn encoding(&self) -> &'static str;

    /// Whether housekeeping lists the value at another time than the one at which it is due.
    fn is_misplaced(&self) -> bool {
        false
    }

    /// Appends the snapshot form.
    fn encode(&self, into: &mut Vec<u8>);

    /// Like [`Value::encode`], for a snapshot that may refer to blocks instead of having them.
    fn encode_with(&self, blocks: &Blocks, into: &mut Vec<u8>) {
        let _ = blocks;
        self.encode(into);
    }

    /// Returns a copy that shares what never changes; `None` if the type has nothing to share.
    fn share(&self) -> Option<Object> {
        None
    }

    /// Parses the snapshot form; `None` if it is invalid.
    fn decode(bytes: &mut Cursor<'_>) -> Option<Self>
    where
        Self: Sized;

    /// Returns a digest that is equal for equal logged values, regardless of history.
    fn digest(&self) -> u64;

    /// Returns the value if snapshots may write it in parts.
    fn in_parts(&self) -> Option<&dyn InParts>;

    /// Like [`Value::in_parts`], mutable.
    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts>;
}

/// A value whose type is known, as commands request it from the keyspace. Implemented by the list
/// of types.
pub trait TypedValue: Value + Sized {
    /// Type for `TYPE`.
    const TYPE: Type;
    /// Returns the value in an object of this type.
    fn from_object(object: &Object) -> Option<&Self>;
    /// Like [`TypedValue::from_object`], mutable.
    fn from_object_mut(object: &mut Object) -> Option<&mut Self>;
    /// Wraps the value.
    fn into_object(self) -> Object;
}
