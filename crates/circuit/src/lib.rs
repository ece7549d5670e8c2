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
// error::argument, identity::{name > interned > value, slot, state > subject}, journal::error, error > failure::{thrown,
// failure_report, care} > execution::{machine::head, context}, observe::telemetry, failure::account, journal::recorder,
// execution::{waiters > node::header, node::list > queue > lanes, bounds > driver with its pool and parker, ticker::simulated >
// machine::state > the rest of machine > node::typed, node::handle, driver::thread, driver::workers} > operator,
// subscription::attachment > structure::pipe > execution::lane > circuit > subscription::{registrar, membership > subscription >
// subscriber} > structure::conduit > all that is made of these.

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

/// The page of the book, whose examples are run as tests where every feature is there that one of them needs.
#[cfg(all(doctest, feature = "metrics", feature = "opentelemetry", feature = "stream"))]
#[doc = include_str!("../../../docs/circuits.md")]
mod book {}
