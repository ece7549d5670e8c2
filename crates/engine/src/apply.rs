//! From the log back to the state. `apply` runs the very handlers that ran when the record was made, with the record's
//! time for a clock; it reads nothing else, so the same records always give the same state.

use crate::command;
use crate::engine::{ApplyError, Call, Engine};
use crate::query::{Moment, Query};
use crate::record::{ACKNOWLEDGEMENT, Cursor, LoggedCommand, kind};
use crate::reply::Reply;
use std::sync::Arc;
use tidemark_log::Record;

/// Watched reads that a record may concern.
type Noted = Vec<Arc<Query>>;

pub(crate) fn apply(engine: &Engine, record: &Record<'_>, scratch: &mut Reply) -> Result<(), ApplyError> {
    let (mut cursor, mut noted, time_us) = (Cursor::new(record.payload), Noted::new(), record.time_us);
    let applied = apply_kind(engine, record, &mut cursor, scratch, &mut noted);
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
    cursor: &mut Cursor<'_>,
    scratch: &mut Reply,
    noted: &mut Noted,
) -> Result<(), ApplyError> {
    let time_us = record.time_us;
    match record.kind {
        kind::COMMAND => apply_command(engine, time_us, cursor, scratch, noted),
        kind::TRANSACTION => {
            while !cursor.is_empty() {
                let command = cursor.bytes().ok_or(ApplyError::Malformed)?;
                apply_command(engine, time_us, &mut Cursor::new(command), scratch, noted)?;
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
    cursor: &mut Cursor<'_>,
    scratch: &mut Reply,
    noted: &mut Noted,
) -> Result<(), ApplyError> {
    let logged = LoggedCommand::decode(cursor).ok_or(ApplyError::Malformed)?;
    if logged.id == ACKNOWLEDGEMENT {
        return engine.apply_acknowledgement(&logged.args);
    }
    let command = command::by_id(logged.id).ok_or(ApplyError::UnknownCommand(logged.id))?;
    let mut args = logged.args;
    args.insert(0, command.name.as_bytes());
    if !command.is(command::flags::WRITE)
        || !command.takes(args.len())
        || logged.db as usize >= crate::keyspace::DATABASES
        || args.iter().any(|arg| arg.len() > crate::keyspace::MAX_BYTES)
    {
        return Err(ApplyError::Malformed);
    }
    let call = Call { command, args: &args, db: logged.db, now_us: time_us };
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
