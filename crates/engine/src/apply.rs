//! From the log back to the state. `apply` runs the very handlers that ran when the record was made, with the record's
//! time for a clock; it reads nothing else, so the same records always give the same state.

use crate::command::{self, Command};
use crate::engine::{ApplyError, Call, Engine};
use crate::query::{Moment, Query, Scope};
use crate::record::{ACKNOWLEDGEMENT, Cursor, LoggedCommand, kind};
use crate::reply::Reply;
use std::sync::Arc;
use tidemark_log::Record;

/// Watched reads that a record may concern.
type Noted = Vec<Arc<Query>>;

/// Applies a record, or as much of it as concerns the keys of a scope, if there is one.
pub(crate) fn apply(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    let (mut cursor, mut noted, time_us) = (Cursor::new(record.payload), Noted::new(), record.time_us);
    let applied = apply_kind(engine, record, scope, &mut cursor, scratch, &mut noted);
    if !noted.is_empty() {
        // When all of it has been applied: the changes of a transaction are one.
        engine.emit_replayed(noted, Moment::of(record.lsn, time_us));
    }
    applied?;
    if cursor.is_empty() { Ok(()) } else { Err(ApplyError::Malformed) }
}

fn apply_kind(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    cursor: &mut Cursor<'_>,
    scratch: &mut Reply,
    noted: &mut Noted,
) -> Result<(), ApplyError> {
    let time_us = record.time_us;
    match record.kind {
        kind::COMMAND => apply_command(engine, time_us, scope, cursor, scratch, noted),
        kind::TRANSACTION => {
            while !cursor.is_empty() {
                let command = cursor.bytes().ok_or(ApplyError::Malformed)?;
                apply_command(engine, time_us, scope, &mut Cursor::new(command), scratch, noted)?;
            }
            Ok(())
        }
        kind::EXPIRY => apply_expiry(engine, cursor, noted),
        kind::WATCH => engine.apply_watch(record.lsn, time_us, cursor),
        kind::UNWATCH => engine.apply_unwatch(time_us, cursor),
        kind::NAMED => engine.apply_named(cursor),
        kind::UNNAMED => engine.apply_unnamed(time_us, cursor),
        other => Err(ApplyError::UnknownKind(other)),
    }
}

fn apply_command(
    engine: &Engine,
    time_us: u64,
    scope: Option<&Scope>,
    cursor: &mut Cursor<'_>,
    scratch: &mut Reply,
    noted: &mut Noted,
) -> Result<(), ApplyError> {
    let logged = LoggedCommand::decode(cursor).ok_or(ApplyError::Malformed)?;
    if logged.id == ACKNOWLEDGEMENT {
        return if scope.is_some() { Ok(()) } else { engine.apply_acknowledgement(&logged.args) };
    }
    let LoggedCall { command, mut args, db } = LoggedCall::of(logged)?;
    if scope.is_some_and(|scope| !scope.narrow(command, &mut args)) {
        return Ok(());
    }
    let call = Call { command, args: &args, db, now_us: time_us };
    scratch.truncate(0);
    engine.replay(&call, scratch, noted);
    match scratch.bytes().first() {
        Some(b'-') => Err(ApplyError::Refused {
            name: command.name,
            answer: String::from_utf8_lossy(scratch.bytes()).trim_end().to_owned(),
        }),
        _ => Ok(()),
    }
}

/// A command of a record, of which it is known that it can be run.
pub(crate) struct LoggedCall<'a> {
    pub(crate) command: &'static Command,
    /// Its arguments, the name first.
    pub(crate) args: Vec<&'a [u8]>,
    pub(crate) db: u8,
}

impl<'a> LoggedCall<'a> {
    /// Reads a command; `None` if it is an acknowledgement, which concerns no keys.
    pub(crate) fn decode(cursor: &mut Cursor<'a>) -> Result<Option<Self>, ApplyError> {
        let logged = LoggedCommand::decode(cursor).ok_or(ApplyError::Malformed)?;
        if logged.id == ACKNOWLEDGEMENT { Ok(None) } else { Self::of(logged).map(Some) }
    }

    fn of(logged: LoggedCommand<'a>) -> Result<Self, ApplyError> {
        let LoggedCommand { db, id, mut args } = logged;
        let command = command::by_id(id).ok_or(ApplyError::UnknownCommand(id))?;
        args.insert(0, command.name.as_bytes());
        if !command.is(command::flags::WRITE)
            || !command.takes(args.len())
            || db as usize >= crate::keyspace::DATABASES
            || args.iter().any(|arg| arg.len() > crate::keyspace::MAX_BYTES)
        {
            return Err(ApplyError::Malformed);
        }
        Ok(Self { command, args, db })
    }
}

fn apply_expiry(engine: &Engine, cursor: &mut Cursor<'_>, noted: &mut Noted) -> Result<(), ApplyError> {
    let db =
        cursor.u8().filter(|&db| (db as usize) < crate::keyspace::DATABASES).ok_or(ApplyError::Malformed)?;
    while !cursor.is_empty() {
        let key = cursor.bytes().ok_or(ApplyError::Malformed)?;
        let mut shard = engine.keyspace().lock(engine.keyspace().shard_of(key));
        shard.database_mut(db as usize).remove(crate::keyspace::hash(key), key);
        shard.touch(db, key);
        shard.index().note(db, key, noted);
    }
    Ok(())
}
