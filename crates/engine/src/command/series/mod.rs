//! Time series, as Redis's `TS.` commands have them.
//!
//! ```text
//! rows ──► creating ◄── adding ──► options ──► points ──► errors
//!      └─► reading, several ──► range, filter ──────────┘
//! ```
//!
//! What adds points is logged in columns (`persist::points`), every other command as it was sent; `*`
//! is the record's time.

mod adding;
mod creating;
mod errors;
mod filter;
mod options;
mod points;
mod range;
mod reading;
pub(super) mod rows;
mod several;

pub(crate) use adding::replay as replay_points;
