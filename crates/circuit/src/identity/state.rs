//! Immutable sets of slots. A change makes a new set.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use crate::Name;
use crate::identity::slot::Valued;
use crate::identity::value::{Link, Slot, State, ValueKind};

impl State {
    /// Returns the state without slots.
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Returns this state with a value under a name. The new slot comes first and replaces one of
    /// the same name and type. If the value is equal, the result is this same state.
    #[must_use = "a state does not change; the result is another one"]
    pub fn with<T: Valued>(&self, name: Name, value: T) -> Self {
        self.with_slot(Slot::new(name, value))
    }

    /// Returns this state with a slot, as [`with`](Self::with).
    ///
    /// ```
    /// use tidemark_circuit::{Slot, State, name};
    ///
    /// let state = State::empty().with_slot(Slot::new(name!("ready"), true));
    /// assert_eq!(state.len(), 1);
    /// ```
    #[must_use = "a state does not change; the result is another one"]
    pub fn with_slot(&self, slot: impl Into<Slot>) -> Self {
        let slot = slot.into();
        match self.find(slot.name(), slot.kind()) {
            None => self.push(slot),
            Some(known) if *known == slot => self.clone(),
            Some(known) => self.without(known).push(slot),
        }
    }

    /// Returns the value of this type under this name.
    ///
    /// ```
    /// use tidemark_circuit::{State, name};
    ///
    /// let state = State::empty().with(name!("n"), 1_i64).with(name!("n"), "one".to_owned());
    /// assert_eq!(state.get::<i64>(name!("n")), Some(1));
    /// assert_eq!(state.get::<String>(name!("n")).as_deref(), Some("one"));
    /// assert_eq!(state.get::<bool>(name!("n")), None);
    /// ```
    pub fn get<T: Valued>(&self, name: Name) -> Option<T> {
        T::from_value(self.find(name, T::KIND)?.value())
    }

    /// Returns the value of the template's name and type, or the template's own if there is none.
    pub fn value<T: Valued>(&self, template: &Slot<T>) -> T {
        self.get(template.name()).unwrap_or_else(|| template.value().clone())
    }

    /// Iterates over the slots, newest first.
    ///
    /// ```
    /// use tidemark_circuit::{State, ValueKind, name};
    ///
    /// let state = State::empty().with(name!("a"), 1).with(name!("b"), true);
    /// let kinds: Vec<_> = state.iter().map(|slot| slot.kind()).collect();
    /// assert_eq!(kinds, [ValueKind::Bool, ValueKind::I32]);
    /// ```
    pub fn iter(&self) -> Slots<'_> {
        Slots { next: self }
    }

    /// Returns the number of slots. Costs one read.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.length)
    }

    /// Returns whether there are no slots.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether both are the same state, not only equal. Compares two pointers.
    pub fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }

    fn find(&self, name: Name, kind: ValueKind) -> Option<&Slot> {
        self.iter().find(|slot| slot.name() == name && slot.kind() == kind)
    }

    fn push(&self, slot: Slot) -> Self {
        Self(Some(Arc::new(Link { slot, length: self.len() + 1, older: self.clone() })))
    }

    /// Returns this state without one of its slots; slots older than that are shared.
    fn without(&self, slot: &Slot) -> Self {
        let mut newer = Vec::new();
        let mut rest = self;
        while let Some(link) = &rest.0 {
            rest = &link.older;
            if std::ptr::eq(&raw const link.slot, slot) {
                break;
            }
            newer.push(&link.slot);
        }
        newer.into_iter().rev().fold(rest.clone(), |state, slot| state.push(slot.clone()))
    }
}

/// Compares slots in order. Shared tails compare as equal without being read.
impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let (mut left, mut right) = (self, other);
        while let (Some(left_link), Some(right_link)) = (&left.0, &right.0) {
            if Arc::ptr_eq(left_link, right_link) {
                return true;
            }
            if left_link.length != right_link.length || left_link.slot != right_link.slot {
                return false;
            }
            (left, right) = (&left_link.older, &right_link.older);
        }
        left.is_empty() && right.is_empty()
    }
}

impl Eq for State {}

/// Later slots replace earlier ones.
impl<S: Into<Slot>> FromIterator<S> for State {
    fn from_iter<I: IntoIterator<Item = S>>(slots: I) -> Self {
        slots.into_iter().fold(Self::empty(), |state, slot| state.with_slot(slot))
    }
}

