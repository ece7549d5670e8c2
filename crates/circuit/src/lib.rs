#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! A circuit has two queues. Values from outside wait in the *ingress* queue; values that receptors
//! emit to pipes of their own circuit wait in the *transit* queue, which is emptied first. So
//! everything that one value causes is done before the next one starts, and loops and chains of any
//! length need no stack:
//!
//! ```
//! use std::sync::{OnceLock, mpsc};
//! use tidemark_circuit::{Circuit, Pipe};
//!
//! static KNOT: OnceLock<Pipe<&str>> = OnceLock::new();
//! let circuit = Circuit::new();
//! let (sender, receiver) = mpsc::channel();
//! let pipe = circuit.pipe(move |value: &'static str| {
//!     sender.send(value).unwrap();
//!     let own = KNOT.get().unwrap();
//!     match value {
//!         "A" => ["A1", "A2"].into_iter().for_each(|value| own.emit(value)),
//!         "A1" => own.emit("A1a"),
//!         _ => (),
//!     }
//! })?;
//! KNOT.set(pipe.clone()).unwrap();
//! pipe.emit("A");
//! pipe.emit("B");
//! circuit.settle()?;
//! assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["A", "A1", "A2", "A1a", "B"]);
//! circuit.close(); // a receptor that holds its own circuit keeps it until then
//! # Ok::<(), tidemark_circuit::Error>(())
//! ```
//!
//! - **Contexts.** Receptors, the functions of operators and the callbacks of subscribers run in
//!   their circuit's *context*: one at a time, on whichever thread runs the circuit ([`RunBy`]),
//!   and never inside [`Pipe::emit`] to their own circuit. Each happens before the next one starts,
//!   so they need no locks. None can wait for its own circuit: there [`Circuit::settle`] returns an
//!   error and does not deadlock. A receptor that waits for another circuit of a pool (to settle,
//!   or for room in a queue with [`Overflow::Block`]) may run that circuit meanwhile, inside its
//!   call of `settle` or `emit`.
//! - **Handles.** Everything that a circuit makes is used through handles. Clones refer to the same
//!   thing; two handles are equal, and hash alike, if they refer to the same thing. All can be sent
//!   to other threads. Each thing has a [`Subject`], enclosed by the subject of its maker.
//! - **Ends.** Dropping handles ends what no handle reaches any more. [`Circuit::close`] ends a
//!   circuit for all its users: values emitted before are still handled, later ones are dropped,
//!   and calls that make something return a [`Fault`].
//! - **Failures.** A panic in a callback costs the value that was being handled, nothing else. It
//!   is counted, and reported by [`Circuit::faults`].
//! - **Costs.** An emission from outside is one shared atomic operation, one through a [`Lane`]
//!   shares nothing, and one from inside is a write to the context's own queue. They allocate only
//!   where a queue grows. A chain of operators is one function.
//!
//! # Map
//!
//! | topic | types |
//! |---|---|
//! | names and identities | [`Name`], [`Subject`], [`Extent`], [`Current`] |
//! | attributes | [`State`], [`Slot`], [`Value`] |
//! | emitting and subscribing | [`Circuit`], [`Pipe`], [`WeakPipe`], [`Lane`], [`FanOut`], [`Conduit`], [`Subscriber`], [`Tap`], [`Bank`], [`Pool`] |
//! | drivers and bounds | [`RunBy`], [`ThreadPool`], [`Overflow`] |
//! | storing values | [`Cell`], [`Port`], [`Pin`], [`Basin`], [`Reservoir`] |
//! | sources of values | [`Sink`], [`Capture`], [`Ticker`] |
//! | lifetimes | [`Resource`], [`Scope`], [`Closure`] |
//! | operators | [`Fiber`], [`Flow`], [`Recipe`], [`Receptor`] |
//! | errors | [`Error`], [`Fault`], [`Failure`] |
//! | supervision | [`Supervision`], [`Remedy`], [`DeadLetters`] |
//! | measurements | [`Stats`], [`Pulse`] |
//! | recording and repeating runs | [`Recording`], [`Replay`], [`Simulation`] |
//!
//! # Features
//!
//! No feature is on by default, and without features there are no dependencies.
//!
//! - `stream`: `Emissions` and `Inlet`, a circuit's ends as `Stream` and `Sink` of the futures
//!   crates.
//! - `tracing`: spans and events for the `tracing` crate, target `tidemark_circuit`. At level
//!   debug: a span `circuit` with the circuit's `name` around each run, and events `restart`,
//!   `quarantine`, `overflow` and `close`. At level error: an event per [`Failure`], with
//!   `subject`, `operation` and `message`.
//! - `metrics`: `CircuitMetrics`, a collector of `prometheus-client` for the [`Stats`] of circuits.
//! - `signals`: the module `signals`, typed vocabularies for what systems do and how they are.
//! - `opentelemetry`: `signals::opentelemetry::Exporter`, which counts signals, and `CircuitMeter`,
//!   which reports the [`Stats`] of circuits, both through instruments of an `opentelemetry`
//!   `Meter`. Implies `signals`.

