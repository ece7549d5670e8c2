//! Slots, their values, and the states that link them. A value may be a state, so they are declared
//! together.

use std::mem;
use std::sync::Arc;

use crate::Name;

/// A name with a value of one type.
///
/// `Slot<i32>` has its type at compile time and serves as a template for [`State::value`]. A plain
/// `Slot` has a value of any of the types; a state consists of these.
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
    pub(crate) name: Name,
    pub(crate) value: T,
}

impl<T> Slot<T> {
    /// Creates a slot with a value under a name.
    pub const fn new(name: Name, value: T) -> Self {
        Self { name, value }
    }

    /// Returns the name.
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns the value.
    pub const fn value(&self) -> &T {
        &self.value
    }
}

/// The types of values.
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
/// Two values are equal if they have the same type and content. Floating-point numbers are compared
/// by their bits: NaN is equal to itself, and zero is not equal to minus zero.
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
    /// Returns the type.
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

/// Slots with different keys, newest first. A key is a name and a type, so a name may have both an
/// `i32` and a text.
///
/// A state is immutable: [`with`](Self::with) returns a new one, which shares the unchanged slots.
/// A state is one pointer; an empty one allocates nothing. Reads and changes search the slots
/// linearly, so keep states small.
///
/// ```
/// use tidemark_circuit::{Slot, State, name};
///
/// let calm = State::empty().with(name!("level"), 1).with(name!("load"), 0.25);
/// let busy = calm.with(name!("level"), 9);
/// assert_eq!(calm.get::<i32>(name!("level")), Some(1));
/// assert_eq!(busy.get::<i32>(name!("level")), Some(9));
/// assert_eq!(busy.to_string(), "{level=9, load=0.25}");
///
/// let retries = Slot::new(name!("retries"), 3);
/// assert_eq!(busy.value(&retries), 3, "the template's value, as there is no such slot");
/// assert!(busy.same(&busy.with(name!("level"), 9)), "nothing changed");
/// ```
#[derive(Clone, Default)]
pub struct State(pub(crate) Option<Arc<Link>>);

/// The newest slot, and the state before it.
pub(crate) struct Link {
    pub(crate) slot: Slot,
    pub(crate) length: usize,
    pub(crate) older: State,
}

impl Drop for Link {
    /// Drops older slots and nested states in a loop: recursion could overflow the stack on a long
    /// or deep state.
    fn drop(&mut self) {
        let mut nested = Vec::new();
        let mut next = self.take_apart(&mut nested);
        loop {
            let Some(state) = (if next.0.is_none() { nested.pop() } else { Some(mem::take(&mut next)) })
            else {
                return;
            };
            if let Some(mut link) = state.0.and_then(Arc::into_inner) {
                next = link.take_apart(&mut nested);
            }
        }
    }
}

impl Link {
    /// Takes the older state out and returns it. If the value is a state, moves it to `nested`.
    fn take_apart(&mut self, nested: &mut Vec<State>) -> State {
        if let Value::State(state) = &mut self.slot.value {
            nested.push(mem::take(state));
        }
        mem::take(&mut self.older)
    }
}
