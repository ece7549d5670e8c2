//! Operators that may change the type of the values.

use std::fmt;
use std::marker::PhantomData;

use crate::Fault;
use crate::Fiber;
use crate::Receptor;
use crate::Recipe;
use crate::Site;
use crate::operator::recipe::Sealed;
use crate::operator::{And, Attached, Boxed, Fresh, Identity, Part, Plan, Stage, Then};

/// A chain of operators from `I` to `O`. It can be cloned, shared between threads, and attached any
/// number of times. Each attachment has its own state.
///
/// ```
/// use tidemark_circuit::{Fault, Fiber, Flow};
///
/// let flow = Flow::<i32>::new()
///     .map(|value| value * 2)
///     .scan(|| 0, |sum, value| *sum += value)
///     .map(|sum| format!("sum={sum}"))
///     .fiber(Fiber::new().diff());
/// assert_eq!(flow.trace([1, 2, 0, 3])?, ["sum=2", "sum=6", "sum=12"]);
/// # Ok::<(), Fault>(())
/// ```
///
/// The operators, each a method:
///
/// - each value: [`map`](Self::map), [`filter_map`](Self::filter_map)
/// - a value and previous ones: [`relate`](Self::relate), [`filter_relate`](Self::filter_relate),
///   [`change`](Self::change), [`run`](Self::run)
/// - all values: [`scan`](Self::scan), [`scan_map`](Self::scan_map),
///   [`scan_filter_map`](Self::scan_filter_map)
/// - the last values: [`window`](Self::window), [`window_duration`](Self::window_duration)
/// - other chains: [`fiber`](Self::fiber), [`fiber_for`](Self::fiber_for), [`flow`](Self::flow),
///   [`flow_for`](Self::flow_for), [`then`](Self::then)
///
/// Operators that keep the type are methods of [`Fiber`]. [`fiber`](Self::fiber) appends them to a
/// flow, and [`From`] converts a fiber into a flow.
#[must_use = "a flow does nothing before it is attached"]
pub struct Flow<I, O = I, R = Identity> {
    plan: R,
    values: PhantomData<fn(I) -> O>,
}

impl<I, O, R> fmt::Debug for Flow<I, O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").finish_non_exhaustive()
    }
}

/// A flow with the type of its operators erased: see [`Flow::boxed`].
pub type BoxedFlow<I, O> = Flow<I, O, Boxed<I, O>>;

/// A change from one value to another: the output of [`Flow::change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Change<E> {
    /// The old value.
    pub from: E,
    /// The new value.
    pub to: E,
    /// Number of consecutive occurrences of the old value.
    pub length: u64,
}

/// A value and the length of its current run: the output of [`Flow::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run<E> {
    /// The value.
    pub value: E,
    /// Number of consecutive occurrences, including this one.
    pub length: u64,
}

impl<I: Send + 'static> Flow<I> {
    /// Creates a flow without operators: every value passes.
    pub fn new() -> Self {
        Self::of(Identity)
    }
}

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Appends the operators of `next`.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let text = Flow::<i32>::new().map(|value| value.to_string());
    /// let is_long = Flow::new().map(|text: String| text.len() > 1);
    /// assert_eq!(text.flow(is_long).trace([7, 42])?, [false, true]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn flow<P, N>(self, next: Flow<O, P, N>) -> Flow<I, P, Then<R, N>>
    where
        P: Send + 'static,
        N: Plan<O, Out = P>,
    {
        self.with(next.plan)
    }

    /// Appends the operators of a fiber.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber, Flow};
    /// let flow = Flow::<i32>::new().map(|value| value / 10).fiber(Fiber::new().diff());
    /// assert_eq!(flow.trace([11, 12, 25])?, [1, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn fiber<N: Plan<O, Out = O>>(self, next: Fiber<O, N>) -> Flow<I, O, Then<R, N>> {
        self.with(next.into_plan())
    }

    /// Appends a custom stage: see [`Stage`]. Each attachment starts with a copy of it.
    pub fn then<S>(self, stage: S) -> Flow<I, S::Out, And<R, S>>
    where
        S: Stage<O> + Part,
        S::Out: Send + 'static,
    {
        self.with(Fresh(stage))
    }

    /// Erases the type of the chain. It becomes one indirect call, about 1 ns per value. Each
    /// attachment allocates once.
    ///
    /// ```
    /// # use tidemark_circuit::{BoxedFlow, Fault, Flow};
    /// struct Report {
    ///     lines: BoxedFlow<i32, String>,
    /// }
    /// let report = Report { lines: Flow::new().map(|value: i32| format!("{value:>4}")).boxed() };
    /// assert_eq!(report.lines.trace([42])?, ["  42"]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn boxed(self) -> BoxedFlow<I, O> {
        Flow::of(Boxed::new(self.plan))
    }

    /// Attaches the operators, with fresh state, in front of `next`, outside any circuit.
    ///
    /// All such attachments draw the same random numbers; [`attach`](Recipe::attach) takes another
    /// seed. Fails if a factory among the operators fails.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow, Receptor};
    /// let mut length = 0;
    /// let mut receptor = Flow::new().map(|text: &str| text.len()).receptor(|value| length += value)?;
    /// receptor.receive("two");
    /// receptor.receive("words");
    /// drop(receptor);
    /// assert_eq!(length, 8);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn receptor<N: Receptor<O>>(&self, next: N) -> Result<Attached<R::Stage, N>, Fault> {
        Ok(Attached { stage: self.plan.start(&Site::detached())?, next })
    }

    /// Returns the outputs for these inputs, outside any circuit: for tests and examples.
    pub fn trace(&self, values: impl IntoIterator<Item = I>) -> Result<Vec<O>, Fault> {
        let mut stage = self.plan.start(&Site::detached())?;
        Ok(values.into_iter().filter_map(|value| stage.apply(value)).collect())
    }

    /// Appends the operators of another plan.
    pub(crate) fn with<P: Plan<O>>(self, plan: P) -> Flow<I, P::Out, Then<R, P>> {
        Flow::of(Then { first: self.plan, second: plan })
    }

    pub(crate) fn into_plan(self) -> R {
        self.plan
    }
}

impl<I, O, R> Flow<I, O, R> {
    fn of(plan: R) -> Self {
        Self { plan, values: PhantomData }
    }
}

impl<I, O, R> Sealed for Flow<I, O, R> {}

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Recipe for Flow<I, O, R> {
    type In = I;
    type Out = O;

    fn bytes(&self) -> usize {
        self.plan.bytes()
    }

    fn attach<N>(&self, site: &Site<'_>, next: N) -> Result<impl Receptor<I> + use<I, O, R, N>, Fault>
    where
        N: Receptor<O> + 'static,
    {
        Ok(Attached { stage: self.plan.start(site)?, next })
    }
}

impl<E: Send + 'static, R: Plan<E, Out = E>> From<Fiber<E, R>> for Flow<E, E, R> {
    fn from(fiber: Fiber<E, R>) -> Self {
        Self::of(fiber.into_plan())
    }
}

impl<I: Send + 'static> Default for Flow<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, O, R: Clone> Clone for Flow<I, O, R> {
    fn clone(&self) -> Self {
        Self::of(self.plan.clone())
    }
}
