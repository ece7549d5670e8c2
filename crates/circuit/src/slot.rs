//! One named, typed value of a state.

use std::fmt;
use std::sync::Arc;

use crate::{Name, State};

/// A name with a value of one type.
///
/// `Slot<i32>` knows its type at compile time and serves as a template for [`State::value`]; plain `Slot` is what a state
/// holds, with a value of any of the types.
///
/// ```
/// use tidemark_circuit::{Slot, ValueKind, name};
///
/// let retries = Slot::new(name!("retries"), 3);
/// assert_eq!(retries.name(), name!("retries"));
/// assert_eq!(retries.kind(), ValueKind::I32);
/// assert_eq!(*retries.value(), 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Slot<T = Value> {
    name: Name,
    value: T,
}

impl<T> Slot<T> {
    /// A value under a name.
    pub const fn new(name: Name, value: T) -> Self {
        Self { name, value }
    }

    /// The name.
    pub const fn name(&self) -> Name {
        self.name
    }

    /// The value.
    pub const fn value(&self) -> &T {
        &self.value
    }
}

impl<T: sealed::Typed> Slot<T> {
    /// The type of the value.
    pub fn kind(&self) -> ValueKind {
        self.value.type_of()
    }
}

impl<T: Valued> Slot<T> {
    /// This slot with its value as one of any type.
    ///
    /// ```
    /// use tidemark_circuit::{Slot, Value, name};
    ///
    /// assert_eq!(*Slot::new(name!("retries"), 3).untyped().value(), Value::I32(3));
    /// ```
    pub fn untyped(self) -> Slot {
        Slot { name: self.name, value: self.value.into() }
    }
}

impl Slot<Value> {
    pub(crate) const fn value_mut(&mut self) -> &mut Value {
        &mut self.value
    }
}

impl<T: Valued> From<Slot<T>> for Slot {
    fn from(slot: Slot<T>) -> Self {
        slot.untyped()
    }
}

/// Same name, same type, same value; floating point numbers by their bits.
impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.value == other.value
    }
}

impl Eq for Slot {}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// The types that a value can have.
///
/// ```
/// use tidemark_circuit::{Value, ValueKind};
///
/// assert_eq!(Value::from(1.5_f32).kind(), ValueKind::F32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is the type of its name")]
pub enum ValueKind {
    Bool,
    I32,
    I64,
    F32,
    F64,
    Text,
    Name,
    State,
}

/// A value of one of the types that a state can hold.
///
/// Two are equal if they have the same type and the same value. Floating point numbers are compared by their bits, so a
/// value is equal to itself even if it is not a number, and zero is not minus zero.
///
/// ```
/// use tidemark_circuit::Value;
///
/// assert_eq!(Value::from(f64::NAN), Value::from(f64::NAN));
/// assert_ne!(Value::from(0.0_f32), Value::from(-0.0_f32));
/// assert_ne!(Value::from(1_i32), Value::from(1_i64));
/// ```
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is a value of the type of its name")]
pub enum Value {
    Bool(bool),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Text(Arc<str>),
    Name(Name),
    State(State),
}

impl Value {
    /// The type.
    pub const fn kind(&self) -> ValueKind {
        match self {
            Self::Bool(_) => ValueKind::Bool,
            Self::I32(_) => ValueKind::I32,
            Self::I64(_) => ValueKind::I64,
            Self::F32(_) => ValueKind::F32,
            Self::F64(_) => ValueKind::F64,
            Self::Text(_) => ValueKind::Text,
            Self::Name(_) => ValueKind::Name,
            Self::State(_) => ValueKind::State,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::I32(left), Self::I32(right)) => left == right,
            (Self::I64(left), Self::I64(right)) => left == right,
            (Self::F32(left), Self::F32(right)) => left.to_bits() == right.to_bits(),
            (Self::F64(left), Self::F64(right)) => left.to_bits() == right.to_bits(),
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Name(left), Self::Name(right)) => left == right,
            (Self::State(left), Self::State(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::I32(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F32(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            Self::Text(value) => fmt::Debug::fmt(value, f),
            Self::Name(value) => value.fmt(f),
            Self::State(value) => value.fmt(f),
        }
    }
}

/// A type whose values a state can hold: `bool`, `i32`, `i64`, `f32`, `f64`, text as `Arc<str>` or `String`, [`Name`] and
/// [`State`].
///
/// A `String` is copied on its way in and out; an `Arc<str>` is shared. They are one type to a state.
///
/// ```
/// use tidemark_circuit::{Value, Valued};
///
/// let value = Value::from("text".to_owned());
/// assert_eq!(String::from_value(&value).as_deref(), Some("text"));
/// assert_eq!(bool::from_value(&value), None);
/// ```
///
/// ```compile_fail
/// use tidemark_circuit::{State, name};
///
/// State::empty().with(name!("bytes"), vec![1_u8, 2]);
/// ```
pub trait Valued: Clone + Into<Value> + sealed::Typed {
    /// The type as a value.
    const KIND: ValueKind;

    /// The value, if it has this type.
    fn from_value(value: &Value) -> Option<Self>;
}

mod sealed {
    /// What has a type: a value of a known type, or one of any type. No other crate can add to it.
    pub trait Typed {
        fn type_of(&self) -> super::ValueKind;
    }
}

impl sealed::Typed for Value {
    fn type_of(&self) -> ValueKind {
        self.kind()
    }
}

macro_rules! valued {
    ($($type:ty, $kind:ident, $value:ident => $into:expr, $out:expr;)*) => {$(
        impl sealed::Typed for $type {
            fn type_of(&self) -> ValueKind {
                Self::KIND
            }
        }

        impl Valued for $type {
            const KIND: ValueKind = ValueKind::$kind;

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::$kind($value) => Some($out),
                    _ => None,
                }
            }
        }

        impl From<$type> for Value {
            fn from($value: $type) -> Self {
                Self::$kind($into)
            }
        }
    )*};
}

valued! {
    bool, Bool, value => value, *value;
    i32, I32, value => value, *value;
    i64, I64, value => value, *value;
    f32, F32, value => value, *value;
    f64, F64, value => value, *value;
    Arc<str>, Text, value => value, Arc::clone(value);
    String, Text, value => value.into(), value.as_ref().to_owned();
    Name, Name, value => value, *value;
    State, State, value => value, value.clone();
}
