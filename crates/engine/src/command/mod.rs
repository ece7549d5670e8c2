//! The commands on keys: one row each, in a table. The server adds the rows of its own commands to a
//! table of all; the dispatcher, `COMMAND`, `COMMAND DOCS`, the book's reference and the client's
//! hints are derived from that.
//!
//! ```text
//! table ──► rows ──► handlers: strings, lists, … ──► row: what a row is ──► context
//! ```
//!
//! To add a command: write a handler next to similar ones, and give it a row with the next free id
//! of its file's range and with its keys. Ids are in the log; they are never changed or reused.

mod bits;
mod comparing;
mod counters;
mod dumps;
mod first_of;
pub mod flags;
mod geo;
mod group;
mod hashes;
mod help;
mod hexadecimal;
mod hyper_log_logs;
mod key_spec;
mod key_use;
mod keys;
mod keyspace_wide;
mod lenses;
mod limits;
mod lists;
mod members;
mod misfit;
mod missing;
pub(crate) mod once;
pub mod parse;
mod pools;
mod row;
mod rows;
mod series;
mod sets;
mod similar;
mod sort;
pub(crate) mod sorted_sets;
mod streams;
mod strings;
pub mod syntax;
mod table;

use crate::value::Unit;

pub use group::Group;
pub(crate) use hashes::times::{FIELDS_EXPIRE, FIELDS_EXPIRE_NAME};
pub use help::reply_help;
pub use key_spec::KeySpec;
pub use key_use::key_uses_of;
pub use keyspace_wide::{COUNT_KEYS_IN_SLOT, KEYS_IN_SLOT};
pub(crate) use row::{Answer, Extension, Misses, WriteReach};
pub use row::{Command, Handler, LibraryAction, Run, ScriptAction, Serve};
pub(crate) use series::{begin_following, decode_followed, find_series, replay_points};
pub use similar::similar;
pub(crate) use streams::check_repeatable;
pub(crate) use table::find_logged;
pub use table::{CommandTable, all, by_id, find, resolve};

/// Whether the answer of a read depends on when it runs, besides the keys. `args` begin with the
/// command's name.
pub(crate) fn depends_on_time(args: &[&[u8]]) -> bool {
    series::clock::is_relative(args)
}

/// Returns in which steps time moves for a read that depends on it, in microseconds.
pub(crate) fn step_us(args: &[&[u8]], unit: Unit) -> u64 {
    series::clock::step_us(args, unit)
}
