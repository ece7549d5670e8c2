//! Tidemark's engine: a sharded keyspace, the commands on it, and the way between its state and the log.
//!
//! ```text
//! Call ──► command::resolve ──► Engine::execute ──► handler ──► Keys (locked shards) ──► Reply
//!                                      │                            │
//!                                      └── log: append ◄── effects ─┘      Engine::apply ◄── record
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`value`] | the types that a key may hold |
//! | [`keyspace`] | shards, databases, tables, entries, deadlines |
//! | [`context`] | what a handler may touch: the locked keys, and the effects that it leaves |
//! | [`command`] | the rows of all commands, and their handlers by family |
//! | [`Engine`] | what the engine owns: the keyspace with its log, and who is notified of changes |
//! | `execute` | one command, from admission to the release of its locks; transactions |
//! | [`watch`] | watched reads: index, evaluation, emissions, registry, replay |
//! | [`tracking`], [`event`] | clients that keep what they read; keyspace notifications |
//! | [`blocking`] | clients that wait until a key has something to take |
//! | `persist` | [`record`]s, [`change`]s, [`Snapshot`]s and how they are applied again |
//! | `housekeeping` | what becomes due without a command |
//! | `observe`, `wire` | figures for operators; replies as bytes |
//!
//! A file uses files of its own line and of those above, never in a circle:
//!
//! ```text
//! value, keyspace::{entry, table}, wire, watch::{part, touched}, command::{parse, bounds}
//! keyspace ─► blocking::wait_queue, watch::interest ─► watch::index, tracking::table
//! context ─► event
//! command: row ─► handlers ─► rows ─► table
//! persist::change, watch::reading, watch::replay::scope
//! Engine, the struct
//! execute::{admission, locking, running, logging}
//! watch::evaluation, tracking::telling, event::telling ─► housekeeping::expiry
//! watch::registry ─► execute::serving ─► execute::{execution, transaction}
//! persist::{apply, loader, snapshot, digest}, watch::replay, observe
//! ```
//!
//! `impl Engine` stands in the file of the job, so the struct knows none of its users.
//!
//! The crate knows nothing of sockets and reads no clock: the time of a command is an argument.

pub mod blocking;
pub mod command;
pub mod context;
mod engine;
mod error;
pub mod event;
mod execute;
mod housekeeping;
pub mod keyspace;
mod memory_budget;
mod observe;
mod persist;
mod random;
pub mod tracking;
pub mod value;
pub mod watch;
mod wire;

pub use blocking::{Block, Blocked, Delivery, Waiter};
pub use command::{Command, KeySpec, Run};
pub use engine::Engine;
pub use error::CommandError;
pub use execute::call::{Call, Terms};
pub use execute::execution::Executed;
pub use execute::transaction::WatchedKeys;
pub use housekeeping::counter_commits::CounterFigures;
pub use memory_budget::{MemoryBudget, MemoryCharge};
pub use observe::counter_churn::{ChurnOrder, Churning};
pub use observe::key_description::KeyDescription;
pub use observe::pool_figures::PoolFigures;
pub use persist::apply_error::{ApplyError, Malformed, MalformedPart};
pub use persist::loader::Loader;
pub use persist::snapshot::{Incomplete, Snapshot};
pub use persist::{change, record};
pub use random::SecretSource;
pub use wire::encoded;
pub use wire::reply::{Protocol, Reply, format_double};
pub use wire::shared_bytes::SharedBytes;
