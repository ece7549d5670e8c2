//! Operators that count values.

use super::{And, Part, Plan, Stage, positive};
use crate::ArgumentError;
use crate::Fiber;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Passes the first `count` values and drops the rest. State: one number.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().limit(2).trace([1, 2, 3])?, [1, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn limit(self, count: u64) -> Fiber<E, And<R, Limit>> {
        self.then(Limit { left: count })
    }

    /// Drops the first `count` values and passes the rest. State: one number.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().skip(2).trace([1, 2, 3])?, [3]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn skip(self, count: u64) -> Fiber<E, And<R, Skip>> {
        self.then(Skip { left: count })
    }

    /// Passes every `interval`-th value and drops the others; the first to pass is value number
    /// `interval`. State: one number.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// assert_eq!(Fiber::new().every(3)?.trace(1..=9).unwrap(), [3, 6, 9]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn every(self, interval: u64) -> Result<Fiber<E, And<R, Every>>, ArgumentError> {
        Ok(self.then(Every { interval: positive("every", interval)?, seen: 0 }))
    }

    /// Passes a value, drops the next `count`, and repeats. State: one number.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().inhibit(2).trace(1..=7)?, [1, 4, 7]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn inhibit(self, count: u64) -> Fiber<E, And<R, Inhibit>> {
        self.then(Inhibit { count, left: 0 })
    }

    /// Passes the value that completes `count` consecutive values for which the predicate holds,
    /// then restarts the count.
    ///
    /// A value for which it does not hold resets the count. State: one number, unchanged if the
    /// predicate panics.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let alarm = Fiber::new().streak(3, |value| *value < 0)?;
    /// assert_eq!(alarm.trace([-1, -2, 7, -3, -4, -5]).unwrap(), [-5]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn streak<P>(self, count: u64, predicate: P) -> Result<Fiber<E, And<R, Streak<P>>>, ArgumentError>
    where
        P: FnMut(&E) -> bool + Part,
    {
        Ok(self.then(Streak { count: positive("streak", count)?, run: 0, predicate }))
    }

    /// Passes the `count`-th value of a run of equal values, and drops the rest of the run.
    ///
    /// State: one value and one number. Cost: a comparison, and a copy at the start of each run.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// assert_eq!(Fiber::new().steady(2)?.trace([5, 7, 7, 7, 8]).unwrap(), [7]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn steady(
        self,
        count: u64,
    ) -> Result<Fiber<E, And<R, Steady<E, impl FnMut(&E, &E) -> bool + Part>>>, ArgumentError>
    where
        E: Part + PartialEq,
    {
        self.steady_as("steady", count, |first: &E, value: &E| first == value)
    }

    /// [`steady`](Self::steady) with `same` in place of equality. Its arguments are the first value
    /// of the run and the current value.
    ///
    /// The state is unchanged if the function panics.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let settled = Fiber::new().steady_by(2, |first: &i32, value| (value - first).abs() <= 1)?;
    /// assert_eq!(settled.trace([10, 20, 21]).unwrap(), [21]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn steady_by<P>(self, count: u64, same: P) -> Result<Fiber<E, And<R, Steady<E, P>>>, ArgumentError>
    where
        E: Part,
        P: FnMut(&E, &E) -> bool + Part,
    {
        self.steady_as("steady_by", count, same)
    }

    fn steady_as<P>(
        self,
        operation: &'static str,
        count: u64,
        same: P,
    ) -> Result<Fiber<E, And<R, Steady<E, P>>>, ArgumentError>
    where
        E: Part,
        P: FnMut(&E, &E) -> bool + Part,
    {
        Ok(self.then(Steady { count: positive(operation, count)?, run: 0, first: None, same }))
    }
}

/// The stage of [`Fiber::limit`].
#[derive(Clone)]
pub struct Limit {
    left: u64,
}

impl<E> Stage<E> for Limit {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        self.left = self.left.checked_sub(1)?;
        Some(value)
    }
}

/// The stage of [`Fiber::skip`].
#[derive(Clone)]
pub struct Skip {
    left: u64,
}

impl<E> Stage<E> for Skip {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        if self.left == 0 {
            return Some(value);
        }
        self.left -= 1;
        None
    }
}

/// The stage of [`Fiber::every`].
#[derive(Clone)]
pub struct Every {
    interval: u64,
    seen: u64,
}

impl<E> Stage<E> for Every {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        debug_assert!(self.seen < self.interval);
        self.seen += 1;
        if self.seen < self.interval {
            return None;
        }
        self.seen = 0;
        Some(value)
    }
}

/// The stage of [`Fiber::inhibit`].
#[derive(Clone)]
pub struct Inhibit {
    count: u64,
    left: u64,
}

impl<E> Stage<E> for Inhibit {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.left = self.count;
        Some(value)
    }
}

/// The stage of [`Fiber::streak`].
#[derive(Clone)]
pub struct Streak<P> {
    count: u64,
    run: u64,
    predicate: P,
}

impl<E, P: FnMut(&E) -> bool + Part> Stage<E> for Streak<P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        debug_assert!(self.run < self.count);
        self.run = if (self.predicate)(&value) { self.run + 1 } else { 0 };
        if self.run < self.count {
            return None;
        }
        self.run = 0;
        Some(value)
    }
}

/// The stage of [`Fiber::steady`] and [`Fiber::steady_by`].
#[derive(Clone)]
pub struct Steady<E, P> {
    count: u64,
    run: u64,
    first: Option<E>,
    same: P,
}

impl<E: Part, P: FnMut(&E, &E) -> bool + Part> Stage<E> for Steady<E, P> {
    type Out = E;

    #[inline]
    fn apply(&mut self, value: E) -> Option<E> {
        match &self.first {
            Some(first) if (self.same)(first, &value) => {
                self.run = self.run.saturating_add(1);
            }
            _ => {
                self.first = Some(value.clone());
                self.run = 1;
            }
        }
        (self.run == self.count).then_some(value)
    }
}
