//! Operators that observe or divert values.

use super::{And, Branch, Part, Plan, Stage, Then};
use crate::Fault;
use crate::Fiber;
use crate::Receptor;
use crate::Site;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Calls the function with each value and passes the value. If the function panics, the value
    /// is lost.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let fiber = Fiber::new().peek(|value| println!("{value}"));
    /// assert_eq!(fiber.trace([1, 2])?, [1, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn peek<F>(self, function: F) -> Fiber<E, And<R, Peek<F>>>
    where
        F: FnMut(&E) + Part,
    {
        self.then(Peek(function))
    }

    /// Gives a copy of each value to `side`, then passes the value. Each attachment has a copy of
    /// `side`.
    ///
    /// ```
    /// # use std::sync::mpsc;
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let (sender, side) = mpsc::channel();
    /// let fiber = Fiber::new().tee(move |value: i32| _ = sender.send(value)).limit(1);
    /// assert_eq!(fiber.trace([1, 2])?, [1]);
    /// assert_eq!(side.try_iter().collect::<Vec<_>>(), [1, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn tee<T>(self, side: T) -> Fiber<E, And<R, Tee<T>>>
    where
        E: Clone,
        T: Receptor<E> + Part,
    {
        self.then(Tee(side))
    }

    /// Diverts the values for which the predicate holds to `side`, and passes the others. Each
    /// attachment has a copy of `side`.
    ///
    /// ```
    /// # use std::sync::mpsc;
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let (sender, side) = mpsc::channel();
    /// let fiber = Fiber::new().route(|value| *value < 0, move |value: i32| _ = sender.send(value));
    /// assert_eq!(fiber.trace([1, -2, 3])?, [1, 3]);
    /// assert_eq!(side.try_iter().collect::<Vec<_>>(), [-2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn route<P, T>(self, predicate: P, side: T) -> Fiber<E, And<R, Route<P, T>>>
    where
        P: FnMut(&E) -> bool + Part,
        T: Receptor<E> + Part,
    {
        self.then(Route { predicate, side })
    }

    /// Applies the operators of `fiber` to the values for which the predicate holds. The others
    /// pass unchanged.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let fiber = Fiber::new().when(|value| *value > 0, Fiber::new().diff());
    /// assert_eq!(fiber.trace([1, 0, 1, 0, 2])?, [1, 0, 0, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn when<P, N>(self, predicate: P, fiber: Fiber<E, N>) -> Fiber<E, Then<R, When<P, N>>>
    where
        P: FnMut(&E) -> bool + Part,
        N: Plan<E, Out = E>,
    {
        self.with(When { predicate, inner: fiber.into_plan() })
    }
}

/// The stage of [`Fiber::peek`].
#[derive(Clone)]
pub struct Peek<F>(F);

impl<E, F: FnMut(&E) + Part> Stage<E> for Peek<F> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        (self.0)(&value);
        Some(value)
    }
}

/// The stage of [`Fiber::tee`].
#[derive(Clone)]
pub struct Tee<T>(T);

impl<E: Clone, T: Receptor<E> + Part> Stage<E> for Tee<T> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.0.receive(value.clone());
        Some(value)
    }
}

/// The stage of [`Fiber::route`].
#[derive(Clone)]
pub struct Route<P, T> {
    predicate: P,
    side: T,
}

impl<E, P: FnMut(&E) -> bool + Part, T: Receptor<E> + Part> Stage<E> for Route<P, T> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        if !(self.predicate)(&value) {
            return Some(value);
        }
        self.side.receive(value);
        None
    }
}

/// The plan of [`Fiber::when`].
#[derive(Clone)]
pub struct When<P, N> {
    predicate: P,
    inner: N,
}

impl<E, P: FnMut(&E) -> bool + Part, N: Plan<E, Out = E>> Plan<E> for When<P, N> {
    type Out = E;
    type Stage = Whenever<P, N::Stage>;

    const BYTES: usize = N::BYTES;

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn start(&self, site: &Site<'_>) -> Result<Self::Stage, Fault> {
        Ok(Whenever {
            predicate: self.predicate.clone(),
            inner: self.inner.start(&site.part(Branch::Inner))?,
        })
    }
}

/// The stage of [`Fiber::when`].
pub struct Whenever<P, S> {
    predicate: P,
    inner: S,
}

impl<E, P: FnMut(&E) -> bool + Part, S: Stage<E, Out = E>> Stage<E> for Whenever<P, S> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        if (self.predicate)(&value) { self.inner.apply(value) } else { Some(value) }
    }
}
