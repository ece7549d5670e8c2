//! Prize pools: weighted draws from limited stock.
//!
//! ```text
//! rows ──► creating, drawing, reserving, changing, epochs, reading, following ──► rules ──► answer, options ──► context/pools ──► value/pool
//! ```
//!
//! Random choices are logged by their results: the creation of a pool with its secrets, and a
//! change as its effects, in rows that clients cannot send.

mod answer;
mod changing;
mod creating;
mod drawing;
mod epochs;
mod following;
mod options;
mod reading;
mod reserving;
pub(super) mod rows;
mod rules;
mod schedule;
mod tables;

use crate::error::CommandError;

fn no_pool() -> CommandError {
    CommandError::text("ERR no such pool, POOL.CREATE makes one")
}