impl<'a> IntoIterator for &'a State {
    type Item = &'a Slot;
    type IntoIter = Slots<'a>;

    fn into_iter(self) -> Slots<'a> {
        self.iter()
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, slot) in self.iter().enumerate() {
            write!(f, "{}{slot}", if index == 0 { "{" } else { ", " })?;
        }
        f.write_str(if self.is_empty() { "{}" } else { "}" })
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|slot| (slot.name(), slot.value()))).finish()
    }
}

/// Iterator over the slots of a state, newest first. Made by [`State::iter`].
#[derive(Clone, Debug)]
pub struct Slots<'a> {
    next: &'a State,
}

impl<'a> Iterator for Slots<'a> {
    type Item = &'a Slot;

    fn next(&mut self) -> Option<&'a Slot> {
        let link = self.next.0.as_deref()?;
        self.next = &link.older;
        Some(&link.slot)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.next.len(), Some(self.next.len()))
    }
}

impl ExactSizeIterator for Slots<'_> {}

impl FusedIterator for Slots<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Value, name};

    #[test]
    fn long_and_deep_states_are_dropped_without_recursion() {
        let size = if cfg!(miri) { 300 } else { 200_000 };
        let name = name!("nested");
        // Built from links, because `with` searches all slots for the key.
        let long = (0..size).fold(State::empty(), |state, i| state.push(Slot::new(name, Value::from(i))));
        assert_eq!(long.iter().count(), size as usize);
        drop(long);
        let deep = (0..size).fold(State::empty(), |state, _| State::empty().with(name, state));
        drop(deep);
    }

    #[test]
    fn a_part_of_a_state_outlives_it() {
        let inner = State::empty().with(name!("x"), 1);
        let outer = inner.with(name!("inner"), inner.clone()).with(name!("y"), 2);
        let kept = outer.get::<State>(name!("inner"));
        drop(outer);
        assert_eq!(kept.as_ref(), Some(&inner));
        assert_eq!(inner.get::<i32>(name!("x")), Some(1));
    }

    #[test]
    fn older_slots_are_shared() {
        let base = State::empty().with(name!("a"), 1).with(name!("b"), 2);
        let changed = base.with(name!("c"), 3).with(name!("d"), 4).with(name!("c"), 5);
        // c and d are new links; the rest is the base itself.
        let older = changed.0.as_ref().and_then(|link| link.older.0.as_ref()).map(|link| &link.older);
        assert!(older.is_some_and(|older| older.same(&base)));
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            prop::sample::select(vec![0.0_f32, -0.0, 1.5, f32::NAN]).prop_map(Value::from),
            prop::sample::select(vec![0.0_f64, -0.0, 1.5, f64::NAN]).prop_map(Value::from),
            "[ab]?".prop_map(Value::from),
            prop::bool::ANY.prop_map(|first| Value::from(if first { name!("x") } else { name!("y") })),
            (0..2).prop_map(|i| Value::from(State::empty().with(name!("i"), i))),
        ]
    }

    proptest! {
        #[test]
        fn a_state_is_a_list_of_slots_without_duplicate_keys(
            writes in prop::collection::vec((0_usize..3, value()), 0..40)
        ) {
            let names = [name!("a"), name!("b"), name!("a.b")];
            let mut state = State::empty();
            let mut model: Vec<Slot> = Vec::new();
            for (name, value) in writes {
                let slot = Slot::new(names[name], value);
                let key = |known: &&Slot| known.name() == slot.name() && known.kind() == slot.kind();
                let unchanged = model.iter().find(key) == Some(&slot);
                let next = state.with_slot(slot.clone());
                prop_assert_eq!(next.same(&state), unchanged);
                if !unchanged {
                    model.retain(|known| !key(&known));
                    model.insert(0, slot);
                }
                state = next;
                prop_assert_eq!(state.len(), model.len());
                prop_assert!(state.iter().eq(&model));
                // The same slots, added oldest first, make an equal state, but not the same one.
                let again: State = model.iter().rev().cloned().collect();
                prop_assert_eq!(&again, &state);
                prop_assert!(state.is_empty() || !again.same(&state));
            }
        }
    }
}
