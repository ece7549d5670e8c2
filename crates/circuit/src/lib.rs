#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! A circuit has two queues. What comes from outside waits in the *ingress* queue, what receptors emit to pipes of their own circuit
//! in the *transit* queue, which is emptied first. So everything that one value causes is done before the next one starts, and
//! loops and chains of any length need no stack:
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
//! - **Contexts.** Receptors, the functions of operators and the callbacks of subscribers run in their circuit's *context*: one at a
//!   time, on whichever thread runs the circuit ([`RunBy`]), never inside of [`Pipe::emit`] to their own circuit. What one did
//!   happened before the next one begins, so they need no locks. None waits for its own circuit: [`Circuit::settle`] is an error there,
//!   not a deadlock. One that waits for another circuit of a pool, by that or for room in a queue that blocks ([`Overflow::Block`]),
//!   may run that circuit meanwhile, within its `settle` or `emit`.
//! - **Handles.** What a circuit makes is known by handles: clones are the same thing, two are equal, and hash alike, if they are of
//!   the same thing, and all can be sent to other threads. Each thing has a [`Subject`], enclosed by that of what made it.
//! - **Ends.** Dropping handles ends what nobody can reach any more. [`Circuit::close`] ends a circuit for everybody: what was
//!   emitted before is still handled, what comes later is dropped, and calls that make something return a [`Fault`].
//! - **Failures.** A panic in a callback costs the value that was being handled, nothing else; it is counted, and reported by
//!   [`Circuit::faults`].
//! - **Costs.** An emission from outside is one shared atomic operation, one through a [`Lane`] shares nothing, one from inside is a
//!   write to the context's own queue. None allocates but where a queue grows. A chain of operators is one function.
//!
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | who is who | [`Name`], [`Subject`], [`Extent`], [`Current`] |
//! | what is said about someone | [`State`], [`Slot`], [`Value`] |
//! | where values go in, and who hears of them | [`Circuit`], [`Pipe`], [`WeakPipe`], [`Lane`], [`FanOut`], [`Conduit`], [`Subscriber`], [`Tap`], [`Bank`], [`Pool`] |
//! | who runs a circuit, and how much may wait | [`RunBy`], [`ThreadPool`], [`Overflow`] |
//! | what keeps values | [`Cell`], [`Port`], [`Pin`], [`Basin`], [`Reservoir`] |
//! | where values came from | [`Sink`], [`Capture`], [`Ticker`] |
//! | what ends when | [`Resource`], [`Scope`], [`Closure`] |
//! | what is done to a value on its way | [`Fiber`], [`Flow`], [`Recipe`], [`Receptor`] |
//! | what can go wrong | [`Error`], [`Fault`], [`Failure`] |
//! | what is done about it | [`Supervision`], [`Remedy`], [`DeadLetters`] |
//! | how a circuit does | [`Stats`], [`Pulse`] |
//! | how a run is repeated | [`Recording`], [`Replay`], [`Simulation`] |
//!
//! # Features
//!
//! None is on unless asked for, and without any there are no dependencies.
//!
//! - `stream`: `Emissions` and `Inlet`, a circuit's ends as `Stream` and `Sink` of the futures crates.
//! - `tracing`: spans and events for the `tracing` crate, target `tidemark_circuit`: at level debug a span `circuit` with the
//!   `name` of the circuit around each of its runs, and events `restart`, `quarantine`, `overflow` and
//!   `close`; at level error an event per [`Failure`], with `subject`, `operation` and `message`.
//! - `metrics`: `CircuitMetrics`, a collector of `prometheus-client` for the [`Stats`] of circuits.
//! - `signals`: the module `signals`, typed vocabularies for what systems do and how they are.
//! - `opentelemetry`: `signals::opentelemetry::Exporter`, which counts what is said, and `CircuitMeter`, which reports the [`Stats`] of
//!   circuits, both by instruments of a `Meter` of the `opentelemetry` crate. With it comes `signals`.

#![warn(missing_debug_implementations)]