#![warn(missing_debug_implementations)]

// Each module uses only those to its left, and no files import each other in a cycle:
//
// error::argument, identity::{name > interned > value, slot, state > subject}, journal::error,
// error > failure::{thrown, failure_report, care} > execution::{machine::head, context},
// observe::telemetry, failure::account, journal::recorder, execution::{waiters > node::header,
// node::list > queue > lanes, bounds > driver with its pool and parker, ticker::simulated >
// machine::state > the rest of machine > node::typed, node::handle, driver::thread,
// driver::workers} > operator, subscription::attachment > structure::pipe > execution::lane >
// circuit > subscription::{registrar, membership > subscription > subscriber} > structure::conduit
// > all that is made of these.

mod circuit;
mod cortex;
mod error;
mod execution;
mod failure;
mod identity;
mod journal;
#[cfg(all(test, loom))]
mod models;
mod observe;
#[allow(missing_debug_implementations, reason = "chains of them are seen as fibers and flows")]
pub mod operator;
mod random;
#[cfg(feature = "signals")]
pub mod signals;
mod structure;
mod subscription;
mod sync;
#[cfg(feature = "stream")]
mod task;

pub use circuit::{Circuit, CircuitBuilder, Naming, RunBy, Settled};
pub use cortex::{Cortex, cortex};
pub use error::{ArgumentError, ContextError, Error, Fault, Refused};
pub use execution::bounds::Overflow;
pub use execution::current::Current;
pub use execution::driver::ThreadPool;
pub use execution::lane::Lane;
pub use execution::pulse::Pulse;
pub use execution::simulation::Simulation;
pub use execution::ticker::Ticker;
pub use failure::dead_letters::DeadLetters;
pub use failure::failure_report::Failure;
pub use failure::supervision::{Remedy, Supervision};
pub use identity::extent::{Enclosures, Extent};
pub use identity::name::Name;
pub use identity::slot::Valued;
pub use identity::state::Slots;
pub use identity::subject::{Id, Kind, Subject};
pub use identity::value::{Slot, State, Value, ValueKind};
pub use journal::{Recorded, Recording, Replay, ReplayError, Replayed};
#[cfg(feature = "opentelemetry")]
pub use observe::meter::CircuitMeter;
#[cfg(feature = "metrics")]
pub use observe::metrics::CircuitMetrics;
pub use observe::stats::Stats;
pub use operator::fiber::{BoxedFiber, Fiber};
pub use operator::flow::{BoxedFlow, Change, Flow, Run};
pub use operator::recipe::{Recipe, Site};
pub use operator::window_view::{Window, WindowIter};
pub use structure::bank::Bank;
pub use structure::basin::Basin;
pub use structure::capture::Capture;
pub use structure::cell::Cell;
pub use structure::conduit::{Conduit, Routing};
pub use structure::pin::Pin;
pub use structure::pipe::Pipe;
pub use structure::pool::Pool;
pub use structure::port::Port;
pub use structure::reservoir::Reservoir;
pub use structure::resource::Resource;
pub use structure::scope::{Closure, Scope};
pub use structure::sink::{Sink, SinkPipe};
pub use structure::tap::Tap;
pub use structure::weak_pipe::WeakPipe;
pub use subscription::fan_out::FanOut;
pub use subscription::membership::Subscription;
pub use subscription::receptor::Receptor;
pub use subscription::registrar::{ReceiverPool, Registrar};
pub use subscription::subscriber::Subscriber;
#[cfg(feature = "stream")]
pub use task::inlet::{Inlet, InletError};
#[cfg(feature = "stream")]
pub use task::stream::Emissions;

/// The page of the book. Its examples run as tests when every feature that they need is on.
#[cfg(all(doctest, feature = "metrics", feature = "opentelemetry", feature = "stream"))]
#[doc = include_str!("../../../docs/circuits.md")]
mod book {}
