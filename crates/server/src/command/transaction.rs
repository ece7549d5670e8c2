//! `MULTI`, `DISCARD`, `WATCH`, `UNWATCH`: what `EXEC` will run, and under which condition.

use crate::command::rows::{ConnectionCommand, connection_command_of};
use crate::command::{durable_command, once_command};
use crate::context::Context;
use crate::session::{NAMES_LIMIT, Session, Transaction};
use tidemark_engine::command::flags;
use tidemark_engine::{Command, CommandError};

/// Whether a command runs immediately within a transaction instead of being queued.
pub(crate) fn runs_at_once(command: &Command, args: &[&[u8]]) -> bool {
    use ConnectionCommand as C;
    matches!(
        connection_command_of(command),
        Some(C::Multi | C::Exec | C::Discard | C::Watch | C::Quit | C::Reset)
    ) || is_exec(command, args)
}

/// Whether a command is `EXEC`, or `ONCE … EXEC`.
pub(crate) fn is_exec(command: &Command, args: &[&[u8]]) -> bool {
    match connection_command_of(command) {
        Some(ConnectionCommand::Exec) => true,
        Some(ConnectionCommand::Once) => once_command::are_exec(args),
        _ => false,
    }
}

/// Queues a command.
pub(crate) fn queue(session: &mut Session, command: &'static Command, args: &[&[u8]], cx: &Context<'_>) {
    let transaction = session.transaction.as_mut().expect("the client has said MULTI");
    match admit(transaction, command, args, cx.config.query_buffer_limit) {
        Ok(()) => session.outbox.reply.simple("QUEUED"),
        Err(error) => {
            transaction.spoil();
            session.outbox.reply.error(&error);
        }
    }
    session.show_state();
}

fn admit(
    transaction: &mut Transaction,
    command: &'static Command,
    args: &[&[u8]],
    limit: usize,
) -> Result<(), CommandError> {
    if command.is(flags::NO_MULTI) {
        return Err(CommandError::text("ERR Command not allowed inside a transaction"));
    }
    let is_durable = connection_command_of(command) == Some(ConnectionCommand::Durable);
    let (command, args) = if is_durable { durable_command::unwrap(args)? } else { (command, args) };
    if transaction.queue(command, args, is_durable, limit) {
        Ok(())
    } else {
        Err(CommandError::text("ERR transaction exceeds client-query-buffer-limit"))
    }
}

/// `MULTI`
pub(crate) fn multi(session: &mut Session) -> Result<(), CommandError> {
    if session.transaction.is_some() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::default());
    session.outbox.reply.ok();
    session.show_state();
    Ok(())
}

/// `DISCARD`
pub(crate) fn discard(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    if session.transaction.take().is_none() {
        return Err(CommandError::text("ERR DISCARD without MULTI"));
    }
    forget_watches(session, cx);
    session.outbox.reply.ok();
    session.show_state();
    Ok(())
}

/// `WATCH key [key ...]`
pub(crate) fn watch(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    if session.transaction.is_some() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    if session.watched.len() + args.len() - 1 > NAMES_LIMIT {
        return Err(CommandError::text("ERR too many keys to watch"));
    }
    for key in args.iter().skip(1) {
        cx.shared.engine.watch(&mut session.watched, session.db, key, cx.now_us);
    }
    session.outbox.reply.ok();
    Ok(())
}

/// `UNWATCH`
pub(crate) fn unwatch(session: &mut Session, cx: &Context<'_>) {
    forget_watches(session, cx);
    session.outbox.reply.ok();
}

/// Ends the session's watches, if any.
pub(crate) fn forget_watches(session: &mut Session, cx: &Context<'_>) {
    if !session.watched.is_empty() {
        cx.shared.engine.unwatch(&std::mem::take(&mut session.watched));
    }
}
