//! History of the pools of one name, from the log alone, for an audit or an export.
//!
//! An engine over the keys of that name, and the keys that they were made from, applies the log. So
//! a pool that is renamed, moved, dropped or recreated, in a transaction or not, is where it would
//! be in the server. Each step of a pool is checked as an auditor would, and passed to a witness.
//!
//! ```text
//! records ─► PoolSearch ─► PoolTrail: snapshot ─► load
//!                                    records  ─► apply ─► PoolWitness
//! ```

use crate::engine::Engine;
use crate::execute::call::Call;
use crate::keyspace::hash;
use crate::persist::apply_error::{ApplyError, Malformed, shown};
use crate::persist::change::{Change, Changes};
use crate::persist::loader::Loader;
use crate::value::pool::{NotFollowed, Sight};
use crate::value::{Pool, TypedValue};
use crate::watch::replay::scope::{Dependencies, Scope};
use crate::wire::reply::{Protocol, Reply};
use std::io;
use std::sync::Arc;
use tidemark_log::{Log, Lsn, Record};
use tidemark_pool::Chain;

/// Limit on recorded dependencies, in bytes. Beyond it, all keys are followed.
const DEPENDENCIES_BYTES: usize = 256 << 20;

/// First pass over the records, which finds the keys to follow. It must see all of them before
/// [`trail`](Self::trail).
#[derive(Debug)]
pub struct PoolSearch {
    scope: Scope,
    dependencies: Dependencies,
}

impl PoolSearch {
    /// Creates a search for the pools of this name, in any database.
    pub fn new(key: &[u8]) -> Self {
        Self { scope: Scope::named(key), dependencies: Dependencies::new(DEPENDENCIES_BYTES) }
    }

    /// Adds the dependencies of a record. O(its arguments).
    ///
    /// # Errors
    /// The record is malformed.
    pub fn note(&mut self, record: &Record<'_>) -> Result<(), ApplyError> {
        self.dependencies.note(record)
    }

    /// Returns the trail over the keys found, with nothing loaded or applied. `log` is an empty
    /// log, which the engine does not use.
    pub fn trail(&self, log: Arc<Log>) -> PoolTrail {
        PoolTrail {
            engine: Engine::new(log, 1, 0),
            scope: self.dependencies.close(&self.scope),
            scratch: Reply::new(Protocol::Resp2),
        }
    }
}

/// Database, key and record of a change of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolChange<'a> {
    /// LSN of the record.
    pub lsn: Lsn,
    /// Time of the record, in microseconds since 1970.
    pub time_us: u64,
    /// Database.
    pub db: u8,
    /// Key.
    pub key: &'a [u8],
}

