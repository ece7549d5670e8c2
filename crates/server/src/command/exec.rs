//! `EXEC`: applies the queued commands atomically.
//!
//! The engine runs the commands on keys as one: no other client sees only some of their changes,
//! and one record holds them. Commands of the connection, such as `PUBLISH` or `PING`, run right
//! after them; all replies keep the order of the queue.

use crate::command::rows::{ConnectionCommand, connection_command_of};
use crate::command::subscribe_command::is_confirmed;
use crate::command::{connection_command, named_command, watch_command};
use crate::context::Context;
use crate::durability::hold::finish;
use crate::session::{Replies, Session, Transaction, terms};
use tidemark_engine::command::parse;
use tidemark_engine::keyspace::DATABASES;
use tidemark_engine::watch::Acknowledgement;
use tidemark_engine::{Call, Command, CommandError, Executed, OnceName, Run, WatchedKeys};
use tidemark_log::Lsn;

/// `EXEC`, or `ONCE … EXEC` with its name.
pub(crate) fn exec(
    session: &mut Session,
    name: Option<OnceName<'_>>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let transaction = session.transaction.take().ok_or(CommandError::text("ERR EXEC without MULTI"))?;
    let watched = std::mem::take(&mut session.watched);
    if transaction.is_spoilt() {
        end_watches(&watched, cx);
        session.show_state();
        return Err(CommandError::text("EXECABORT Transaction discarded because of previous errors."));
    }
    let mark = session.outbox.reply.len();
    let executed = match name {
        None => execute(session, &transaction, &watched, cx),
        Some(name) => execute_once(session, name, &transaction, &watched, cx),
    };
    end_watches(&watched, cx);
    let shown = || match name {
        None => newest_shown(&transaction, cx),
        Some(name) => cx.shared.engine.newest_shown_by_session(name.session),
    };
    finish(session, &executed, mark, transaction.is_durable(), shown, cx);
    if session.replies == Replies::On {
        session.confirmations = Vec::new();
    }
    session.show_state();
    Ok(())
}

/// Refuses an `EXEC`: the transaction and the client's `WATCH`es end without effect.
pub(crate) fn abort(session: &mut Session, error: &CommandError, cx: &Context<'_>) {
    let reason = error.to_string();
    let reason = reason.strip_prefix("ERR ").unwrap_or(&reason);
    session.outbox.reply.error_text(&format!("EXECABORT Transaction discarded because of: {reason}"));
    give_up(session, cx);
}

/// Ends the transaction and the client's `WATCH`es without effect.
pub(crate) fn give_up(session: &mut Session, cx: &Context<'_>) {
    session.transaction = None;
    end_watches(&std::mem::take(&mut session.watched), cx);
    session.show_state();
}

fn end_watches(watched: &WatchedKeys, cx: &Context<'_>) {
    if !watched.is_empty() {
        cx.shared.engine.unwatch(watched);
    }
}

/// Returns the newest record that the replies may show, or a later one.
fn newest_shown(transaction: &Transaction, cx: &Context<'_>) -> Lsn {
    let shown = transaction.commands().map(|(command, args)| {
        let args: Vec<&[u8]> = args.iter().map(|arg| &**arg).collect();
        cx.shared.engine.newest_shown(command, &args)
    });
    shown.max().unwrap_or_default()
}

