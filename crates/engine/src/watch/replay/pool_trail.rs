//! What has become of the pools of one name, from the log alone, for whoever checks it or writes it down.
//!
//! An engine over nothing but the keys of that name, and those that others of that name were made of, follows the log; wherever a pool
//! does something, that is done as an auditor does it, and somebody looks on. So a pool that is renamed, moved, dropped and made again,
//! in a transaction or not, is where it would be in the server.
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
use crate::value::{Collection, Pool};
use crate::watch::replay::scope::{Dependencies, Scope};
use crate::wire::reply::{Protocol, Reply};
use std::io;
use std::sync::Arc;
use tidemark_log::{Log, Lsn, Record};
use tidemark_pool::Chain;

/// How much is noted of what depends on what; behind that, all keys are followed. Bytes.
const DEPENDENCIES_BYTES: usize = 256 << 20;

/// Looks for the keys that are to be followed: every record is to be shown to it.
#[derive(Debug)]
pub struct PoolSearch {
    scope: Scope,
    dependencies: Dependencies,
}

impl PoolSearch {
    /// For the pools of this name, in whatever database.
    pub fn new(key: &[u8]) -> Self {
        Self { scope: Scope::named(key), dependencies: Dependencies::new(DEPENDENCIES_BYTES) }
    }

    /// Takes note of a record. O(its arguments).
    ///
    /// # Errors
    /// It makes no sense.
    pub fn note(&mut self, record: &Record<'_>) -> Result<(), ApplyError> {
        self.dependencies.note(record)
    }

    /// The way through all of that, before anything is loaded or applied. `log` is one without records, which the engine does not use.
    pub fn trail(&self, log: Arc<Log>) -> PoolTrail {
        PoolTrail {
            engine: Engine::new(log, 1, 0),
            scope: self.dependencies.close(&self.scope),
            scratch: Reply::new(Protocol::Resp2),
        }
    }
}

/// Where and when a pool has done something.
#[derive(Debug, Clone, Copy)]
pub struct PoolPlace<'a> {
    /// The record.
    pub lsn: Lsn,
    /// The record's time. Microseconds since 1970.
    pub time_us: u64,
    /// The database.
    pub db: u8,
    /// The key.
    pub key: &'a [u8],
}

