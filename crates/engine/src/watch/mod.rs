//! Watched reads: emissions follow from the log, and the engine keeps no state per subscriber.
//!
//! A [`Query`] is a watched read-only command with everything but the keys that its answer depends
//! on. Equal subscriptions share one query. When a record of the log changes the answer, the query
//! emits the new answer once, numbered and stamped with the record's LSN. The latest emissions are
//! retained. A subscription is a cursor: the number of its last delivered emission.
//!
//! ```text
//! X.WATCH ─► Engine::subscribe ─► record `watch` in the log ─► Registry, and the Index of every shard that it reads
//!                                                                     │
//! command ─► Keys::changed ─► Index::note ─► append ─► Engine::emit ──┤ under the locks of all that the query reads
//!                                                                     ▼
//!                                             Query: emissions 41, 42, 43 ─► Audience::notify ─► the server's workers
//!                                                        └─ Retention drops the oldest of all queries
//! ```
//!
//! # Why emissions are a function of the log
//!
//! A query begins with a record of its own, whose LSN is its id. Its answer is computed under the
//! locks of all shards that it reads, directly after the record that may have changed it. It reads
//! the logged state: an expired key exists until a record removes it. `apply` does the same with
//! the same records. So the number, LSN and bytes of an emission are equal on every machine that
//! has the log, and a restarted server emits again for the records after its snapshot. Answers in
//! hash-table order are sorted first.
//!
//! # Time
//!
//! A range may end at a time relative to now. Its query is answered as of a time of its own, which is
//! part of its state and moves on by records alone: see `ticking`.
//!
//! # Locks
//!
//! Lock order: shards by index, registry, names, retention, one query. A command that changes a key
//! of a query over several shards locks all of them: see `locking`.

mod answer;
mod audience;
mod budget;
mod by_id;
mod continuation;
pub(crate) mod difference;
mod dormancy;
mod emission;
mod evaluation;
mod filter;
pub(crate) mod following;
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
mod selecting;
mod state;
mod ticking;
mod ticks;
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
pub use replay::pool_trail::{PoolChange, PoolObserver, PoolSearch, PoolTrail, TrailError};
pub use retention::RetentionLimits;
pub use watchable::{Watchable, watchable};
pub use watched_read::{Query, QueryFigures, SharedQuery};

pub(crate) use index::shard_index::Index;
pub(crate) use registry::named::encode as encode_named;
pub(crate) use registry::naming::{Acknowledging, NotAcknowledged};
pub(crate) use registry::queries::Registry;
pub(crate) use replay::scope::Scope;
pub(crate) use watched_read::Cause;
