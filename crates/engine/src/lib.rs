//! Tidemark's engine: a sharded keyspace, its commands, and the path between its state and the log.
//!
//! ```text
//! Call ──► command::resolve ──► Engine::execute ──► handler ──► Keys (locked shards) ──► Reply
//!                                      │                            │
//!                                      └── log: append ◄── effects ─┘     Engine::apply ◄── record
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`value`] | the types of values |
//! | [`keyspace`] | shards, databases, tables, entries, deadlines |
//! | [`context`] | what a handler can access: the locked keys and the effects that it records |
//! | [`command`] | the table of commands on keys, and their handlers by family |
//! | [`Engine`] | the keyspace, its log, and the subscribers to changes |
//! | `execute` | one command, from admission to the release of its locks; transactions |
//! | [`watch`] | watched reads: index, evaluation, emissions, registry, replay |
//! | [`tracking`], [`event`] | client-side caching; keyspace notifications |
//! | [`blocking`] | clients that block until a key has an element to take |
//! | `persist` | [`record`]s, [`change`]s, [`Snapshot`]s and their replay |
//! | [`script`] | Lua scripts: their store, and how they run |
//! | `housekeeping` | work that becomes due without a command |
//! | `observe`, `wire` | figures for operators; encoding of replies |
//!
//! A file uses only files of its own line and of the lines above, without cycles:
//!
//! ```text
//! value, keyspace::{entry, table}, wire, watch::{part, touched}, command::{parse, bounds}
//! keyspace ─► blocking::wait_queue, watch::interest ─► watch::index, tracking::table
//! persist::points
//! script::publication ─► context ─► event
//! command: row ─► handlers ─► rows ─► table
//! persist::{added_points, change}, watch::reading, watch::replay::scope
//! script::{busy, host, command, keys_of_text, function_table} ─► script::store
//! Engine, the struct
//! execute::{admission, leading, locking, running, logging}
//! script::functions ─► script::{calling, running}
//! watch::evaluation, tracking::notifying, event::publishing ─► housekeeping::expiry
//! watch::registry ─► execute::serving ─► execute::{execution, run_together, once, transaction}
//! persist::{apply, loader, snapshot, digest} ─► persist::{following, taking}, watch::replay, observe
//! ```
//!
//! Each `impl Engine` block is in the file of its task; the struct does not depend on its users.
//!
//! The crate uses no sockets and reads no clock: the time of a command is an argument.

mod applied;
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
pub mod rdb;
pub mod script;
pub mod tracking;
pub mod value;
pub mod watch;
mod wire;

pub use blocking::{Block, Blocked, Delivery, Waiter};
pub use command::{Command, KeySpec, Run};
pub use engine::Engine;
pub use error::CommandError;
pub use execute::call::{Call, Terms};
pub use execute::execution::{Executed, FollowUp};
pub use execute::once::OnceName;
pub use execute::pausing::PAUSE_ERROR;
pub use execute::transaction::WatchedKeys;
pub use housekeeping::counter_commits::CounterFigures;
pub use housekeeping::{DUE_WORK, DueWork};
pub use memory_budget::{MemoryBudget, MemoryCharge};
pub use observe::counter_churn::{ChurnOrder, Churning};
pub use observe::key_description::KeyDescription;
pub use observe::pool_figures::PoolFigures;
pub use persist::added_points::{AddedPoints, EqualCommand};
pub use persist::apply_error::{ApplyError, Malformed, MalformedPart};
pub use persist::blocks::BlockWriteError;
pub use persist::following::{FollowError, Follower};
pub use persist::loader::Loader;
pub use persist::snapshot::{Incomplete, Snapshot};
pub use persist::taking::{TakeError, TakenSnapshot};
pub use persist::{change, record, section};
pub use random::SecretSource;
pub use wire::encoded;
pub use wire::reply::{Protocol, Reply, format_double};
pub use wire::shared_bytes::SharedBytes;
