//! Operators that combine several values into one.
//!
//! The functions take the held result and the value by reference. Each operator has two forms. The
//! function of the plain form always returns a result. The function of the `filter_` form may
//! return none, which is held as absent, is not emitted, and is what the function gets next.

use std::collections::VecDeque;

use super::{And, Part, Plan, Stage, positive};
use crate::ArgumentError;
use crate::Fiber;
use crate::structure::newest::push_newest;

impl<E: Part, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Emits the running result of combining all values, starting with `initial`.
    ///
    /// State: the result, unchanged if the function panics. Cost: one copy of the result per value.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().reduce(0, |sum, value| sum + value).trace([1, 2, 3])?, [1, 3, 6]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn reduce<F>(self, initial: E, combine: F) -> Fiber<E, And<R, Reduce<E, Always<F>>>>
    where
        F: FnMut(&E, &E) -> E + Part,
    {
        self.then(Reduce { held: Some(initial), combine: Always(combine) })
    }

    /// [`reduce`](Self::reduce) with an optional result.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// // The greatest value, but never before the second.
    /// let mut seen = 0;
    /// let fiber = Fiber::new().filter_reduce(None, move |held: Option<&i32>, value| {
    ///     seen += 1;
    ///     (seen > 1).then_some(held.map_or(*value, |held| *held.max(value)))
    /// });
    /// assert_eq!(fiber.trace([9, 2, 5, 3])?, [2, 5, 5]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn filter_reduce<F>(self, initial: Option<E>, combine: F) -> Fiber<E, And<R, Reduce<E, Maybe<F>>>>
    where
        F: FnMut(Option<&E>, &E) -> Option<E> + Part,
    {
        self.then(Reduce { held: initial, combine: Maybe(combine) })
    }

    /// Emits the result of the function for each value and the previous one, which is `initial` at
    /// first.
    ///
    /// State: one value. A value becomes the previous one even if the function panics. Cost: no
    /// copies.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let steps = Fiber::new().relate(0, |before, value| value - before);
    /// assert_eq!(steps.trace([10, 15, 13])?, [10, 5, -2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn relate<F>(self, initial: E, function: F) -> Fiber<E, And<R, Relate<E, Always<F>>>>
    where
        F: FnMut(&E, &E) -> E + Part,
    {
        self.then(Relate::new(Some(initial), Always(function)))
    }

    /// [`relate`](Self::relate) with an optional result and an optional initial value.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let steps = Fiber::new().filter_relate(None, |before, value: &i32| Some(value - before?));
    /// assert_eq!(steps.trace([3, 8])?, [5]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn filter_relate<F>(self, initial: Option<E>, function: F) -> Fiber<E, And<R, Relate<E, Maybe<F>>>>
    where
        F: FnMut(Option<&E>, &E) -> Option<E> + Part,
    {
        self.then(Relate::new(initial, Maybe(function)))
    }

    /// Combines values, starting with `initial`, until the result satisfies `fire`. Then emits it
    /// and starts again.
    ///
    /// State: the result. It is unchanged if `accumulate` panics. If `fire` panics, it includes the
    /// value, and nothing is emitted. Cost: one copy of `initial` per emitted result.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let fiber = Fiber::new().integrate(0, |sum, value| sum + value, |sum| *sum >= 10);
    /// assert_eq!(fiber.trace([3, 4, 5, 6, 7])?, [12, 13]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn integrate<F, P>(
        self,
        initial: E,
        accumulate: F,
        fire: P,
    ) -> Fiber<E, And<R, Integrate<E, Always<F>, P>>>
    where
        F: FnMut(&E, &E) -> E + Part,
        P: FnMut(&E) -> bool + Part,
    {
        let initial = Some(initial);
        self.then(Integrate { held: initial.clone(), initial, accumulate: Always(accumulate), fire })
    }

    /// [`integrate`](Self::integrate) with an optional result. An absent one never fires.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let sum = |sum: Option<&i32>, value: &i32| Some(sum.unwrap_or(&0) + value);
    /// let fiber = Fiber::new().filter_integrate(None, sum, |sum| *sum >= 3);
    /// assert_eq!(fiber.trace([1, 2, 4])?, [3, 4]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn filter_integrate<F, P>(
        self,
        initial: Option<E>,
        accumulate: F,
        fire: P,
    ) -> Fiber<E, And<R, Integrate<E, Maybe<F>, P>>>
    where
        F: FnMut(Option<&E>, &E) -> Option<E> + Part,
        P: FnMut(&E) -> bool + Part,
    {
        self.then(Integrate { held: initial.clone(), initial, accumulate: Maybe(accumulate), fire })
    }

    /// Emits for each value the result of combining the last `size` values, oldest first, starting
    /// with `identity`. Emits nothing before there are `size` values.
    ///
    /// State: `size` values, including a value on which the function panics. Cost: `size` calls of
    /// the function per value. [`Flow::scan`](crate::Flow::scan) is cheaper over a large window.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let sums = Fiber::new().rolling(3, 0, |sum, value| sum + value)?;
    /// assert_eq!(sums.trace(1..=5).unwrap(), [6, 9, 12]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn rolling<F>(
        self,
        size: usize,
        identity: E,
        combine: F,
    ) -> Result<Fiber<E, And<R, Rolling<E, Always<F>>>>, ArgumentError>
    where
        F: FnMut(&E, &E) -> E + Part,
    {
        let size = positive("rolling", size)?;
        Ok(self.then(Rolling { size, identity, values: VecDeque::new(), combine: Always(combine) }))
    }

    /// [`rolling`](Self::rolling) with an optional result.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let sum = |sum: Option<&i32>, value: &i32| (*value > 0).then(|| sum.unwrap_or(&0) + value);
    /// let sums = Fiber::new().filter_rolling(2, 0, sum)?;
    /// assert_eq!(sums.trace([1, 2, -3, 4]).unwrap(), [3, 4]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn filter_rolling<F>(
        self,
        size: usize,
        identity: E,
        combine: F,
    ) -> Result<Fiber<E, And<R, Rolling<E, Maybe<F>>>>, ArgumentError>
    where
        F: FnMut(Option<&E>, &E) -> Option<E> + Part,
    {
        let size = positive("filter_rolling", size)?;
        Ok(self.then(Rolling { size, identity, values: VecDeque::new(), combine: Maybe(combine) }))
    }

    /// Emits the result of combining `size` values, starting with `identity`, once for every `size`
    /// values.
    ///
    /// State: the result and one number. A value on which the function panics does not count. Cost:
    /// one copy of `identity` per emitted result.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let sums = Fiber::new().tumble(3, 0, |sum, value| sum + value)?;
    /// assert_eq!(sums.trace(1..=9).unwrap(), [6, 15, 24]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn tumble<F>(
        self,
        size: u64,
        identity: E,
        combine: F,
    ) -> Result<Fiber<E, And<R, Tumble<E, Always<F>>>>, ArgumentError>
    where
        F: FnMut(&E, &E) -> E + Part,
    {
        let size = positive("tumble", size)?;
        Ok(self.then(Tumble {
            size,
            count: 0,
            held: Some(identity.clone()),
            identity,
            combine: Always(combine),
        }))
    }

    /// [`tumble`](Self::tumble) with an optional result.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let sum = |sum: Option<&i32>, value: &i32| (*value > 0).then(|| sum.unwrap_or(&0) + value);
    /// let sums = Fiber::new().filter_tumble(2, 0, sum)?;
    /// assert_eq!(sums.trace([1, -2, 3, 4]).unwrap(), [7]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn filter_tumble<F>(
        self,
        size: u64,
        identity: E,
        combine: F,
    ) -> Result<Fiber<E, And<R, Tumble<E, Maybe<F>>>>, ArgumentError>
    where
        F: FnMut(Option<&E>, &E) -> Option<E> + Part,
    {
        let size = positive("filter_tumble", size)?;
        Ok(self.then(Tumble {
            size,
            count: 0,
            held: Some(identity.clone()),
            identity,
            combine: Maybe(combine),
        }))
    }
}

