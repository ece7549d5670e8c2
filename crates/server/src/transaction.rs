//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`: commands that take effect together.
//!
//! The engine executes the commands on keys as one: no other client sees some of their changes without the others, and
//! one record of the log holds them. Commands of the connection, such as `PUBLISH` or `PING`, run right after them and
//! answer in their places.

use crate::connection_command;
use crate::context::Context;
use crate::dispatch;
use crate::named_command;
use crate::session::{NAMES_LIMIT, Replies, Session};
use crate::tracking;
use crate::watch_command;
use tidemark_engine::command::{ConnectionCommand, flags, parse};
use tidemark_engine::keyspace::DATABASES;
use tidemark_engine::query::Acknowledgement;
use tidemark_engine::{Call, Command, CommandError, Executed, Reply, Run, WatchedKeys};

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    queue: Vec<Queued>,
    /// Bytes of all arguments.
    bytes: usize,
    /// A command was refused, so `EXEC` will refuse all.
    spoilt: bool,
    /// A command asked to be answered from the disk, so all are.
    durable: bool,
}

#[derive(Debug)]
struct Queued {
    command: &'static Command,
    args: Vec<Box<[u8]>>,
}

impl Transaction {
    /// Commands queued.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The commands queued, and their arguments.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static Command, &[Box<[u8]>])> {
        self.queue.iter().map(|queued| (queued.command, &*queued.args))
    }

    /// Whether it says itself that what it reads is kept.
    fn opts_in(&self) -> bool {
        self.queue.iter().any(|Queued { command, args }| {
            matches!(command.run, Run::Connection(ConnectionCommand::ClientCaching))
                && args.get(2).is_some_and(|word| parse::is(word, "YES"))
        })
    }

    /// Makes `EXEC` refuse the transaction.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }
}

/// Whether a command is carried out within a transaction instead of being queued.
pub(crate) fn runs_at_once(command: &Command) -> bool {
    use ConnectionCommand as C;
    matches!(command.run, Run::Connection(C::Multi | C::Exec | C::Discard | C::Watch | C::Quit | C::Reset))
}

/// Whether a command is `EXEC`.
pub(crate) fn is_exec(command: &Command) -> bool {
    matches!(command.run, Run::Connection(ConnectionCommand::Exec))
}

/// Queues a command.
pub(crate) fn queue(session: &mut Session, command: &'static Command, args: &[&[u8]], cx: &Context<'_>) {
    let Some(transaction) = &mut session.transaction else { return };
    match admit(transaction, command, args, cx) {
        Ok(()) => session.output.reply.simple("QUEUED"),
        Err(error) => {
            transaction.spoil();
            session.output.reply.error(&error);
        }
    }
    session.show_state();
}

fn admit(
    transaction: &mut Transaction,
    command: &'static Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if command.is(flags::NO_MULTI) {
        return Err(CommandError::text("ERR Command not allowed inside a transaction"));
    }
    let is_durable = matches!(command.run, Run::Connection(ConnectionCommand::Durable));
    let (command, args) = if is_durable { dispatch::unwrap_durable(args)? } else { (command, args) };
    let bytes: usize = args.iter().map(|arg| arg.len() + size_of::<Box<[u8]>>()).sum();
    if transaction.bytes + bytes > cx.config.query_buffer_limit {
        return Err(CommandError::text("ERR transaction exceeds client-query-buffer-limit"));
    }
    transaction.bytes += bytes;
    transaction.durable |= is_durable;
    transaction.queue.push(Queued { command, args: args.iter().map(|arg| Box::from(*arg)).collect() });
    Ok(())
}

/// `MULTI`
pub(crate) fn multi(session: &mut Session) -> Result<(), CommandError> {
    if session.transaction.is_some() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::default());
    session.output.reply.ok();
    session.show_state();
    Ok(())
}

/// `DISCARD`
pub(crate) fn discard(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    if session.transaction.take().is_none() {
        return Err(CommandError::text("ERR DISCARD without MULTI"));
    }
    forget_watches(session, cx);
    session.output.reply.ok();
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
    session.output.reply.ok();
    Ok(())
}

/// `UNWATCH`
pub(crate) fn unwatch(session: &mut Session, cx: &Context<'_>) {
    forget_watches(session, cx);
    session.output.reply.ok();
}

