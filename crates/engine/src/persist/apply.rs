//! Replay of the log. `apply` runs the same handlers as the original commands, with the record's
//! time as the clock. It reads nothing else, so the same records always produce the same state.

use tidemark_fault::{Fault, is_planted};

use crate::command;
use crate::context::{Keys, Locked};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::execute::locking::Access;
use crate::execute::moment::Moment;
use crate::execute::noted::Noted;
use crate::persist::added_points::AddedPoints;
use crate::persist::apply_error::ApplyError;
use crate::persist::change::{Change, Changes, points_of};
use crate::persist::points::PointsRun;
use crate::persist::record::{Cursor, kind};
use crate::watch::Scope;
use crate::wire::reply::Reply;
use tidemark_log::Record;

impl Engine {
    /// Applies one record of the log, at recovery and on a replica. The same records in the same
    /// order produce the same state on any machine.
    ///
    /// # Panics
    /// The record is not the next one after the last that was applied, except for positions in gaps
    /// of the log. After an error the state is that of no record, and must be dropped.
    pub fn apply(&self, record: &Record<'_>, scratch: &mut Reply) -> Result<(), ApplyError> {
        if is_planted(Fault::AppliedLsn) && record.lsn.0.is_multiple_of(10) {
            return Ok(());
        }
        let _alone = self.begin_record(record.lsn);
        apply(self, record, None, scratch)?;
        self.end_record(record.lsn);
        Ok(())
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
///
/// Readers of memory that follows see all of them or none. At a start there are no readers, and each
/// series is locked alone, which is faster.
fn apply_points(engine: &Engine, record: &Record<'_>, scope: Option<&Scope>) -> Result<(), ApplyError> {
    let (db, mut runs) = points_of(record)?;
    let all = || engine.keys(Locked::All(engine.keyspace().lock_all()), db, record.time_us);
    let (mut held, mut noted, mut count) = (None, Vec::new(), 0);
    let holds_all = engine.is_following() && runs.has_several()?;
    while let Some(run) = runs.next_run()? {
        if scope.is_some_and(|scope| !scope.contains(run.key)) {
            continue;
        }
        // Before others are locked.
        held = held.filter(|_| holds_all);
        let keys = held.get_or_insert_with(|| {
            let mut keys = if holds_all { all() } else { lock_run(engine, db, &run, record.time_us) };
            keys.begin_replay(engine.is_following());
            keys
        });
        keys.with_named(run.key, |keys| command::replay_points(keys, run)).map_err(refused)?;
        noted.append(&mut std::mem::take(&mut keys.effects).take_noted());
        count += 1;
    }
    if let Some(mut keys) = held {
        if count > 1 && !(holds_all || noted.is_empty()) {
            // What is noted may read any series of the record.
            drop(keys);
            keys = all();
        }
        finish(engine, keys, noted, record);
    }
    Ok(())
}

fn refused(error: CommandError) -> ApplyError {
    ApplyError::Refused { name: AddedPoints::command().name, answer: error.to_string() }
}

fn apply_changes(
    engine: &Engine,
    record: &Record<'_>,
    scope: Option<&Scope>,
    changes: Changes<'_>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    let mut changes = changes.filter_map(|change| match change {
        Ok(mut change) => is_within(scope, &mut change).then_some(Ok(change)),
        Err(error) => Some(Err(error)),
    });
    let Some(first) = changes.next().transpose()? else { return Ok(()) };
    let together;
    let changes = if let Some(second) = changes.next().transpose()? {
        together = [Ok(first), Ok(second)].into_iter().chain(changes).collect::<Result<Vec<_>, _>>()?;
        &together[..]
    } else {
        std::slice::from_ref(&first)
    };
    let (keys, noted) = run_changes(engine, record, changes, scratch)?;
    // After all changes are applied, and under their locks: a transaction's changes are one.
    finish(engine, keys, noted, record);
    Ok(())
}

/// Applies a change alone, to an engine without watched reads.
pub(crate) fn apply_change(
    engine: &Engine,
    record: &Record<'_>,
    scope: &Scope,
    mut change: Change<'_>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    if is_within(Some(scope), &mut change) {
        run_changes(engine, record, std::slice::from_ref(&change), scratch).map(drop)
    } else {
        Ok(())
    }
}

/// Returns whether a change concerns keys of the scope. Removes the others from a command that treats
/// all of its keys alike.
fn is_within(scope: Option<&Scope>, change: &mut Change<'_>) -> bool {
    let Some(scope) = scope else { return true };
    match change {
        Change::Command { command, args, .. } => scope.narrow(command, args),
        // A subscriber's position changes no key.
        Change::Acknowledged { .. } => false,
        Change::Points(points) => scope.contains(points.key()),
        Change::Expired { .. } => true,
    }
}

/// Runs the changes of a record under the locks that all of them need together, so that a reader sees
/// all of them or none. Returns the keys, which are still locked, and the subscribers concerned.
fn run_changes<'e>(
    engine: &'e Engine,
    record: &Record<'_>,
    changes: &[Change<'_>],
    scratch: &mut Reply,
) -> Result<(Keys<'e>, Vec<Noted>), ApplyError> {
    let mut keys = lock_changes(engine, changes, record.time_us);
    keys.begin_replay(engine.is_following());
    let mut noted = Vec::new();
    for change in changes {
        if is_planted(Fault::HalfTransaction) {
            drop(std::mem::replace(&mut keys, engine.keys(engine.lock_shards([]), 0, record.time_us)));
            std::thread::sleep(std::time::Duration::from_millis(1));
            keys = lock_changes(engine, changes, record.time_us);
            keys.begin_replay(engine.is_following());
        }
        run_change(engine, record, change, &mut keys, scratch)?;
        noted.append(&mut std::mem::take(&mut keys.effects).take_noted());
    }
    Ok((keys, noted))
}

