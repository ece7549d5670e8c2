//! Tidemark's server: connections, the Redis protocol, configuration, health and metrics.
//!
//! A request's way through the files:
//!
//! ```text
//! listener ──► worker ──► connection ──► dispatch ──► engine, or connection_command ──► output ──► worker
//!  (accept)    (read)      (parse)       (may it?)     (run)                            (reply)    (write)
//! ```
//!
//! - [`resp`]: the protocol. `dice`: another one, told apart by a connection's first byte.
//! - [`config`]: settings, from flags, environment and file.
//! - [`Server`]: start, run, stop; [`run`] is that for a command line.
//! - `worker`, `inbox`: the event loops and what threads tell each other.
//! - `connection`, `session`, `output`: one client, without its socket.
//! - `dispatch`, `transaction`, `wait` and the `*_command` modules: what commands do that are not the engine's.
//! - `http`, `metrics`: health and numbers for operators.
//! - `watching`, `http_watching`: watched reads, over connections for commands and over HTTP.
//! - `pubsub`, `keyspace_events`: messages on channels, and those that tell what happened to keys.

mod backlog;
mod backlogs;
mod changes_command;
mod client;
mod client_command;
mod clock;
mod command_command;
mod command_syntax;
pub mod config;
mod config_command;
mod connection;
mod connection_command;
mod context;
mod counters;
mod cursor;
mod delivery;
mod descriptors;
mod dice;
mod dispatch;
mod durable_command;
mod exec;
mod following;
mod handshake;
mod holders;
mod holding;
mod http;
mod http_access;
mod http_changes;
mod http_listener;
mod http_socket;
mod http_stream;
mod http_watch;
mod http_watchers;
mod http_watching;
mod inbox;
mod info;
mod invalidation_source;
mod keyspace_events;
mod listener;
mod log_state;
mod metrics;
mod named_command;
mod not_resumed;
mod output;
mod pause;
mod postponing;
mod publication;
mod pubsub;
mod recovery;
mod remaking;
pub mod resp;
mod returning;
mod run;
mod server;
mod server_command;
mod session;
mod settings;
mod shared;
mod shared_json;
mod sinks;
mod snapshot_taking;
mod snapshots;
mod socket;
mod subscribe_command;
mod target;
mod timers;
mod tracking;
mod tracking_command;
mod transaction;
mod value_json;
mod version;
mod wait;
mod watch_answer;
mod watch_command;
mod watchers;
mod watching;
mod web_socket;
mod worker;

pub use listener::ListenError;
pub use recovery::RecoverError;
pub use run::run;
pub use server::{Server, StartError, StopError, Stopper};
pub use snapshots::TakeError;
