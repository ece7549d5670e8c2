//! Building blocks of operators: stages, which handle values, and plans, which make stages.
//!
//! A [`Stage`] turns one value into at most one other value and may keep state. A [`Plan`] makes
//! any number of stages, each with fresh state. [`Fiber`](crate::Fiber) and [`Flow`](crate::Flow)
//! wrap plans, and each of their methods appends one stage. A chain is one type, so the compiler
//! can inline the handling of a value:
//!
//! ```text
//! Fiber<i32, Then<Then<Identity, Fresh<Guard<..>>>, Fresh<Diff<i32>>>>
//!   attach:  Linked<Linked<Identity, Guard<..>>, Diff<i32>>, ahead of the receptor
//! ```
//!
//! A stage that panics loses its value, and is called again with the next one. Each operator
//! documents its state after a panic. As a rule, a decision that panicked changes nothing, while a
//! history of inputs includes the value.
//!
//! A custom operator is a type that implements [`Stage`], added to a chain with
//! [`Fiber::then`](crate::Fiber::then) or [`Flow::then`](crate::Flow::then):
//!
//! ```
//! use tidemark_circuit::operator::Stage;
//! use tidemark_circuit::{Fiber, Receptor};
//!
//! /// Drops every other value, the first one included.
//! #[derive(Clone, Default)]
//! struct Alternate {
//!     odd: bool,
//! }
//!
//! impl<E> Stage<E> for Alternate {
//!     type Out = E;
//!
//!     fn apply(&mut self, value: E) -> Option<E> {
//!         self.odd = !self.odd;
//!         (!self.odd).then_some(value)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fiber = Fiber::<i32>::new().then(Alternate::default());
//! assert_eq!(fiber.trace([1, 2, 3, 4])?, [2, 4]);
//! # Ok(())
//! # }
//! ```

#![allow(clippy::type_complexity, reason = "the type of a chain says what it is made of")]

mod aggregate;
mod boxed;
mod change;
mod count;
mod edge;
mod factory;
pub(crate) mod fiber;
mod filter;
pub(crate) mod flow;
mod order;
mod random;
pub(crate) mod recipe;
mod route;
mod run;
mod scan;
mod time;
mod transform;
mod window;
pub(crate) mod window_view;

use std::time::Duration;

use crate::ArgumentError;
use crate::Fault;
use crate::Receptor;
use crate::Site;

pub use aggregate::{Always, Combine, Integrate, Maybe, Reduce, Relate, Rolling, Tumble};
pub use boxed::{Boxed, BoxedStage};
pub use change::{Delay, Diff, Distinct, KeyChange};
pub use count::{Every, Inhibit, Limit, Skip, Steady, Streak};
pub use edge::{Edge, Hysteresis, Pulse};
pub use factory::Factory;
pub use filter::{DropWhile, Guard, GuardFrom, TakeWhile};
pub use random::{Chance, Chances};
pub use route::{Peek, Route, Tee, When, Whenever};
pub use run::{Changes, Runs};
pub use scan::{Scan, Scanning};
pub use time::{EveryDuration, Heartbeat};
pub use transform::{FilterMap, Map};
pub use window::{Windowed, Windowing, Windows};

/// Bounds of the parts of a plan, which is cloned for every attachment and shared between threads.
///
/// Implemented for every type that satisfies the bounds, which includes closures whose captures do.
pub trait Part: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Part for T {}

/// A running operator: turns a value into another one, or drops it.
pub trait Stage<I>: Send + 'static {
    /// Type of the output values.
    type Out;

    /// Handles one value. Returns its replacement, or none to drop it.
    fn apply(&mut self, value: I) -> Option<Self::Out>;
}

/// Makes stages, each with its own fresh state.
pub trait Plan<I>: Part {
    /// Type of the stages' output values.
    type Out;
    /// Type of the stages.
    type Stage: Stage<I, Out = Self::Out>;

    /// Total bytes of the values that the stages make.
    const BYTES: usize = size_of::<Self::Out>();

    /// Returns [`Plan::BYTES`], including the stages behind a pointer.
    fn bytes(&self) -> usize {
        Self::BYTES
    }

