#![doc = include_str!("../README.md")]
//!
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | who is who | [`Name`], [`Subject`], [`Extent`], [`Current`] |
//! | what is said about someone | [`State`], [`Slot`], [`Value`] |
//! | what is done to a value on its way | [`Fiber`], [`Flow`], [`Recipe`], [`Receptor`] |
//! | what can go wrong | [`Error`], [`Fault`] |

mod barrier;
mod bounds;
mod circuit;
mod conduit;
mod context;
mod context_cell;
mod current;
mod driver;
mod error;
mod event;
mod extent;
mod failure;
mod faults;
mod fiber;
mod flow;
mod interner;
mod journal;
mod lane;
mod lanes;
mod machine;
mod name;
mod name_map;
mod node;
pub mod operator;
mod pipe;
mod queue;
mod random;
mod receptor;
mod recipe;
mod simulation;
mod slot;
mod state;
mod subject;
mod subscriber;
mod subscription;
mod sync;
mod waiters;
mod window;

pub use bounds::{Overflow, Refused};
pub use circuit::{Circuit, CircuitBuilder, Naming, RunBy, Settled};
pub use conduit::{Conduit, Routing};
pub use current::Current;
pub use driver::Pool;
pub use error::{ArgumentError, ContextError, Error, Fault};
pub use extent::{Enclosures, Extent};
pub use failure::{Failure, Supervision};
pub use fiber::{BoxedFiber, Fiber};
pub use flow::{BoxedFlow, Change, Flow, Run};
pub use journal::{Recorded, Recording, Replay, ReplayError, Replayed};
pub use lane::Lane;
pub use name::Name;
pub use pipe::Pipe;
pub use receptor::Receptor;
pub use recipe::{Recipe, Site};
pub use simulation::Simulation;
pub use slot::{Slot, Value, ValueKind, Valued};
pub use state::{Slots, State};
pub use subject::{Id, Kind, Subject};
pub use subscriber::{ReceiverPool, Registrar, Subscriber};
pub use subscription::Subscription;
pub use window::{Window, WindowIter};

/// The chapter of the book, whose examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/circuits.md")]
mod book {}