fn run_change(
    engine: &Engine,
    record: &Record<'_>,
    change: &Change<'_>,
    keys: &mut Keys<'_>,
    scratch: &mut Reply,
) -> Result<(), ApplyError> {
    keys.select(change.db());
    match change {
        Change::Command { command, db, args } => {
            scratch.truncate(0);
            engine.run(&Call { command, args, db: *db, now_us: record.time_us }, keys, scratch);
            match scratch.bytes().first() {
                Some(b'-') => Err(ApplyError::Refused {
                    name: command.name,
                    answer: String::from_utf8_lossy(scratch.bytes()).trim_end().to_owned(),
                }),
                _ => Ok(()),
            }
        }
        Change::Acknowledged { args } => engine.apply_acknowledgement(args),
        Change::Points(points) => command::replay_points(keys, points.run()).map_err(refused),
        Change::Expired { keys: expired, .. } => {
            for key in expired {
                keys.remove_expired(key);
                keys.announce_expired(key);
            }
            Ok(())
        }
    }
}

/// Locks what the changes of a record may touch, or a watched read of theirs may read.
fn lock_changes<'e>(engine: &'e Engine, changes: &[Change<'_>], now_us: u64) -> Keys<'e> {
    match changes {
        [Change::Command { command, db, args }] => engine.lock_for(&Call { command, args, db: *db, now_us }),
        [Change::Expired { db, keys }] => lock_changed(engine, *db, keys, false, now_us),
        [Change::Points(points)] => lock_run(engine, points.db(), &points.run(), now_us),
        several => {
            let calls = several.iter().filter_map(|change| match change {
                Change::Command { command, db, args } => Some(Call { command, args, db: *db, now_us }),
                // A position changes no key, and the others are alone in their record.
                Change::Acknowledged { .. } | Change::Expired { .. } | Change::Points(_) => None,
            });
            engine.lock_for_transaction(&calls.collect::<Vec<_>>(), None, None, now_us)
        }
    }
}

/// Locks a series that gets points, and what is read together with it.
fn lock_run<'e>(engine: &'e Engine, db: u8, run: &PointsRun<'_>, now_us: u64) -> Keys<'e> {
    // A series that is there keeps its labels.
    lock_changed(engine, db, &[run.key], run.definition.is_some(), now_us)
}

/// Locks keys that change, and what is read together with them; `brings` tells whether one may get a series
/// that watched reads select by its labels.
fn lock_changed<'e>(engine: &'e Engine, db: u8, keys: &[&[u8]], brings: bool, now_us: u64) -> Keys<'e> {
    let keys = || keys.iter().copied();
    let locked = engine.lock_reachable(engine.lock_keys(keys()), Access::Write, keys, |_| brings);
    engine.keys(locked, db, now_us)
}

/// Notifies the subscribers that a record concerns, and releases its locks.
fn finish(engine: &Engine, mut keys: Keys<'_>, noted: Vec<Noted>, record: &Record<'_>) {
    if engine.is_following() {
        // Nothing that was cut or changed before may be of a later record.
        keys.note_logged(record.lsn);
    }
    if !noted.is_empty() {
        engine.emit(&mut keys, noted, Some(Moment::of(record.lsn, record.time_us)));
    }
    if keys.events.are_wanted() {
        engine.publish_events(&mut keys, Some(record.lsn), false);
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
        // The first record of a term, for example.
        kind::GROUP.. => return Ok(()),
        other => Err(ApplyError::UnknownKind(other)),
    }?;
    cursor.expect_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::level;
    use std::sync::Arc;
    use tidemark_log::{Log, Lsn, MemoryStorage, Options};

    /// The kinds of records, each with its level. Those above the first are written by commands of that level.
    const KINDS: [(u8, u8); 10] = [
        (kind::COMMAND, level::FIRST),
        (kind::TRANSACTION, level::FIRST),
        (kind::EXPIRY, level::FIRST),
        (kind::WATCH, level::FIRST),
        (kind::UNWATCH, level::FIRST),
        (kind::NAMED, level::FIRST),
        (kind::UNNAMED, level::FIRST),
        (kind::WAKE, level::FIRST),
        (kind::POINTS, level::FIRST),
        (kind::TICK, level::FIRST),
    ];

    #[test]
    fn every_kind_of_record_states_its_level() {
        let (log, _) = Log::open(Arc::new(MemoryStorage::new()), Options::default()).expect("opens");
        let engine = Engine::new(Arc::new(log), 4, 1);
        for kind in 1..kind::GROUP {
            let record = Record { lsn: Lsn(1), time_us: 1, kind, payload: &[] };
            let applied = apply(&engine, &record, None, &mut Reply::default());
            let is_known = !matches!(applied, Err(ApplyError::UnknownKind(_)));
            let stated = KINDS.iter().find(|(stated, _)| *stated == kind).map(|(_, level)| *level);
            assert_eq!(is_known, stated.is_some(), "kind {kind}: {applied:?}; state its level here");
            assert!(
                stated.is_none_or(|stated| (level::FIRST..=level::NEWEST).contains(&stated)),
                "kind {kind}"
            );
        }
    }
}
