//! Operators with state of any type.

use super::{Part, Plan, Stage, Then};
use crate::Fault;
use crate::Flow;
use crate::Site;

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Updates a state with each value, and emits a copy of the state.
    ///
    /// `seed` makes the state, once for each attachment. If a step panics, its changes to the state
    /// up to that point remain, and nothing is emitted. A step that must be atomic must panic
    /// before it changes anything. State: the given one. Cost: one copy of it per value.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let count_and_sum = Flow::<u64>::new().scan(
    ///     || (0, 0),
    ///     |(count, sum), value| {
    ///         *count += 1;
    ///         *sum += value;
    ///     },
    /// );
    /// assert_eq!(count_and_sum.trace([2, 3])?, [(1, 2), (2, 5)]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn scan<S, Z, F>(
        self,
        seed: Z,
        step: F,
    ) -> Flow<I, S, Then<R, Scan<Z, F, impl FnMut(&S, O) -> Option<S> + Part>>>
    where
        S: Clone + Send + 'static,
        Z: Fn() -> S + Part,
        F: FnMut(&mut S, &O) + Part,
    {
        self.scan_filter_map(seed, step, |state: &S, _| Some(state.clone()))
    }

    /// Updates a state with each value, and emits the result of `emit` for the state and the value.
    ///
    /// `seed` makes the state, once for each attachment. If a step panics, its changes to the state
    /// up to that point remain; if `emit` panics, the step has been applied. Either way nothing is
    /// emitted. State: the given one.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let add = |sum: &mut f64, value: &f64| *sum += value;
    /// let shares = Flow::<f64>::new().scan_map(|| 0.0, add, |sum, value| value / sum);
    /// assert_eq!(shares.trace([1.0, 1.0, 2.0])?, [1.0, 0.5, 0.5]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn scan_map<S, P, Z, F, G>(
        self,
        seed: Z,
        step: F,
        mut emit: G,
    ) -> Flow<I, P, Then<R, Scan<Z, F, impl FnMut(&S, O) -> Option<P> + Part>>>
    where
        S: Send + 'static,
        P: Send + 'static,
        Z: Fn() -> S + Part,
        F: FnMut(&mut S, &O) + Part,
        G: FnMut(&S, O) -> P + Part,
    {
        self.scan_filter_map(seed, step, move |state: &S, value| Some(emit(state, value)))
    }

    /// [`scan_map`](Self::scan_map), but emits nothing if `emit` returns none.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let peaks = Flow::<i32>::new().scan_filter_map(
    ///     || 0,
    ///     |sum, value| *sum += value,
    ///     |sum, value| (value % 2 == 1).then_some(*sum),
    /// );
    /// assert_eq!(peaks.trace([1, 2, 3, 4])?, [1, 6]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn scan_filter_map<S, P, Z, F, G>(
        self,
        seed: Z,
        step: F,
        emit: G,
    ) -> Flow<I, P, Then<R, Scan<Z, F, G>>>
    where
        S: Send + 'static,
        P: Send + 'static,
        Z: Fn() -> S + Part,
        F: FnMut(&mut S, &O) + Part,
        G: FnMut(&S, O) -> Option<P> + Part,
    {
        self.with(Scan { seed, step, emit })
    }
}

/// The plan of [`Flow::scan`] and its variants.
#[derive(Clone)]
pub struct Scan<Z, F, G> {
    seed: Z,
    step: F,
    emit: G,
}

impl<I, S, P, Z, F, G> Plan<I> for Scan<Z, F, G>
where
    S: Send + 'static,
    Z: Fn() -> S + Part,
    F: FnMut(&mut S, &I) + Part,
    G: FnMut(&S, I) -> Option<P> + Part,
{
    type Out = P;
    type Stage = Scanning<S, F, G>;

    fn start(&self, _site: &Site<'_>) -> Result<Self::Stage, Fault> {
        Ok(Scanning { state: (self.seed)(), step: self.step.clone(), emit: self.emit.clone() })
    }
}

/// The stage of [`Flow::scan`] and its variants.
pub struct Scanning<S, F, G> {
    state: S,
    step: F,
    emit: G,
}

impl<I, S, P, F, G> Stage<I> for Scanning<S, F, G>
where
    S: Send + 'static,
    F: FnMut(&mut S, &I) + Part,
    G: FnMut(&S, I) -> Option<P> + Part,
{
    type Out = P;

    #[inline]
    fn apply(&mut self, value: I) -> Option<P> {
        (self.step)(&mut self.state, &value);
        (self.emit)(&self.state, value)
    }
}
