//! Tidemark's engine: a sharded keyspace, the commands on it, and the way between its state and the log.
//!
//! ```text
//! Call ──► command::resolve ──► Engine::execute ──► handler ──► Keys (locked shards) ──► Reply
//!                                      │                            │
//!                                      └── log: append ◄── effects ─┘      Engine::apply ◄── record
//! ```
//!
//! From what all is made of to what acts on it; a file uses files of its own line and those above it only, and never in a circle:
//!
//! - [`value`], `touched` and `part`: what keys hold, what of it a command touches and a read looks at; with it the entries and
//!   tables of [`keyspace`], `parse` of [`command`], and the bounds of ranges there.
//! - [`keyspace`]: shards and databases; beside each shard who waits for its keys (`waiting`) and
//!   who is to be told of changes (`interest`): [`query`]'s index and [`tracking`]'s table.
//! - [`context`]: what a handler may touch. [`event`]: what happened to a key.
//! - [`command`]: the handlers, their rows, and the table above them.
//! - [`change`], and `reading` and `scope` of [`query`]: what the table says of records and reads.
//! - [`Engine`], the struct: the keyspace with its log, and those who want to know of changes.
//! - `admission`, `locking`, `running`, `logging`: the steps of a command. `evaluation` of [`query`], `telling` of [`tracking`]
//!   and of [`event`]: what others are told. `expiry`, `serving`: keys whose time has come, clients that have waited.
//! - `subscribing`, `registering`, `forgetting` and `naming` of [`query`]: who is told. `execution`, `transaction`: the way of a command.
//! - `committing`, `churning`, `pool_figures`, `key_totals`: counters that are due to be committed, those that move most, and what pools and
//!   expiry have done.
//! - `describing`: one key. `apply`, [`Loader`], [`Snapshot`], `digest`, [`query::Past`]: the whole state, to the log and back.
//!
//! `impl Engine` stands in the file of whoever acts, so that the struct knows none of them.
//!
//! The crate knows nothing of sockets and reads no clock: the time of a command is an argument.

mod admission;
mod apply;
mod apply_error;
pub mod blocking;
mod call;
pub mod change;
mod churning;
pub mod command;
mod committing;
pub mod context;
#[cfg(test)]
mod damage;
mod describing;
mod digest;
mod effort;
pub mod encoded;
mod engine;
mod error;
pub mod event;
mod execution;
mod expiry;
mod interest;
mod key_totals;
pub mod keyspace;
mod loader;
mod locking;
mod logging;
mod long_double;
mod memory_budget;
mod moment;
mod noted;
mod part;
mod pool_figures;
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

pub use apply_error::{ApplyError, Malformed, MalformedPart};
pub use blocking::Blocked;
pub use call::{Call, Terms};
pub use churning::{ChurnOrder, Churning};
pub use command::{Command, KeySpec, Run};
pub use committing::CounterFigures;
pub use describing::KeyDescription;
pub use engine::Engine;
pub use error::CommandError;
pub use execution::Executed;
pub use loader::Loader;
pub use memory_budget::{MemoryBudget, MemoryCharge};
pub use pool_figures::PoolFigures;
pub use random::SecretSource;
pub use reply::{Protocol, Reply, format_double};
pub use shared_bytes::SharedBytes;
pub use snapshot::{Incomplete, Snapshot};
pub use transaction::WatchedKeys;
pub use waiter::{Block, Delivery, Waiter};