/// Whoever looks on while the pools of a name are followed. An error ends it.
pub trait PoolWitness {
    /// A pool has been made.
    fn made(&mut self, place: &PoolPlace<'_>, pool: &Pool) -> io::Result<()>;

    /// What a frame says is about to be checked; the pool is as it was before.
    fn begins(&mut self, place: &PoolPlace<'_>, pool: &Pool, frame: &[u8]) -> io::Result<()>;

    /// One of its events, before it and behind it.
    fn sees(&mut self, place: &PoolPlace<'_>, sight: Sight<'_>) -> io::Result<()>;

    /// All of it has been checked.
    fn ends(&mut self, place: &PoolPlace<'_>, pool: &Pool) -> io::Result<()>;

    /// Something has been done to keys that are followed, which may have moved a pool or ended it.
    fn changed(&mut self, lsn: Lsn, time_us: u64, trail: &PoolTrail) -> io::Result<()>;
}

/// Why the log cannot be followed further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrailError {
    /// A record or a frame of a snapshot makes no sense.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A pool cannot have done what the log says.
    #[error(transparent)]
    Pool(#[from] NotFollowed),
    /// A pool does not begin with what it is made of.
    #[error(
        "the chain of the pool that is made is {found}, and {expected} follows from its secrets and items"
    )]
    Origin {
        /// What follows.
        expected: Chain,
        /// What the record says.
        found: Chain,
    },
    /// Whoever looks on has failed.
    #[error(transparent)]
    Witness(#[from] io::Error),
}

/// See the module's documentation.
pub struct PoolTrail {
    engine: Engine,
    scope: Scope,
    scratch: Reply,
}

impl PoolTrail {
    /// Begins to load a snapshot. Keys that are not followed are passed over.
    pub fn load(&self) -> Loader<'_> {
        Loader::new(&self.engine, &self.scope, 0)
    }

    /// Shows what is at a key now: its pool, or that there is none.
    pub fn look<R>(&self, db: u8, key: &[u8], look: impl FnOnce(Option<&Pool>) -> R) -> R {
        let shard = self.engine.keyspace().lock(self.engine.keyspace().shard_of(key));
        let entry = shard.database(usize::from(db)).get(hash(key), key);
        look(entry.and_then(|entry| entry.object()).and_then(Pool::from_object))
    }

    /// Whether what is at a key has a time to end.
    pub fn expires(&self, db: u8, key: &[u8]) -> bool {
        let shard = self.engine.keyspace().lock(self.engine.keyspace().shard_of(key));
        let entry = shard.database(usize::from(db)).get(hash(key), key);
        entry.is_some_and(|entry| entry.deadline().is_some())
    }

    /// Follows the next record.
    ///
    /// # Errors
    /// [`TrailError`]; then there is no way on.
    pub fn apply(&mut self, record: &Record<'_>, witness: &mut dyn PoolWitness) -> Result<(), TrailError> {
        for change in Changes::of(record).into_iter().flatten() {
            let change = change.map_err(|error| error.in_record(record.lsn))?;
            if !change.touches(|key| self.scope.contains(key)) {
                continue;
            }
            if let Change::Command { command, db, args } = &change
                && command.name == "pool.step"
            {
                let call = Call { command, args, db: *db, now_us: record.time_us };
                self.step(record.lsn, &call, witness)?;
                continue;
            }
            let made = match &change {
                Change::Command { command, db, args } if command.name == "pool.load" => args
                    .get(1)
                    .map(|key| PoolPlace { lsn: record.lsn, time_us: record.time_us, db: *db, key }),
                _ => None,
            };
            let mut noted = Vec::new();
            crate::persist::apply::apply_change(
                &self.engine,
                record,
                Some(&self.scope),
                change.clone(),
                &mut self.scratch,
                &mut noted,
            )?;
            if let Some(place) = made {
                self.look(place.db, place.key, |pool| made_there(&place, pool, witness))?;
            }
            witness.changed(record.lsn, record.time_us, self)?;
        }
        Ok(())
    }

    /// Checks what a pool has done.
    fn step(&self, lsn: Lsn, call: &Call<'_>, witness: &mut dyn PoolWitness) -> Result<(), TrailError> {
        let &[_, key, frame] = call.args else {
            unreachable!(
                "record {lsn} was read as a pool.step, which has 2 arguments, not {}",
                call.args.len() - 1
            );
        };
        let place = PoolPlace { lsn, time_us: call.now_us, db: call.db, key };
        let mut keys = self.engine.lock_for(call);
        keys.begin_replay();
        let checked = keys.update(key, |pool: &mut Pool| {
            witness.begins(&place, pool, frame)?;
            pool.check(frame, &mut |sight| Ok::<_, TrailError>(witness.sees(&place, sight)?))?;
            Ok(witness.ends(&place, pool)?)
        });
        match checked {
            Ok(Some(checked)) => checked,
            _ => Err(ApplyError::Refused {
                name: call.command.name,
                answer: "there is no pool at this key".to_owned(),
            }
            .into()),
        }
    }
}

fn made_there(
    place: &PoolPlace<'_>,
    pool: Option<&Pool>,
    witness: &mut dyn PoolWitness,
) -> Result<(), TrailError> {
    let Some(pool) = pool else {
        let what = format!("there is no pool at key {} behind it", shown(place.key));
        return Err(ApplyError::from(Malformed::of(what)).in_record(place.lsn).into());
    };
    let (expected, found) = (pool.inner().origin(), pool.chain());
    if expected != found {
        return Err(TrailError::Origin { expected, found });
    }
    Ok(witness.made(place, pool)?)
}
