//! Tidemark's server: connections, the Redis protocol, configuration, health and metrics.
//!
//! A request's way through the files:
//!
//! ```text
//! net::listener ─► net::event_loop ─► net::connection ─► command::dispatch ─► engine, or command ─► net::outbox ─► net::event_loop
//!    (accept)         (read)              (parse)          (may it run?)        (run)               (reply)         (write)
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | `net` | sockets, event loops, one client's connection, what waits to be sent |
//! | [`resp`] | the Redis protocol: requests, replies |
//! | `command` | commands that the engine does not run; dispatch of all |
//! | `session` | what the server remembers of one client between its commands |
//! | `subscription` | watched reads: registry, cursor, delivery, replay from the log, ownership of names |
//! | `events` | channels, keyspace notifications, invalidations, the stream of changes |
//! | `durability` | replies held until the log is safe, snapshots, recovery |
//! | `http`, `grpc`, `dice` | other transports |
//! | `observe` | metrics, counters, lines on standard error |
//! | [`config`] | settings, from flags, environment and file |
//!
//! [`Server`] starts, runs and stops it all; [`run`](run()) does so for a command line; [`abort_on_panic()`] ends the process when any
//! thread panics. `shared` is what all threads share, and `context` what commands run against.
//!
//! What a file uses is below it:
//!
//! ```text
//! run ─► server ─► http, net::event_loop ─► net::connection ─► dice, command ─► wait, subscription::lifecycle, events ─► session
//!             └──► subscription::replay, durability::snapshot_thread, durability::recovery                      └──► context ─► shared
//!                              shared ─► net::inbox, events::pubsub, subscription::replay_queue, durability::snapshots, … ─► settings
//! ```

mod abort_on_panic;
mod available_memory;
mod clock;
mod command;
pub mod config;
mod context;
mod data_directory;
mod dice;
mod durability;
mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod http;
mod login_guard;
mod net;
mod observe;
pub mod resp;
mod run;
mod server;
mod session;
mod settings;
mod shared;
mod sinks;
mod subscription;
mod value_json;
mod version;
mod wait;

pub use abort_on_panic::abort_on_panic;
pub use durability::recovery::RecoverError;
pub use durability::snapshots::{KEYSPACE, TakeError};
pub use net::listener::ListenError;
pub use run::run;
pub use server::{Server, StartError, StopError, Stopper};
