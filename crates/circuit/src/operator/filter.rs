//! Operators that pass or drop values by a predicate.

use super::{And, Part, Plan, Stage};
use crate::Fiber;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Passes the values for which the predicate holds. No state. Cost: that of the predicate.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().guard(|value| *value > 0).trace([-1, 2, -3, 4])?, [2, 4]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn guard<P>(self, predicate: P) -> Fiber<E, And<R, Guard<P>>>
    where
        P: FnMut(&E) -> bool + Part,
    {
        self.then(Guard { predicate })
    }

    /// Passes a value if the predicate holds for the last value that passed, which is `initial` at
    /// first, and this one.
    ///
    /// State: one value, unchanged if the predicate panics. Cost: one copy of each value that
    /// passes.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let rising = Fiber::new().guard_from(0, |last, value| value > last);
    /// assert_eq!(rising.trace([5, 3, 7, 7, 9])?, [5, 7, 9]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn guard_from<P>(self, initial: E, predicate: P) -> Fiber<E, And<R, GuardFrom<E, P>>>
    where
        E: Part,
        P: FnMut(&E, &E) -> bool + Part,
    {
        self.then(GuardFrom { last: initial, predicate })
    }

    /// Passes values until the predicate does not hold for one. Drops that one and all later ones.
    ///
    /// State: one flag, unchanged if the predicate panics. The predicate is not called again after
    /// it has returned false.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().take_while(|value| *value < 5).trace([1, 3, 5, 2])?, [1, 3]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn take_while<P>(self, predicate: P) -> Fiber<E, And<R, TakeWhile<P>>>
    where
        P: FnMut(&E) -> bool + Part,
    {
        self.then(TakeWhile { predicate, over: false })
    }

    /// Drops values until the predicate does not hold for one. Passes that one and all later ones.
    ///
    /// State: one flag, unchanged if the predicate panics. The predicate is not called again after
    /// it has returned false.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().drop_while(|value| *value < 5).trace([1, 3, 5, 2])?, [5, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn drop_while<P>(self, predicate: P) -> Fiber<E, And<R, DropWhile<P>>>
    where
        P: FnMut(&E) -> bool + Part,
    {
        self.then(DropWhile { predicate, over: false })
    }
}

/// The stage of [`Fiber::guard`].
#[derive(Clone)]
pub struct Guard<P> {
    predicate: P,
}

impl<E, P: FnMut(&E) -> bool + Part> Stage<E> for Guard<P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        (self.predicate)(&value).then_some(value)
    }
}

/// The stage of [`Fiber::guard_from`].
#[derive(Clone)]
pub struct GuardFrom<E, P> {
    last: E,
    predicate: P,
}

impl<E: Part, P: FnMut(&E, &E) -> bool + Part> Stage<E> for GuardFrom<E, P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        if !(self.predicate)(&self.last, &value) {
            return None;
        }
        self.last = value.clone();
        Some(value)
    }
}

/// The stage of [`Fiber::take_while`].
#[derive(Clone)]
pub struct TakeWhile<P> {
    predicate: P,
    over: bool,
}

impl<E, P: FnMut(&E) -> bool + Part> Stage<E> for TakeWhile<P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.over = self.over || !(self.predicate)(&value);
        (!self.over).then_some(value)
    }
}

/// The stage of [`Fiber::drop_while`].
#[derive(Clone)]
pub struct DropWhile<P> {
    predicate: P,
    over: bool,
}

impl<E, P: FnMut(&E) -> bool + Part> Stage<E> for DropWhile<P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.over = self.over || !(self.predicate)(&value);
        self.over.then_some(value)
    }
}
