//! Tidemark's engine: a sharded keyspace, the commands on it, and the way between its state and the log.
//!
//! ```text
//! Call ──► command::resolve ──► Engine::execute ──► handler ──► Keys (locked shards) ──► Reply
//!                                      │                            │
//!                                      └── log: append ◄── effects ─┘      Engine::apply ◄── record
//! ```
//!
//! - [`command`]: the table, one row per command, and the handlers.
//! - [`keyspace`]: shards, databases, the hash table and its entries.
//! - [`value`]: lists, hashes, sets, sorted sets.
//! - [`context`]: what a handler may touch.
//! - [`query`]: watched reads and what they emit.
//! - [`change`]: what a record of the log changes.
//! - [`tracking`]: clients that keep what they read, and are told when it changes.
//! - [`Engine`]: admission, locking, logging, serving blocked clients; `apply` for the way back.
//!
//! The crate knows nothing of sockets and reads no clock: the time of a command is an argument.

mod admission;
mod apply;
mod apply_error;
pub mod blocking;
mod call;
pub mod change;
pub mod command;
pub mod context;
mod digest;
pub mod encoded;
mod engine;
mod error;
pub mod event;
mod execution;
mod expiry;
mod interest;
pub mod keyspace;
mod loader;
mod locking;
mod logging;
mod long_double;
mod moment;
mod noted;
mod part;
pub mod query;
mod random;
pub mod record;
mod reply;
mod running;
mod serving;
mod shared_bytes;
mod snapshot;
mod touched;
pub mod tracking;
mod transaction;
pub mod value;
mod waiter;
mod waiting;
mod watch;

pub use apply_error::ApplyError;
pub use blocking::Blocked;
pub use call::{Call, Terms};
pub use command::{Command, KeySpec, Run};
pub use engine::Engine;
pub use error::CommandError;
pub use execution::Executed;
pub use loader::Loader;
pub use reply::{Protocol, Reply, format_double};
pub use shared_bytes::SharedBytes;
pub use snapshot::{Incomplete, Snapshot};
pub use transaction::WatchedKeys;
pub use waiter::{Block, Delivery, Waiter};