fn execute<'e>(
    session: &mut Session,
    transaction: &Transaction,
    watched: &WatchedKeys,
    cx: &Context<'e>,
) -> Executed<'e> {
    let args: Vec<Vec<&[u8]>> =
        transaction.commands().map(|(_, args)| args.iter().map(|arg| &**arg).collect()).collect();
    let calls = calls_on_keys(session.db, transaction, &args, cx.now_us);
    let watched = (!watched.is_empty()).then_some(watched);
    let engine = &cx.shared.engine;
    let terms = terms(session.tracking.as_deref(), transaction.is_durable(), transaction.opts_in());
    if calls.len() == transaction.len() {
        let reply = &mut session.outbox.reply;
        return engine.execute_transaction_as(&calls, watched, &[], cx.now_us, terms, reply);
    }
    let done = match acknowledgements(session, transaction, &args, cx) {
        Ok(done) => done,
        Err(error) => {
            session.outbox.reply.error(&error);
            return Executed::default();
        }
    };
    let mut answers = session.outbox.reply.apart();
    let executed = engine.execute_transaction_as(&calls, watched, &done, cx.now_us, terms, &mut answers);
    if answers.has_overflowed() {
        // Their replies are lost, but the commands on keys have run, so the others must run too.
        if answers.was_refused() {
            session.outbox.reply.refuse();
        } else {
            session.outbox.reply.overflow();
        }
        merge(session, transaction, &args, vec![&[]; calls.len()], cx);
        return executed;
    }
    match elements(answers.bytes()) {
        Some(elements) => merge(session, transaction, &args, elements, cx),
        // Not executed: an error, or a watched key has changed.
        None => session.outbox.reply.encoded(answers.bytes()),
    }
    executed
}

/// Executes a transaction, unless one was executed under the name before.
fn execute_once<'e>(
    session: &mut Session,
    name: OnceName<'_>,
    transaction: &Transaction,
    watched: &WatchedKeys,
    cx: &Context<'e>,
) -> Executed<'e> {
    let args: Vec<Vec<&[u8]>> =
        transaction.commands().map(|(_, args)| args.iter().map(|arg| &**arg).collect()).collect();
    let calls = calls_on_keys(session.db, transaction, &args, cx.now_us);
    let terms = terms(session.tracking.as_deref(), transaction.is_durable(), transaction.opts_in());
    let reply = &mut session.outbox.reply;
    if calls.len() < transaction.len() {
        reply.error_text(
            "ERR ONCE stands before the EXEC of commands on keys alone, and others were queued: nothing was done",
        );
        return Executed::default();
    }
    let watched = (!watched.is_empty()).then_some(watched);
    cx.shared.engine.execute_transaction_once(name, &calls, watched, cx.now_us, terms, reply)
}

/// Returns the commands on keys, each with the database that an earlier queued `SELECT` chose.
fn calls_on_keys<'a>(
    db: u8,
    transaction: &Transaction,
    args: &'a [Vec<&'a [u8]>],
    now_us: u64,
) -> Vec<Call<'a>> {
    let mut db = db;
    let mut calls = Vec::with_capacity(args.len());
    for ((command, _), args) in transaction.commands().zip(args) {
        match command.run {
            Run::Keys(_) | Run::Script(_) => calls.push(Call { command, args, db, now_us }),
            Run::Outside(_) if connection_command_of(command) == Some(ConnectionCommand::Select) => {
                db = selected(args).unwrap_or(db);
            }
            Run::Outside(_) | Run::Container => {}
        }
    }
    calls
}

/// Returns the acknowledgements of named subscriptions; they commit with the changes or not at all.
fn acknowledgements<'a>(
    session: &mut Session,
    transaction: &Transaction,
    args: &[Vec<&'a [u8]>],
    cx: &Context<'_>,
) -> Result<Vec<Acknowledgement<'a>>, CommandError> {
    let mut done = Vec::new();
    for ((command, _), args) in transaction.commands().zip(args) {
        if let Some((key, name, lsn)) = acknowledgement(command, args) {
            if !named_command::is_of_key(name, key, cx) {
                return Err(CommandError::text(
                    "SUBSCRIPTION_NOT_FOUND there is no subscription of that name to the key; nothing was done",
                ));
            }
            let lsn = watch_command::position(lsn)?;
            let given = watch_command::watched(session, name, cx).map(|subscription| subscription.given());
            if let Some(given) = given.filter(|given| lsn > *given) {
                return Err(CommandError::Text(
                    format!(
                        "INVALID_SEQUENCE the connection was given emissions up to LSN {given}; nothing was done"
                    )
                    .into(),
                ));
            }
            done.push(Acknowledgement { name, lsn });
        }
    }
    Ok(done)
}

/// Returns key, name and LSN of an acknowledgement that commits with the transaction.
fn acknowledgement<'a>(command: &Command, args: &[&'a [u8]]) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    (connection_command_of(command) == Some(ConnectionCommand::EmitAck))
        .then(|| named_command::acknowledgement(args))
        .flatten()
}

