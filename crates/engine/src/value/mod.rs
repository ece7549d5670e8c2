//! Types of values that are stored outside of their entries.

pub(crate) mod capture;
mod counter;
pub(crate) mod dict;
mod hash;
mod integers;
pub mod limit;
mod list;
mod packed;
pub mod pool;
mod set;
mod sorted_set;
mod text;

pub(crate) use capture::{InParts, Pieces};
pub(crate) use counter::Listing;
pub use counter::{Counter, Terms};
pub use hash::Hash;
pub use limit::Limit;
pub use list::{End, List};
pub use pool::Pool;
pub use set::Set;
pub use sorted_set::SortedSet;
pub(crate) use sorted_set::compare as sorted_set_order;
pub use text::{Decimal, Text};

/// Type of a key's value, as in `TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Bytes, or an integer in decimal form.
    String,
    /// A sequence of byte strings.
    List,
    /// Fields with values.
    Hash,
    /// Distinct members.
    Set,
    /// Distinct members ordered by a score.
    SortedSet,
    /// A counter of which only net changes are logged.
    Counter,
    /// A rate limiter.
    Limit,
    /// A prize pool.
    Pool,
}

impl Type {
    /// All types.
    pub const ALL: [Self; 8] = [
        Self::String,
        Self::List,
        Self::Hash,
        Self::Set,
        Self::SortedSet,
        Self::Counter,
        Self::Limit,
        Self::Pool,
    ];

    /// Returns the name for `TYPE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Counter => "counter",
            Self::Limit => "limit",
            Self::Pool => "pool",
        }
    }

    /// Returns the type's byte in snapshots.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::String => 2,
            Self::List => 3,
            Self::Hash => 4,
            Self::Set => 5,
            Self::SortedSet => 6,
            // 7 and 8 are the codes for values in parts.
            Self::Counter => 9,
            Self::Limit => 10,
            Self::Pool => 11,
        }
    }

    /// Returns the type with this byte.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether snapshots may write values of the type in parts.
    pub(crate) fn has_parts(self) -> bool {
        !matches!(self, Self::String | Self::Counter | Self::Limit)
    }

    /// Whether the parts of a value are ordered.
    pub(crate) fn has_ordered_parts(self) -> bool {
        matches!(self, Self::List | Self::Pool)
    }
}

/// A value stored outside of its entry's block.
#[derive(Debug)]
pub enum Object {
    /// A growable string.
    Bytes(Vec<u8>),
    /// A list.
    List(List),
    /// A hash.
    Hash(Hash),
    /// A set.
    Set(Set),
    /// A sorted set.
    SortedSet(SortedSet),
    /// A counter.
    Counter(Counter),
    /// A limiter.
    Limit(Limit),
    /// A prize pool.
    Pool(Pool),
}

impl Object {
    /// Returns the type that clients see.
    pub fn kind(&self) -> Type {
        match self {
            Self::Bytes(_) => Type::String,
            Self::List(_) => Type::List,
            Self::Hash(_) => Type::Hash,
            Self::Set(_) => Type::Set,
            Self::SortedSet(_) => Type::SortedSet,
            Self::Counter(_) => Type::Counter,
            Self::Limit(_) => Type::Limit,
            Self::Pool(_) => Type::Pool,
        }
    }

    /// Whether the value is empty, so that its key must be deleted.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Bytes(_) | Self::Counter(_) | Self::Limit(_) | Self::Pool(_) => false,
            Self::List(list) => list.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::SortedSet(set) => set.is_empty(),
        }
    }

    /// Whether freeing the value takes long enough to be moved to another thread.
    pub fn is_large(&self) -> bool {
        const LARGE: usize = 1024;
        match self {
            Self::Bytes(_) | Self::Counter(_) | Self::Limit(_) => false,
            Self::List(list) => list.len() > LARGE,
            Self::Hash(hash) => hash.len() > LARGE,
            Self::Set(set) => set.len() > LARGE,
            Self::SortedSet(set) => set.len() > LARGE,
            Self::Pool(pool) => pool.len() > LARGE,
        }
    }

    /// Returns the value if snapshots may write it in parts, as opposed to strings and counters.
    pub(crate) fn in_parts(&self) -> Option<&dyn InParts> {
        match self {
            Self::Bytes(_) | Self::Counter(_) | Self::Limit(_) => None,
            Self::List(list) => Some(list),
            Self::Hash(hash) => Some(hash),
            Self::Set(set) => Some(set),
            Self::SortedSet(set) => Some(set),
            Self::Pool(pool) => Some(pool),
        }
    }

    /// Like [`Object::in_parts`], mutable.
    pub(crate) fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        match self {
            Self::Bytes(_) | Self::Counter(_) | Self::Limit(_) => None,
            Self::List(list) => Some(list),
            Self::Hash(hash) => Some(hash),
            Self::Set(set) => Some(set),
            Self::SortedSet(set) => Some(set),
            Self::Pool(pool) => Some(pool),
        }
    }

    /// Returns the name for `OBJECT ENCODING`: Redis's name of the representation.
    pub fn encoding(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "raw",
            Self::List(list) => list.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(set) => set.encoding(),
            Self::Counter(_) => "counter",
            Self::Limit(limit) => limit.encoding(),
            Self::Pool(pool) => pool.encoding(),
        }
    }
}

/// A value type that commands request from the keyspace.
///
/// `encode` and `decode` use the snapshot form. It contains the whole value, in an order that
/// depends only on the value, or that `digest` ignores.
pub trait Collection: Sized {
    /// Type for `TYPE`.
    const TYPE: Type;
    /// Returns the collection in an object of this type.
    fn from_object(object: &Object) -> Option<&Self>;
    /// Like [`Collection::from_object`], mutable.
    fn from_object_mut(object: &mut Object) -> Option<&mut Self>;
    /// Wraps the collection.
    fn into_object(self) -> Object;
    /// Whether the collection is empty.
    fn is_empty(&self) -> bool;
    /// Appends the snapshot form.
    fn encode(&self, into: &mut Vec<u8>);
    /// Parses the snapshot form; `None` if it is invalid.
    fn decode(bytes: &mut crate::persist::record::Cursor<'_>) -> Option<Self>;
    /// Returns a digest that is equal for equal values, regardless of history.
    fn digest(&self) -> u64;
}

macro_rules! collection {
    ($type:ident) => {
        fn from_object(object: &$crate::value::Object) -> Option<&Self> {
            match object {
                $crate::value::Object::$type(value) => Some(value),
                _ => None,
            }
        }

        fn from_object_mut(object: &mut $crate::value::Object) -> Option<&mut Self> {
            match object {
                $crate::value::Object::$type(value) => Some(value),
                _ => None,
            }
        }

        fn into_object(self) -> $crate::value::Object {
            $crate::value::Object::$type(self)
        }
    };
}
pub(crate) use collection;
