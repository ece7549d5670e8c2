//! Prize pools: weighted draws from limited stock.
//!
//! ```text
//! rows ──► creating, drawing, reserving, changing, epochs, reading, following ──► rules ──► answer, options ──► context/pools ──► value/pool
//! ```
//!
//! What chance decides is logged as decided: a pool that is made is logged with its secrets, and a change as what it has done, in rows that
//! only the log has.

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
