//! Operators that compare a value with previous ones.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use super::{And, Part, Plan, Stage, positive};
use crate::ArgumentError;
use crate::Fiber;
use crate::structure::newest::push_newest;

/// Capacity of [`Fiber::distinct`].
const DISTINCT_CAPACITY: usize = 65_536;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Drops a value that is equal to the previous one. State: one value. Cost: a comparison, and a
    /// copy of each value that passes.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().diff().trace([1, 1, 2, 2, 1])?, [1, 2, 1]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn diff(self) -> Fiber<E, And<R, Diff<E>>>
    where
        E: Part + PartialEq,
    {
        self.then(Diff { last: None })
    }

    /// [`diff`](Self::diff) as if `initial` had already passed.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().diff_from(5).trace([5, 7, 7, 5])?, [7, 5]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn diff_from(self, initial: E) -> Fiber<E, And<R, Diff<E>>>
    where
        E: Part + PartialEq,
    {
        self.then(Diff { last: Some(initial) })
    }

    /// Drops a value whose key is equal to the previous key.
    ///
    /// State: one key, unchanged if the key function panics.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let tens = Fiber::new().change(|value| value / 10);
    /// assert_eq!(tens.trace([5, 7, 13, 18, 9])?, [5, 13, 9]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn change<K, F>(self, key: F) -> Fiber<E, And<R, KeyChange<K, F>>>
    where
        K: Part + PartialEq,
        F: FnMut(&E) -> K + Part,
    {
        self.then(KeyChange { last: None, key })
    }

    /// Drops a value that is equal to one of the last 65,536 values that passed.
    ///
    /// State: these values, twice. For other capacities use [`distinct_last`](Self::distinct_last)
    /// or [`distinct_unbounded`](Self::distinct_unbounded). Cost: a hash lookup, and two copies of
    /// each value that passes.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().distinct().trace([1, 2, 1, 3, 2])?, [1, 2, 3]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn distinct(self) -> Fiber<E, And<R, Distinct<E>>>
    where
        E: Part + Eq + Hash,
    {
        self.then(Distinct::last(DISTINCT_CAPACITY))
    }

    /// Drops a value that is equal to one of the last `capacity` values that passed. State: these
    /// values, twice.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let fiber = Fiber::new().distinct_last(3)?;
    /// assert_eq!(fiber.trace([1, 2, 1, 3, 4, 1]).unwrap(), [1, 2, 3, 4, 1]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn distinct_last(self, capacity: usize) -> Result<Fiber<E, And<R, Distinct<E>>>, ArgumentError>
    where
        E: Part + Eq + Hash,
    {
        Ok(self.then(Distinct::last(positive("distinct_last", capacity)?)))
    }

    /// Drops a value that is equal to any value that passed before. The state grows with every new
    /// value, without limit: use it for types with few values, or for short-lived attachments.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().distinct_unbounded().trace([true, true, false])?, [true, false]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn distinct_unbounded(self) -> Fiber<E, And<R, Distinct<E>>>
    where
        E: Part + Eq + Hash,
    {
        self.then(Distinct { seen: HashSet::new(), order: None })
    }

    /// Emits for each value the one `depth` values earlier; `initial` for the first `depth` values.
    ///
    /// State: `depth` values. Memory grows with the values.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// assert_eq!(Fiber::new().delay(2, 0)?.trace([10, 20, 30, 40]).unwrap(), [0, 0, 10, 20]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn delay(self, depth: usize, initial: E) -> Result<Fiber<E, And<R, Delay<E>>>, ArgumentError>
    where
        E: Part,
    {
        Ok(self.then(Delay { depth: positive("delay", depth)?, initial, values: VecDeque::new() }))
    }
}

/// The stage of [`Fiber::diff`] and [`Fiber::diff_from`].
#[derive(Clone)]
pub struct Diff<E> {
    last: Option<E>,
}

impl<E: Part + PartialEq> Stage<E> for Diff<E> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.last = Some(value.clone());
        Some(value)
    }
}

/// The stage of [`Fiber::change`].
#[derive(Clone)]
pub struct KeyChange<K, F> {
    last: Option<K>,
    key: F,
}

impl<E, K: Part + PartialEq, F: FnMut(&E) -> K + Part> Stage<E> for KeyChange<K, F> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        let key = Some((self.key)(&value));
        if self.last == key {
            return None;
        }
        self.last = key;
        Some(value)
    }
}

/// The stage of [`Fiber::distinct`] and its variants.
#[derive(Clone)]
pub struct Distinct<E> {
    seen: HashSet<E>,
    order: Option<Order<E>>,
}

/// Eviction order of [`Distinct`], and its capacity.
#[derive(Clone)]
struct Order<E> {
    capacity: usize,
    values: VecDeque<E>,
}

impl<E> Distinct<E> {
    fn last(capacity: usize) -> Self {
        Self { seen: HashSet::new(), order: Some(Order { capacity, values: VecDeque::new() }) }
    }
}

impl<E: Part + Eq + Hash> Stage<E> for Distinct<E> {
    type Out = E;

    fn apply(&mut self, value: E) -> Option<E> {
        if self.seen.contains(&value) {
            return None;
        }
        if let Some(order) = &mut self.order
            && let Some(oldest) = push_newest(&mut order.values, order.capacity, value.clone())
        {
            self.seen.remove(&oldest);
        }
        self.seen.insert(value.clone());
        debug_assert!(self.order.as_ref().is_none_or(|order| order.values.len() == self.seen.len()));
        Some(value)
    }
}

/// The stage of [`Fiber::delay`].
#[derive(Clone)]
pub struct Delay<E> {
    depth: usize,
    initial: E,
    values: VecDeque<E>,
}

impl<E: Part> Stage<E> for Delay<E> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        let earlier = push_newest(&mut self.values, self.depth, value);
        Some(earlier.unwrap_or_else(|| self.initial.clone()))
    }
}
