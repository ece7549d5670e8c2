//! The rows that are written down, beside the handlers that they name.

use super::row::Command;
use super::{
    bits, connection, counters, hashes, keys, keyspace_wide, limits, lists, pools, sets, sort, sorted_sets,
    strings,
};

/// All of them, in the order of their chapters.
pub(super) fn rows() -> impl Iterator<Item = &'static Command> {
    [
        strings::COMMANDS,
        bits::COMMANDS,
        keys::COMMANDS,
        sort::COMMANDS,
        keyspace_wide::COMMANDS,
        lists::COMMANDS,
        hashes::COMMANDS,
        sets::COMMANDS,
        sorted_sets::rows::COMMANDS,
        counters::COMMANDS,
        limits::rows::COMMANDS,
        pools::rows::COMMANDS,
        connection::COMMANDS,
    ]
    .into_iter()
    .flatten()
}

/// Rows of what the log has in place of commands, and clients cannot send.
pub(super) fn logged_rows() -> impl Iterator<Item = &'static Command> {
    pools::rows::LOGGED.iter()
}