    /// Creates a stage with fresh state. Fails if a factory refuses the site.
    fn start(&self, site: &Site<'_>) -> Result<Self::Stage, Fault>;
}

/// The plan without operators, and its stage: every value passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl<I> Plan<I> for Identity {
    type Out = I;
    type Stage = Self;

    fn start(&self, _site: &Site<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }
}

impl<I> Stage<I> for Identity {
    type Out = I;

    #[inline]
    fn apply(&mut self, value: I) -> Option<I> {
        Some(value)
    }
}

/// The plan of an unused stage: each attachment gets a copy of it.
#[derive(Clone)]
pub struct Fresh<S>(pub(crate) S);

impl<I, S: Stage<I> + Part> Plan<I> for Fresh<S> {
    type Out = S::Out;
    type Stage = S;

    fn start(&self, _site: &Site<'_>) -> Result<S, Fault> {
        Ok(self.0.clone())
    }
}

/// The plan that passes the output of the first plan to the second.
#[derive(Clone)]
pub struct Then<A, B> {
    pub(crate) first: A,
    pub(crate) second: B,
}

impl<I, A: Plan<I>, B: Plan<A::Out>> Plan<I> for Then<A, B> {
    type Out = B::Out;
    type Stage = Linked<A::Stage, B::Stage>;

    const BYTES: usize = A::BYTES.saturating_add(B::BYTES);

    fn bytes(&self) -> usize {
        self.first.bytes().saturating_add(self.second.bytes())
    }

    fn start(&self, site: &Site<'_>) -> Result<Self::Stage, Fault> {
        let second = self.second.start(&site.part(Branch::Second))?;
        let first = self.first.start(&site.part(Branch::First))?;
        Ok(Linked { first, second })
    }
}

/// The plan that appends one stage to a plan.
pub type And<R, S> = Then<R, Fresh<S>>;

/// The stage of [`Then`].
pub struct Linked<A, B> {
    first: A,
    second: B,
}

impl<I, A: Stage<I>, B: Stage<A::Out>> Stage<I> for Linked<A, B> {
    type Out = B::Out;

    #[inline]
    fn apply(&mut self, value: I) -> Option<B::Out> {
        let value = self.first.apply(value)?;
        self.second.apply(value)
    }
}

/// A stage in front of a receptor.
pub struct Attached<S, N> {
    pub(crate) stage: S,
    pub(crate) next: N,
}

impl<I, S: Stage<I>, N: Receptor<S::Out>> Receptor<I> for Attached<S, N> {
    #[inline]
    fn receive(&mut self, value: I) {
        if let Some(value) = self.stage.apply(value) {
            self.next.receive(value);
        }
    }
}

/// The part of a plan that a site is narrowed to.
#[derive(Clone, Copy)]
pub(crate) enum Branch {
    First = 1,
    Second = 2,
    Inner = 3,
}

impl Site<'_> {
    /// Returns the site for one part of a plan. Its seed depends on the path to the part, so no two
    /// operators of a chain draw the same random numbers.
    pub(crate) fn part(&self, branch: Branch) -> Self {
        Self {
            subject: self.subject,
            seed: crate::random::mixed(self.seed ^ (branch as u64).rotate_right(8)),
        }
    }
}

/// Returns the count, or an error of `operation` if it is zero.
fn positive<C: Default + PartialEq>(operation: &'static str, count: C) -> Result<C, ArgumentError> {
    if count == C::default() {
        return Err(ArgumentError::new(operation, "must be at least 1"));
    }
    Ok(count)
}

/// Returns the duration in nanoseconds, or an error if it is zero or exceeds the range of a clock
/// (584 years).
fn nanos(operation: &'static str, time: Duration) -> Result<u64, ArgumentError> {
    let nanos = u64::try_from(time.as_nanos())
        .map_err(|_| ArgumentError::new(operation, "must be less than 584 years"))?;
    if nanos == 0 {
        return Err(ArgumentError::new(operation, "must be longer than nothing"));
    }
    Ok(nanos)
}
