//! `SCRIPT`: the scripts that the server knows, and the end of one that takes too long.

use crate::context::Context;
use crate::session::Session;
use crate::shared::Shared;
use std::time::Duration;
use tidemark_engine::command::parse;
use tidemark_engine::script::Killed;
use tidemark_engine::{Command, CommandError};

/// `SCRIPT LOAD script`
pub(crate) fn load(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let digits = cx.shared.engine.scripts().load(args.get(2).copied().unwrap_or_default())?;
    session.outbox.reply.bulk(digits.as_bytes());
    Ok(())
}

/// `SCRIPT EXISTS sha1 [sha1 …]`
pub(crate) fn exists(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let ids = args.get(2..).unwrap_or_default();
    session.outbox.reply.array(ids.len());
    ids.iter().for_each(|id| session.outbox.reply.integer(cx.shared.engine.scripts().has(id).into()));
    Ok(())
}

/// `SCRIPT FLUSH [ASYNC | SYNC]`
pub(crate) fn flush(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    match args.get(2..).unwrap_or_default() {
        [] => {}
        [mode] if parse::is(mode, "SYNC") || parse::is(mode, "ASYNC") => {}
        _ => return Err(CommandError::text("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    cx.shared.engine.scripts().flush();
    session.outbox.reply.ok();
    Ok(())
}

/// `SCRIPT KILL`, or `FUNCTION KILL`
pub(crate) fn kill(session: &mut Session, functions: bool, cx: &Context<'_>) -> Result<(), CommandError> {
    let threshold = Duration::from_millis(cx.config.busy_reply_threshold_ms);
    let now = cx.shared.clock.now();
    // Before the clock began, no script ran.
    let killed =
        now.checked_sub(threshold).map(|since| cx.shared.engine.scripts().running().kill(since, functions));
    match killed.unwrap_or(Killed::NoneIsBusy) {
        Killed::Yes => {
            session.outbox.reply.ok();
            Ok(())
        }
        Killed::IsOther if functions => Err(BUSY),
        Killed::IsOther => Err(BUSY_FUNCTION),
        Killed::NoneIsBusy => Err(CommandError::text("NOTBUSY No scripts in execution right now.")),
        Killed::HasWritten => Err(CommandError::text(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either \
             wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        )),
    }
}

/// The error for commands that need the locks of a script that takes too long.
pub(crate) const BUSY: CommandError = CommandError::text(
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
);

/// As [`BUSY`], while a function runs.
const BUSY_FUNCTION: CommandError = CommandError::text(
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
);

/// `FUNCTION STATS`
pub(crate) fn stats(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let engine = &cx.shared.engine;
    let running = engine.scripts().running().function();
    let (libraries, functions) = engine.function_totals();
    let reply = &mut session.outbox.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(running.command.get(1).map_or(&[][..], |name| name));
            reply.bulk(b"command");
            reply.array(running.command.len());
            running.command.iter().for_each(|arg| reply.bulk(arg));
            reply.bulk(b"duration_ms");
            let taken = cx.shared.clock.now().saturating_duration_since(running.began);
            reply.integer(i64::try_from(taken.as_millis()).unwrap_or(i64::MAX));
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.count(libraries);
    reply.bulk(b"functions_count");
    reply.count(functions);
    Ok(())
}

/// Whether a script has had all locks for too long, so that no key can be read. The caller has seen that scripts
/// are announced.
#[cold]
pub(crate) fn is_all_kept_busy(threshold_ms: u64, shared: &Shared) -> bool {
    shared.engine.script_with_all_locks().is_some_and(|since| {
        shared.clock.now().saturating_duration_since(since) >= Duration::from_millis(threshold_ms)
    })
}

/// How long a command waits for a script before it is refused: nothing if it has waited that long, `None` if
/// it need not wait for one. The caller has seen that scripts are announced.
#[cold]
pub(crate) fn wait_for_script(
    command: &Command,
    args: &[&[u8]],
    threshold_ms: u64,
    shared: &Shared,
) -> Option<Duration> {
    let since = shared.engine.script_before(command, args)?;
    let taken = shared.clock.now().saturating_duration_since(since);
    Some(Duration::from_millis(threshold_ms).saturating_sub(taken))
}