/// A function of the held result, if there is one, and a value.
pub trait Combine<E>: Part {
    /// The result.
    type Out;

    /// Calls the function.
    fn combine(&mut self, held: Option<&E>, value: &E) -> Option<Self::Out>;
}

/// A function that always returns a result. Used only where a result is always held.
#[derive(Clone)]
pub struct Always<F>(pub(crate) F);

impl<E, O, F: FnMut(&E, &E) -> O + Part> Combine<E> for Always<F> {
    type Out = O;

    #[inline]
    fn combine(&mut self, held: Option<&E>, value: &E) -> Option<O> {
        let held = held.expect("what always has a result is never absent");
        Some((self.0)(held, value))
    }
}

/// A function that may return no result.
#[derive(Clone)]
pub struct Maybe<F>(pub(crate) F);

impl<E, O, F: FnMut(Option<&E>, &E) -> Option<O> + Part> Combine<E> for Maybe<F> {
    type Out = O;

    #[inline]
    fn combine(&mut self, held: Option<&E>, value: &E) -> Option<O> {
        (self.0)(held, value)
    }
}

/// The stage of [`Fiber::reduce`] and [`Fiber::filter_reduce`].
#[derive(Clone)]
pub struct Reduce<E, C> {
    held: Option<E>,
    combine: C,
}

