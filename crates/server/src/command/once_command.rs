//! `ONCE session number command …`: a change that a repetition does not make again.

use crate::command::durable_command;
use crate::command::rows::{ConnectionCommand, command_table, connection_command_of};
use tidemark_engine::command::{flags, parse};
use tidemark_engine::{Command, CommandError, OnceName, Run};

/// What is executed under a name.
pub(crate) enum Numbered<'a, 'b> {
    /// A command on keys, and whether its answer waits until it is durable.
    Command { command: &'static Command, args: &'a [&'b [u8]], is_durable: bool },
    /// What the client has queued behind `MULTI`.
    Transaction,
}

/// Returns the name, and what `ONCE` stands before.
pub(crate) fn unwrap<'a, 'b>(args: &'a [&'b [u8]]) -> Result<(OnceName<'b>, Numbered<'a, 'b>), CommandError> {
    let &[_, session, number, ..] = args else { return Err(CommandError::Arity("once".into())) };
    let name = OnceName { session: session_of(session)?, number: number_of(number)? };
    let inner = &args[3..];
    let command = command_table().resolve(inner)?;
    match connection_command_of(command) {
        Some(ConnectionCommand::Exec) => return Ok((name, Numbered::Transaction)),
        Some(ConnectionCommand::Durable) => {
            let (command, args) = durable_command::unwrap(inner)?;
            return Ok((name, on_keys(command, args, true)?));
        }
        _ => {}
    }
    Ok((name, on_keys(command, inner, false)?))
}

fn on_keys<'a, 'b>(
    command: &'static Command,
    args: &'a [&'b [u8]],
    is_durable: bool,
) -> Result<Numbered<'a, 'b>, CommandError> {
    match command.run {
        Run::Keys(_) | Run::Script(_) if command.is(flags::WRITE) && !command.may_wait(args) => {
            Ok(Numbered::Command { command, args, is_durable })
        }
        Run::Keys(_) if command.may_wait(args) => Err(CommandError::text(
            "ERR ONCE does not wait: give it the command that does not block, such as LPOP in place of BLPOP",
        )),
        _ => Err(CommandError::text(
            "ERR ONCE stands before a command that changes keys, such as ONCE session 1 INCR key, or before EXEC",
        )),
    }
}

fn session_of(name: &[u8]) -> Result<&[u8], CommandError> {
    let (bytes, most) = (name.len(), OnceName::SESSION_BYTES);
    if (1..=most).contains(&bytes) {
        return Ok(name);
    }
    Err(CommandError::Text(format!("ERR the name of a session has 1 to {most} bytes, not {bytes}").into()))
}

fn number_of(text: &[u8]) -> Result<u64, CommandError> {
    let number = parse::canonical_integer(text).and_then(|number| u64::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or(CommandError::text(
        "ERR the number must be from 1 to 9223372036854775807, without leading zeros",
    ))
}

/// Whether the words are `EXEC`, or `ONCE … EXEC`.
pub(crate) fn are_exec(args: &[&[u8]]) -> bool {
    match args {
        [name, _, _, inner, ..] if parse::is(name, "ONCE") => parse::is(inner, "EXEC"),
        [name, ..] => parse::is(name, "EXEC"),
        [] => false,
    }
}
