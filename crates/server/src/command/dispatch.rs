//! Dispatch: checks whether the client may run a command now, and runs it.

use crate::command::once_command::{self, Numbered};
use crate::command::rows::{ConnectionCommand, command_table, connection_command_of};
use crate::command::subscribe_command::is_confirmed;
use crate::command::{connection_command, durable_command, exec, gate, postponing, transaction};
use crate::context::Context;
use crate::durability::hold::{COMMIT_LOST, finish, hold_what_is_shown, holds_back};
use crate::durability::loading::LOADING;
use crate::durability::log_state::CommitLost;
use crate::events::invalidation;
use crate::net::client_eviction::NO_MEMORY;
use crate::net::offload;
use crate::net::pipelined_run::{RUN_COMMANDS, RunCommand};
use crate::scripts::script_command::{BUSY, is_all_kept_busy};
use crate::session::{Replies, Session, terms};
use crate::wait;
use smallvec::SmallVec;
use std::time::Duration;
use tidemark_engine::command::{flags, parse};
use tidemark_engine::{Call, Command, CommandError, Protocol, Run};

/// Runs one command of a client and writes its reply. A long command is offloaded, and the client
/// waits for it. `args` is not empty.
pub(crate) fn run(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) {
    run_where(session, args, offload::begin, cx);
}

/// Runs one command on this thread, however long, and writes its reply. `args` is not empty.
pub(crate) fn run_in_place(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) {
    run_where(session, args, |_, _, _, _| false, cx);
}

#[inline]
fn run_where(
    session: &mut Session,
    args: &[&[u8]],
    goes_beside: impl FnOnce(&mut Session, &'static Command, &[&[u8]], &Context<'_>) -> bool,
    cx: &Context<'_>,
) {
    assert!(!args.is_empty() && session.wait.is_none(), "a client that waits runs nothing");
    let mark = session.outbox.reply.len();
    cx.counters.commands.add(1);
    let resolved = command_table().resolve(args);
    match &resolved {
        Ok(command) => {
            session.last_command = command.id;
            let may_run = cx.shared.engine.is_loaded() && cx.admits();
            let may_be_long = command.visits_all || matches!(command.run, Run::Script(_));
            if cx.shared.engine.scripts().running().any() && is_kept_busy(session, command, args, cx) {
                refuse(session, args, &BUSY, cx);
            } else if may_be_long && may_run && goes_beside(session, command, args, cx) {
                return;
            } else if session.is_plain() && may_run {
                execute(session, command, args, false, cx);
            } else {
                execute_guarded(session, command, args, cx);
            }
        }
        Err(_) if is_http(args) => {
            cx.counters.protocol_errors.add(1);
            cx.shared.warn_of_http(&session.client.address);
            session.closing = true;
        }
        Err(error) => refuse(session, args, error, cx),
    }
    if session.outbox.reply.was_refused() {
        session.outbox.give_up(mark);
        session.outbox.reply.error_text(NO_MEMORY);
    }
    let reply = &session.outbox.reply;
    if reply.bytes().get(mark) == Some(&b'-') {
        cx.shared.errors.count(&reply.bytes()[mark + 1..]);
    }
    if session.replies != Replies::On {
        withhold(session, mark, resolved.ok());
    }
    if session.tracking.is_some() {
        invalidation::after_command(session, args, cx);
    }
}

/// Whether a script has the locks that a command needs, and has had them for too long.
#[cold]
fn is_kept_busy(session: &Session, command: &Command, args: &[&[u8]], cx: &Context<'_>) -> bool {
    if !session.authenticated {
        return false;
    }
    if connection_command_of(command) == Some(ConnectionCommand::Ping) {
        // It needs no lock. But its answer says that the server serves, and no data can be had.
        return session.transaction.is_none()
            && is_all_kept_busy(cx.config.busy_reply_threshold_ms, cx.shared);
    }
    postponing::rest_of_script(session, command, args, cx).is_some_and(|rest| rest.is_zero())
}

/// Length of the name of `TS.ADD`, the only command with the flag [`flags::RUNS`].
const RUN_NAME_BYTES: usize = 6;

/// Returns the row of a command of `len` arguments that may be part of a run: see [`run_together`].
#[inline]
pub(crate) fn joining(
    session: &Session,
    name: &[u8],
    len: usize,
    cx: &Context<'_>,
) -> Option<&'static Command> {
    // Spares nearly all other commands the lookup.
    if name.len() != RUN_NAME_BYTES {
        return None;
    }
    let command =
        command_table().find(name).filter(|command| command.is(flags::RUNS) && command.takes(len))?;
    let is_free =
        session.is_plain() && session.tracking.is_none() && !cx.shared.engine.scripts().running().any();
    (is_free && cx.shared.engine.is_loaded() && cx.admits()).then_some(command)
}

