//! Views of the last values of a flow.

use std::collections::{VecDeque, vec_deque};
use std::fmt;

/// The last values of a flow, oldest first, as passed to the function after
/// [`Flow::window`](crate::Flow::window). The view is `Copy` and is narrowed in constant time.
///
/// ```
/// use tidemark_circuit::{ArgumentError, Flow};
///
/// // How many of the five values before the last three were negative.
/// let flow = Flow::<i32>::new().window(8)?.map(|window| window.trim(3).count(|value| *value < 0));
/// assert_eq!(flow.trace([-1, 2, -3, 4, 5, 6]).unwrap(), [0, 0, 0, 1, 1, 2]);
/// # Ok::<(), ArgumentError>(())
/// ```
///
/// It is valid only during the call of the function. Results computed from it can be kept, but
/// keeping the view does not compile:
///
/// ```
/// # use tidemark_circuit::{ArgumentError, Flow};
/// let mut kept = None;
/// let flow = Flow::<i32>::new().window(8)?.map(move |window| kept = Some(window.len()));
/// # Ok::<(), ArgumentError>(())
/// ```
///
/// ```compile_fail,E0521
/// # use tidemark_circuit::{ArgumentError, Flow};
/// let mut kept = None;
/// let flow = Flow::<i32>::new().window(8)?.map(move |window| kept = Some(window));
/// # Ok::<(), ArgumentError>(())
/// ```
///
/// Its values can be copied out:
///
/// ```
/// # use tidemark_circuit::{ArgumentError, Flow};
/// let flow = Flow::<i32>::new().window(2)?.map(|window| window.iter().copied().collect::<Vec<i32>>());
/// assert_eq!(flow.trace([1, 2, 3]).unwrap(), [vec![1], vec![1, 2], vec![2, 3]]);
/// # Ok::<(), ArgumentError>(())
/// ```
pub struct Window<'a, E> {
    values: &'a VecDeque<E>,
    /// Indices of the values in view: from `start`, included, to `end`, excluded.
    start: usize,
    end: usize,
    reversed: bool,
}

impl<'a, E> Window<'a, E> {
    pub(crate) fn of(values: &'a VecDeque<E>) -> Self {
        Self { values, start: 0, end: values.len(), reversed: false }
    }

    /// Returns the number of values in view.
    pub fn len(&self) -> usize {
        debug_assert!(self.start <= self.end && self.end <= self.values.len());
        self.end - self.start
    }

    /// Returns whether no value is in view.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the first value in view.
    pub fn first(&self) -> Option<&'a E> {
        self.get(0)
    }

    /// Returns the last value in view.
    pub fn last(&self) -> Option<&'a E> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns the value at this index, counted from zero.
    pub fn get(&self, index: usize) -> Option<&'a E> {
        if index >= self.len() {
            return None;
        }
        self.values.get(if self.reversed { self.end - 1 - index } else { self.start + index })
    }

    /// Narrows the view to the first `count` values, or all if there are fewer.
    #[must_use]
    pub fn prefix(self, count: usize) -> Self {
        self.trim(self.len().saturating_sub(count))
    }

    /// Narrows the view to the last `count` values, or all if there are fewer.
    #[must_use]
    pub fn suffix(self, count: usize) -> Self {
        self.skip(self.len().saturating_sub(count))
    }

    /// Narrows the view to at most `count` values, starting at index `offset`.
    #[must_use]
    pub fn slice(self, offset: usize, count: usize) -> Self {
        self.skip(offset).prefix(count)
    }

    /// Removes the first `count` values from the view.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        let count = count.min(self.len());
        if self.reversed {
            Self { end: self.end - count, ..self }
        } else {
            Self { start: self.start + count, ..self }
        }
    }

    /// Removes the last `count` values from the view.
    #[must_use]
    pub fn trim(self, count: usize) -> Self {
        self.reverse().skip(count).reverse()
    }

    /// Reverses the order of the values.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self { reversed: !self.reversed, ..self }
    }

    /// Iterates over the values in view, in order.
    pub fn iter(&self) -> WindowIter<'a, E> {
        WindowIter { values: self.values.range(self.start..self.end), reversed: self.reversed }
    }

    /// Calls the function with each value.
    pub fn for_each(&self, function: impl FnMut(&'a E)) {
        self.iter().for_each(function);
    }

    /// Returns whether the predicate holds for all values; true if there are none.
    pub fn all(&self, predicate: impl FnMut(&'a E) -> bool) -> bool {
        self.iter().all(predicate)
    }

    /// Returns whether the predicate holds for at least one value.
    pub fn any(&self, predicate: impl FnMut(&'a E) -> bool) -> bool {
        self.iter().any(predicate)
    }

    /// Returns whether the predicate holds for no value; true if there are none.
    pub fn none(&self, predicate: impl FnMut(&'a E) -> bool) -> bool {
        !self.any(predicate)
    }

    /// Returns the number of values for which the predicate holds.
    pub fn count(&self, mut predicate: impl FnMut(&'a E) -> bool) -> usize {
        self.iter().filter(|value| predicate(value)).count()
    }

    /// Folds all values, in order, starting with `initial`.
    pub fn fold<A>(&self, initial: A, function: impl FnMut(A, &'a E) -> A) -> A {
        self.iter().fold(initial, function)
    }

    /// Folds copies of all values, in order, starting with `identity`.
    pub fn reduce(&self, identity: E, mut function: impl FnMut(E, E) -> E) -> E
    where
        E: Clone,
    {
        self.iter().fold(identity, |held, value| function(held, value.clone()))
    }
}

impl<E> Clone for Window<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Window<'_, E> {}

impl<E: PartialEq> PartialEq for Window<'_, E> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<E: Eq> Eq for Window<'_, E> {}

impl<E: fmt::Debug> fmt::Debug for Window<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, E> IntoIterator for Window<'a, E> {
    type Item = &'a E;
    type IntoIter = WindowIter<'a, E>;

    fn into_iter(self) -> WindowIter<'a, E> {
        self.iter()
    }
}

impl<'a, E> IntoIterator for &Window<'a, E> {
    type Item = &'a E;
    type IntoIter = WindowIter<'a, E>;

    fn into_iter(self) -> WindowIter<'a, E> {
        self.iter()
    }
}

/// Iterator over the values of a [`Window`], in its order.
pub struct WindowIter<'a, E> {
    values: vec_deque::Iter<'a, E>,
    reversed: bool,
}

/// Prints the remaining values.
impl<E: fmt::Debug> fmt::Debug for WindowIter<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = Self { values: self.values.clone(), reversed: self.reversed };
        f.debug_list().entries(rest).finish()
    }
}

