//! What operators are made of: stages, which handle values, and plans, which make stages.
//!
//! A [`Stage`] turns one value into at most one other value and may remember what it needs. A [`Plan`] makes
//! stages with fresh state, as often as it is asked to. [`Fiber`](crate::Fiber) and [`Flow`](crate::Flow)
//! wrap plans; each of their methods puts one more stage behind those that are already there, so that a chain
//! is one type, and handling a value is one call that the compiler can see through:
//!
//! ```text
//! Fiber<i32, Then<Then<Identity, Fresh<Guard<..>>>, Fresh<Diff<i32>>>>
//!   attach:  Linked<Linked<Identity, Guard<..>>, Diff<i32>>, ahead of the receptor
//! ```
//!
//! A stage that panics loses the value it was given, and is called again with the next one. Each operator
//! says what it remembers then; the rule is that a decision which was not made changes nothing, while a
//! history of inputs goes on.
//!
//! An operator of one's own is a type that implements [`Stage`], put into a chain with
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

/// What a plan may hold: it is copied for every attachment, and shared and sent between threads.
///
/// Every type that can do this does it; closures do if all that they capture does.
pub trait Part: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Part for T {}

/// An operator at work: turns a value into another one, or drops it.
pub trait Stage<I>: Send + 'static {
    /// What comes out.
    type Out;

    /// Handles one value: the one that goes on in its place, or none.
    fn apply(&mut self, value: I) -> Option<Self::Out>;
}

/// Makes stages, each with its own fresh state.
pub trait Plan<I>: Part {
    /// What comes out of the stages.
    type Out;
    /// The stage that it makes.
    type Stage: Stage<I, Out = Self::Out>;

    /// How many bytes the values have that the stages make, all together.
    const BYTES: usize = size_of::<Self::Out>();

    /// [`Plan::BYTES`], also of what is behind a pointer.
    fn bytes(&self) -> usize {
        Self::BYTES
    }

    /// A stage with fresh state. Fails if a factory refuses the site.
    fn start(&self, site: &Site<'_>) -> Result<Self::Stage, Fault>;
}

/// The plan of no operators, and its stage: every value passes.
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

/// The plan of a stage that has not handled any value yet: each attachment gets a copy of it.
#[derive(Clone)]
pub struct Fresh<S>(pub(crate) S);

impl<I, S: Stage<I> + Part> Plan<I> for Fresh<S> {
    type Out = S::Out;
    type Stage = S;

    fn start(&self, _site: &Site<'_>) -> Result<S, Fault> {
        Ok(self.0.clone())
    }
}

/// The plan of what comes out of the first, given to the second.
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

/// The plan of one more stage behind a plan.
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

/// A stage ahead of a receptor.
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

/// Which part of a plan a site is narrowed to.
#[derive(Clone, Copy)]
pub(crate) enum Branch {
    First = 1,
    Second = 2,
    Inner = 3,
}

impl Site<'_> {
    /// The same site for one part of a plan: its seed depends on the path to the part, so that no two
    /// operators of a chain draw the same random numbers.
    pub(crate) fn part(&self, branch: Branch) -> Self {
        Self {
            subject: self.subject,
            seed: crate::random::mixed(self.seed ^ (branch as u64).rotate_right(8)),
        }
    }
}

/// The given count if it is not zero, else what `operation` has to say.
fn positive<C: Default + PartialEq>(operation: &'static str, count: C) -> Result<C, ArgumentError> {
    if count == C::default() {
        return Err(ArgumentError::new(operation, "must be at least 1"));
    }
    Ok(count)
}

/// The given time in nanoseconds if it is neither zero nor more than a clock can count (584 years).
fn nanos(operation: &'static str, time: Duration) -> Result<u64, ArgumentError> {
    let nanos = u64::try_from(time.as_nanos())
        .map_err(|_| ArgumentError::new(operation, "must be less than 584 years"))?;
    if nanos == 0 {
        return Err(ArgumentError::new(operation, "must be longer than nothing"));
    }
    Ok(nanos)
}
