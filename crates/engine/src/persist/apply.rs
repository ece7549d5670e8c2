//! Replay of the log. `apply` runs the same handlers as the original commands, with the record's
//! time as the clock. It reads nothing else, so the same records always produce the same state.

use tidemark_fault::{Fault, is_planted};

use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::execute::moment::Moment;
use crate::execute::noted::Noted;
use crate::persist::added_points::AddedPoints;
use crate::persist::apply_error::ApplyError;
use crate::persist::change::{Change, Changes, points_of};
use crate::persist::record::{Cursor, kind};
use crate::watch::Scope;
use crate::wire::reply::Reply;
use std::sync::atomic::Ordering;
use tidemark_log::{Lsn, Record};

impl Engine {
    /// Applies one record of the log, at recovery and on a replica. The same records in the same
    /// order produce the same state on any machine.
    ///
    /// # Panics
    /// The record is not the next one after the last that was applied, except for positions in gaps
    /// of the log.
    pub fn apply(&self, record: &Record<'_>, scratch: &mut Reply) -> Result<(), ApplyError> {
        if is_planted(Fault::AppliedLsn) && record.lsn.0.is_multiple_of(10) {
            return Ok(());
        }
        self.advance_applied(record.lsn);
        apply(self, record, None, scratch)
    }

    /// Declares that the state is that of record `lsn`, because a snapshot was loaded or because
    /// records up to there are skipped. The next record to apply is the one after it.
    ///
    /// # Panics
    /// A record after `lsn` has been applied already.
    pub fn continue_behind(&self, lsn: Lsn) {
        let before = Lsn(self.applied().swap(lsn.0, Ordering::Relaxed));
        assert!(before <= lsn, "record {before} is applied: the state cannot be that behind record {lsn}");
    }

    /// Records that a record, which must be the next one, is applied. Only one thread applies
    /// records, so memory order does not matter.
    fn advance_applied(&self, lsn: Lsn) {
        let before = Lsn(self.applied().swap(lsn.0, Ordering::Relaxed));
        assert!(
            lsn == before.next() || (lsn > before && self.log().records_between(before, lsn.previous()) == 0),
            "record {lsn} is applied behind record {before}, and is not the next one"
        );
    }
}

/// Applies a record, limited to the keys of a scope if one is given.
pub(crate) fn apply(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    if record.kind == kind::POINTS {
        return apply_points(engine, record, scope).map_err(|error| error.in_record(record.lsn));
    }
    let applied = match Changes::of(record) {
        Some(changes) => apply_changes(engine, record, scope, changes, scratch),
        None => apply_notice(engine, record),
    };
    applied.map_err(|error| error.in_record(record.lsn))
}

/// Applies a record of points; unlike [`Changes`], this copies none of them.
fn apply_points(engine: &Engine, record: &Record<'_>, scope: Option<&Scope>) -> Result<(), ApplyError> {
    let (db, mut runs) = points_of(record)?;
    let mut noted = Vec::new();
    let mut applied = Ok(());
    while applied.is_ok()
        && let Some(run) = runs.next_run()?
    {
        if scope.is_none_or(|scope| scope.contains(run.key)) {
            applied = engine.replay_points(db, record.time_us, run, &mut noted).map_err(refused);
        }
    }
    if !noted.is_empty() {
        engine.emit_replayed(noted, Moment::of(record.lsn, record.time_us));
    }
    applied
}

fn refused(error: CommandError) -> ApplyError {
    ApplyError::Refused { name: AddedPoints::command().name, answer: error.to_string() }
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
        // After all changes are applied: a transaction's changes are one.
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
        // A subscriber's position changes no key.
        Change::Acknowledged { .. } if scope.is_some() => Ok(()),
        Change::Acknowledged { args } => engine.apply_acknowledgement(&args),
        Change::Points(points) => {
            if scope.is_some_and(|scope| !scope.contains(points.key())) {
                return Ok(());
            }
            engine.replay_points(points.db(), record.time_us, points.run(), noted).map_err(refused)
        }
        Change::Expired { db, keys } => {
            for key in keys {
                engine.replay_expiry(db, key, record.time_us, noted);
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
        kind::TICK => engine.apply_tick(record.lsn, record.time_us, &mut cursor),
        kind::UNNAMED => engine.apply_unnamed(record.time_us, &mut cursor),
        other => Err(ApplyError::UnknownKind(other)),
    }?;
    cursor.expect_end()
}