/// Runs commands that are [`joining`] under the same locks, and writes their replies. Each waits for
/// the one record of all. Returns `false`, with nothing done, if they must run one after the other:
/// the log is full or has failed.
pub(crate) fn run_together(session: &mut Session, commands: &[RunCommand<'_>], cx: &Context<'_>) -> bool {
    let mark = session.outbox.reply.len();
    let (db, now_us) = (session.db, cx.now_us);
    let calls: SmallVec<[Call<'_>; RUN_COMMANDS]> =
        commands.iter().map(|&(command, args)| Call { command, args, db, now_us }).collect();
    let Some(executed) = cx.shared.engine.execute_run(&calls, &mut session.outbox.reply) else {
        return false;
    };
    cx.counters.commands.add(calls.len() as u64);
    session.last_command = calls[0].command.id;
    session.last_write = executed.lsn.or(session.last_write);
    let answer = &session.outbox.reply.bytes()[mark..];
    match holds_back(&executed, false, answer, || cx.shared.engine.log().appended(), cx.shared) {
        Ok(None) => {}
        Ok(Some(until)) => session.outbox.hold(mark, until),
        Err(CommitLost) => {
            session.outbox.rewrite(mark);
            calls.iter().for_each(|_| session.outbox.reply.error_text(COMMIT_LOST));
        }
    }
    if session.outbox.reply.was_refused() {
        session.outbox.give_up(mark);
        calls.iter().for_each(|_| session.outbox.reply.error_text(NO_MEMORY));
    }
    // Each reply is a line.
    for line in session.outbox.reply.bytes()[mark..].split_inclusive(|byte| *byte == b'\n') {
        if let [b'-', error @ ..] = line {
            cx.shared.errors.count(error);
        }
    }
    true
}

/// Runs a command that has passed all checks.
#[inline]
pub(crate) fn execute(
    session: &mut Session,
    command: &'static Command,
    args: &[&[u8]],
    durable: bool,
    cx: &Context<'_>,
) {
    match command.run {
        Run::Keys(_) | Run::Script(_) => execute_on_keys(session, command, args, durable, cx),
        Run::Outside(number) => match ConnectionCommand::of_number(number) {
            ConnectionCommand::Durable => {
                if let Err(error) = execute_durable(session, args, cx) {
                    session.outbox.reply.error(&error);
                }
            }
            ConnectionCommand::Exec => {
                if let Err(error) = exec::exec(session, None, cx) {
                    session.outbox.reply.error(&error);
                }
            }
            ConnectionCommand::Once => execute_once(session, args, cx),
            which => {
                let mark = session.outbox.reply.len();
                connection_command::run(session, which, command, args, cx);
                if which == ConnectionCommand::DebugDigest && cx.waits_for_commit() {
                    hold_what_is_shown(session, mark, cx);
                }
            }
        },
        // A container without a subcommand has too few arguments and is not resolved.
        Run::Container => session.outbox.reply.error(&CommandError::Arity(command.name.into())),
    }
}

fn execute_on_keys(
    session: &mut Session,
    command: &'static Command,
    args: &[&[u8]],
    durable: bool,
    cx: &Context<'_>,
) {
    let mark = session.outbox.reply.len();
    let call = Call { command, args, db: session.db, now_us: cx.now_us };
    let terms = terms(session.tracking.as_deref(), durable, false);
    let executed = cx.shared.engine.execute_as(&call, terms, &mut session.outbox.reply);
    let shown = || cx.shared.engine.newest_shown(command, args);
    finish(session, &executed, mark, durable, shown, cx);
    if let Some(blocked) = executed.into_blocked() {
        wait::block(session, blocked, durable, cx);
    }
}

/// `DURABLE command …`
fn execute_durable(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let (command, args) = durable_command::unwrap(args)?;
    execute_on_keys(session, command, args, true, cx);
    Ok(())
}

/// `ONCE session number command …`
fn execute_once(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) {
    let (name, numbered) = match once_command::unwrap(args) {
        Ok(named) => named,
        Err(error) => return refuse(session, args, &error, cx),
    };
    match numbered {
        Numbered::Transaction => {
            if let Err(error) = exec::exec(session, Some(name), cx) {
                session.outbox.reply.error(&error);
            }
        }
        Numbered::Command { command, args, is_durable } => {
            let mark = session.outbox.reply.len();
            let call = Call { command, args, db: session.db, now_us: cx.now_us };
            let terms = terms(session.tracking.as_deref(), is_durable, false);
            let engine = &cx.shared.engine;
            let executed = engine.execute_once(name, &call, terms, &mut session.outbox.reply);
            let shown = || engine.newest_shown_by_session(name.session);
            finish(session, &executed, mark, is_durable, shown, cx);
        }
    }
}

/// Runs a command of a client with restrictions, such as one in a transaction.
#[cold]
fn execute_guarded(session: &mut Session, command: &'static Command, args: &[&[u8]], cx: &Context<'_>) {
    if !session.authenticated && !command.is(flags::NO_AUTH) {
        refuse(session, args, &CommandError::text("NOAUTH Authentication required."), cx);
    } else if session.is_reserved && !administers(command) {
        refuse(session, args, &CommandError::text("ERR max number of clients reached"), cx);
        session.closing = true;
    } else if !cx.shared.engine.is_loaded() && !runs_while_loading(command) {
        refuse(session, args, &CommandError::text(LOADING), cx);
    } else if let Some(error) = forbidden_while_subscribed(session, command) {
        refuse(session, args, &error, cx);
    } else if let Some(error) = not_here(session, command, args, cx) {
        turn_away(session, command, args, &error, cx);
    } else if session.transaction.is_some() && !transaction::runs_at_once(command, args) {
        transaction::queue(session, command, args, cx);
    } else {
        execute(session, command, args, false, cx);
    }
}

/// Whether a command may run on a reserved connection: commands to inspect and repair the server,
/// and those that client libraries send when they connect.
fn administers(command: &Command) -> bool {
    command.is(flags::RESERVED) || matches!(command.run, Run::Container)
}

/// Whether a command needs no data and so runs while the server loads: the commands about clients
/// and the server that Redis allows then.
fn runs_while_loading(command: &Command) -> bool {
    command.is(flags::WITHOUT_DATA) || matches!(command.run, Run::Container)
}

/// Returns the error for a command that a subscribed RESP2 client may not run: in RESP2 a message
/// looks like a reply, so only subscriptions may change.
fn forbidden_while_subscribed(session: &Session, command: &Command) -> Option<CommandError> {
    if !session.subscriptions.any() || session.outbox.reply.protocol() == Protocol::Resp3 {
        return None;
    }
    let allowed = command.is(flags::WHILE_SUBSCRIBED);
    (!allowed).then(|| {
        let name = command_table().full_name(command);
        CommandError::Text(
            format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
                 in this context"
            )
            .into(),
        )
    })
}

/// Returns the error for a command that this member of a group may not run now.
fn not_here(
    session: &Session,
    command: &'static Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Option<CommandError> {
    let group = cx.shared.group.as_ref()?;
    gate::objection(group, session, command, args)
}

/// Time after which a client that was sent to another member and still sends commands here does not
/// follow. A client of Redis Sentinel asks again where the leader is when its connection closes; one of
/// Redis Cluster sends nothing here any more.
const FOLLOWING_TIME: Duration = Duration::from_secs(1);

/// Sends the client to another member. Ends the transaction of `EXEC`, and spoils that of a command
/// that would have been queued: the client repeats it there as a whole. Closes the connection of a client
/// that does not go there.
fn turn_away(
    session: &mut Session,
    command: &'static Command,
    args: &[&[u8]],
    error: &CommandError,
    cx: &Context<'_>,
) {
    session.outbox.reply.error(error);
    if gate::names_another(error) {
        let now = cx.shared.clock.now();
        let since = *session.sent_away_since.get_or_insert(now);
        session.closing |= now.saturating_duration_since(since) > FOLLOWING_TIME;
    }
    if transaction::is_exec(command, args) {
        exec::give_up(session, cx);
    } else if let Some(transaction) = &mut session.transaction {
        transaction.spoil();
    }
}

/// Whether a line of an HTTP request was parsed as a command. A web page can make a browser post
/// commands to this port; none of them may run.
#[cold]
fn is_http(args: &[&[u8]]) -> bool {
    args.first().is_some_and(|name| parse::is(name, "POST") || parse::is(name, "HOST:"))
}

/// Replies with the error and spoils the transaction that the command would have joined. A refused
/// `EXEC` ends its transaction.
fn refuse(session: &mut Session, args: &[&[u8]], error: &CommandError, cx: &Context<'_>) {
    if once_command::are_exec(args) {
        return exec::abort(session, error, cx);
    }
    session.outbox.reply.error(error);
    if let Some(transaction) = &mut session.transaction {
        transaction.spoil();
    }
}

/// Removes a reply that `CLIENT REPLY` suppresses, or marks a reply still to come as suppressed.
fn withhold(session: &mut Session, mark: usize, command: Option<&Command>) {
    let (show, next) = match session.replies {
        Replies::On => (true, Replies::On),
        Replies::Off => (false, Replies::Off),
        Replies::SkipThisAndNext => (false, Replies::SkipThis),
        Replies::SkipThis => (false, Replies::On),
    };
    if !show && !command.is_some_and(|command| is_confirmed(session, mark, command)) {
        session.outbox.take_back(mark);
        session.outbox.reply.encoded(&std::mem::take(&mut session.confirmations));
        if let Some(wait) = &mut session.wait {
            wait.is_silent = true;
        }
    }
    session.replies = next;
}
