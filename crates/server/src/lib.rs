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
//! - [`abort_on_panic()`]: a panic of any thread ends the process.
//! - `worker`, `inbox`: the event loops and what threads tell each other.
//! - `connection`, `session`, `output`: one client, without its socket.
//! - `command`: what commands do that are not the engine's.
//! - `wait`, `watching`, `following`, `tracking`, `returning`: what becomes of a session without its asking.
//! - `cursor`, `backlogs`, `remaking`: where a watched read's emissions come from, kept or made again.
//! - `pubsub`, `keyspace_events`: messages on channels, and those that tell what happened to keys.
//! - `http`, `metrics`: health, numbers, watched reads and changes over HTTP.
//!
//! What a file uses is below it, and nothing uses what is above it: that holds for files. The rooms stand so, but for DiceDB's
//! protocol, some of whose files are part of what all share (`directory`, `notice`), of a session (`form`), or of what acts on one
//! (`handing`):
//!
//! ```text
//! run ─► server ─► http, worker ─► connection ─► dice, command ─► wait, watching, tracking, … ─► session and its parts
//!             └──► remaking, snapshot_taking, recovery                                     └──► context ─► shared
//!                                        shared ─► inbox, pubsub, backlogs, snapshots, … ─► target, output, settings
//! ```

mod abort_on_panic;
mod available_memory;
mod backlog;
mod backlogs;
mod beside;
mod channel_line;
mod channel_turns;
mod channel_watches;
mod client;
mod client_eviction;
mod clock;
mod command;
pub mod config;
mod connection;
mod context;
mod counters;
mod crew;
mod cursor;
mod data_directory;
mod delivery;
mod descriptors;
mod dice;
mod following;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod holders;
mod holding;
mod http;
mod http_watchers;
mod inbox;
mod invalidation_source;
mod keyspace_events;
mod listener;
mod loading;
mod log_state;
mod login_guard;
mod metrics;
mod not_resumed;
mod operator_line;
mod output;
mod pace;
mod pause;
mod publication;
mod pubsub;
mod recovery;
mod remaking;
pub mod resp;
mod returning;
mod run;
mod server;
mod session;
mod settings;
mod shared;
mod shared_json;
mod sinks;
mod snapshot_taking;
mod snapshots;
mod socket;
mod target;
mod timers;
mod tracking;
mod value_json;
mod version;
mod wait;
mod watch_answer;
mod watchers;
mod watching;
mod worker;

pub use abort_on_panic::abort_on_panic;
pub use listener::ListenError;
pub use recovery::RecoverError;
pub use run::run;
pub use server::{Server, StartError, StopError, Stopper};
pub use snapshots::{KEYSPACE, TakeError};
