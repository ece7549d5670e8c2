//! Operators that turn each value into another.

use super::{Always, And, Maybe, Part, Plan, Relate, Stage};
use crate::Fiber;
use crate::Flow;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Replaces each value by the result of the function. No state; drops nothing.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().replace(|value| value * 10).trace([1, 2, 3])?, [10, 20, 30]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn replace<F>(self, function: F) -> Fiber<E, And<R, Map<F>>>
    where
        F: FnMut(E) -> E + Part,
    {
        self.then(Map(function))
    }

    /// Replaces each value by the result of the function, and drops it if there is none. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let halves = Fiber::new().filter_replace(|value| (value % 2 == 0).then_some(value / 2));
    /// assert_eq!(halves.trace([1, 2, 3, 4])?, [1, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn filter_replace<F>(self, function: F) -> Fiber<E, And<R, FilterMap<F>>>
    where
        F: FnMut(E) -> Option<E> + Part,
    {
        self.then(FilterMap(function))
    }
}

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Emits the result of the function for each value. No state; drops nothing.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// assert_eq!(Flow::<i32>::new().map(|value| format!("v:{value}")).trace([1, 42])?, ["v:1", "v:42"]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn map<P, F>(self, function: F) -> Flow<I, P, And<R, Map<F>>>
    where
        P: Send + 'static,
        F: FnMut(O) -> P + Part,
    {
        self.then(Map(function))
    }

    /// Emits the result of the function for each value, if there is one. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let numbers = Flow::new().filter_map(|text: &str| text.parse::<i32>().ok());
    /// assert_eq!(numbers.trace(["1", "one", "2"])?, [1, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn filter_map<P, F>(self, function: F) -> Flow<I, P, And<R, FilterMap<F>>>
    where
        P: Send + 'static,
        F: FnMut(O) -> Option<P> + Part,
    {
        self.then(FilterMap(function))
    }

    /// Emits the result of the function for each value and the previous one, which is `initial` at
    /// first.
    ///
    /// State: one value. A value becomes the previous one even if the function panics. Cost: no
    /// copies.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let steps = Flow::new().relate(0_u32, |before, value| i64::from(*value) - i64::from(*before));
    /// assert_eq!(steps.trace([10, 15, 13])?, [10, 5, -2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn relate<P, F>(self, initial: O, function: F) -> Flow<I, P, And<R, Relate<O, Always<F>>>>
    where
        O: Part,
        P: Send + 'static,
        F: FnMut(&O, &O) -> P + Part,
    {
        self.then(Relate::new(Some(initial), Always(function)))
    }

    /// [`relate`](Self::relate) with an optional result and an optional initial value.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let rises = Flow::<i32>::new().filter_relate(None, |before, value| Some(value > before?));
    /// assert_eq!(rises.trace([1, 2, 1])?, [true, false]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn filter_relate<P, F>(
        self,
        initial: Option<O>,
        function: F,
    ) -> Flow<I, P, And<R, Relate<O, Maybe<F>>>>
    where
        O: Part,
        P: Send + 'static,
        F: FnMut(Option<&O>, &O) -> Option<P> + Part,
    {
        self.then(Relate::new(initial, Maybe(function)))
    }
}

/// The stage of [`Fiber::replace`] and [`Flow::map`].
#[derive(Clone)]
pub struct Map<F>(pub(crate) F);

impl<I, O, F: FnMut(I) -> O + Part> Stage<I> for Map<F> {
    type Out = O;

    #[inline]
    fn apply(&mut self, value: I) -> Option<O> {
        Some((self.0)(value))
    }
}

/// The stage of [`Fiber::filter_replace`] and [`Flow::filter_map`].
#[derive(Clone)]
pub struct FilterMap<F>(pub(crate) F);

impl<I, O, F: FnMut(I) -> Option<O> + Part> Stage<I> for FilterMap<F> {
    type Out = O;

    #[inline]
    fn apply(&mut self, value: I) -> Option<O> {
        (self.0)(value)
    }
}