/// Returns the database that a `SELECT` names, if it is valid.
fn selected(args: &[&[u8]]) -> Option<u8> {
    let index = parse::canonical_integer(args.get(1)?)?;
    u8::try_from(index).ok().filter(|index| usize::from(*index) < DATABASES)
}

/// Runs the commands of the connection and writes all replies in the order of the queue.
fn merge(
    session: &mut Session,
    transaction: &Transaction,
    args: &[Vec<&[u8]>],
    answers: Vec<&[u8]>,
    cx: &Context<'_>,
) {
    session.outbox.reply.array(transaction.len());
    let mut answers = answers.into_iter();
    for ((command, _), args) in transaction.commands().zip(args) {
        match command.run {
            Run::Keys(_) | Run::Script(_) => {
                let answer = answers.next().expect("each command on keys has an answer");
                session.outbox.reply.encoded(answer);
            }
            Run::Outside(_) if acknowledgement(command, args).is_some() => {
                // It was committed with the transaction.
                session.outbox.reply.ok();
                let lsn = args.get(3).and_then(|lsn| watch_command::position(lsn).ok());
                if let (Some(name), Some(lsn)) = (args.get(2), lsn)
                    && let Some(subscription) = watch_command::watched(session, name, cx)
                {
                    subscription.acknowledge(lsn);
                }
            }
            Run::Outside(number) => {
                let which = ConnectionCommand::of_number(number);
                let mark = session.outbox.reply.len();
                connection_command::run_in_transaction(session, which, command, args, cx);
                if is_confirmed(session, mark, command) {
                    let confirmations = &session.outbox.reply.bytes()[mark..];
                    session.confirmations.extend_from_slice(confirmations);
                }
            }
            Run::Container => session.outbox.reply.error(&CommandError::Arity(command.name.into())),
        }
    }
    assert!(answers.next().is_none(), "there are more answers than commands on keys");
}

/// Splits an encoded array of the engine into its encoded elements; `None` if it is not an array.
fn elements(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (b'*', Some(count), mut position) = line(bytes, 0) else { return None };
    let mut elements = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        let end = skip(bytes, position);
        elements.push(&bytes[position..end]);
        position = end;
    }
    assert_eq!(position, bytes.len(), "an answer of {} bytes ends with its array", bytes.len());
    Some(elements)
}

/// Returns the offset after the reply that begins at `position`. Nesting needs no recursion.
fn skip(bytes: &[u8], position: usize) -> usize {
    let (mut position, mut missing) = (position, 1_usize);
    while missing > 0 {
        let (kind, number, behind) = line(bytes, position);
        missing -= 1;
        position = behind;
        match (kind, number) {
            (b'$' | b'=', Some(length)) => position += length + 2,
            (b'*' | b'~' | b'>', Some(count)) => missing += count,
            (b'%', Some(count)) => missing += count * 2,
            _ => {}
        }
    }
    position
}

/// Returns the first byte of the line at `position`, the count after it if it has one, and the
/// offset after the line.
fn line(bytes: &[u8], position: usize) -> (u8, Option<usize>, usize) {
    let length = bytes[position..].windows(2).position(|pair| pair == b"\r\n");
    let end = position + length.expect("the engine ends each line of an answer");
    let number = parse::canonical_integer(&bytes[position + 1..end]);
    (bytes[position], number.and_then(|number| usize::try_from(number).ok()), end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_of_a_reply_are_separated() {
        let answers = b"*5\r\n+OK\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*-1\r\n%1\r\n$-1\r\n,1.5\r\n_\r\n";
        let found = elements(answers).expect("an array");
        assert_eq!(found.iter().map(|element| element.len()).collect::<Vec<_>>(), [5, 9, 13, 15, 3]);
        assert_eq!([b"*5\r\n".as_slice(), &found.concat()].concat(), answers);
        assert_eq!(elements(b"*0\r\n"), Some(vec![]));
        assert_eq!(elements(b"*-1\r\n"), None);
        assert_eq!(elements(b"-MISCONF no\r\n"), None);
        assert_eq!(elements(b"_\r\n"), None);
    }
}
