//! Chains with erased types, for struct fields and collections.

use std::sync::Arc;

use super::{Plan, Stage};
use crate::Fault;
use crate::Site;

/// A plan behind a pointer: see [`Fiber::boxed`](crate::Fiber::boxed) and
/// [`Flow::boxed`](crate::Flow::boxed).
pub struct Boxed<I, O>(Arc<dyn Starter<I, O>>);

impl<I: 'static, O: 'static> Boxed<I, O> {
    pub(crate) fn new<P: Plan<I, Out = O>>(plan: P) -> Self {
        Self(Arc::new(plan))
    }
}

impl<I, O> Clone for Boxed<I, O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<I: 'static, O: 'static> Plan<I> for Boxed<I, O> {
    type Out = O;
    type Stage = BoxedStage<I, O>;

    fn bytes(&self) -> usize {
        self.0.bytes_boxed()
    }

    fn start(&self, site: &Site<'_>) -> Result<Self::Stage, Fault> {
        self.0.start_boxed(site).map(BoxedStage)
    }
}

/// The stage of [`Boxed`]: one indirect call for the whole chain.
pub struct BoxedStage<I, O>(Box<dyn Stage<I, Out = O>>);

impl<I: 'static, O: 'static> Stage<I> for BoxedStage<I, O> {
    type Out = O;

    #[inline]
    fn apply(&mut self, value: I) -> Option<O> {
        self.0.apply(value)
    }
}

/// A [`Plan`] with the type of its stage erased.
trait Starter<I, O>: Send + Sync {
    fn start_boxed(&self, site: &Site<'_>) -> Result<Box<dyn Stage<I, Out = O>>, Fault>;

    fn bytes_boxed(&self) -> usize;
}

impl<I, O, P: Plan<I, Out = O>> Starter<I, O> for P {
    fn start_boxed(&self, site: &Site<'_>) -> Result<Box<dyn Stage<I, Out = O>>, Fault> {
        Ok(Box::new(self.start(site)?))
    }

    fn bytes_boxed(&self) -> usize {
        self.bytes()
    }
}
