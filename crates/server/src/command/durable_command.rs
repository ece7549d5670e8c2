//! `DURABLE command …`: a change whose reply waits until it is on disk.

use crate::command::rows::command_table;
use tidemark_engine::command::flags;
use tidemark_engine::{Command, CommandError, Run};

/// Returns the command after the word `DURABLE`.
pub(crate) fn unwrap<'a, 'b>(
    args: &'a [&'b [u8]],
) -> Result<(&'static Command, &'a [&'b [u8]]), CommandError> {
    let inner = args.get(1..).unwrap_or_default();
    let command = command_table().resolve(inner)?;
    match command.run {
        Run::Keys(_) | Run::Script(_) if command.is(flags::WRITE) => Ok((command, inner)),
        _ => Err(CommandError::text(
            "ERR DURABLE stands before a command that changes keys, such as DURABLE SET key value",
        )),
    }
}
