//! All keys: 16 databases, split by hash slot into shards that each run one command at a time.

mod churn;
mod committing;
mod copying;
mod database;
mod databases;
mod due;
mod entry;
pub(crate) mod form;
pub(crate) mod label_index;
mod reclaim;
mod scheduled;
mod sealing_queue;
mod shard;
mod sights;
mod slot;
mod table;
mod tally;
mod uncommitted;
mod whole;

pub use churn::KeyChurn;
pub(crate) use churn::{HALF_MS, Mover};
pub(crate) use committing::Committing;
pub use committing::{CounterDefaults, CounterTotals};
pub(crate) use copying::{Cut, Detached};
pub use database::{Database, Deadline};
pub use databases::DATABASES;
pub use entry::{Entry, MAX_BYTES, Payload, ValueRef};
pub use reclaim::Reclaimed;
pub(crate) use reclaim::{reclaim, reclaimed};
pub(crate) use sealing_queue::FilledSeries;
pub use shard::{KeyId, Shard};
pub use slot::{SLOTS, hash, slot};
pub use table::{Keyed, Table};
pub use tally::PoolTotals;
pub use uncommitted::Exposure;
pub use whole::{Keyspace, LEASES, SHARDS};
