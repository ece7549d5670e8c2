//! The list of value types, from which [`Type`] and [`Object`] are made.

use super::snapshot_form::SnapshotForm;
use super::{
    Counter, Hash, InParts, Lens, Limit, List, OnceSession, Pool, Set, SortedSet, Stream, TimeSeries,
    TypedValue, Value,
};
use crate::persist::record::Cursor;

/// Number of elements above which freeing a value is moved to another thread.
const LARGE_ELEMENTS: usize = 1024;

/// Declares the value types: each with its name for `TYPE`, its byte in snapshots and digests, and
/// its form in snapshots.
macro_rules! value_types {
    ($($(#[$doc:meta])+ $name:ident($value:ty): $label:literal, $code:literal, $form:expr;)+) => {
        /// Type of a key's value, as in `TYPE`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Type {
            $($(#[$doc])+ $name,)+
        }

        impl Type {
            /// All types.
            pub const ALL: [Self; [$($code),+].len()] = [$(Self::$name),+];

            /// Returns the name for `TYPE`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)+
                }
            }

            /// Returns the type's byte in snapshots and digests.
            pub(crate) fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)+
                }
            }

            /// Returns how snapshots write values of the type.
            pub(crate) fn snapshot_form(self) -> SnapshotForm {
                match self {
                    $(Self::$name => $form,)+
                }
            }

            /// Parses a value that was written whole; `None` if it is invalid.
            pub(crate) fn decode(self, bytes: &mut Cursor<'_>) -> Option<Object> {
                match self {
                    $(Self::$name => <$value>::decode(bytes).map(Object::$name),)+
                }
            }
        }

        /// A value stored outside of its entry's block.
        #[derive(Debug)]
        pub enum Object {
            $($(#[$doc])+ $name($value),)+
        }

        impl Object {
            /// Returns the type that clients see.
            pub fn kind(&self) -> Type {
                match self {
                    $(Self::$name(_) => Type::$name,)+
                }
            }

            /// Returns the value, whatever its type.
            pub(crate) fn value(&self) -> &dyn Value {
                match self {
                    $(Self::$name(value) => value,)+
                }
            }

            /// Like [`Object::value`], mutable.
            pub(crate) fn value_mut(&mut self) -> &mut dyn Value {
                match self {
                    $(Self::$name(value) => value,)+
                }
            }
        }

        $(
            impl TypedValue for $value {
                const TYPE: Type = Type::$name;

                #[inline]
                fn from_object(object: &Object) -> Option<&Self> {
                    match object {
                        Object::$name(value) => Some(value),
                        _ => None,
                    }
                }

                #[inline]
                fn from_object_mut(object: &mut Object) -> Option<&mut Self> {
                    match object {
                        Object::$name(value) => Some(value),
                        _ => None,
                    }
                }

                #[inline]
                fn into_object(self) -> Object {
                    Object::$name(self)
                }
            }
        )+
    };
}

// The codes 0, 1, 7 and 8 have other uses in snapshots: see `keyspace::form`.
value_types! {
    /// Bytes, or an integer in decimal form. As an object, a string that can grow in place.
    String(Vec<u8>): "string", 2, SnapshotForm::Whole;
    /// A sequence of byte strings.
    List(List): "list", 3, List::SNAPSHOT_FORM;
    /// Fields with values.
    Hash(Hash): "hash", 4, SnapshotForm::of_elements::<Hash>();
    /// Distinct members.
    Set(Set): "set", 5, SnapshotForm::of_elements::<Set>();
    /// Distinct members ordered by a score.
    SortedSet(SortedSet): "zset", 6, SnapshotForm::of_elements::<SortedSet>();
    /// A counter of which only net changes are logged.
    Counter(Counter): "counter", 9, SnapshotForm::Whole;
    /// A rate limiter.
    Limit(Limit): "limit", 10, SnapshotForm::Whole;
    /// A prize pool.
    Pool(Pool): "pool", 11, Pool::SNAPSHOT_FORM;
    /// A time series. Its name is that of Redis's module, which clients look for.
    Series(TimeSeries): "TSDB-TYPE", 12, TimeSeries::SNAPSHOT_FORM;
    /// A series seen through transforms.
    Lens(Lens): "lens", 13, SnapshotForm::Whole;
    /// A session of `ONCE`, in a database that no client can select.
    OnceSession(OnceSession): "once-session", 14, SnapshotForm::Whole;
    /// Entries in the order of their IDs, and groups of consumers.
    Stream(Stream): "stream", 15, Stream::SNAPSHOT_FORM;
}

impl Type {
    /// Returns the types that a key of a client can have.
    pub fn of_clients() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| *kind != Self::OnceSession)
    }

    /// Returns the type with this byte.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl Object {
    /// Whether the value is empty, so that its key must be deleted.
    pub fn is_empty(&self) -> bool {
        self.value().is_empty()
    }

    /// Whether freeing the value takes long enough to be moved to another thread.
    pub fn is_large(&self) -> bool {
        // A string is one allocation, whatever its length.
        self.kind() != Type::String && self.value().elements() > LARGE_ELEMENTS
    }

    /// Returns the name for `OBJECT ENCODING`: Redis's name of the representation.
    pub fn encoding(&self) -> &'static str {
        self.value().encoding()
    }

    /// Returns the value if snapshots may write it in parts.
    pub(crate) fn in_parts(&self) -> Option<&dyn InParts> {
        self.value().in_parts()
    }

    /// Like [`Object::in_parts`], mutable.
    pub(crate) fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        self.value_mut().in_parts_mut()
    }
}
