//! The types of values that are more than a short string.

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

/// The type of a key's value, as `TYPE` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Bytes, or an integer in decimal form.
    String,
    /// A sequence.
    List,
    /// Fields with values.
    Hash,
    /// Distinct members.
    Set,
    /// Distinct members ordered by a score.
    SortedSet,
    /// A counter whose ups and downs cancel before they are logged.
    Counter,
    /// A rate limiter.
    Limit,
    /// A prize pool.
    Pool,
}

impl Type {
    /// Every type.
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

    /// The name that `TYPE` answers.
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

    /// The byte that stands for the type in snapshots.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::String => 2,
            Self::List => 3,
            Self::Hash => 4,
            Self::Set => 5,
            Self::SortedSet => 6,
            // 7 and 8 stand for values in parts.
            Self::Counter => 9,
            Self::Limit => 10,
            Self::Pool => 11,
        }
    }

    /// The type for which a byte stands.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether values of the type can come in parts in snapshots.
    pub(crate) fn has_parts(self) -> bool {
        !matches!(self, Self::String | Self::Counter | Self::Limit)
    }

    /// Whether the parts of such a value have an order.
    pub(crate) fn has_ordered_parts(self) -> bool {
        matches!(self, Self::List | Self::Pool)
    }
}

/// A value that lives outside its entry's block.
#[derive(Debug)]
pub enum Object {
    /// A string that grows in place.
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
    /// The type that clients see.
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

    /// Whether nothing is left, so that the key must go.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Bytes(_) | Self::Counter(_) | Self::Limit(_) | Self::Pool(_) => false,
            Self::List(list) => list.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::SortedSet(set) => set.is_empty(),
        }
    }

    /// Whether freeing the value takes long enough to be worth another thread.
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

    /// The value as one that a snapshot may write in parts; strings, counters and limiters are written at once.
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

    /// As [`Object::in_parts`], to change it.
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

    /// The encoding that `OBJECT ENCODING` names: Redis's word for values of this shape.
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

/// A value type that commands can ask the keyspace for.
///
/// `encode` and `decode` are the form in snapshots: everything that the value is, in an order that depends on the
/// value alone or on nothing that `digest` can see.
pub trait Collection: Sized {
    /// What `TYPE` says.
    const TYPE: Type;
    /// The collection inside an object of this type.
    fn from_object(object: &Object) -> Option<&Self>;
    /// As [`Collection::from_object`], to change it.
    fn from_object_mut(object: &mut Object) -> Option<&mut Self>;
    /// Wraps the collection.
    fn into_object(self) -> Object;
    /// Whether nothing is left.
    fn is_empty(&self) -> bool;
    /// Appends the snapshot form.
    fn encode(&self, into: &mut Vec<u8>);
    /// Reads the snapshot form; `None` if the bytes are not one.
    fn decode(bytes: &mut crate::persist::record::Cursor<'_>) -> Option<Self>;
    /// A digest that is equal for equal values, whatever their history.
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
