//! Time series, as Redis's `TS.` commands have them.
//!
//! ```text
//! rows ──► creating ◄── adding, ruling ──► compaction ──► options ──► points ──► errors
//!      └─► reading, several, waiting ──► range, filter ──────────────────────────────┘
//! ```
//!
//! A command is logged as it was sent; `*` is the record's time.

mod adding;
mod compaction;
mod creating;
mod errors;
mod filter;
mod options;
mod points;
mod range;
mod reading;
pub(super) mod rows;
mod ruling;
mod several;
mod waiting;
