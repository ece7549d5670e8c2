//! Operators that detect transitions.

use std::mem;

use super::{And, Part, Plan, Stage};
use crate::Fiber;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Passes a value if the predicate holds for the previous value, which is `initial` at first,
    /// and this one.
    ///
    /// State: one value. A value becomes the previous one even if it is dropped or the predicate
    /// panics. Cost: one copy of each value that passes.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let rises = Fiber::new().edge(0, |before, value| value > before);
    /// assert_eq!(rises.trace([1, 0, 3, 2])?, [1, 3]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn edge<P>(self, initial: E, transition: P) -> Fiber<E, And<R, Edge<E, P>>>
    where
        E: Part,
        P: FnMut(&E, &E) -> bool + Part,
    {
        self.then(Edge { before: initial, transition })
    }

    /// Passes a value if the predicate holds for it and did not hold for the previous one.
    ///
    /// State: one flag, false at first, and unchanged if the predicate panics.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().pulse(|value| *value > 5).trace([3, 7, 8, 2, 9])?, [7, 9]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn pulse<P>(self, predicate: P) -> Fiber<E, And<R, Pulse<P>>>
    where
        P: FnMut(&E) -> bool + Part,
    {
        self.then(Pulse { held: false, predicate })
    }

    /// Passes values starting with one for which `enter` holds, until one for which `exit` holds.
    /// That one is dropped.
    ///
    /// State: one flag, unchanged if a predicate panics. Only one of the predicates is called per
    /// value.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let hot = Fiber::new().hysteresis(|value| *value >= 10, |value| *value <= 2);
    /// assert_eq!(hot.trace([5, 10, 8, 5, 2, 7, 12])?, [10, 8, 5, 12]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn hysteresis<P, Q>(self, enter: P, exit: Q) -> Fiber<E, And<R, Hysteresis<P, Q>>>
    where
        P: FnMut(&E) -> bool + Part,
        Q: FnMut(&E) -> bool + Part,
    {
        self.then(Hysteresis { inside: false, enter, exit })
    }
}

/// The stage of [`Fiber::edge`].
#[derive(Clone)]
pub struct Edge<E, P> {
    before: E,
    transition: P,
}

impl<E: Part, P: FnMut(&E, &E) -> bool + Part> Stage<E> for Edge<E, P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        let before = mem::replace(&mut self.before, value);
        (self.transition)(&before, &self.before).then(|| self.before.clone())
    }
}

/// The stage of [`Fiber::pulse`].
#[derive(Clone)]
pub struct Pulse<P> {
    held: bool,
    predicate: P,
}

impl<E, P: FnMut(&E) -> bool + Part> Stage<E> for Pulse<P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        let holds = (self.predicate)(&value);
        let held = mem::replace(&mut self.held, holds);
        (holds && !held).then_some(value)
    }
}

/// The stage of [`Fiber::hysteresis`].
#[derive(Clone)]
pub struct Hysteresis<P, Q> {
    inside: bool,
    enter: P,
    exit: Q,
}

impl<E, P, Q> Stage<E> for Hysteresis<P, Q>
where
    P: FnMut(&E) -> bool + Part,
    Q: FnMut(&E) -> bool + Part,
{
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.inside = if self.inside { !(self.exit)(&value) } else { (self.enter)(&value) };
        self.inside.then_some(value)
    }
}