// Each uses only those to its left, and no files import each other in a circle:
//
// error::argument, name > interner, interned > value, slot, state > subject, journal::error, error > thrown, failure,
// care > machine::head, context, telemetry, failures, journal::recorder, waiters > node::header, node::list > queue >
// lanes, bounds > driver with its pool and parker, ticker::simulated > machine::state > the rest of machine >
// node::typed, node::handle, driver::thread, driver::workers > recipe, operator, fiber, flow, attachment > pipe >
// lane > circuit > registrar, membership > subscription > subscriber > conduit > all that is made of these.

mod attachment;
mod bank;
mod basin;
mod bounds;
mod capture;
mod care;
mod cell;
#[cfg(any(feature = "metrics", feature = "opentelemetry"))]
mod census;
mod circuit;
mod closed;
mod conduit;
mod context;
mod context_cell;
mod cortex;
mod current;
mod dead_letters;
mod depth;
mod driver;
mod ending;
mod error;
mod event;
mod extent;
mod failure;
mod failures;
mod fan_out;
mod faults;
mod fiber;
mod flow;
mod followers;
mod handle;
#[cfg(feature = "stream")]
mod inlet;
mod interned;
mod interner;
mod journal;
mod lane;
mod lanes;
mod machine;
mod making;
mod membership;
#[cfg(feature = "opentelemetry")]
mod meter;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(test, loom))]
mod models;
mod name;
mod name_map;
mod newest;
mod node;
#[allow(missing_debug_implementations, reason = "chains of them are seen as fibers and flows")]
pub mod operator;
mod pin;
mod pipe;
mod pool;
mod port;
mod pulse;
mod queue;
mod random;
mod receptor;
mod recipe;
mod registered;
mod registrar;
mod reservoir;
mod resource;
mod scope;
#[cfg(feature = "signals")]
pub mod signals;
mod simulation;
mod sink;
mod slot;
mod state;
mod stats;
#[cfg(feature = "stream")]
mod stream;
mod subject;
mod subscriber;
mod subscription;
mod supervision;
mod sync;
mod tap;
mod telemetry;
mod thrown;
mod ticker;
mod value;
mod waiters;
mod weak_pipe;
mod window;

pub use bank::Bank;
pub use basin::Basin;
pub use bounds::Overflow;
pub use capture::Capture;
pub use cell::Cell;
pub use circuit::{Circuit, CircuitBuilder, Naming, RunBy, Settled};
pub use conduit::{Conduit, Routing};
pub use cortex::{Cortex, cortex};
pub use current::Current;
pub use dead_letters::DeadLetters;
pub use driver::ThreadPool;
pub use error::{ArgumentError, ContextError, Error, Fault, Refused};
pub use extent::{Enclosures, Extent};
pub use failure::Failure;
pub use fan_out::FanOut;
pub use fiber::{BoxedFiber, Fiber};
pub use flow::{BoxedFlow, Change, Flow, Run};
#[cfg(feature = "stream")]
pub use inlet::{Inlet, InletError};
pub use journal::{Recorded, Recording, Replay, ReplayError, Replayed};
pub use lane::Lane;
pub use membership::Subscription;
#[cfg(feature = "opentelemetry")]
pub use meter::CircuitMeter;
#[cfg(feature = "metrics")]
pub use metrics::CircuitMetrics;
pub use name::Name;
pub use pin::Pin;
pub use pipe::Pipe;
pub use pool::Pool;
pub use port::Port;
pub use pulse::Pulse;
pub use receptor::Receptor;
pub use recipe::{Recipe, Site};
pub use registrar::{ReceiverPool, Registrar};
pub use reservoir::Reservoir;
pub use resource::Resource;
pub use scope::{Closure, Scope};
pub use simulation::Simulation;
pub use sink::{Sink, SinkPipe};
pub use slot::Valued;
pub use state::Slots;
pub use stats::Stats;
#[cfg(feature = "stream")]
pub use stream::Emissions;
pub use subject::{Id, Kind, Subject};
pub use subscriber::Subscriber;
pub use supervision::{Remedy, Supervision};
pub use tap::Tap;
pub use ticker::Ticker;
pub use value::{Slot, State, Value, ValueKind};
pub use weak_pipe::WeakPipe;
pub use window::{Window, WindowIter};

/// The page of the book, whose examples are run as tests where every feature is there that one of them needs.
#[cfg(all(doctest, feature = "metrics", feature = "opentelemetry", feature = "stream"))]
#[doc = include_str!("../../../docs/circuits.md")]
mod book {}
