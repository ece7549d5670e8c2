//! Operators over the last values.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Part, Plan, Stage, Then, nanos, positive};
use crate::ArgumentError;
use crate::Fault;
use crate::Flow;
use crate::Site;
use crate::Window;
use crate::execution::machine::now_nanos;
use crate::structure::newest::push_newest;

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Starts a window of the last `count` values, or of all if there are fewer. The next call
    /// gives the function that is applied to the window with each value.
    ///
    /// State: `count` values. Memory grows with the values. Cost: one move per value; no copies.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Flow};
    /// let sums = Flow::<i32>::new().window(3)?.map(|window| window.iter().sum::<i32>());
    /// assert_eq!(sums.trace([1, 2, 3, 4]).unwrap(), [1, 3, 6, 9]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn window(self, count: usize) -> Result<Windows<I, O, R>, ArgumentError> {
        Ok(Windows { flow: self, bounds: Bounds { count: positive("window", count)?, age: None } })
    }

    /// Starts a window of the values of the last `age`, but at most `count`. The next call gives
    /// the function that is applied to the window with each value.
    ///
    /// Values expire only when another one arrives. State: `count` values and their times. Memory
    /// grows with the values. Cost: one reading of the clock per value.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tidemark_circuit::{ArgumentError, Flow};
    /// let last_minute = Flow::<i32>::new().window_duration(Duration::from_mins(1), 1000)?;
    /// assert_eq!(last_minute.map(|window| window.len()).trace([5, 5, 5]).unwrap(), [1, 2, 3]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn window_duration(self, age: Duration, count: usize) -> Result<Windows<I, O, R>, ArgumentError> {
        let age = Some(nanos("window_duration", age)?);
        Ok(Windows { flow: self, bounds: Bounds { count: positive("window_duration", count)?, age } })
    }
}

/// A flow with a window that has no function yet.
#[must_use = "a window does nothing before a function looks through it"]
#[derive(Clone)]
pub struct Windows<I, O, R> {
    flow: Flow<I, O, R>,
    bounds: Bounds,
}

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Windows<I, O, R> {
    /// Emits the result of the function for the window. If the function panics, the value stays in
    /// the window.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Flow};
    /// let greatest = Flow::new().window(2)?.map(|window| window.iter().max().copied());
    /// assert_eq!(greatest.trace([1, 3, 2, 0]).unwrap(), [Some(1), Some(3), Some(3), Some(2)]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn map<P, F>(
        self,
        mut function: F,
    ) -> Flow<I, P, Then<R, Windowed<impl FnMut(Window<'_, O>) -> Option<P> + Part>>>
    where
        P: Send + 'static,
        F: FnMut(Window<'_, O>) -> P + Part,
    {
        self.filter_map(move |window: Window<'_, O>| Some(function(window)))
    }

    /// Emits the result of the function for the window, if there is one. If the function panics,
    /// the value stays in the window.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Flow};
    /// let rising = Flow::new().window(3)?.filter_map(|window| {
    ///     (window.len() == 3 && window.iter().is_sorted()).then(|| *window.first().unwrap())
    /// });
    /// assert_eq!(rising.trace([3, 1, 2, 3, 4]).unwrap(), [1, 2]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn filter_map<P, F>(self, function: F) -> Flow<I, P, Then<R, Windowed<F>>>
    where
        P: Send + 'static,
        F: FnMut(Window<'_, O>) -> Option<P> + Part,
    {
        self.flow.with(Windowed { bounds: self.bounds, function })
    }
}

#[derive(Clone, Copy)]
struct Bounds {
    count: usize,
    /// Age in nanoseconds at which a value expires, if there is such a bound.
    age: Option<u64>,
}

/// The plan of [`Windows::map`] and [`Windows::filter_map`].
#[derive(Clone)]
pub struct Windowed<F> {
    bounds: Bounds,
    function: F,
}

impl<E: Send + 'static, P, F: FnMut(Window<'_, E>) -> Option<P> + Part> Plan<E> for Windowed<F> {
    type Out = P;
    type Stage = Windowing<E, F>;

    fn start(&self, _site: &Site<'_>) -> Result<Self::Stage, Fault> {
        Ok(Windowing { values: Recent::new(self.bounds), function: self.function.clone() })
    }
}

/// The stage of [`Windows::map`] and [`Windows::filter_map`].
pub struct Windowing<E, F> {
    values: Recent<E>,
    function: F,
}

impl<E: Send + 'static, P, F: FnMut(Window<'_, E>) -> Option<P> + Part> Stage<E> for Windowing<E, F> {
    type Out = P;

    #[inline]
    fn apply(&mut self, value: E) -> Option<P> {
        self.values.push(value, now_nanos);
        (self.function)(Window::of(&self.values.values))
    }
}

/// The values within the bounds, oldest first, and their times if there is an age bound.
struct Recent<E> {
    bounds: Bounds,
    values: VecDeque<E>,
    times: VecDeque<u64>,
}

impl<E> Recent<E> {
    fn new(bounds: Bounds) -> Self {
        Self { bounds, values: VecDeque::new(), times: VecDeque::new() }
    }

    #[inline]
    fn push(&mut self, value: E, now: impl FnOnce() -> u64) {
        push_newest(&mut self.values, self.bounds.count, value);
        let Some(age) = self.bounds.age else { return };
        let now = now();
        push_newest(&mut self.times, self.bounds.count, now);
        let old = self.times.partition_point(|time| now.saturating_sub(*time) >= age);
        self.times.drain(..old);
        self.values.drain(..old);
        debug_assert_eq!(self.times.len(), self.values.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recent(bounds: Bounds, times: &[u64]) -> Vec<Vec<u64>> {
        let mut recent = Recent::new(bounds);
        let windows = times.iter().map(|time| {
            recent.push(*time, || *time);
            recent.values.iter().copied().collect()
        });
        windows.collect()
    }

    #[test]
    fn values_leave_at_their_age() {
        let windows = recent(Bounds { count: 9, age: Some(10) }, &[0, 5, 9, 10, 25]);
        assert_eq!(windows, [vec![0], vec![0, 5], vec![0, 5, 9], vec![5, 9, 10], vec![25]]);
    }

    proptest! {
        #[test]
        fn a_window_holds_the_newest_values_that_are_young_enough(
            steps in prop::collection::vec(0_u64..8, 0..60),
            count in 1_usize..6,
            age in prop::option::of(1_u64..20),
        ) {
            let times: Vec<u64> = steps.iter().scan(0, |now, step| { *now += step; Some(*now) }).collect();
            let model = (0..times.len()).map(|last| {
                let young = |time: &u64| age.is_none_or(|age| times[last] - time < age);
                let seen = &times[(last + 1).saturating_sub(count)..=last];
                seen.iter().copied().filter(young).collect::<Vec<u64>>()
            });
            prop_assert_eq!(recent(Bounds { count, age }, &times), model.collect::<Vec<_>>());
        }
    }
}
