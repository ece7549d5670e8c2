//! Time series, as Redis's `TS.` commands have them.
//!
//! ```text
//! rows ──► creating ◄── adding ──► options ──► points ──► errors
//!      └─► reading, several ──► range, filter ──► pattern ──┘
//! ```
//!
//! `clock` has times relative to the command's. A command is logged as it was sent; `*` is the record's time.

mod adding;
pub(super) mod clock;
mod creating;
mod errors;
mod filter;
mod options;
mod pattern;
mod points;
mod range;
mod reading;
pub(super) mod rows;
mod several;