impl<E: Part, C: Combine<E, Out = E>> Stage<E> for Reduce<E, C> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.held = self.combine.combine(self.held.as_ref(), &value);
        self.held.clone()
    }
}

/// The stage of [`Fiber::relate`], [`Flow::relate`](crate::Flow::relate) and their `filter_` forms.
#[derive(Clone)]
pub struct Relate<E, C> {
    before: Option<E>,
    function: C,
}

impl<E, C> Relate<E, C> {
    pub(crate) fn new(before: Option<E>, function: C) -> Self {
        Self { before, function }
    }
}

impl<E: Part, C: Combine<E>> Stage<E> for Relate<E, C> {
    type Out = C::Out;

    #[inline]
    fn apply(&mut self, value: E) -> Option<C::Out> {
        let before = self.before.take();
        let value = self.before.insert(value);
        self.function.combine(before.as_ref(), value)
    }
}

/// The stage of [`Fiber::integrate`] and [`Fiber::filter_integrate`].
#[derive(Clone)]
pub struct Integrate<E, C, P> {
    held: Option<E>,
    initial: Option<E>,
    accumulate: C,
    fire: P,
}

impl<E: Part, C: Combine<E, Out = E>, P: FnMut(&E) -> bool + Part> Stage<E> for Integrate<E, C, P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.held = self.accumulate.combine(self.held.as_ref(), &value);
        if !(self.fire)(self.held.as_ref()?) {
            return None;
        }
        std::mem::replace(&mut self.held, self.initial.clone())
    }
}

/// The stage of [`Fiber::rolling`] and [`Fiber::filter_rolling`].
#[derive(Clone)]
pub struct Rolling<E, C> {
    size: usize,
    identity: E,
    values: VecDeque<E>,
    combine: C,
}

impl<E: Part, C: Combine<E, Out = E>> Stage<E> for Rolling<E, C> {
    type Out = E;

    fn apply(&mut self, value: E) -> Option<E> {
        push_newest(&mut self.values, self.size, value);
        if self.values.len() < self.size {
            return None;
        }
        let mut values = self.values.iter();
        let first = self.combine.combine(Some(&self.identity), values.next()?);
        values.fold(first, |held, value| self.combine.combine(held.as_ref(), value))
    }
}

/// The stage of [`Fiber::tumble`] and [`Fiber::filter_tumble`].
#[derive(Clone)]
pub struct Tumble<E, C> {
    size: u64,
    count: u64,
    held: Option<E>,
    identity: E,
    combine: C,
}

impl<E: Part, C: Combine<E, Out = E>> Stage<E> for Tumble<E, C> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.held = self.combine.combine(self.held.as_ref(), &value);
        self.count += 1;
        if self.count < self.size {
            return None;
        }
        self.count = 0;
        self.held.replace(self.identity.clone())
    }
}
