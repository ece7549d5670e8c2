//! From the log back to the state. `apply` runs the very handlers that ran when the record was made, with the record's
//! time for a clock; it reads nothing else, so the same records always give the same state.

use tidemark_fault::{Fault, is_planted};

use crate::engine::Engine;
use crate::execute::call::Call;
use crate::execute::moment::Moment;
use crate::execute::noted::Noted;
use crate::persist::apply_error::ApplyError;
use crate::persist::change::{Change, Changes};
use crate::persist::record::{Cursor, kind};
use crate::watch::Scope;
use crate::watch::touched::Touched;
use crate::wire::reply::Reply;
use std::sync::atomic::Ordering;
use tidemark_log::{Lsn, Record};

impl Engine {
    /// Applies one record of the log: the way back to the state, at recovery and on a replica. The same records in the
    /// same order give the same state on any machine.
    ///
    /// # Panics
    /// The record is not the next one: behind the last that was applied, positions in gaps of the
    /// log left out.
    pub fn apply(&self, record: &Record<'_>, scratch: &mut Reply) -> Result<(), ApplyError> {
        if is_planted(Fault::AppliedLsn) && record.lsn.0.is_multiple_of(10) {
            return Ok(());
        }
        self.advance_applied(record.lsn);
        apply(self, record, None, scratch)
    }

    /// Says that the state is that behind record `lsn`, because a snapshot has brought it or
    /// because records up to there are passed over. The next record that is applied is the one
    /// after it.
    ///
    /// # Panics
    /// Records behind `lsn` have been applied already.
    pub fn continue_behind(&self, lsn: Lsn) {
        let before = Lsn(self.applied().swap(lsn.0, Ordering::Relaxed));
        assert!(before <= lsn, "record {before} is applied: the state cannot be that behind record {lsn}");
    }

    /// Notes that a record is applied, which is the next one. One thread applies, so the order of
    /// memory does not matter.
    fn advance_applied(&self, lsn: Lsn) {
        let before = Lsn(self.applied().swap(lsn.0, Ordering::Relaxed));
        assert!(
            lsn == before.next() || (lsn > before && self.log().records_between(before, lsn.previous()) == 0),
            "record {lsn} is applied behind record {before}, and is not the next one"
        );
    }
}

/// Applies a record, or as much of it as concerns the keys of a scope, if there is one.
pub(crate) fn apply(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    let applied = match Changes::of(record) {
        Some(changes) => apply_changes(engine, record, scope, changes, scratch),
        None => apply_notice(engine, record),
    };
    applied.map_err(|error| error.in_record(record.lsn))
}

fn apply_changes(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    mut changes: Changes<'_>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    let mut noted = Vec::new();
    let applied =
        changes.try_for_each(|change| apply_change(engine, record, scope, change?, scratch, &mut noted));
    if !noted.is_empty() {
        // When all of it has been applied: the changes of a transaction are one.
        engine.emit_replayed(noted, Moment::of(record.lsn, record.time_us));
    }
    applied
}

pub(crate) fn apply_change(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    change: Change<'_>,
    scratch: &mut Reply,
    noted: &mut Vec<Noted>,
) -> Result<(), ApplyError> {
    match change {
        Change::Command { command, db, mut args } => {
            if scope.is_some_and(|scope| !scope.narrow(command, &mut args)) {
                return Ok(());
            }
            let call = Call { command, args: &args, db, now_us: record.time_us };
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
        // How far a subscriber is changes no key.
        Change::Acknowledged { .. } if scope.is_some() => Ok(()),
        Change::Acknowledged { args } => engine.apply_acknowledgement(&args),
        Change::Expired { db, keys } => {
            for key in keys {
                let mut shard = engine.keyspace().lock(engine.keyspace().shard_of(key));
                shard.database_mut(db as usize).remove(crate::keyspace::hash(key), key);
                shard.touch(db, key);
                shard.note(db, key, &Touched::Everything, noted);
            }
            Ok(())
        }
    }
}

/// Applies a record that changes no data.
fn apply_notice(engine: &Engine, record: &Record<'_>) -> Result<(), ApplyError> {
    let mut cursor = Cursor::new(record.payload);
    match record.kind {
        kind::WATCH => engine.apply_watch(record.lsn, record.time_us, &mut cursor),
        kind::UNWATCH => engine.apply_unwatch(record.time_us, &mut cursor),
        kind::NAMED => engine.apply_named(&mut cursor),
        kind::WAKE => engine.apply_wake(record.time_us, &mut cursor),
        kind::UNNAMED => engine.apply_unnamed(record.time_us, &mut cursor),
        other => Err(ApplyError::UnknownKind(other)),
    }?;
    cursor.expect_end()
}
