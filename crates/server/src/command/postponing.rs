//! Postpones commands until `CLIENT PAUSE` or a script ends, or the log has room.

use crate::command::rows::{ConnectionCommand, command_table, connection_command_of};
use crate::command::{named_command, transaction};
use crate::context::Context;
use crate::scripts::script_command;
use crate::session::{Session, Transaction, WaitFor};
use crate::wait;
use std::time::Duration;
use tidemark_engine::command::{flags, parse};
use tidemark_engine::{Command, Engine};
use tidemark_log::Options;

/// Makes the client wait if a pause applies to its command, or if the log has no room for what the
/// command changes. Returns whether it waits. `bytes` is the size of the whole command.
#[inline]
pub(crate) fn postpone(session: &mut Session, args: &[&[u8]], bytes: usize, cx: &Context<'_>) -> bool {
    if let Some(rest) = cx.shared.pause.rest(cx.now_us) {
        return postpone_for(session, args, rest, cx, false);
    }
    if cx.shared.engine.scripts().running().any() && postpone_for_script(session, args, cx) {
        return true;
    }
    // The commands of a transaction are not among the arguments of `EXEC`.
    let queued = session.transaction.as_ref().map_or(0, Transaction::bytes);
    let log = cx.shared.engine.log();
    !log.has_room_for(bytes.max(queued)) && postpone_until_room(session, args, cx)
}

#[cold]
fn postpone_for(
    session: &mut Session,
    args: &[&[u8]],
    rest: Duration,
    cx: &Context<'_>,
    is_for_script: bool,
) -> bool {
    // A command that would be refused is refused immediately.
    let Ok(command) = command_table().resolve(args) else { return false };
    if !session.authenticated {
        return false;
    }
    let concerns = |command: &Command, args: &[&[u8]]| is_logged(command, args, cx) || is_publishing(command);
    if !is_for_script && cx.shared.pause.is_of_changes_only() && !any_of(session, command, args, concerns) {
        return false;
    }
    wait::begin(session, WaitFor::Unpaused, Some(rest));
    true
}

/// Time after which a command that waits for a script looks again.
const SCRIPT_LOOK: Duration = Duration::from_millis(5);

#[cold]
fn postpone_for_script(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> bool {
    let Ok(command) = command_table().resolve(args) else { return false };
    match rest_of_script(session, command, args, cx).filter(|rest| !rest.is_zero()) {
        Some(rest) => postpone_for(session, args, rest.min(SCRIPT_LOOK), cx, true),
        None => false,
    }
}

/// How long a command waits for a script that has the locks that it needs: nothing if the script has taken too
/// long, `None` if it need not wait.
pub(crate) fn rest_of_script(
    session: &Session,
    command: &Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Option<Duration> {
    let threshold_ms = cx.config.busy_reply_threshold_ms;
    let wait = |command: &Command, args: &[&[u8]]| {
        script_command::wait_for_script(command, args, threshold_ms, cx.shared)
    };
    if session.transaction.is_some() && transaction::runs_at_once(command, args) {
        let queued = session.transaction.as_ref().filter(|_| transaction::is_exec(command, args))?;
        let waits = queued.commands().filter_map(|(command, args)| {
            wait(command, &args.iter().map(|arg| &**arg).collect::<Vec<&[u8]>>())
        });
        return waits.min();
    }
    if session.transaction.is_some() {
        return None;
    }
    match connection_command_of(command) {
        None => wait(command, args),
        Some(ConnectionCommand::Durable | ConnectionCommand::Once) => {
            let from = if connection_command_of(command) == Some(ConnectionCommand::Durable) { 1 } else { 3 };
            let inner = args.get(from..)?;
            wait(command_table().resolve(inner).ok()?, inner)
        }
        Some(ConnectionCommand::Watch | ConnectionCommand::WatchRead | ConnectionCommand::DebugObject) => {
            wait(command, args)
        }
        Some(_) => None,
    }
}

#[cold]
fn postpone_until_room(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> bool {
    let Ok(command) = command_table().resolve(args) else { return false };
    // Another member of the group may have room.
    if !session.authenticated
        || !cx.admits()
        || !any_of(session, command, args, |command, args| is_logged(command, args, cx))
    {
        return false;
    }
    let queued = session.transaction.as_ref().filter(|_| transaction::is_exec(command, args));
    let bytes = queued.map_or_else(|| Engine::record_bytes(args), Transaction::bytes);
    if cx.shared.engine.log().has_room_for(bytes) {
        return false;
    }
    // At the timeout the command is retried; the log refuses it if its storage is still stalled.
    wait::begin(session, WaitFor::Room(bytes), Some(Options::STALL_AFTER));
    true
}

/// Whether `is_so` holds for a command or, if it is `EXEC`, for one of the queued commands.
fn any_of(
    session: &Session,
    command: &Command,
    args: &[&[u8]],
    is_so: impl Fn(&Command, &[&[u8]]) -> bool,
) -> bool {
    let queued = session.transaction.as_ref().filter(|_| transaction::is_exec(command, args));
    is_so(command, args)
        || queued.is_some_and(|transaction| {
            transaction
                .commands()
                .any(|(command, args)| is_so(command, &args.iter().map(|arg| &**arg).collect::<Vec<&[u8]>>()))
        })
}

/// Whether a command reaches other clients without a record in the log.
fn is_publishing(command: &Command) -> bool {
    matches!(connection_command_of(command), Some(ConnectionCommand::Publish | ConnectionCommand::Spublish))
}

/// Whether a command may write to the log.
fn is_logged(command: &Command, args: &[&[u8]], cx: &Context<'_>) -> bool {
    use ConnectionCommand as C;
    let Some(which) = connection_command_of(command) else {
        return command.is(flags::WRITE) && !cx.shared.engine.runs_without_writes(command, args);
    };
    match which {
        // Watched reads and names begin and end with a record.
        C::WatchRead => true,
        C::EmitAck => named_command::acknowledgement(args).is_some(),
        C::Unwatch => args.get(1).is_some_and(|word| parse::is(word, "NAMED") || parse::is(word, "QUERY")),
        _ => command.is(flags::WRITE),
    }
}
