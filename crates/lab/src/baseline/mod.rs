//! Other ways to count than [`Counter`](tidemark_counter::Counter), which benchmarks compare with it.
//!
//! - [`Atomic`]: one number in memory, and nothing of what is stored.
//! - [`Batching`]: everything is stored, a batch at a time.
//! - [`PnCounter`]: many writers that need not reach each other, and no limit.

mod atomic;
mod batching;
mod pn_counter;

pub use atomic::Atomic;
pub use batching::{Batching, Stored};
pub use pn_counter::{MAX_REPLICAS, PnCounter, Refused};
