//! Types of slot values, and conversions between them and [`Value`].

use std::fmt;
use std::sync::Arc;

use crate::Name;
use crate::identity::value::{Slot, State, Value, ValueKind};

impl<T: sealed::Typed> Slot<T> {
    /// Returns the type of the value.
    pub fn kind(&self) -> ValueKind {
        self.value.type_of()
    }
}

impl<T: Valued> Slot<T> {
    /// Returns this slot with its value as a [`Value`].
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

impl<T: Valued> From<Slot<T>> for Slot {
    fn from(slot: Slot<T>) -> Self {
        slot.untyped()
    }
}

/// Compares name, type and value; floating-point numbers by their bits.
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

/// A type of values that a state can hold: `bool`, `i32`, `i64`, `f32`, `f64`, text as `Arc<str>`
/// or `String`, [`Name`] and [`State`].
///
/// A `String` is copied on conversion; an `Arc<str>` is shared. Both have the same type in a state.
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
    /// The type, as a value.
    const KIND: ValueKind;

    /// Returns the value, if it has this type.
    fn from_value(value: &Value) -> Option<Self>;
}

mod sealed {
    /// A value of one known type or of any type. Sealed.
    pub trait Typed {
        fn type_of(&self) -> crate::ValueKind;
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
