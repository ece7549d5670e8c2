//! Tidemark's server: connections, the Redis protocol, configuration, health and metrics.
//!
//! The path of a request through the files:
//!
//! ```text
//! net::listener ─► net::event_loop ─► net::connection ─► command::dispatch ─┬─► engine
//!    (accept)         (read)              (parse)          (may it run?)    └─► command (run)
//!                                                                                 │
//!                                        net::event_loop ◄─ net::outbox ◄─────────┘
//!                                            (write)          (reply)
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `net` | sockets, event loops, client connections, output buffers |
//! | [`resp`] | the Redis protocol: requests and replies |
//! | `command` | the table of all commands; their dispatch; those that the engine does not run |
//! | `session` | per-client state between commands |
//! | `subscription` | watched reads: registry, cursor, delivery, replay, ownership of names |
//! | `events` | channels, keyspace notifications, invalidations, the change stream |
//! | `durability` | replies held until the log has committed, snapshots, recovery |
//! | `group` | membership in a group: who leads, and which commands run here |
//! | `http`, `grpc`, `dice` | other transports |
//! | `migrate` | moves keys to another server |
//! | `observe` | metrics, counters, lines on standard error |
//! | [`config`] | settings from flags, environment and file |
//!
//! [`Server`] starts, runs and stops the server. [`run`](run()) does so for a command line.
//! [`abort_on_panic()`] ends the process when any thread panics. `shared` is the state that all
//! threads share; `context` is what commands run against.
//!
//! Dependencies, each module above those that it uses:
//!
//! ```text
//! run ─► server ─► http, net::event_loop ─► net::connection ─► dice, command ─► wait,
//!            │            subscription::lifecycle, events ─► session, context ─► shared
//!            └──► subscription::replay, durability::snapshot_thread, durability::recovery
//! shared ─► net::inbox, events::pubsub, subscription::replay_queue,
//!           durability::snapshots, … ─► settings
//! ```

mod abort_on_panic;
mod available_memory;
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
mod group;
mod grpc;
mod housekeeping;
mod http;
mod login_guard;
mod migrate;
mod net;
mod observe;
pub mod resp;
mod run;
mod scripts;
mod sealing_thread;
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
pub use command::handshake::same_secret;
pub use command::rows::{command_table, is_watching, read_of};
pub use durability::recover_error::RecoverError;
pub use group::{ClusterStatus, MemberStatus, MissingField, NodeError, SeatError};
pub use net::listener::ListenError;
pub use run::run;
pub use server::{Server, StartError, StopError, Stopper};
