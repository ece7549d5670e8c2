//! The rows that handlers' files define.

use super::row::Command;
use super::{
    bits, comparing, counters, dumps, geo, hashes, hyper_log_logs, keys, keyspace_wide, lenses, limits,
    lists, once, pools, series, sets, sort, sorted_sets, streams, strings,
};
use crate::script;

/// Returns all of them, in the order of their chapters.
pub(super) fn rows() -> impl Iterator<Item = &'static Command> {
    [
        strings::COMMANDS,
        comparing::COMMANDS,
        bits::COMMANDS,
        hyper_log_logs::COMMANDS,
        keys::COMMANDS,
        sort::COMMANDS,
        dumps::rows::COMMANDS,
        keyspace_wide::COMMANDS,
        lists::COMMANDS,
        hashes::COMMANDS,
        hashes::times::COMMANDS,
        sets::COMMANDS,
        sorted_sets::rows::COMMANDS,
        geo::rows::COMMANDS,
        streams::rows::COMMANDS,
        counters::COMMANDS,
        limits::rows::COMMANDS,
        pools::rows::COMMANDS,
        series::rows::COMMANDS,
        lenses::rows::COMMANDS,
        script::command::COMMANDS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the rows that only the log has, and clients cannot send.
pub(super) fn logged_rows() -> impl Iterator<Item = &'static Command> {
    let engine_s = pools::rows::LOGGED.iter().chain(once::LOGGED).chain(script::command::LOGGED);
    engine_s.chain(hashes::times::LOGGED)
}