/// Ends the session's watches, if any.
pub(crate) fn forget_watches(session: &mut Session, cx: &Context<'_>) {
    if !session.watched.is_empty() {
        cx.shared.engine.unwatch(&std::mem::take(&mut session.watched));
    }
}

/// `EXEC`
pub(crate) fn exec(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let transaction = session.transaction.take().ok_or(CommandError::text("ERR EXEC without MULTI"))?;
    let watched = std::mem::take(&mut session.watched);
    if transaction.spoilt {
        end_watches(&watched, cx);
        session.show_state();
        return Err(CommandError::text("EXECABORT Transaction discarded because of previous errors."));
    }
    let mark = session.output.reply.len();
    let executed = execute(session, &transaction, &watched, cx);
    end_watches(&watched, cx);
    dispatch::finish(session, &executed, mark, transaction.durable, cx);
    if session.replies == Replies::On {
        session.confirmations = Vec::new();
    }
    session.show_state();
    Ok(())
}

fn end_watches(watched: &WatchedKeys, cx: &Context<'_>) {
    if !watched.is_empty() {
        cx.shared.engine.unwatch(watched);
    }
}

fn execute<'e>(
    session: &mut Session,
    transaction: &Transaction,
    watched: &WatchedKeys,
    cx: &Context<'e>,
) -> Executed<'e> {
    let args: Vec<Vec<&[u8]>> =
        transaction.queue.iter().map(|queued| queued.args.iter().map(|arg| &**arg).collect()).collect();
    let calls = calls_on_keys(session.db, transaction, &args, cx.now_us);
    let watched = (!watched.is_empty()).then_some(watched);
    let engine = &cx.shared.engine;
    let terms = tracking::terms_of_transaction(session, transaction.durable, transaction.opts_in());
    if calls.len() == transaction.queue.len() {
        let reply = &mut session.output.reply;
        return engine.execute_transaction_as(&calls, watched, &[], cx.now_us, terms, reply);
    }
    let done = match acknowledgements(session, transaction, &args, cx) {
        Ok(done) => done,
        Err(error) => {
            session.output.reply.error(&error);
            return Executed::default();
        }
    };
    let mut answers = Reply::new(session.output.reply.protocol());
    answers.set_limit(session.output.reply.room());
    let executed = engine.execute_transaction_as(&calls, watched, &done, cx.now_us, terms, &mut answers);
    if answers.has_overflowed() {
        // The commands on keys have run, so those of the connection do as well; nobody will read what they answer.
        session.output.reply.overflow();
        merge(session, transaction, &args, &[], &[], cx);
        return executed;
    }
    match reply_lengths(answers.bytes()) {
        Some(lengths) => merge(session, transaction, &args, answers.bytes(), &lengths, cx),
        // Not executed: an error, or a watched key has changed.
        None => session.output.reply.encoded(answers.bytes()),
    }
    executed
}

/// The commands on keys, each with the database that a `SELECT` before it has chosen.
fn calls_on_keys<'a>(
    db: u8,
    transaction: &Transaction,
    args: &'a [Vec<&'a [u8]>],
    now_us: u64,
) -> Vec<Call<'a>> {
    let mut db = db;
    let mut calls = Vec::with_capacity(args.len());
    for (queued, args) in transaction.queue.iter().zip(args) {
        match queued.command.run {
            Run::Keys(_) => calls.push(Call { command: queued.command, args, db, now_us }),
            Run::Connection(ConnectionCommand::Select) => db = selected(args).unwrap_or(db),
            Run::Connection(_) | Run::Container => {}
        }
    }
    calls
}

/// What is acknowledged of named subscriptions: together with the changes, or not at all.
fn acknowledgements<'a>(
    session: &mut Session,
    transaction: &Transaction,
    args: &[Vec<&'a [u8]>],
    cx: &Context<'_>,
) -> Result<Vec<Acknowledgement<'a>>, CommandError> {
    let mut done = Vec::new();
    for (queued, args) in transaction.queue.iter().zip(args) {
        if let Some((key, name, lsn)) = acknowledgement(queued.command, args) {
            if !named_command::is_of_key(name, key, cx) {
                return Err(CommandError::text(
                    "SUBSCRIPTION_NOT_FOUND there is no subscription of that name to the key; nothing was done",
                ));
            }
            let lsn = watch_command::position(lsn)?;
            let given = watch_command::watched(session, name, cx).map(|watching| watching.given());
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

/// Key, name and LSN of an acknowledgement that takes place with the transaction.
fn acknowledgement<'a>(command: &Command, args: &[&'a [u8]]) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    matches!(command.run, Run::Connection(ConnectionCommand::EmitAck))
        .then(|| named_command::acknowledgement(args))
        .flatten()
}

