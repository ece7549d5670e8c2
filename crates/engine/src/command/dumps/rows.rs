//! The rows of the command table for dumps.

use super::{dump, restore};
use crate::command::{Answer, Command, Group, Handler, KeySpec, Run, flags::*};
use crate::persist::level;
use crate::rdb;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(Group::Generic, id, name, arity, flags, KeySpec::ONE, Run::Keys(run)).at_level(level::VALUES)
}

/// Returns the level that the value in a payload needs.
fn level_of_payload(args: &[&[u8]]) -> u8 {
    match args.get(3) {
        Some(payload) if rdb::is_of_newer_form(payload) => level::FIELD_TIMES,
        _ => level::VALUES,
    }
}

const RESTORE_COST: &str = "O(N) with N the bytes of the value; O(N*log(N)) for a sorted set of N members";
const RESTORE_SYNTAX: &str =
    "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]";

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(125, "dump", 2, READONLY, dump)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .visiting_all()
        .tips(&["nondeterministic_output"])
        .doc(
            "2.6.0",
            "O(N) with N the bytes of the value",
            "key",
            "Returns the value of a key as bytes that RESTORE takes, here and in Redis 7.",
        ),
    row(126, "restore", -4, WRITE | DENYOOM, restore)
        .at_level_of(level_of_payload)
        .using(&["OW update"])
        .visiting_arguments()
        .in_categories(&["@dangerous"], &[])
        .doc("2.6.0", RESTORE_COST, RESTORE_SYNTAX, "Creates a key with a value from DUMP."),
    row(127, "restore-asking", -4, WRITE | DENYOOM, restore)
        .at_level_of(level_of_payload)
        .using(&["OW update"])
        .visiting_arguments()
        .in_categories(&["@dangerous"], &[])
        .doc(
            "3.0.0",
            RESTORE_COST,
            RESTORE_SYNTAX,
            "Creates a key with a value from DUMP; the same as RESTORE.",
        ),
];