impl<'a, E> Iterator for WindowIter<'a, E> {
    type Item = &'a E;

    #[inline]
    fn next(&mut self) -> Option<&'a E> {
        if self.reversed { self.values.next_back() } else { self.values.next() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }

    // Checks the direction once, not for each value.
    #[inline]
    fn fold<A, F: FnMut(A, &'a E) -> A>(self, initial: A, function: F) -> A {
        if self.reversed { self.values.rfold(initial, function) } else { self.values.fold(initial, function) }
    }
}

impl<E> DoubleEndedIterator for WindowIter<'_, E> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.reversed { self.values.next() } else { self.values.next_back() }
    }
}

impl<E> ExactSizeIterator for WindowIter<'_, E> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One narrowing of a window and of a plain list.
    #[derive(Clone, Debug)]
    enum Narrow {
        Prefix(usize),
        Suffix(usize),
        Slice(usize, usize),
        Skip(usize),
        Trim(usize),
        Reverse,
    }

    impl Narrow {
        fn window<'a>(&self, window: Window<'a, u8>) -> Window<'a, u8> {
            match *self {
                Self::Prefix(count) => window.prefix(count),
                Self::Suffix(count) => window.suffix(count),
                Self::Slice(offset, count) => window.slice(offset, count),
                Self::Skip(count) => window.skip(count),
                Self::Trim(count) => window.trim(count),
                Self::Reverse => window.reverse(),
            }
        }

        fn list(&self, list: &[u8]) -> Vec<u8> {
            let len = list.len();
            let taken = |offset: usize, count: usize| list.iter().copied().skip(offset).take(count).collect();
            match *self {
                Self::Prefix(count) => taken(0, count),
                Self::Suffix(count) => taken(len - count.min(len), count),
                Self::Slice(offset, count) => taken(offset, count),
                Self::Skip(count) => taken(count, len),
                Self::Trim(count) => taken(0, len - count.min(len)),
                Self::Reverse => list.iter().rev().copied().collect(),
            }
        }
    }

    fn narrow() -> impl Strategy<Value = Narrow> {
        prop_oneof![
            (0_usize..8).prop_map(Narrow::Prefix),
            (0_usize..8).prop_map(Narrow::Suffix),
            (0_usize..8, 0_usize..8).prop_map(|(offset, count)| Narrow::Slice(offset, count)),
            (0_usize..3).prop_map(Narrow::Skip),
            (0_usize..3).prop_map(Narrow::Trim),
            Just(Narrow::Reverse),
        ]
    }

    proptest! {
        #[test]
        fn a_window_is_narrowed_as_a_list_is(
            values in prop::collection::vec(any::<u8>(), 0..10),
            turn in 0_usize..10,
            narrows in prop::collection::vec(narrow(), 0..6),
        ) {
            let mut deque = VecDeque::from(values);
            // Rotated so that the values wrap around in the deque's memory.
            let turn = turn % (deque.len() + 1);
            deque.rotate_left(turn);
            let mut list: Vec<u8> = deque.iter().copied().collect();

            let mut window = Window::of(&deque);
            for narrow in &narrows {
                window = narrow.window(window);
                list = narrow.list(&list);
            }
            prop_assert_eq!(window.iter().copied().collect::<Vec<_>>(), list.clone());
            prop_assert_eq!(window.iter().rev().copied().collect::<Vec<_>>(), Narrow::Reverse.list(&list));
            prop_assert_eq!(window.iter().len(), list.len());
            prop_assert_eq!((window.len(), window.is_empty()), (list.len(), list.is_empty()));
            prop_assert_eq!((window.first(), window.last()), (list.first(), list.last()));
            for index in 0..=list.len() {
                prop_assert_eq!(window.get(index), list.get(index));
            }
            prop_assert_eq!(window.fold(0_u64, |held, value| held * 31 + u64::from(*value)),
                list.iter().fold(0_u64, |held, value| held * 31 + u64::from(*value)));
        }
    }
}
