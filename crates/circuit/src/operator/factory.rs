//! Operators chosen at attachment, by the subject that a flow is attached to.

use super::{Part, Plan, Then};
use crate::Error;
use crate::Fault;
use crate::Fiber;
use crate::Flow;
use crate::Site;
use crate::Subject;

impl<I: Send + 'static, O: Send + 'static, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Appends the operators of the fiber that the factory makes for the subject of the receptor
    /// behind them.
    ///
    /// The factory is called once for each attachment, which fails if the factory fails.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber, Flow};
    /// let flow = Flow::<i32>::new().fiber_for(|subject| {
    ///     let interval = if subject.enclosure().is_none() { 2 } else { 1 };
    ///     Ok(Fiber::new().every(interval)?)
    /// });
    /// assert_eq!(flow.trace([1, 2, 3, 4])?, [2, 4]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn fiber_for<N, F>(
        self,
        factory: F,
    ) -> Flow<I, O, Then<R, Factory<impl Fn(&Subject) -> Result<N, Error> + Part>>>
    where
        N: Plan<O, Out = O>,
        F: Fn(&Subject) -> Result<Fiber<O, N>, Error> + Part,
    {
        self.with(Factory(move |subject: &Subject| factory(subject).map(Fiber::into_plan)))
    }

    /// Appends the operators of the flow that the factory makes for the subject of the receptor
    /// behind them.
    ///
    /// The factory is called once for each attachment, which fails if the factory fails.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let flow = Flow::<i32>::new().flow_for(|subject| {
    ///     let name = subject.name();
    ///     Ok(Flow::new().map(move |value| format!("{name}: {value}")))
    /// });
    /// assert_eq!(flow.trace([1])?, ["cortex: 1"]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn flow_for<P, N, F>(
        self,
        factory: F,
    ) -> Flow<I, P, Then<R, Factory<impl Fn(&Subject) -> Result<N, Error> + Part>>>
    where
        P: Send + 'static,
        N: Plan<O, Out = P>,
        F: Fn(&Subject) -> Result<Flow<O, P, N>, Error> + Part,
    {
        self.with(Factory(move |subject: &Subject| factory(subject).map(Flow::into_plan)))
    }
}

/// The plan of [`Flow::fiber_for`] and [`Flow::flow_for`].
#[derive(Clone)]
pub struct Factory<F>(F);

impl<I, N: Plan<I>, F: Fn(&Subject) -> Result<N, Error> + Part> Plan<I> for Factory<F> {
    type Out = N::Out;
    type Stage = N::Stage;

    const BYTES: usize = N::BYTES;

    fn start(&self, site: &Site<'_>) -> Result<Self::Stage, Fault> {
        let plan = (self.0)(site.subject).map_err(|error| match error {
            Error::Fault(fault) => fault,
            error => Fault::new(site.subject.clone(), "attach", format!("a factory failed: {error}")),
        })?;
        plan.start(site)
    }
}
