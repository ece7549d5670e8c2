//! Other ways to count than [`Counter`](crate::Counter)'s, to compare it with, and for what it is not for.
//!
//! - [`PnCounter`]: many writers that need not reach each other, and no limit.

mod pn_counter;

pub use pn_counter::{MAX_REPLICAS, PnCounter, Refused};
