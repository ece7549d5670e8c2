//! Rows of the commands that run scripts and functions, and of those by which the log has libraries of
//! functions: their texts by their names. What a library is was checked when a client loaded it, so a replay
//! runs no Lua.

use crate::command::flags::{MOVABLE_KEYS, NOSCRIPT, READONLY, STALE, WRITE};
use crate::command::{Command, Group, KeySpec, Run, ScriptAction, WriteReach};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::LIBRARIES;
use crate::persist::level;

const fn row(id: u16, name: &'static str, flags: u32, named: ScriptAction) -> Command {
    let flags = flags | NOSCRIPT | STALE | MOVABLE_KEYS;
    Command::new(Group::Scripting, id, name, -3, flags, KeySpec::Counted { at: 2 }, Run::Script(named))
}

/// All of them.
pub(crate) const COMMANDS: &[Command] = &[
    row(1080, "eval", WRITE, ScriptAction::Text)
        .using(&["RW access update"])
        .in_categories(&[], &["@write"])
        .reaching(WriteReach::OtherDatabase)
        .doc(
            "2.6.0",
            "That of the script",
            "script numkeys [key [key ...]] [arg [arg ...]]",
            "Runs a Lua script.",
        ),
    row(1081, "eval_ro", READONLY, ScriptAction::Text)
        .using(&["RO access"])
        .in_categories(&[], &["@read"])
        .doc(
            "7.0.0",
            "That of the script",
            "script numkeys [key [key ...]] [arg [arg ...]]",
            "Runs a Lua script that changes nothing.",
        ),
    row(1082, "evalsha", WRITE, ScriptAction::Id)
        .using(&["RW access update"])
        .in_categories(&[], &["@write"])
        .reaching(WriteReach::OtherDatabase)
        .doc(
            "2.6.0",
            "That of the script",
            "sha1 numkeys [key [key ...]] [arg [arg ...]]",
            "Runs a Lua script that the server knows.",
        ),
    row(1083, "evalsha_ro", READONLY, ScriptAction::Id)
        .using(&["RO access"])
        .in_categories(&[], &["@read"])
        .doc(
            "7.0.0",
            "That of the script",
            "sha1 numkeys [key [key ...]] [arg [arg ...]]",
            "Runs a Lua script that the server knows and that changes nothing.",
        ),
    row(1090, "fcall", WRITE, ScriptAction::Function)
        .using(&["RW access update"])
        .in_categories(&[], &["@write"])
        .reaching(WriteReach::OtherDatabase)
        .doc(
            "7.0.0",
            "That of the function",
            "function numkeys [key [key ...]] [arg [arg ...]]",
            "Runs a function of a library.",
        ),
    row(1091, "fcall_ro", READONLY, ScriptAction::Function)
        .using(&["RO access"])
        .in_categories(&[], &["@read"])
        .doc(
            "7.0.0",
            "That of the function",
            "function numkeys [key [key ...]] [arg [arg ...]]",
            "Runs a function of a library that changes nothing.",
        ),
];

/// Names of the commands that only the log has, and their ids there.
pub(super) const SET: &str = "library.set";
pub(crate) const SET_ID: u16 = 651;
pub(super) const DELETE: &str = "library.delete";
pub(crate) const DELETE_ID: u16 = 652;

/// Rows that only the log has.
pub(crate) const LOGGED: &[Command] = &[
    Command::new(Group::Scripting, SET_ID, SET, 3, WRITE, KeySpec::ONE, Run::Keys(set))
        .at_level(level::FUNCTIONS)
        .using(&["OW update"])
        .doc("tidemark 0.1.0", "O(1)", "name text", "A library of functions was loaded."),
    Command::new(Group::Scripting, DELETE_ID, DELETE, 2, WRITE, KeySpec::ONE, Run::Keys(delete))
        .at_level(level::FUNCTIONS)
        .using(&["RM delete"])
        .doc("tidemark 0.1.0", "O(1)", "name", "A library of functions was removed."),
];

fn check_database(ctx: &Context<'_, '_>) -> Result<(), CommandError> {
    if ctx.keys.db() == LIBRARIES {
        return Ok(());
    }
    Err(CommandError::text("ERR a library is changed in a database of keys"))
}

/// `library.set name text`
fn set(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    check_database(ctx)?;
    ctx.keys.set_library(args[1], args[2]);
    Ok(())
}

/// `library.delete name`
fn delete(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    check_database(ctx)?;
    if ctx.keys.remove_library(args[1]) {
        return Ok(());
    }
    Err(CommandError::text("ERR there is no such library"))
}
