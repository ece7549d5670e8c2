//! Operators that keep the type of the values.

use std::fmt;
use std::marker::PhantomData;

use crate::Fault;
use crate::Receptor;
use crate::Recipe;
use crate::Site;
use crate::operator::recipe::Sealed;
use crate::operator::{And, Attached, Boxed, Fresh, Identity, Part, Plan, Stage, Then};

/// A chain of operators from `E` to `E`. It can be cloned, shared between threads, and attached any
/// number of times. Each attachment has its own state.
///
/// ```
/// use tidemark_circuit::{Fault, Fiber, Receptor};
///
/// let changes = Fiber::<i32>::new().guard(|value| *value > 0).diff();
/// assert_eq!(changes.trace([1, 1, -2, 3, 3, 4])?, [1, 3, 4]);
///
/// let mut sum = 0;
/// let mut receptor = changes.receptor(|value| sum += value)?;
/// receptor.receive(5);
/// receptor.receive(5);
/// assert_eq!(sum, 5);
/// # Ok::<(), Fault>(())
/// ```
///
/// The operators, each a method:
///
/// - decide by the value: [`guard`](Self::guard), [`guard_from`](Self::guard_from),
///   [`take_while`](Self::take_while), [`drop_while`](Self::drop_while), [`chance`](Self::chance)
/// - compare with a bound: [`above`](Self::above), [`below`](Self::below), [`min`](Self::min),
///   [`max`](Self::max), [`range`](Self::range), [`deadband`](Self::deadband),
///   [`clamp`](Self::clamp), [`high`](Self::high), [`low`](Self::low), each also with `_by` for a
///   custom order
/// - compare with previous values: [`diff`](Self::diff), [`diff_from`](Self::diff_from),
///   [`change`](Self::change), [`distinct`](Self::distinct),
///   [`distinct_last`](Self::distinct_last), [`distinct_unbounded`](Self::distinct_unbounded),
///   [`edge`](Self::edge), [`pulse`](Self::pulse), [`hysteresis`](Self::hysteresis),
///   [`steady`](Self::steady), [`steady_by`](Self::steady_by), [`streak`](Self::streak),
///   [`delay`](Self::delay)
/// - count: [`limit`](Self::limit), [`skip`](Self::skip), [`every`](Self::every),
///   [`inhibit`](Self::inhibit)
/// - time: [`every_duration`](Self::every_duration), [`heartbeat`](Self::heartbeat)
/// - compute: [`replace`](Self::replace), [`reduce`](Self::reduce), [`relate`](Self::relate),
///   [`integrate`](Self::integrate), [`rolling`](Self::rolling), [`tumble`](Self::tumble), each
///   also with the prefix `filter_` for functions that may return none
/// - route: [`peek`](Self::peek), [`tee`](Self::tee), [`route`](Self::route), [`when`](Self::when),
///   [`fiber`](Self::fiber), [`then`](Self::then)
///
/// Functions take values by reference, unless they replace them. Each attachment clones the
/// functions with the state that they captured at the time. So the values in an operator's state
/// are `Clone` and `Sync`. The documented costs are for values of a few bytes.
#[must_use = "a fiber does nothing before it is attached"]
pub struct Fiber<E, R = Identity> {
    plan: R,
    values: PhantomData<fn(E) -> E>,
}

impl<E, R> fmt::Debug for Fiber<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fiber").finish_non_exhaustive()
    }
}

/// A fiber with the type of its operators erased: see [`Fiber::boxed`].
pub type BoxedFiber<E> = Fiber<E, Boxed<E, E>>;

impl<E: Send + 'static> Fiber<E> {
    /// Creates a fiber without operators: every value passes.
    pub fn new() -> Self {
        Self::of(Identity)
    }
}

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Appends the operators of `next`.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let changes = Fiber::<i32>::new().diff();
    /// let positive_changes = Fiber::new().guard(|value| *value > 0).fiber(changes);
    /// assert_eq!(positive_changes.trace([1, -2, 1, 3])?, [1, 3]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn fiber<N: Plan<E, Out = E>>(self, next: Fiber<E, N>) -> Fiber<E, Then<R, N>> {
        self.with(next.plan)
    }

    /// Appends a custom stage: see [`Stage`]. Each attachment starts with a copy of it.
    pub fn then<S: Stage<E, Out = E> + Part>(self, stage: S) -> Fiber<E, And<R, S>> {
        self.with(Fresh(stage))
    }

    /// Erases the type of the chain. It becomes one indirect call, about 1 ns per value. Each
    /// attachment allocates once.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, BoxedFiber, Fiber};
    /// fn sampled(interval: u64) -> Result<BoxedFiber<i32>, ArgumentError> {
    ///     Ok(match interval {
    ///         1 => Fiber::new().boxed(),
    ///         _ => Fiber::new().every(interval)?.boxed(),
    ///     })
    /// }
    /// assert_eq!(sampled(2)?.limit(1).trace([1, 2, 3, 4]).unwrap(), [2]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn boxed(self) -> BoxedFiber<E> {
        Fiber::of(Boxed::new(self.plan))
    }

    /// Attaches the operators, with fresh state, in front of `next`, outside any circuit.
    ///
    /// All such attachments draw the same random numbers; [`attach`](Recipe::attach) takes another
    /// seed. Fails if a factory among the operators fails.
    pub fn receptor<N: Receptor<E>>(&self, next: N) -> Result<Attached<R::Stage, N>, Fault> {
        Ok(Attached { stage: self.plan.start(&Site::detached())?, next })
    }

    /// Returns the outputs for these inputs, outside any circuit: for tests and examples.
    pub fn trace(&self, values: impl IntoIterator<Item = E>) -> Result<Vec<E>, Fault> {
        let mut stage = self.plan.start(&Site::detached())?;
        Ok(values.into_iter().filter_map(|value| stage.apply(value)).collect())
    }

    /// Appends the operators of another plan.
    pub(crate) fn with<P: Plan<E, Out = E>>(self, plan: P) -> Fiber<E, Then<R, P>> {
        Fiber::of(Then { first: self.plan, second: plan })
    }

    pub(crate) fn into_plan(self) -> R {
        self.plan
    }
}

impl<E, R> Fiber<E, R> {
    fn of(plan: R) -> Self {
        Self { plan, values: PhantomData }
    }
}

impl<E, R> Sealed for Fiber<E, R> {}

impl<E: Send + 'static, R: Plan<E, Out = E>> Recipe for Fiber<E, R> {
    type In = E;
    type Out = E;

    fn bytes(&self) -> usize {
        self.plan.bytes()
    }

    fn attach<N>(&self, site: &Site<'_>, next: N) -> Result<impl Receptor<E> + use<E, R, N>, Fault>
    where
        N: Receptor<E> + 'static,
    {
        Ok(Attached { stage: self.plan.start(site)?, next })
    }
}

impl<E: Send + 'static> Default for Fiber<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E, R: Clone> Clone for Fiber<E, R> {
    fn clone(&self) -> Self {
        Self::of(self.plan.clone())
    }
}
