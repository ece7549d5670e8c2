//! Alternatives to [`Counter`](tidemark_counter::Counter), for comparison in benchmarks.
//!
//! - [`Atomic`]: one number in memory, without a store.
//! - [`Batching`]: stores every operation, in batches.
//! - [`PnCounter`]: many independent writers, and no limit.

mod atomic;
mod batching;
mod pn_counter;

pub use atomic::Atomic;
pub use batching::{Batching, Stored};
pub use pn_counter::{MAX_REPLICAS, PnCounter, Refused};
