//! Watched reads: what subscribers get is the log's doing, and nothing is kept for each of them.
//!
//! A [`Query`] is a read that somebody watches, with all that its answer depends on beside the keys. Equal subscriptions
//! share one query. Whenever a record of the log changes the answer, the query emits it, once, numbered, and stamped with
//! the record's LSN; the latest emissions are retained. A subscription is no more than a number: that of the last emission
//! it was given.
//!
//! ```text
//! X.WATCH ─► Engine::subscribe ─► record `watch` in the log ─► Registry, and the Index of every shard that it reads
//!                                                                     │
//! command ─► Keys::changed ─► Index::note ─► append ─► Engine::emit ──┤ under the locks of all that the query reads
//!                                                                     ▼
//!                                             Query: emissions 41, 42, 43 ─► Audience::tell ─► whoever serves subscribers
//!                                                        └─ Retention drops the oldest of all queries
//! ```
//!
//! # Why emissions are a function of the log
//!
//! A query begins with a record of its own, and that record's LSN is its id. Its answer is computed under the locks of all
//! shards that it reads, right behind the record that may have changed it, and from the state as the log has it: a key whose
//! time has come is there until a record removes it. `apply` does the same with the same records. So the number of an emission, its LSN and its bytes are equal on every machine that has the
//! log, and a server that comes back from a crash has the emissions of the records behind its snapshot again. Answers whose
//! order is that of a hash table are brought into the order of their bytes first.
//!
//! # Locks
//!
//! Shards first, in order; then the registry; then the names; then the retention; then one query. A query whose reads lie in several
//! shards makes whoever changes one of its keys lock them all: see `locking`.

mod answer;
mod audience;
mod budget;
mod by_id;
mod dormancy;
mod emission;
mod evaluation;
mod filter;
mod guarantee;
mod index;
pub(crate) mod interest;
mod listeners;
mod overlong;
pub(crate) mod part;
mod reach;
mod read;
mod reading;
mod registry;
mod replay;
mod retention;
mod state;
pub(crate) mod touched;
mod watchable;
mod watched_read;

pub use audience::Audience;
pub use budget::WriteBudget;
pub use by_id::{ById, OfQuery};
pub use dormancy::Waking;
pub use emission::{Emission, Gone};
pub use filter::Filter;
pub use guarantee::Guarantee;
pub use read::Read;
pub use registry::named::{Acknowledged, Acknowledgement, Named, check_name};
pub use registry::queries::QueryLimits;
pub use registry::registration::count_in_frame;
pub use registry::subscription::{Resumed, Subscribed};
pub use replay::past::{Past, PastError, Widening};
pub use replay::pool_trail::{PoolPlace, PoolSearch, PoolTrail, PoolWitness, TrailError};
pub use retention::RetentionLimits;
pub use watchable::{Watchable, watchable};
pub use watched_read::{Query, QueryFigures, SharedQuery};

pub(crate) use index::shard_index::Index;
pub(crate) use registry::named::encode as encode_named;
pub(crate) use registry::naming::{Acknowledging, NotAcknowledged};
pub(crate) use registry::queries::Registry;
pub(crate) use replay::scope::Scope;