/// The database that a `SELECT` names, if it is one.
fn selected(args: &[&[u8]]) -> Option<u8> {
    let index = parse::canonical_integer(args.get(1)?)?;
    u8::try_from(index).ok().filter(|index| usize::from(*index) < DATABASES)
}

/// Runs the commands of the connection and puts all answers in the order of the queue.
fn merge(
    session: &mut Session,
    transaction: &Transaction,
    args: &[Vec<&[u8]>],
    answers: &[u8],
    lengths: &[usize],
    cx: &Context<'_>,
) {
    session.output.reply.array(transaction.queue.len());
    let header = answers.len() - lengths.iter().sum::<usize>();
    let mut rest = answers.get(header..).unwrap_or_default();
    let mut lengths = lengths.iter();
    for (queued, args) in transaction.queue.iter().zip(args) {
        match queued.command.run {
            Run::Keys(_) => {
                let length = lengths.next().copied().unwrap_or_default();
                let (answer, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                session.output.reply.encoded(answer);
                rest = after;
            }
            Run::Connection(_) if acknowledgement(queued.command, args).is_some() => {
                // It has taken place with the others.
                session.output.reply.ok();
                let lsn = args.get(3).and_then(|lsn| watch_command::position(lsn).ok());
                if let (Some(name), Some(lsn)) = (args.get(2), lsn)
                    && let Some(watching) = watch_command::watched(session, name, cx)
                {
                    watching.acknowledge(lsn);
                }
            }
            Run::Connection(which) => {
                let mark = session.output.reply.len();
                connection_command::run_in_transaction(session, which, queued.command, args, cx);
                if dispatch::is_confirmed(session, mark, queued.command) {
                    let confirmations = session.output.reply.bytes().get(mark..).unwrap_or_default();
                    session.confirmations.extend_from_slice(confirmations);
                }
            }
            Run::Container => session.output.reply.error(&CommandError::Arity(queued.command.name.into())),
        }
    }
}

/// The lengths of the elements of an encoded array; `None` if the bytes are not a (non-null) array.
fn reply_lengths(bytes: &[u8]) -> Option<Vec<usize>> {
    let (count, mut position) = header(bytes, 0, b'*')?;
    let mut lengths = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        let end = skip(bytes, position)?;
        lengths.push(end - position);
        position = end;
    }
    Some(lengths)
}

/// The offset behind the reply that begins at `position`. Nesting is walked without recursion.
fn skip(bytes: &[u8], position: usize) -> Option<usize> {
    let (mut position, mut missing) = (position, 1_usize);
    while missing > 0 {
        let kind = *bytes.get(position)?;
        let line_end = position + bytes.get(position..)?.windows(2).position(|pair| pair == b"\r\n")? + 2;
        let number = parse::canonical_integer(bytes.get(position + 1..line_end - 2)?);
        missing -= 1;
        position = line_end;
        match (kind, number.map(usize::try_from)) {
            (b'$' | b'=', Some(Ok(length))) => position += length + 2,
            (b'*' | b'~' | b'>', Some(Ok(count))) => missing += count,
            (b'%', Some(Ok(count))) => missing += count * 2,
            _ => {}
        }
    }
    Some(position)
}

fn header(bytes: &[u8], position: usize, kind: u8) -> Option<(usize, usize)> {
    if bytes.get(position) != Some(&kind) {
        return None;
    }
    let line_end = position + bytes.get(position..)?.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let count = parse::canonical_integer(bytes.get(position + 1..line_end - 2)?)?;
    Some((usize::try_from(count).ok()?, line_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_of_a_reply_are_told_apart() {
        let answers = b"*5\r\n+OK\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*-1\r\n%1\r\n$-1\r\n,1.5\r\n_\r\n";
        assert_eq!(reply_lengths(answers), Some(vec![5, 9, 13, 15, 3]));
        assert_eq!(reply_lengths(b"*0\r\n"), Some(vec![]));
        assert_eq!(reply_lengths(b"*-1\r\n"), None);
        assert_eq!(reply_lengths(b"-MISCONF no\r\n"), None);
        assert_eq!(reply_lengths(b"_\r\n"), None);
    }
}
