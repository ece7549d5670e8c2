//! Other ways to count than [`Counter`](crate::Counter)'s, to compare it with, and for what it is not for.
//!
//! - [`Atomic`]: one number in memory, and nothing of what is stored.
//! - [`PnCounter`]: many writers that need not reach each other, and no limit.

mod atomic;
mod pn_counter;

pub use atomic::Atomic;
pub use pn_counter::{MAX_REPLICAS, PnCounter, Refused};