/// Observer of the pools of a name. An error ends the trail.
pub trait PoolObserver {
    /// Called after a pool has been created.
    fn created(&mut self, at: &PoolChange<'_>, pool: &Pool) -> io::Result<()>;

    /// Called before a frame is checked; the pool is in the state before it.
    fn frame_begins(&mut self, at: &PoolChange<'_>, pool: &Pool, frame: &[u8]) -> io::Result<()>;

    /// Called before and after each event of the frame.
    fn observe(&mut self, at: &PoolChange<'_>, sight: Sight<'_>) -> io::Result<()>;

    /// Called after the whole frame has been checked.
    fn frame_ends(&mut self, at: &PoolChange<'_>, pool: &Pool) -> io::Result<()>;

    /// Called after a change of followed keys other than a frame, which may have moved or ended a
    /// pool.
    fn keys_changed(&mut self, lsn: Lsn, time_us: u64, trail: &PoolTrail) -> io::Result<()>;
}

/// Why the log cannot be followed further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrailError {
    /// A record or a frame of a snapshot is malformed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A pool cannot have done what the log says.
    #[error(transparent)]
    Pool(#[from] NotFollowed),
    /// A pool's chain does not begin with its secrets and items.
    #[error("the chain of the pool that is made is {found}, but its secrets and items give {expected}")]
    Origin {
        /// Chain that follows from the secrets and items.
        expected: Chain,
        /// Chain in the record.
        found: Chain,
    },
    /// The witness has failed.
    #[error(transparent)]
    Witness(#[from] io::Error),
}

/// Second pass over the log: applies the records of the followed keys and checks the pools. See the
/// module's documentation.
pub struct PoolTrail {
    engine: Engine,
    scope: Scope,
    scratch: Reply,
}

impl PoolTrail {
    /// Starts to load a snapshot. Keys that are not followed are skipped.
    pub fn load(&self) -> Loader<'_> {
        Loader::new(&self.engine, &self.scope, 0)
    }

    /// Passes the pool at a key to `look`, or `None` if there is none.
    pub fn look<R>(&self, db: u8, key: &[u8], look: impl FnOnce(Option<&Pool>) -> R) -> R {
        let shard = self.engine.keyspace().lock(self.engine.keyspace().shard_of(key));
        let entry = shard.database(usize::from(db)).get(hash(key), key);
        look(entry.and_then(|entry| entry.object()).and_then(Pool::from_object))
    }

    /// Returns whether a key has an expiry.
    pub fn expires(&self, db: u8, key: &[u8]) -> bool {
        let shard = self.engine.keyspace().lock(self.engine.keyspace().shard_of(key));
        let entry = shard.database(usize::from(db)).get(hash(key), key);
        entry.is_some_and(|entry| entry.deadline().is_some())
    }

    /// Applies the next record, checks the steps of pools in it and passes them to `observer`.
    /// Records of other keys are skipped.
    ///
    /// # Errors
    /// [`TrailError`]; the trail cannot continue after it.
    pub fn apply(&mut self, record: &Record<'_>, observer: &mut dyn PoolObserver) -> Result<(), TrailError> {
        for change in Changes::of(record).into_iter().flatten() {
            let change = change.map_err(|error| error.in_record(record.lsn))?;
            if !change.touches(|key| self.scope.contains(key)) {
                continue;
            }
            if let Change::Command { command, db, args } = &change
                && command.name == "pool.step"
            {
                let call = Call { command, args, db: *db, now_us: record.time_us };
                self.step(record.lsn, &call, observer)?;
                continue;
            }
            let created = match &change {
                Change::Command { command, db, args } if command.name == "pool.load" => args
                    .get(1)
                    .map(|key| PoolChange { lsn: record.lsn, time_us: record.time_us, db: *db, key }),
                _ => None,
            };
            let (engine, scratch) = (&self.engine, &mut self.scratch);
            crate::persist::apply::apply_change(engine, record, &self.scope, change.clone(), scratch)?;
            if let Some(at) = created {
                self.look(at.db, at.key, |pool| check_created(&at, pool, observer))?;
            }
            observer.keys_changed(record.lsn, record.time_us, self)?;
        }
        Ok(())
    }

    /// Checks a step of a pool: its events are passed to the witness as they are replayed.
    fn step(&self, lsn: Lsn, call: &Call<'_>, observer: &mut dyn PoolObserver) -> Result<(), TrailError> {
        let &[_, key, frame] = call.args else {
            unreachable!(
                "record {lsn} was read as a pool.step, which has 2 arguments, not {}",
                call.args.len() - 1
            );
        };
        let at = PoolChange { lsn, time_us: call.now_us, db: call.db, key };
        let mut keys = self.engine.lock_for(call);
        keys.begin_replay(false);
        let checked = keys.update(key, |pool: &mut Pool| {
            observer.frame_begins(&at, pool, frame)?;
            pool.check(frame, &mut |sight| Ok::<_, TrailError>(observer.observe(&at, sight)?))?;
            Ok(observer.frame_ends(&at, pool)?)
        });
        match checked {
            Ok(Some(checked)) => checked,
            _ => Err(ApplyError::Refused {
                name: call.command.name,
                answer: format!("there is no pool at key {}", shown(key)),
            }
            .into()),
        }
    }
}

/// Checks that a created pool's chain begins with its secrets and items, and passes the pool to the
/// witness.
fn check_created(
    at: &PoolChange<'_>,
    pool: Option<&Pool>,
    observer: &mut dyn PoolObserver,
) -> Result<(), TrailError> {
    let Some(pool) = pool else {
        let what = format!("there is no pool at key {} after it", shown(at.key));
        return Err(ApplyError::from(Malformed::of(what)).in_record(at.lsn).into());
    };
    let (expected, found) = (pool.inner().origin(), pool.chain());
    if expected != found {
        return Err(TrailError::Origin { expected, found });
    }
    Ok(observer.created(at, pool)?)
}
